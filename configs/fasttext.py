"""fastText (Bojanowski et al., 2017): word2vec.py with character n-grams, so that unseen words have vectors too.

    nmt-jax train --config=configs/fasttext.py --config.data.directory=DIRECTORY --workdir=runs/fasttext
    echo whaleboats | nmt-jax neighbours --workdir=runs/fasttext

DIRECTORY is the same as for word2vec.py.

Accuracy on analogies (nearest of 18,646 words): plurals 67 %, comparatives 64 %, past tense 45 %, family 33 % after 500
steps (5.5 epochs, 1.4 CPU-minutes); word2vec.py after 1,000 steps: 26, 21, 61 and 61 % (2026-11-21;
docs/results/word-vectors.md).
"""

import common
import word2vec
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, smoke=False)
    config = word2vec.get_config()
    config.model.update(num_buckets=50_000, min_n=3, max_n=6)
    config.train.steps = 500
    return common.smoke(config) if arguments.smoke else config
