"""An LSTM that drops recurrent weights and carries its state from block to block (AWD-LSTM; Merity et al., 2018).

    nmt-jax train --config=configs/awd_lstm.py --config.data.directory=DIRECTORY --workdir=runs/awd_lstm
    zcat DIRECTORY/ptb.valid.txt.gz | tail -n 337 | nmt-jax perplexity --workdir=runs/awd_lstm

The text and the vocabulary are those of rnn_lm.py; the rates of dropout are the paper's for the Penn Treebank.

Perplexity: dev 93.2, test 95.5 after 6,000 steps (16 CPU-minutes, 2026-11-27); rnn_lm.py has 97.6 and 98.8. With 25
times the text, a larger model has 87.1 and 87.5 per BPE piece, not comparable with the figures per word, and a 5-gram
146.4 and 145.8 (docs/results/language-models.md).
"""

import common
import rnn_lm
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, smoke=False)
    config = rnn_lm.get_config()
    config.data.update(carry_state=True, block_length=64)
    config.eval.context = 32  # of lines that are scored on their own
    config.model.update(num_layers=2, dropout=0.4, hidden_dropout=0.25, word_dropout=0.1, weight_dropout=0.5)
    config.loss.update(activation_penalty=2.0, temporal_penalty=1.0)
    config.optimizer.ema_decay = 0.998  # in place of the paper's averaged SGD
    config.train.update(steps=6000, eval_every=500)
    return common.smoke(config) if arguments.smoke else config
