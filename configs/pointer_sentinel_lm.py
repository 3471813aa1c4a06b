"""The pointer sentinel mixture (Merity et al., 2017): rnn_lm.py with a pointer to the last 100 words.

    nmt-jax train --config=configs/pointer_sentinel_lm.py --config.data.directory=DIRECTORY --workdir=runs/pointer_lm
    zcat DIRECTORY/ptb.valid.txt.gz | tail -n 337 | nmt-jax perplexity --workdir=runs/pointer_lm

Perplexity: dev 82.9, test 89.2 after 2,000 steps (7.4 CPU-minutes); rnn_lm.py, without the pointer, has 97.6 and 98.8
(2026-11-21; docs/results/language-models.md).
"""

import rnn_lm
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    config = rnn_lm.get_config(arg)
    config.model.pointer_window = 100
    return config
