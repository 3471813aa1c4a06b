"""Speed of metrics beside their reference programs on the same texts: segments per CPU-second, and the ratio.

    python -m benchmarks.metrics [--peer=PYTHON] [--metrics=bleu,chrf]

The peer's Python has sacrebleu, rouge-score and nltk. METEOR reads WordNet 3.0 on both sides, from $WNSEARCHDIR and
$NLTK_DATA; METEOR 1.5 needs Java and the folder of its jar and tables ($METEOR_DATA). Two corpora: 1,000 references
of Multi30k against corrupted copies, and 1,000 segments of WMT21 German to English with their references. One JSON
line per metric and corpus, with all pairs of 256 x 256 sentences. Except for METEOR 1.5, every pass stems
its words anew. The scores must equal the peer's.
"""

import argparse
import functools

from benchmarks import measure
from benchmarks.corpora import multi30k, wmt21

SQUARE = 256  # sentences of each side for `pairwise`
METRICS = {  # signature: name in the peer's program
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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", help="Python with the reference programs.")
    parser.add_argument("--metrics", default=",".join(METRICS), help="Metrics to measure.")
    options = parser.parse_args()
    measure.one_thread()

    import numpy as np

    from metrics_jax import parse
    from metrics_jax.surface.stemmers import porter

    for corpus in (multi30k, wmt21):
        hypotheses, references = corpus()
        texts = {"hypotheses": np.array(hypotheses), "references": np.array(references)}
        for spec in options.metrics.split(","):
            metric = parse(spec)
            scores = metric(hypotheses, references).segments
            work = functools.partial(metric, hypotheses, references)
            ours = len(scores) / measure.cpu_seconds(work, before=porter.cache_clear)
            square = functools.partial(metric.pairwise, hypotheses[:SQUARE], references[:SQUARE])
            pairs = SQUARE**2 / measure.cpu_seconds(square, repeats=1, before=porter.cache_clear)
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
