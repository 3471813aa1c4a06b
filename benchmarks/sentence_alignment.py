"""Precision and recall of sentence alignment on parallel text with planted merges and omissions.

    python -m benchmarks.sentence_alignment SOURCE TARGET [--merge=0.05] [--omit=0.01] [--paragraph=N] [--lines=N]

Of the pairs of lines of two files, some sentences are joined to the next one on one side, and some are left out on one
side. Prints one line of JSON: over all beads, and for each shape of planted beads, the number planted, precision (share
of the found beads of this shape that were planted) and recall (share of planted beads that were found); a bead counts
as found if its sentences are the same on both sides.
"""

import argparse
import collections
import itertools
import json
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

Span = tuple[int, int]
Planted = tuple[list[str], list[str], list[tuple[Span, Span]]]  # both texts, and the beads


def plant(pairs: Sequence[tuple[str, str]], merge: float, omit: float, seed: int = 0) -> Planted:
    """Return both sides of a text with planted beads; merge, omit: probability at each sentence, for each side."""
    random = np.random.default_rng(seed)
    source: list[str] = []
    target: list[str] = []
    beads: list[tuple[Span, Span]] = []
    number = 0
    while number < len(pairs):
        draw = random.random()
        one, other = ([pair[side] for pair in pairs[number : number + 1]] for side in (0, 1))
        if draw < 2 * merge and number + 1 < len(pairs):
            one, other = ([pair[side] for pair in pairs[number : number + 2]] for side in (0, 1))
            number += 1
            if draw < merge:
                one = [" ".join(one)]
            else:
                other = [" ".join(other)]
        elif 2 * merge <= draw < 2 * merge + omit:
            one = []
        elif 2 * merge + omit <= draw < 2 * (merge + omit):
            other = []
        beads.append(((len(source), len(source) + len(one)), (len(target), len(target) + len(other))))
        source += one
        target += other
        number += 1
    return source, target, beads


def shape(bead: tuple[Span, Span]) -> str:
    """Return the numbers of sentences of a bead, such as "2-1"."""
    return "-".join(str(stop - start) for start, stop in bead)


def scores(planted: set[Any], found: set[Any]) -> dict[str, float]:
    """Return the number of planted beads, and precision and recall."""
    both = len(planted & found)
    return {
        "planted": len(planted),
        "precision": round(both / max(len(found), 1), 4),
        "recall": round(both / max(len(planted), 1), 4),
    }


def measured(texts: Sequence[Planted]) -> dict[str, dict[str, float]]:
    """Align paragraphs and return the scores over all beads, and those of each shape."""
    from nmt_jax.alignment.gale_church import align

    planted: dict[str, set[tuple[int, Any]]] = collections.defaultdict(set)
    found: dict[str, set[tuple[int, Any]]] = collections.defaultdict(set)
    for number, (source, target, beads) in enumerate(texts):
        aligned = [bead[:2] for bead in align(*([len(sentence) for sentence in side] for side in (source, target)))]
        for kept, some in ((planted, beads), (found, aligned)):
            for bead in some:
                for name in ("all", shape(bead)):
                    kept[name].add((number, bead))
    return {name: scores(planted[name], found[name]) for name in sorted({*planted, *found})}


def main() -> None:
    from nmt_jax.data.lines import read_lines

    parser = argparse.ArgumentParser()
    parser.add_argument("source", help="File of sentences.")
    parser.add_argument("target", help="File of their translations, line by line.")
    parser.add_argument("--merge", type=float, default=0.05)
    parser.add_argument("--omit", type=float, default=0.01)
    parser.add_argument("--paragraph", type=int, default=0, help="Pairs of a paragraph; 0: one paragraph.")
    parser.add_argument("--lines", type=int, default=10_000, help="Pairs to use.")
    options = parser.parse_args()
    files = (map(str.strip, read_lines(name)) for name in (options.source, options.target))
    pairs = [pair for pair in itertools.islice(zip(*files, strict=True), options.lines) if all(pair)]
    size = options.paragraph or len(pairs)
    paragraphs = [pairs[first : first + size] for first in range(0, len(pairs), size)]
    texts = [plant(some, options.merge, options.omit, seed) for seed, some in enumerate(paragraphs)]
    start = time.process_time()
    results = measured(texts)
    print(json.dumps({"pairs": len(pairs), "cpu_seconds": round(time.process_time() - start, 2), **results}))


if __name__ == "__main__":
    main()
