"""Scheduled sampling (Bengio et al., 2015) against exposure bias: the decoder learns to go on from its own pieces.

    nmt-jax train --config=configs/scheduled_sampling.py --config.data.directory=DIRECTORY --workdir=runs/sampling
    nmt-jax sweep --config=configs/scheduled_sampling.py --config.data.directory=DIRECTORY --workdir=runs/schedules

All else is rnn_luong's: general attention, 2,500 steps of 2,048 tokens of Multi30k, 34.55 BLEU with true pieces alone.

BLEU on test_2016_flickr (2026-11-21, CPU, one seed, beam 5): 33.43; how much less it minds its own pieces is in
docs/results/recurrent.md. 24 minutes on a busy core.
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
    """True pieces always, or ever fewer of them by each of the paper's schedules, half of them at last."""
    add({"loss.teacher_forcing.schedule": "constant", "loss.teacher_forcing.decay_steps": 1})
    for schedule, decay_steps in (("linear", 2000), ("exponential", 1000), ("inverse_sigmoid", 200)):
        add({"loss.teacher_forcing.schedule": schedule, "loss.teacher_forcing.decay_steps": decay_steps})
