r"""Hierarchical attention (Yang et al., 2016) on movie reviews, positive or negative (Pang and Lee, 2004).

    nmt-jax train --config=configs/han_movie_reviews.py --config.data.directory=DIRECTORY --workdir=runs/han \
        --config.data.vectors=glove.6B.50d.txt

DIRECTORY holds movie_reviews.train.jsonl.

Accuracy (2026-11-21, CPU, 3.3 minutes per fold): 86.3 % over seven folds (nmt-jax sweep), last checkpoint, starting
from the first 50,000 GloVe vectors. docs/results/classification.md has every fold and the words with the largest
weights.
"""

from collections.abc import Callable

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, smoke=False)
    config = common.base("han", "classify")
    config.data.update(corpus="files", train="movie_reviews.train.jsonl", texts=["sentences"], folds=7)
    config.data.update(max_words=40, max_sentences=128, num_buckets=3)
    config.vocab.update(algorithm="word", size=8000)
    config.model.update(d_embedding=50, d_hidden=64, d_attention=64, dropout=0.5, word_dropout=0.3)
    config.optimizer.update(schedule="linear", learning_rate=2e-3, warmup_steps=50, beta2=0.99, clip_norm=1.0)
    config.optimizer.ema_decay = 0.99
    config.train.update(steps=800, batch_tokens=16_384, eval_every=100, checkpoint_every=400, keep_last=1)
    return common.smoke(config) if arguments.smoke else config


def sweep(add: Callable[[dict[str, int]], None]) -> None:
    """Cross-validation: add one run per fold."""
    for fold in range(7):
        add({"data.fold": fold})
