"""Minimum-risk training (Shen et al., 2016): a trained model goes on by what chrF says of its own translations.

    nmt-jax train --config=configs/rnn_luong.py --config.data.directory=DIRECTORY --workdir=runs/rnn_luong
    nmt-jax train --config=configs/minimum_risk.py --config.data.directory=DIRECTORY \
        --config.init_from=runs/rnn_luong --workdir=runs/minimum_risk

BLEU
"""

import common
import rnn_luong
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """The experiment; `:smoke=true` is a one-step version for tests."""
    arguments = common.parse_arg(arg, smoke=False)
    config = rnn_luong.get_config()
    config.loss.risk.update(metric="chrf", num_samples=4)
    config.optimizer.update(schedule="constant", learning_rate=2e-4, warmup_steps=20)
    config.train.update(steps=300, batch_tokens=512, eval_every=100, checkpoint_every=100)
    return common.smoke(config) if arguments.smoke else config
