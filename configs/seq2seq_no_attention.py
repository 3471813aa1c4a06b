"""Sequence to sequence without attention (Sutskever et al., 2014), on Multi30k: the baseline for attention models.

    nmt-jax train --config=configs/seq2seq_no_attention.py --config.data.directory=DIRECTORY --workdir=runs/no_attention
    nmt-jax translate --workdir=runs/no_attention < DIRECTORY/test_2016_flickr.en > test.hypothesis
    nmt-jax score test.hypothesis --reference=DIRECTORY/test_2016_flickr.de

DIRECTORY is the same as for multi30k.py.

Sizes and training budget are those of rnn_luong.py.

BLEU on test_2016_flickr (2026-11-21, CPU, one seed, beam 5): 15.38; with general attention 34.55. By source length:
docs/results/recurrent.md. 21 minutes on a busy core.
"""

import common
import rnn_luong
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, smoke=False)
    config = rnn_luong.get_config()
    config.model.update(attention="none", input_feeding=False)
    return common.smoke(config) if arguments.smoke else config
