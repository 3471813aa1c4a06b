"""A recurrent language model with tied weights (Zaremba et al., 2014; Press and Wolf, 2017), on a little Penn Treebank.

    nmt-jax train --config=configs/rnn_lm.py --config.data.directory=DIRECTORY --workdir=runs/rnn_lm
    zcat DIRECTORY/ptb.valid.txt.gz | tail -n 337 | nmt-jax perplexity --workdir=runs/rnn_lm
    nmt-jax generate --workdir=runs/rnn_lm --temperature=0.8

Lines 1 to 2,696 of the 3,370 are learned, the next 337 are dev, the last 337 test; 3,500 words, the rest is <unk>.

perplexity: dev 97.6, test 98.8 after 2,000 steps (3.6 CPU-minutes); a Kneser-Ney trigram 109.5 and 109.4, a 5-gram
107.4 and 105.6, on the same tokens (2026-11-21; docs/how-to/language-models.md).
"""

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """The experiment; `:smoke=true` is a one-step version for tests."""
    arguments = common.parse_arg(arg, smoke=False)
    config = common.base("rnn_lm", "language_model")
    config.data.update(corpus="text", train="ptb.valid.txt", dev_share=0.1, test_share=0.1, block_length=128)
    config.vocab.update(algorithm="word", size=3500)  # roughly the words that come twice in the training lines
    config.model.update(cell="lstm", num_layers=1, d_embedding=200, d_hidden=200, tie_embeddings=True)
    config.model.update(dropout=0.5, variational_dropout=True)
    config.model.dtype = "bfloat16"  # products only; sums and state are float32
    config.optimizer.update(schedule="cosine", learning_rate=3e-3, warmup_steps=100, clip_norm=1.0)
    config.eval.context = 64
    config.train.update(steps=2000, batch_tokens=1024, eval_every=100, checkpoint_every=500, keep_last=1)
    return common.smoke(config) if arguments.smoke else config
