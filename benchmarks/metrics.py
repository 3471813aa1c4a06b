"""Metrics beside their reference programs on the same texts: segments a CPU-second, and the ratio.

    python -m benchmarks.metrics [--peer=PYTHON] [--metrics=bleu,chrf]

The peer's Python has sacrebleu, rouge-score and nltk. METEOR reads WordNet 3.0 on both sides, named by $WNSEARCHDIR and
$NLTK_DATA; METEOR 1.5 needs Java and the folder of its jar and tables ($METEOR_DATA). Two corpora: 1,000 references of
Multi30k against themselves with words dropped and moved, and 1,000 segments of WMT21 German to English with their
references. One JSON line a metric and corpus, all pairs of 256 x 256 sentences included. The scores must be equal, too.
"""

import argparse
import csv
import functools
import gzip
import itertools

from benchmarks import measure

SEGMENTS, SQUARE = 1000, 256
METRICS = {  # the signature: what the peer calls it
    "bleu|effective_order:true": "bleu",
    "chrf": "chrf",
    "chrf++": "chrf++",
    "ter": "ter",
    "rouge2": "rouge2",
    "rougeL": "rougeL",
    "rougeLsum|use_stemmer:true": "rougeLsum",
    "meteor_nltk": "meteor",
    "meteor15": "meteor15",
}


def multi30k() -> tuple[list[str], list[str]]:
    """References of the test set, and what is left of them without every seventh word and with two words exchanged."""
    with gzip.open(measure.SHARED / "data" / "multi30k" / "test_2016_flickr.de.gz", "rt", encoding="utf-8") as file:
        references = [line.rstrip("\n") for line in itertools.islice(file, SEGMENTS)]
    hypotheses = []
    for number, reference in enumerate(references):
        words = [word for place, word in enumerate(reference.split()) if (place + number) % 7]
        words[1:3] = words[2:0:-1]
        hypotheses.append(" ".join(words))
    return hypotheses, references


def wmt21() -> tuple[list[str], list[str]]:
    """Segments of all systems, as they come in the file of judgements."""
    path = measure.SHARED / "data" / "wmt21_da" / "wmt21.de-en.seg.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        rows = list(itertools.islice(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE), 5 * SEGMENTS))[::5]
    return [row["hypothesis"] for row in rows], [row["reference"] for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", help="a Python that has the reference programs")
    parser.add_argument("--metrics", default=",".join(METRICS), help="some of them")
    options = parser.parse_args()
    measure.one_thread()

    import numpy as np

    from metrics_jax import parse

    for corpus in (multi30k, wmt21):
        hypotheses, references = corpus()
        texts = {"hypotheses": np.array(hypotheses), "references": np.array(references)}
        for spec in options.metrics.split(","):
            metric = parse(spec)
            scores = metric(hypotheses, references).segments
            ours = len(scores) / measure.cpu_seconds(functools.partial(metric, hypotheses, references))
            square = (hypotheses[:SQUARE], references[:SQUARE])
            pairs = SQUARE**2 / measure.cpu_seconds(functools.partial(metric.pairwise, *square), repeats=1)
            figures = {"segments_per_cpu_second": ours, "pairs_per_cpu_second": pairs}
            if options.peer:
                theirs = measure.peer(options.peer, "peer_metrics.py", texts, METRICS[spec])
                assert np.allclose(scores, theirs["scores"], rtol=1e-9, atol=1e-12)
                figures["peer_segments_per_cpu_second"] = theirs["segments_per_cpu_second"]
                figures["ratio"] = ours / theirs["segments_per_cpu_second"]
                figures["pairwise_ratio"] = pairs / theirs["segments_per_cpu_second"]
            measure.report(benchmark="metrics", corpus=corpus.__name__, metric=spec, **figures)


if __name__ == "__main__":
    main()
