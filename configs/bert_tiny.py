r"""A small BERT (Devlin et al., 2019) pretrained on two million words, on a CPU.

    nmt-jax train --config=configs/bert_tiny.py --config.data.directory=DIRECTORY --workdir=runs/bert_tiny
    python -m benchmarks.mlm_baselines --workdir=runs/bert_tiny
    nmt-jax export --to=huggingface --workdir=runs/bert_tiny --output=bert_tiny

DIRECTORY has the Brown corpus, speeches, encyclopedia articles and five novels. One document in twenty is held out. The
dev perplexity and accuracy of [MASK] are computed on the same questions whatever `config.corrupt` is.

Dev perplexity 97.9, accuracy 23.9 %, next sentences 76.6 % after about 49 CPU-minutes; unigrams have 913 and 4.5 %,
bigrams 273 and 13.9 % (2026-11-21; docs/results/pretraining.md).

The sweep has the ablations of sections 5.1, 5.2 and C.2, with 3 layers of width 128 and 1,000 steps:

    nmt-jax sweep --config=configs/bert_tiny.py:ablation=true --config.data.directory=DIRECTORY \
        --workdir=runs/bert_ablations --seeds=2
"""

from collections.abc import Callable

import common
from ml_collections import ConfigDict

BOOKS = ("alice_in_wonderland", "moby_dick", "pride_and_prejudice", "sherlock_holmes", "tale_of_two_cities")


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `ablation=true` for the smaller model of the sweep, `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, ablation=False, smoke=False)
    config = common.base("bert", "pretrain")
    config.data.update(corpus="text", max_length=64, dev_share=0.05)
    config.data.train = ["brown/brown.train.txt", "state_union/state_union.txt", "inaugural/inaugural.txt"]
    config.data.running = ["wikitext2/wikitext2.valid.txt", *(f"gutenberg/{book}.txt" for book in BOOKS)]
    config.vocab.update(algorithm="wordpiece", size=8000)
    config.model.update(num_layers=4, d_model=256, d_ff=1024, num_heads=4, max_positions=64)
    config.model.update(dropout=0.0, attention_dropout=0.0, dtype="bfloat16")  # two epochs with different masks
    config.model.init_stddev = 0.035  # scaled for the width: 0.02 * (768 / 256) ** 0.5
    config.initialization = "mimetic"
    config.corrupt.share = 0.4  # more predictions per row (Wettig et al., 2023)
    config.optimizer.update(name="adamw", schedule="linear", learning_rate=1.5e-3, warmup_steps=300, weight_decay=0.01)
    config.optimizer.update(beta2=0.98, epsilon=1e-6, clip_norm=1.0)
    config.train.update(steps=4000, batch_tokens=2048, log_every=20, eval_every=500, checkpoint_every=500, keep_last=1)
    if arguments.ablation:
        config.model.update(num_layers=3, d_model=128, d_ff=512)
        config.optimizer.update(learning_rate=3e-3, warmup_steps=100)
        config.train.update(steps=1000, eval_every=250, checkpoint_every=500)
    return common.smoke(config) if arguments.smoke else config


def sweep(add: Callable[[dict[str, str | bool | int | float]], None]) -> None:
    """Add the ablations: objectives, masking, initialization and sizes."""
    add({"model.next_sentence": True})  # the base model
    add({"model.next_sentence": False})
    add({"model.next_sentence": False, "model.causal": True})
    add({"corrupt.mask": 1.0, "corrupt.random": 0.0})
    add({"corrupt.mask": 0.0, "corrupt.random": 1.0})
    add({"corrupt.whole_words": True})
    add({"corrupt.share": 0.15})
    add({"initialization": "normal"})
    add({"model.num_layers": 1})
    add({"model.d_model": 64, "model.d_ff": 256})
