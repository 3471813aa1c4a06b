"""Perplexity of an n-gram model on the splits, tokens and vocabulary of the workdir of a language model.

    python -m benchmarks.ngram --workdir=runs/rnn_lm [--order=3]

The model is that of `nmt-jax ngram`, estimated on the training split. Tokens outside the vocabulary are `<unk>` in all
splits, and are predicted as such.
"""

import argparse
import pathlib

import numpy as np

from benchmarks import measure
from nmt_jax.data.prepared import streams
from nmt_jax.data.vocabulary.vocab import EOS, UNK, Vocab
from nmt_jax.ngram.counts import count
from nmt_jax.ngram.kneser_ney import estimate
from nmt_jax.workdir import Workdir


def lines(ids: np.ndarray) -> list[str]:
    """Return the tokens of each line as words: their ids, or `<unk>`."""
    cuts = np.flatnonzero(ids == EOS)
    return [
        " ".join("<unk>" if token == UNK else str(token) for token in line if token != EOS)
        for line in np.split(ids, cuts + 1)[: len(cuts)]
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workdir", required=True)
    parser.add_argument("--order", type=int, default=3)
    options = parser.parse_args()
    folder = Workdir(pathlib.Path(options.workdir))
    vocab = Vocab.load(folder.vocab / "text.model")
    texts = {
        split: lines(streams.prepare_tokens(folder.config().data, split, vocab).ids)
        for split in ("train", "dev", "test")
    }
    model, discounts = estimate(count(texts["train"], options.order))
    figures: dict[str, object] = {"vocabulary": len(model.vocabulary), "discounts": np.round(discounts, 4).tolist()}
    for split in ("dev", "test"):
        scores = model.score(texts[split])
        figures[split] = float(10 ** -scores.log_probabilities.mean())
        figures[f"{split}_tokens"] = len(scores.log_probabilities)
    measure.report(benchmark="ngram", order=options.order, **figures)


if __name__ == "__main__":
    main()
