"""Sequence to sequence through one vector (Sutskever et al., 2014), on Multi30k: what attention is compared with.

    nmt-jax train --config=configs/seq2seq_no_attention.py --config.data.directory=DIRECTORY --workdir=runs/no_attention
    nmt-jax translate --workdir=runs/no_attention < test_2016_flickr.en > test.hypothesis
    nmt-jax score test.hypothesis --reference=test_2016_flickr.de

BLEU: not measured yet.
"""

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """The experiment; `:smoke=true` is a one-step version for tests."""
    arguments = common.parse_arg(arg, smoke=False)
    config = common.base("rnn")
    config.data.update(corpus="text", source="en", target="de", test="test_2016_flickr", max_length=128, num_buckets=8)
    config.vocab.update(algorithm="bpe", size=8000)
    config.model.update(cell="lstm", attention="none", input_feeding=False)
    config.model.update(d_embedding=256, d_hidden=512, dropout=0.3, tie_embeddings="three-way")
    config.loss.label_smoothing = 0.1
    config.optimizer.update(schedule="inverse_sqrt", learning_rate=1e-3, warmup_steps=500, clip_norm=1.0)
    config.train.update(steps=6000, batch_tokens=4096, eval_every=500, checkpoint_every=250, keep_last=5, patience=6)
    config.decode.update(average=5)
    return common.smoke(config) if arguments.smoke else config
