"""Effective approaches to attention (Luong et al., 2015): LSTMs with general attention and input feeding, on Multi30k.

    nmt-jax train --config=configs/rnn_luong.py --config.data.directory=DIRECTORY --workdir=runs/rnn_luong
    nmt-jax translate --workdir=runs/rnn_luong < DIRECTORY/test_2016_flickr.en > test.hypothesis
    nmt-jax score test.hypothesis --reference=DIRECTORY/test_2016_flickr.de

DIRECTORY is the same as for multi30k.py.

The default is a small model, not the paper's: one layer of 256 cells instead of four of 1,000, a bidirectional encoder
instead of a unidirectional one that reads the source reversed, one joint BPE vocabulary with tied embeddings instead of
two vocabularies of 50,000 words, and an initial decoder state that is a learned transformation of the encoder's.

`size=paper` has the shape of section 4.1 (four unidirectional layers of 1,000 cells, embeddings of width 1,000, dropout
0.2, words, no tied embeddings, 12 epochs of WMT14 from TFDS). Two differences remain: Adam with a linear schedule
instead of plain SGD, and the source is not reversed. It needs an accelerator; we have not trained it.

The sweep trains all scores with global and local attention, with and without input feeding. `--only` selects some runs:

    nmt-jax sweep --config=configs/rnn_luong.py --config.data.directory=DIRECTORY --workdir=runs/luong
    nmt-jax sweep ... --only=model.attention=global --only=model.input_feeding=true

BLEU on test_2016_flickr (2026-11-21, CPU, one seed, beam 5): general 34.55, dot 34.35, additive 36.69; table in
docs/results/recurrent.md. Training with `general` took 26 minutes on a busy core.
"""

import itertools
from collections.abc import Callable

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `size=paper` for the shape of the paper, `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, size="small", smoke=False)
    if arguments.size not in ("small", "paper"):
        raise ValueError(f"unknown size {arguments.size!r}: choose small or paper")
    config = common.base("rnn")
    config.model.update(cell="lstm", decoder="luong", score="general", attention="global", input_feeding=True)
    config.model.dropout = 0.2
    if arguments.size == "paper":
        config.data.update(corpus="tfds", name="wmt14_translate/de-en", source="en", target="de", dev="validation")
        config.data.max_length = 51  # 50 words and the end of sentence
        config.vocab.update(algorithm="word", size=50_000, joint=False)
        config.model.update(num_encoder_layers=4, num_decoder_layers=4, d_embedding=1000, d_hidden=1000)
        config.model.update(bidirectional=False, bridge="copy", tie_embeddings="none")
        config.loss.label_smoothing = 0.0
        config.optimizer.update(schedule="linear", learning_rate=1e-3, warmup_steps=4000, clip_norm=5.0)
        # 12 epochs of 4.5 million pairs in batches of 128 pairs
        config.train.update(steps=420_000, batch_tokens=4096, log_every=100, eval_every=5000, checkpoint_every=5000)
        config.train.keep_last = 2
    else:
        config.data.update(corpus="text", source="en", target="de", test="test_2016_flickr")
        config.data.update(max_length=128, num_buckets=5)
        config.vocab.update(algorithm="bpe", size=8000)
        config.model.update(d_embedding=256, d_hidden=256, tie_embeddings="three-way")
        config.model.dtype = "bfloat16"  # of products; sums and parameters are float32
        config.loss.label_smoothing = 0.1
        config.optimizer.update(schedule="cosine", learning_rate=2e-3, warmup_steps=300, clip_norm=1.0)
        config.train.update(steps=2500, batch_tokens=2048, eval_every=250, checkpoint_every=250, keep_last=2)
    return common.smoke(config) if arguments.smoke else config


def sweep(add: Callable[[dict[str, str | bool]], None]) -> None:
    """Add all combinations of scores, kinds of attention, and input feeding: 38 runs; `location` is always global."""
    scores = ("dot", "scaled_dot", "general", "reduced_rank", "additive", "concat", "location")
    for score, attention, feeding in itertools.product(scores, ("global", "local-m", "local-p"), (True, False)):
        if score != "location" or attention == "global":
            add({"model.score": score, "model.attention": attention, "model.input_feeding": feeding})
