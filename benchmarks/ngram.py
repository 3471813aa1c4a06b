"""Perplexity of an n-gram model on the splits, tokens and vocabulary of the workdir of a language model.

    python -m benchmarks.ngram --workdir=runs/rnn_lm [--order=3]

Interpolated modified Kneser-Ney smoothing (Chen and Goodman, 1999): three discounts per order, for counts of 1, 2 and
more; orders below the highest count the distinct contexts of an n-gram; below the unigrams, all V - 2 words (without
padding and begin) have equal probability. The discounts are tuned on the dev split. Every line is modelled separately,
after an end of line.
"""

import argparse
import pathlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from benchmarks import measure
from nmt_jax.data.prepared import streams
from nmt_jax.data.vocabulary.vocab import EOS, Vocab
from nmt_jax.workdir import Workdir


class Order(NamedTuple):
    """Counts of n-grams, their sums by history, and by history the number of n-grams with counts 1, 2 and 3 or more."""

    counts: Counter[tuple[int, ...]]
    totals: Counter[tuple[int, ...]]
    types: dict[tuple[int, ...], list[int]]


def ngrams(ids: Sequence[int], order: int) -> Iterator[list[tuple[int, ...]]]:
    """Yield for every token the n-grams (n = 1 ... order) of its line that end with it; lines end in EOS."""
    line = [EOS]
    for token in ids:
        line.append(int(token))
        yield [tuple(line[-n:]) for n in range(1, min(order, len(line)) + 1)]
        if token == EOS:
            line = [EOS]


def count(ids: Sequence[int], order: int) -> list[Order]:
    """Count a training text for the orders 1 to `order`."""
    raw: list[Counter[tuple[int, ...]]] = [Counter() for _ in range(order)]
    for grams in ngrams(ids, order):
        for gram in grams:
            raw[len(gram) - 1][gram] += 1
    orders = []
    for n, counter in enumerate(raw, start=1):
        if n < order:  # count distinct preceding words; n-grams at the start of a line have none
            before = Counter(gram[1:] for gram in raw[n])
            counter = Counter({gram: before[gram] or number for gram, number in counter.items()})
        totals: Counter[tuple[int, ...]] = Counter()
        types: dict[tuple[int, ...], list[int]] = defaultdict(lambda: [0, 0, 0])
        for gram, number in counter.items():
            totals[gram[:-1]] += number
            types[gram[:-1]][min(number, 3) - 1] += 1
        orders.append(Order(counter, totals, types))
    return orders


def statistics(orders: Sequence[Order], grams: Iterator[list[tuple[int, ...]]]) -> np.ndarray:
    """Return float[N, order, 5]: the count of the n-gram, the total of its history, and the types of the history."""
    nothing = (0, 0, 0, 0, 0)
    rows = [
        [
            (order.counts[gram], order.totals[gram[:-1]], *order.types.get(gram[:-1], (0, 0, 0)))
            for order, gram in zip(orders, own, strict=False)
        ]
        + [nothing] * (len(orders) - len(own))
        for own in grams
    ]
    return np.array(rows, np.float64)


def probabilities(numbers: np.ndarray, discounts: np.ndarray, num_words: int) -> np.ndarray:
    """Return p float[N] from `statistics` and discounts float[order, 3]; unseen histories back off to shorter ones."""
    p = np.full(len(numbers), 1 / num_words)
    for (occurrences, total, *types), discount in zip(np.moveaxis(numbers, 0, 2), discounts, strict=True):
        seen = np.maximum(total, 1)
        own = np.concatenate([[0.0], discount])[np.minimum(occurrences, 3).astype(int)]
        held_back = discount @ np.array(types) / seen
        p = np.where(total > 0, (occurrences - own) / seen + held_back * p, p)
    return p


def tuned(numbers: np.ndarray, num_words: int) -> np.ndarray:
    """Return the discounts float[order, 3], between 0 and 1, 2, 3, that minimize the perplexity of `statistics`."""
    order = numbers.shape[1]

    def discounts(free: np.ndarray) -> np.ndarray:
        return np.array([1, 2, 3]) / (1 + np.exp(-free.reshape(order, 3)))

    def surprise(free: np.ndarray) -> float:
        return -np.log(probabilities(numbers, discounts(free), num_words)).mean()

    return discounts(minimize(surprise, np.full(3 * order, 0.5), method="L-BFGS-B").x)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workdir", required=True)
    parser.add_argument("--order", type=int, default=3)
    options = parser.parse_args()
    folder = Workdir(pathlib.Path(options.workdir))
    vocab = Vocab.load(folder.vocab / "text.model")
    train, dev, test = (
        streams.prepare_tokens(folder.config().data, split, vocab).ids for split in ("train", "dev", "test")
    )
    orders, num_words = count(train, options.order), len(vocab) - 2
    numbers = {name: statistics(orders, ngrams(ids, options.order)) for name, ids in (("dev", dev), ("test", test))}
    discounts = tuned(numbers["dev"], num_words)
    perplexity = {
        name: float(np.exp(-np.log(probabilities(own, discounts, num_words)).mean())) for name, own in numbers.items()
    }
    tokens = {f"{name}_tokens": len(ids) for name, ids in (("train", train), ("dev", dev), ("test", test))}
    measure.report(benchmark="ngram", order=options.order, vocabulary=len(vocab), **tokens, **perplexity)


if __name__ == "__main__":
    main()
