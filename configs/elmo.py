"""A small ELMo (Peters et al., 2018): a bidirectional language model over character-based words, on the Brown corpus.

    nmt-jax train --config=configs/elmo.py --config.data.directory=DIRECTORY --workdir=runs/elmo

DIRECTORY holds brown.train.txt.gz: one sentence per line, words separated by blanks. The last 5 % of the lines are the
dev set. configs/elmo_tagger.py uses the trained model.

Perplexity of both directions: dev 147.3 (146.5 forward, 148.0 backward) after 1,200 steps, 21 minutes on two CPU cores
shared with other work (2026-11-21; docs/results/elmo.md).
"""

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, smoke=False)
    config = common.base("elmo", "bidirectional_language_model")
    config.data.update(corpus="text", train="brown.train.txt", dev_share=0.05, block_length=32)
    config.vocab.update(min_count=3)
    config.model.update(filters=[32, 32, 64, 64, 64], d_hidden=256)
    config.model.dtype = "bfloat16"  # of products; sums and parameters are float32
    config.loss.num_sampled = 1024
    config.optimizer.update(schedule="cosine", learning_rate=2e-3, warmup_steps=100, clip_norm=1.0)
    config.train.update(steps=1200, batch_tokens=1024, eval_every=400, checkpoint_every=400, keep_last=1)
    return common.smoke(config) if arguments.smoke else config
