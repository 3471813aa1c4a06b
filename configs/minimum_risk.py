r"""Minimum-risk training (Shen et al., 2016): continue training on the chrF of the model's own translations.

    nmt-jax train --config=configs/rnn_luong.py --config.data.directory=DIRECTORY --workdir=runs/rnn_luong
    nmt-jax train --config=configs/minimum_risk.py --config.data.directory=DIRECTORY \
        --config.init_from=runs/rnn_luong --workdir=runs/minimum_risk

300 steps of 512 tokens, with 4 candidates and the reference per line; the loss is the risk alone. For comparison, the
same number of steps with cross-entropy: --config.loss.risk.metric= .

BLEU, chrF, TER (2026-11-21, one busy CPU core, one seed, beam 5; 290 steps, stopped by --config.train.minutes=14):

    test_2016_flickr    rnn_luong 34.56, 57.99, 51.75; this 34.66, 58.31, 51.91; cross-entropy 33.94, 57.46, 51.59
    val                 rnn_luong 33.83, 57.09, 51.39; this 34.32, 57.15, 51.65; cross-entropy 33.85, 56.91, 50.80

The gain in chrF, the metric of the risk, is not significant (paired bootstrap on the test set: p = 0.07; against
cross-entropy p = 0.001). Translations are 2 % longer, and TER does not improve. The paper samples 100 candidates.
Details: docs/results/minimum-risk.md.
"""

import common
import rnn_luong
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, smoke=False)
    config = rnn_luong.get_config()
    config.loss.risk.update(metric="chrf", num_samples=4)
    config.optimizer.update(schedule="constant", learning_rate=2e-4, warmup_steps=20)
    config.train.update(steps=300, batch_tokens=512, eval_every=100, checkpoint_every=100)
    return common.smoke(config) if arguments.smoke else config
