"""What matters in a Transformer: every row of Table 3 of Vaswani et al. (2017), at the paper's size or a CPU's.

    nmt-jax train --config=configs/ablation.py --config.data.directory=DIRECTORY --workdir=runs/base
    nmt-jax sweep --config=configs/ablation.py --config.data.directory=DIRECTORY --workdir=runs/ablation --seeds=3
    nmt-jax sweep --config=configs/ablation.py:size=paper --workdir=runs/ablation-paper

`small` (Multi30k, English to German; DIRECTORY as for multi30k.py) is an eighth of the paper's width and a third of
its depth: heads 4, d_k 16, layers 2, d_model 64, d_ff 256. Each row changes what the paper's does, by about its factor.
BLEU of test_2016_flickr: the base model 24.6, the best row (d_model 128) 28.4 (2026-11-22, 4 minutes on one CPU core;
docs/ablation.md has all rows). `paper` (WMT14 through TFDS) wants accelerators and has not been trained by us.
"""

from collections.abc import Callable

import common
from ml_collections import ConfigDict

HEADS, LAYERS, D_MODEL, D_FF = 4, 2, 64, 256  # of the small base model; the paper's are 8, 6, 512, 2048


def get_config(arg: str = "") -> ConfigDict:
    """The base model; `:size=paper` at the paper's size, `smoke=true` a one-step version for tests."""
    arguments = common.parse_arg(arg, size="small", smoke=False)
    if arguments.size not in ("small", "paper"):
        raise ValueError(f"unknown size {arguments.size!r}: small or paper")
    config = common.base()
    config.model.update(norm="post", dropout=0.1)
    config.optimizer.update(schedule="noam", learning_rate=1.0, warmup_steps=4000)
    config.decode.update(beam_size=4, length_penalty=0.6)
    if arguments.size == "paper":
        config.data.update(corpus="tfds", name="wmt14_translate/de-en", source="en", target="de", dev="validation")
        config.vocab.update(algorithm="bpe", size=37_000)
        config.model.update(num_encoder_layers=6, num_decoder_layers=6, d_model=512, d_ff=2048, num_heads=8)
        config.train.update(steps=100_000, batch_tokens=25_000, log_every=100, eval_every=5000, checkpoint_every=1000)
        config.train.keep_last = config.decode.average = 5
        return common.smoke(config) if arguments.smoke else config
    config.data.update(corpus="text", source="en", target="de", test="test_2016_flickr", max_length=128, num_buckets=6)
    config.vocab.update(algorithm="bpe", size=3000)
    config.model.update(num_encoder_layers=LAYERS, num_decoder_layers=LAYERS, d_model=D_MODEL, d_ff=D_FF)
    config.model.update(num_heads=HEADS, dtype="bfloat16")
    config.loss.label_smoothing = 0.1
    config.optimizer.update(learning_rate=0.7, warmup_steps=400)
    config.train.update(steps=1500, batch_tokens=2048, eval_every=500, checkpoint_every=250, keep_last=3)
    config.eval.update(max_segments=500)
    config.decode.average = 3
    return common.smoke(config) if arguments.smoke else config


def sweep(add: Callable[[dict[str, str | bool | int | float]], None]) -> None:
    """The rows (A) to (E) and `big` of the small model, as factors of its sizes."""
    width = D_MODEL // HEADS
    add({"model.num_heads": HEADS})  # the base model
    for factor in (4, 2, 0.5, 0.25):  # (A) as much of the width for all heads together
        add(
            {"model.num_heads": int(HEADS / factor), "model.d_k": int(width * factor), "model.d_v": int(width * factor)}
        )
    for factor in (0.25, 0.5):  # (B)
        add({"model.d_k": int(width * factor)})
    for layers in (1, 3, 4):  # (C)
        add({"model.num_encoder_layers": layers, "model.num_decoder_layers": layers})
    for factor in (0.5, 2):
        size = int(width * factor)
        add({"model.d_model": int(D_MODEL * factor), "model.d_k": size, "model.d_v": size})
    for factor in (0.5, 2):
        add({"model.d_ff": int(D_FF * factor)})
    for dropout in (0.0, 0.2):  # (D)
        add({"model.dropout": dropout})
    for smoothing in (0.0, 0.2):
        add({"loss.label_smoothing": smoothing})
    add({"model.positions": "learned"})  # (E)
    add(
        {"model.d_model": 2 * D_MODEL, "model.d_ff": 2 * D_FF, "model.num_heads": 2 * HEADS, "model.dropout": 0.3}
    )  # big
