r"""Minimum-risk training (Shen et al., 2016): a trained model goes on by what chrF says of its own translations.

    nmt-jax train --config=configs/rnn_luong.py --config.data.directory=DIRECTORY --workdir=runs/rnn_luong
    nmt-jax train --config=configs/minimum_risk.py --config.data.directory=DIRECTORY \
        --config.init_from=runs/rnn_luong --workdir=runs/minimum_risk

300 steps of 512 tokens, 4 candidates a line and the reference; the gradient is that of the risk alone. To compare, as
many steps of cross-entropy: --config.loss.risk.metric= .

BLEU, chrF, TER (2026-11-21, one busy CPU core, one seed, beam 5; 290 steps, all that --config.train.minutes=14 left):

    test_2016_flickr    rnn_luong 34.56, 57.99, 51.75; this 34.66, 58.31, 51.91; cross-entropy 33.94, 57.46, 51.59
    val                 rnn_luong 33.83, 57.09, 51.39; this 34.32, 57.15, 51.65; cross-entropy 33.85, 56.91, 50.80

What is asked for, chrF, does not rise for certain (paired bootstrap on the test set: p = 0.07; against cross-entropy
0.001); translations are longer by 2 % and TER is no better. The paper draws 100 candidates.
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
