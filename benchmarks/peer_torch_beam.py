"""Beam search with the plain PyTorch recurrent network of `peer_torch.py`; started by `decode.py`."""

import json
import sys
import time

import numpy as np
import torch
from peer_torch import BOS, RecurrentTranslator
from torch import Tensor, nn

EOS = 3


@torch.inference_mode()
def search(model: RecurrentTranslator, source: Tensor, beam: int, steps: int) -> Tensor:
    """Return the best translations int[B, steps] of source int[B, S]; no hypothesis ends early."""
    rows, vocabulary = source.shape[0], model.output.out_features
    packed = nn.utils.rnn.pack_padded_sequence(
        model.source_table(source), (source != 0).sum(1), batch_first=True, enforce_sorted=False
    )
    states, last = model.encoder(packed)
    states, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=source.shape[1])
    hidden, memory = (
        torch.tanh(bridge(torch.cat([both[0], both[1]], 1))).repeat_interleave(beam, 0)
        for bridge, both in zip(model.bridges, last, strict=True)
    )
    keys, padding = model.key(states).transpose(1, 2), (source == 0)[:, None]
    readout = torch.zeros(rows * beam, 512)
    tokens = torch.full((rows * beam,), BOS)
    scores = torch.full((rows, beam), -1e9)
    scores[:, 0] = 0.0
    history = torch.zeros((rows, beam, 0), dtype=torch.long)
    first = torch.arange(rows)[:, None] * beam
    for _ in range(steps):
        hidden, memory = model.cell(torch.cat([model.target_table(tokens), readout], 1), (hidden, memory))
        weights = (hidden.view(rows, beam, -1) @ keys).masked_fill(padding, -1e9).softmax(2)
        context = (weights @ states).view(rows * beam, -1)
        readout = torch.tanh(model.combine(torch.cat([context, hidden], 1)))
        log_probs = model.output(readout).log_softmax(1).view(rows, beam, vocabulary)
        scores, indices = (scores[:, :, None] + log_probs).view(rows, -1).topk(beam)
        parents, tokens = indices // vocabulary, indices % vocabulary
        history = torch.cat([history.gather(1, parents[:, :, None].expand_as(history)), tokens[:, :, None]], 2)
        kept, tokens = (first + parents).view(-1), tokens.view(-1)
        hidden, memory, readout = hidden[kept], memory[kept], readout[kept]
    return history[:, 0]


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    work = np.load(sys.argv[1])
    batch, beam, steps = work["shape"][-3:].tolist()
    groups = [torch.from_numpy(rows).long() for rows in np.split(work["source"], len(work["source"]) // batch)]
    groups = [rows[:, : (rows != 0).sum(1).max()] for rows in groups]
    model = RecurrentTranslator().eval()
    seconds = []
    for _ in range(3):
        start = time.process_time()
        for rows in groups:
            search(model, rows, beam, steps)
        seconds.append(time.process_time() - start)
    print(json.dumps({"sentences_per_cpu_second": len(work["source"]) / sorted(seconds)[1]}))


if __name__ == "__main__":
    main()
