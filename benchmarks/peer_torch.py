"""A plain PyTorch float32 loop over the batches of `train.py`; started by it in an environment with torch."""

import json
import os
import sys
import time

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import numpy as np
import torch
from torch import nn

LAYERS, D_MODEL, D_FF, HEADS, VOCABULARY = 3, 256, 1024, 4, 8000
BOS = 2


class Translator(nn.Module):
    """The Transformer of torch with one table for source, target and output."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(VOCABULARY, D_MODEL, padding_idx=0)
        self.positions = nn.Parameter(torch.zeros(512, D_MODEL), requires_grad=False)
        self.body = nn.Transformer(D_MODEL, HEADS, LAYERS, LAYERS, D_FF, 0.1, batch_first=True)
        self.dropout = nn.Dropout(0.1)

    def embed(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.table(tokens) * D_MODEL**0.5 + self.positions[: tokens.shape[1]])

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        inputs = torch.cat([torch.full_like(target[:, :1], BOS), target[:, :-1]], 1)
        length = target.shape[1]
        causal = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
        padding = source == 0
        hidden = self.body(
            self.embed(source),
            self.embed(inputs),
            tgt_mask=causal,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return hidden @ self.table.weight.T


class RecurrentTranslator(nn.Module):
    """The LSTMs of torch, with step-by-step attention and input feeding."""

    def __init__(self) -> None:
        super().__init__()
        self.source_table = nn.Embedding(VOCABULARY, 256, padding_idx=0)
        self.target_table = nn.Embedding(VOCABULARY, 256, padding_idx=0)
        self.encoder = nn.LSTM(256, 256, bidirectional=True, batch_first=True)
        self.bridges = nn.ModuleList([nn.Linear(512, 512) for _ in range(2)])
        self.cell = nn.LSTMCell(256 + 512, 512)
        self.key = nn.Linear(512, 512, bias=False)
        self.combine = nn.Linear(1024, 512)
        self.output = nn.Linear(512, VOCABULARY, bias=False)
        self.dropout = nn.Dropout(0.2)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        inputs = torch.cat([torch.full_like(target[:, :1], BOS), target[:, :-1]], 1)
        lengths = (source != 0).sum(1).clamp(min=1)
        embedded = self.dropout(self.source_table(source))
        packed = nn.utils.rnn.pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        states, last = self.encoder(packed)
        states, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=source.shape[1])
        hidden, memory = (
            torch.tanh(bridge(torch.cat([both[0], both[1]], 1)))
            for bridge, both in zip(self.bridges, last, strict=True)
        )
        keys, padding = self.key(states), source == 0
        embedded = self.dropout(self.target_table(inputs))
        readout, readouts = torch.zeros(source.shape[0], 512), []
        for step in range(target.shape[1]):
            hidden, memory = self.cell(torch.cat([embedded[:, step], readout], 1), (hidden, memory))
            scores = torch.bmm(keys, hidden[:, :, None])[:, :, 0].masked_fill(padding, -1e9)
            context = torch.bmm(scores.softmax(1)[:, None], states)[:, 0]
            readout = self.dropout(torch.tanh(self.combine(torch.cat([context, hidden], 1))))
            readouts.append(readout)
        return self.output(torch.stack(readouts, 1))


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    work = np.load(sys.argv[1])
    count = len(work.files) // 2
    batches = [
        tuple(torch.from_numpy(work[f"{side}{i}"]).long() for side in ("source", "target")) for i in range(count)
    ]
    model = {"transformer": Translator, "rnn": RecurrentTranslator}[sys.argv[2]]()
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=0)
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)

    def step(source: torch.Tensor, target: torch.Tensor) -> None:
        optimizer.zero_grad()
        criterion(model(source, target).flatten(0, 1), target.flatten()).backward()
        if sys.argv[2] == "rnn":
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    for batch in batches[:2]:
        step(*batch)
    start = time.process_time()
    for batch in batches:
        step(*batch)
    seconds = time.process_time() - start
    tokens = sum(int((target != 0).sum()) for _, target in batches)
    print(json.dumps({"tokens_per_cpu_second": tokens / seconds}))


if __name__ == "__main__":
    main()
