"""A plain PyTorch float32 loop over the batches of `train.py`; run by it in an environment that has torch."""

import json
import os
import sys
import time

os.sched_setaffinity(0, {0})

import numpy as np
import torch
from torch import nn

LAYERS, D_MODEL, D_FF, HEADS, VOCABULARY = 3, 256, 1024, 4, 8000
BOS = 2


class Translator(nn.Module):
    """torch's own Transformer with one table for source, target and output."""

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


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    work = np.load(sys.argv[1])
    count = len(work.files) // 2
    batches = [
        tuple(torch.from_numpy(work[f"{side}{i}"]).long() for side in ("source", "target")) for i in range(count)
    ]
    model, criterion = Translator(), nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=0)
    optimizer = torch.optim.Adam(model.parameters(), 1e-4)

    def step(source: torch.Tensor, target: torch.Tensor) -> None:
        optimizer.zero_grad()
        criterion(model(source, target).flatten(0, 1), target.flatten()).backward()
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
