"""Jointly learning to align and translate (Bahdanau et al., 2015): GRUs with additive attention, on Multi30k.

    nmt-jax train --config=configs/rnn_bahdanau.py --config.data.directory=DIRECTORY --workdir=runs/rnn_bahdanau
    nmt-jax translate --workdir=runs/rnn_bahdanau < DIRECTORY/test_2016_flickr.en > test.hypothesis
    nmt-jax score test.hypothesis --reference=DIRECTORY/test_2016_flickr.de

DIRECTORY is the same as for multi30k.py.

Sizes and training budget are those of rnn_luong.py.

BLEU on test_2016_flickr (2026-11-21, CPU, one seed, beam 5): 36.16; comparison in docs/results/recurrent.md. 28 minutes
on a busy core.
"""

import common
import rnn_luong
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, smoke=False)
    config = rnn_luong.get_config()
    config.model.update(cell="gru", decoder="bahdanau", score="additive", attention="global")
    return common.smoke(config) if arguments.smoke else config
