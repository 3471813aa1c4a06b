"""Table 3 of Vaswani et al. (2017): variations of the Transformer, at the paper's size or at a size for one CPU core.

    nmt-jax train --config=configs/ablation.py --config.data.directory=DIRECTORY --workdir=runs/base
    nmt-jax sweep --config=configs/ablation.py --config.data.directory=DIRECTORY --workdir=runs/ablation --seeds=3
    nmt-jax sweep --config=configs/ablation.py:size=paper --config.data.directory=DIRECTORY --workdir=runs/paper

`size=small` (the default) trains on Multi30k, English to German; DIRECTORY is the same as for multi30k.py. The base
model has 2 layers, d_model 64, d_ff 256 and 4 heads, and every row changes it by about the same factor as the row of
the paper. BLEU on test_2016_flickr: base model 24.6, best row (d_model 128) 28.4 (2026-11-22, 4 minutes on one CPU
core). All rows: docs/results/ablation.md.

`size=paper` has the rows of the paper, on WMT14 from TFDS (dev set: newstest2013). It needs accelerators; we have not
trained it. The paper scores Table 3 without averaging checkpoints (`nmt-jax translate --average=1`).
"""

import dataclasses
from collections.abc import Callable

import common
from ml_collections import ConfigDict


@dataclasses.dataclass(frozen=True)
class Size:
    """The base model of a sweep, and the rows whose values do not follow from it by a factor."""

    layers: int
    d_model: int
    d_ff: int
    num_heads: int
    heads: tuple[int, ...]  # rows (A)
    depths: tuple[int, ...]  # rows (C), layers
    big: dict[str, int]  # additional changes of the row "big"


SIZES = {
    "small": Size(2, 64, 256, 4, heads=(1, 2, 8, 16), depths=(1, 3, 4), big={}),
    "paper": Size(6, 512, 2048, 8, heads=(1, 4, 16, 32), depths=(2, 4, 8), big={"train.steps": 300_000}),
}


def read_arg(arg: str) -> tuple[str, bool]:
    """Return the name of the size and whether this is a smoke test. Raises ValueError if the size is unknown."""
    arguments = common.parse_arg(arg, size="small", smoke=False)
    if arguments.size not in SIZES:
        raise ValueError(f"unknown size {arguments.size!r}: choose small or paper")
    return arguments.size, arguments.smoke


def get_config(arg: str = "") -> ConfigDict:
    """Return the base model: `size=small` or `size=paper`; `smoke=true` for a one-step test."""
    name, smoke = read_arg(arg)
    size = SIZES[name]
    config = common.base()
    config.model.update(num_encoder_layers=size.layers, num_decoder_layers=size.layers, num_heads=size.num_heads)
    config.model.update(d_model=size.d_model, d_ff=size.d_ff, norm="post", dropout=0.1)
    config.loss.label_smoothing = 0.1
    config.optimizer.update(schedule="noam", learning_rate=1.0, warmup_steps=4000)
    config.decode.update(beam_size=4, length_penalty=0.6)
    if name == "paper":
        config.data.update(corpus="tfds", name="wmt14_translate/de-en", source="en", target="de", dev="validation")
        config.vocab.update(algorithm="bpe", size=37_000)
        config.train.update(steps=100_000, batch_tokens=25_000, log_every=100, eval_every=5000, checkpoint_every=1000)
        config.train.keep_last = config.decode.average = 5
    else:
        config.data.update(corpus="text", source="en", target="de", test="test_2016_flickr")
        config.data.update(max_length=128, num_buckets=6)
        config.vocab.update(algorithm="bpe", size=3000)
        config.model.dtype = "bfloat16"
        config.optimizer.update(learning_rate=0.7, warmup_steps=400)
        config.train.update(steps=1500, batch_tokens=2048, eval_every=500, checkpoint_every=250, keep_last=3)
        config.eval.update(max_segments=500)
        config.decode.average = 3
    return common.smoke(config) if smoke else config


def sweep(add: Callable[[dict[str, str | bool | int | float]], None], arg: str = "") -> None:
    """Add the base model, rows (A) to (E), and "big"; `size=small` or `size=paper`."""
    size = SIZES[read_arg(arg)[0]]
    width = size.d_model // size.num_heads  # of a head
    add({"model.num_heads": size.num_heads})  # the base model
    for heads in size.heads:  # (A)
        add({"model.num_heads": heads, "model.d_k": size.d_model // heads, "model.d_v": size.d_model // heads})
    for d_k in (width // 4, width // 2):  # (B)
        add({"model.d_k": d_k})
    for layers in size.depths:  # (C)
        add({"model.num_encoder_layers": layers, "model.num_decoder_layers": layers})
    for d_model in (size.d_model // 2, 2 * size.d_model):
        d_head = d_model // size.num_heads
        add({"model.d_model": d_model, "model.d_k": d_head, "model.d_v": d_head})
    for d_ff in (size.d_ff // 2, 2 * size.d_ff):
        add({"model.d_ff": d_ff})
    for dropout in (0.0, 0.2):  # (D)
        add({"model.dropout": dropout})
    for smoothing in (0.0, 0.2):
        add({"loss.label_smoothing": smoothing})
    add({"model.positions": "learned"})  # (E)
    wide = {"model.d_model": 2 * size.d_model, "model.d_ff": 2 * size.d_ff, "model.num_heads": 2 * size.num_heads}
    add({**wide, "model.dropout": 0.3, **size.big})
