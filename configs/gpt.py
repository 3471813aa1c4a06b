"""A left-to-right Transformer language model (Radford et al., 2018), on the same small Penn Treebank as rnn_lm.py.

    nmt-jax train --config=configs/gpt.py --config.data.directory=DIRECTORY --workdir=runs/gpt
    zcat DIRECTORY/ptb.valid.txt.gz | tail -n 337 | nmt-jax perplexity --workdir=runs/gpt
    nmt-jax generate --workdir=runs/gpt --temperature=0.8

Perplexity: dev 126.9, test 124.9, best after 1,000 of 2,000 steps (14 minutes on two CPU cores shared with other work).
rnn_lm.py has 97.6 and 98.8 (2026-11-21; docs/results/language-models.md). With 25 times the text, a larger model has a
test perplexity of 101.8 per BPE piece, and a 5-gram 145.8 (`python -m benchmarks.language_models`, 2026-11-27); these
are not comparable with the figures above, which are per word.
"""

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, smoke=False)
    config = common.base("gpt", "language_model")
    config.data.update(corpus="text", train="ptb.valid.txt", dev_share=0.1, test_share=0.1, block_length=64)
    config.vocab.update(algorithm="word", size=3500)  # about the number of words that occur twice in training
    config.model.update(num_layers=2, d_model=200, d_ff=800, num_heads=4, max_positions=256)
    config.model.update(dropout=0.4, attention_dropout=0.1, norm="pre")
    config.model.dtype = "bfloat16"  # of products; sums and parameters are float32
    config.optimizer.update(schedule="cosine", learning_rate=1e-3, warmup_steps=200, clip_norm=1.0)
    config.eval.context = 32
    config.train.update(steps=2000, batch_tokens=1024, eval_every=100, checkpoint_every=500, keep_last=1)
    return common.smoke(config) if arguments.smoke else config
