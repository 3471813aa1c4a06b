"""Unigram and bigram baselines for the masked tokens on which a pretraining run is evaluated.

    python -m benchmarks.mlm_baselines --workdir=runs/bert_tiny

Both models count the training text of the run and predict the masked tokens of its development set. Unigram: counts
plus one for every piece. Bigram: the successors of the piece on the left, interpolated with the unigram at the weight
that is best on these tokens; if the left piece is masked or special, the unigram alone. A second bigram uses the
piece on the right. Loss in nats per token, accuracy in percent.
"""

import argparse
import pathlib
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks import measure
from nmt_jax.data.batching.segment_pairs import PairBatches
from nmt_jax.distributed import sharding
from nmt_jax.tasks.pretrain import Pretrain
from nmt_jax.workdir import Workdir


def questions(batches: PairBatches, special: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return label, left and right piece of every masked token, int[N] each; -1 for pieces in `special`, bool[V]."""
    found = []
    for number in range(len(batches)):
        batch = batches[number]
        row, column = np.nonzero(batch["weights"])
        place = batch["positions"][row, column]
        ids = np.pad(batch["ids"], ((0, 0), (0, 1)))
        near = [np.where(special[ids[row, place + step]], -1, ids[row, place + step]) for step in (-1, 1)]
        found.append([batch["labels"][row, column], *near])
    label, left, right = np.concatenate(found, axis=1)
    return label, left, right


def baselines(task: Pretrain) -> dict[str, Any]:
    """Return loss and accuracy of each baseline on the masked tokens of the development set."""
    size = len(task.tokenizer)
    label, left, right = questions(task.dev_batches, task.masking().special)
    text = np.asarray(task.train_text.ids)
    counts = np.bincount(text, minlength=size)
    unigram = (counts + 1) / (counts.sum() + size)
    results: dict[str, Any] = {"tokens": len(label)}
    results["unigram"] = _measures(unigram[label], np.full(len(label), unigram.argmax()) == label)
    for name, near, first, second in (("bigram", left, text[:-1], text[1:]), ("right", right, text[1:], text[:-1])):
        pairs = sparse.coo_matrix((np.ones(len(first)), (first, second)), shape=(size, size)).tocsr()
        totals = np.maximum(np.asarray(pairs.sum(axis=1)).ravel(), 1)
        known = near >= 0
        seen = np.asarray(pairs[near[known], label[known]]).ravel() / totals[near[known]]
        best = np.full(len(label), unigram.argmax())
        follower = np.asarray(pairs.argmax(axis=1)).ravel()
        heard = known & (np.asarray(pairs.sum(axis=1)).ravel()[np.maximum(near, 0)] > 0)
        best[heard] = follower[near[heard]]
        p = unigram[label].copy()
        rates = []
        for share in np.linspace(0.05, 0.95, 19):
            p[known] = (1 - share) * seen + share * unigram[label[known]]
            rates.append(_measures(p, best == label))
        results[name] = min(rates, key=lambda rate: rate["mlm_loss"])
    return results


def _measures(p: np.ndarray, right: np.ndarray) -> dict[str, float]:
    loss = float(-np.log(p).mean())
    return {
        "mlm_loss": round(loss, 4),
        "perplexity": round(float(np.exp(loss)), 1),
        "mlm_accuracy": round(100 * float(right.mean()), 2),
    }


def main() -> None:
    """Print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workdir", type=pathlib.Path, required=True)
    workdir = Workdir(parser.parse_args().workdir)
    task = Pretrain(workdir.config(), workdir.path, sharding.make_mesh())
    measure.report(**baselines(task))


if __name__ == "__main__":
    main()
