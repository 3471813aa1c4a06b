"""Transport plans of Sinkhorn beside the exact ones, by epsilon and iterations, on the costs of metrics over WMT.

    python -m benchmarks.sinkhorn_table [--encoder=FOLDER]

The 1,620 pairs of German to English in WMT15 to WMT17: MoverScore v1 with all-MiniLM-L6-v2, and WMD with GloVe of 50
dimensions. Each row has errors of the cost relative to the independent plan, Kendall's tau of the costs with the exact
ones, the largest error bound returned with a solution, the number of pairs whose bound is smaller than the error (it
should be none), and CPU-seconds. Prints a table in Markdown.
"""

import argparse
import functools
import time
from collections.abc import Sequence
from typing import Any

from benchmarks import measure
from benchmarks.corpora import minilm

SETTINGS = (  # epsilon, iterations, relaxation
    (0.05, 50, 1.8),
    (0.02, 100, 1.8),
    (0.01, 100, 1.8),
    (0.01, 200, 1.8),
    (0.005, 100, 1.8),
    (0.005, 200, 1.0),
    (0.005, 200, 1.8),
    (0.005, 1000, 1.8),
    (0.002, 50, 1.8),
    (0.002, 200, 1.8),
    (0.002, 500, 1.8),
    (0.001, 1000, 1.8),
)


def problems(encoder: Any, vectors: Any) -> dict[str, list[Any]]:
    """Return the transport problems (weights, weights, costs) of all pairs, by metric."""
    from metrics_jax.embedding.moverscore import MoverScore
    from metrics_jax.embedding.wmd import WMD, problem
    from nmt_jax.data.readers.judgements import Columns, judged_files, read_judged

    paths = judged_files(str(measure.SHARED / "data" / "wmt_da" / "*.de-en.tsv"))
    judged = [read_judged(path, Columns(human=("human_z",))) for path in paths]
    hypotheses = [text for one in judged for text in one.hypotheses]
    references = [text for one in judged for (text,) in one.references]
    wmd = WMD(vectors)
    both = zip(wmd.bags(hypotheses), wmd.bags(references), strict=True)
    found: dict[str, list[Any]] = {"MoverScore": [], "WMD": [problem(*pair) for pair in both]}

    class Kept(MoverScore):
        """A MoverScore that records its transport problems."""

        def compare(self, x: Any, y: Any, pairwise: bool) -> Any:
            found["MoverScore"] += [one for one in zip(*self.problem(x, y), strict=True) if one[0].any()]
            return super().compare(x, y, pairwise)

    Kept(encoder)(hypotheses, references)
    return found


def solved(given: Sequence[Any], **options: Any) -> tuple[Any, Any]:
    """Return the cost and lower bound of every problem for these options of `sinkhorn`."""
    from unittest.mock import patch

    from metrics_jax.embedding import sinkhorn, transport

    with patch.object(sinkhorn, "sinkhorn", functools.partial(sinkhorn.sinkhorn, **options)):
        return transport.solve(given, "sinkhorn")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--encoder", help="Folder of a model.", default=None)
    options = parser.parse_args()
    measure.one_thread()

    import numpy as np
    from scipy.stats import kendalltau

    from metrics_jax.embedding.transport import solve
    from metrics_jax.embedding.vectors import Vectors
    from nmt_jax.pretrained import load_encoder

    vectors = Vectors.load(measure.SHARED / "data" / "glove" / "glove.6B.50d.top50k.txt.gz")
    columns = "costs of|epsilon|iterations|relaxation|mean error|largest|tau|largest bound|bounds broken|CPU-seconds"
    print("|", columns.replace("|", " | "), "|")
    print("|---" * (columns.count("|") + 1) + "|")
    for name, given in problems(load_encoder(options.encoder or minilm()), vectors).items():
        independent = np.array([a @ cost @ b / (a.sum() * b.sum()) for a, b, cost in given])
        start = time.process_time()
        exact, _ = solve(given)
        print(
            f"| {name}, {len(given)} | exact |  |  | 0 | 0 | 1 | 0 | 0 | {time.process_time() - start:.2f} |",
            flush=True,
        )
        for epsilon, num_iters, relaxation in SETTINGS:
            work = functools.partial(solved, given, epsilon=epsilon, num_iters=num_iters, relaxation=relaxation)
            work()
            start = time.process_time()
            value, lower = work()
            seconds = time.process_time() - start
            error, bound = (value - exact) / independent, (value - lower) / independent
            tau = kendalltau(value, exact).statistic
            figures = [f"{error.mean():.5f}", f"{error.max():.4f}", f"{tau:.4f}", f"{bound.max():.3f}"]
            figures += [str(int((np.abs(value - exact) > value - lower).sum())), f"{seconds:.1f}"]
            print("|  |", " | ".join([str(epsilon), str(num_iters), str(relaxation), *figures]), "|", flush=True)


if __name__ == "__main__":
    main()
