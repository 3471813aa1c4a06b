"""Replies to the turn before (Vinyals and Le, 2015), in plays: a recurrent model with attention on Tiny Shakespeare.

    nmt-jax train --config=configs/dialogue.py --config.data.directory=DIRECTORY --workdir=runs/dialogue
    nmt-jax translate --workdir=runs/dialogue --top_p=0.9 --num_samples=1 < DIRECTORY/test.turn > test.hypothesis

docs/how-to/sequence-to-sequence.md has the command that makes DIRECTORY, and the measures: perplexity and distinct
n-grams. With --config.data.source=nothing, the model does not see the turn before.

4 minutes of one CPU core, 2026-11-26: perplexity per word 520 with the turn before and 484 without, so 3,589 replies
are too few to learn from it (docs/results/sequence-to-sequence.md).
"""

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, smoke=False)
    config = common.base("rnn")
    config.data.update(corpus="text", source="turn", target="reply", max_length=96, num_buckets=4)
    config.vocab.update(algorithm="unigram", size=2000, joint=False)  # the replies alone decide their pieces
    config.model.update(score="additive", d_attention=128, d_embedding=128, d_hidden=256, dropout=0.4)
    config.model.tie_embeddings = "two-way"
    config.optimizer.update(schedule="cosine", learning_rate=2e-3, warmup_steps=50, clip_norm=1.0)
    config.train.update(steps=800, batch_tokens=1024, eval_every=100, checkpoint_every=100, keep_last=2)
    config.train.early_stopping_metric = "loss"
    config.eval.max_segments = 0  # a play has one reply of many: BLEU says little
    config.decode.update(max_length_ratio=0.0, max_length_offset=40, average=1)
    return common.smoke(config) if arguments.smoke else config
