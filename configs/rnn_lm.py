"""A recurrent language model with tied embeddings (Zaremba et al., 2014; Press and Wolf, 2017) on a part of PTB.

    nmt-jax train --config=configs/rnn_lm.py --config.data.directory=DIRECTORY --workdir=runs/rnn_lm
    zcat DIRECTORY/ptb.valid.txt.gz | tail -n 337 | nmt-jax perplexity --workdir=runs/rnn_lm
    nmt-jax generate --workdir=runs/rnn_lm --temperature=0.8

The file has 3,370 lines: 2,696 for training, the next 337 for dev, the last 337 for test. The vocabulary has 3,500
words.

Perplexity: dev 97.6, test 98.8 after 2,000 steps (3.6 CPU-minutes, 2026-11-21). On the same tokens, a Kneser-Ney
trigram has 110.1 and 109.9, a 5-gram 108.2 and 107.1 (2026-11-25; docs/results/language-models.md).
"""

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, smoke=False)
    config = common.base("rnn_lm", "language_model")
    config.data.update(corpus="text", train="ptb.valid.txt", dev_share=0.1, test_share=0.1, block_length=128)
    config.vocab.update(algorithm="word", size=3500)  # about the number of words that occur twice in training
    config.model.update(cell="lstm", num_layers=1, d_embedding=200, d_hidden=200, tie_embeddings=True)
    config.model.update(dropout=0.5, variational_dropout=True)
    config.model.dtype = "bfloat16"  # of products; sums and parameters are float32
    config.optimizer.update(schedule="cosine", learning_rate=3e-3, warmup_steps=100, clip_norm=1.0)
    config.eval.context = 64
    config.train.update(steps=2000, batch_tokens=1024, eval_every=100, checkpoint_every=500, keep_last=1)
    return common.smoke(config) if arguments.smoke else config
