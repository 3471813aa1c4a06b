"""Speed of optimal transport between words: pairs of texts per CPU-second, exact and by Sinkhorn, and Sinkhorn's error.

    python -m benchmarks.transport [--data] [--vectors=FILE]

On 1,000 synthetic pairs of 25 words each and, with --data, on 1,000 segments of WMT21 German to English and their
references, with word vectors from a GloVe or word2vec file, or random ones. The solvers receive the costs; `wmd` is the
whole metric including tokenization. Errors are relative to the cost of the independent plan. One JSON line.
"""

import argparse
import functools
from typing import Any

from benchmarks import measure

PAIRS = 1000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", action="store_true", help="Also use pairs of WMT21.")
    parser.add_argument("--vectors", help="Word vectors for these pairs.")
    options = parser.parse_args()
    measure.one_thread()

    import numpy as np

    from benchmarks.corpora import wmt21
    from metrics_jax.embedding.exact_transport import Problem, relaxed
    from metrics_jax.embedding.transport import solve
    from metrics_jax.embedding.vectors import Vectors
    from metrics_jax.embedding.wmd import WMD, problem, split_words
    from tests.fixtures.problems import word_like

    def solvers(problems: list[Problem]) -> dict[str, Any]:
        exact, _ = solve(problems)
        approximate, lower = solve(problems, "sinkhorn")
        independent = np.array([a @ cost @ b for a, b, cost in problems])
        found = np.where(independent > 0, (approximate - exact) / np.where(independent > 0, independent, 1), 0)
        gap = np.where(independent > 0, (approximate - lower) / np.where(independent > 0, independent, 1), 0)
        assert (np.abs(approximate - exact) <= approximate - lower).all()
        work = {
            "exact": functools.partial(solve, problems),
            "sinkhorn": functools.partial(solve, problems, "sinkhorn"),
            "relaxed": lambda: [relaxed(*one) for one in problems],
        }
        return {
            "words": float(np.mean([np.mean(cost.shape) for _, _, cost in problems])),
            **{
                f"{name}_pairs_per_cpu_second": len(problems) / measure.cpu_seconds(one, 3)
                for name, one in work.items()
            },
            "sinkhorn_mean_error": float(found.mean()),
            "sinkhorn_largest_error": float(found.max()),
            "sinkhorn_mean_gap": float(gap.mean()),
        }

    figures = {f"synthetic_{key}": value for key, value in solvers(list(zip(*word_like(PAIRS), strict=True))).items()}
    if options.data:
        hypotheses, references = wmt21()
        if options.vectors:
            vectors = Vectors.load(options.vectors)
        else:
            split = split_words([*hypotheses, *references], "intl", True, False, ())
            words = tuple(dict.fromkeys(word for some in split for word in some))
            vectors = Vectors(words, np.random.default_rng(0).normal(size=(len(words), 100)))
        metric = WMD(vectors)
        problems = [problem(*pair) for pair in zip(metric.bags(hypotheses), metric.bags(references), strict=True)]
        figures |= {f"wmt21_{key}": value for key, value in solvers(problems).items()}
        seconds = measure.cpu_seconds(functools.partial(metric, hypotheses, references), 3)
        figures["wmt21_wmd_segments_per_cpu_second"] = len(hypotheses) / seconds
    measure.report(benchmark="transport", **figures)


if __name__ == "__main__":
    main()
