"""Scheduled sampling (Bengio et al., 2015): reduce exposure bias by feeding the decoder its own predictions.

    nmt-jax train --config=configs/scheduled_sampling.py --config.data.directory=DIRECTORY --workdir=runs/sampling
    nmt-jax sweep --config=configs/scheduled_sampling.py --config.data.directory=DIRECTORY --workdir=runs/schedules

Everything else is as in rnn_luong.py: general attention, 2,500 steps of 2,048 tokens of Multi30k; 34.55 BLEU with
teacher forcing alone.

BLEU on test_2016_flickr (2026-11-21, CPU, one seed, beam 5): 33.43; the losses with the model's own predictions as
input are in docs/results/recurrent.md. 24 minutes on a busy core.
"""

from collections.abc import Callable

import common
import rnn_luong
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, smoke=False)
    config = rnn_luong.get_config()
    config.loss.teacher_forcing.update(schedule="inverse_sigmoid", start=1.0, end=0.5, decay_steps=200)
    return common.smoke(config) if arguments.smoke else config


def sweep(add: Callable[[dict[str, str | int]], None]) -> None:
    """Add teacher forcing alone, and each schedule of the paper down to a rate of one half."""
    add({"loss.teacher_forcing.schedule": "constant", "loss.teacher_forcing.decay_steps": 1})
    for schedule, decay_steps in (("linear", 2000), ("exponential", 1000), ("inverse_sigmoid", 200)):
        add({"loss.teacher_forcing.schedule": schedule, "loss.teacher_forcing.decay_steps": decay_steps})
