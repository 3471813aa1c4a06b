"""The Transformer of Vaswani et al. (2017) on WMT14 English to German, from TFDS.

    nmt-jax train --config=configs/transformer.py:size=base --config.data.directory=DIRECTORY --workdir=runs/base

DIRECTORY holds the prepared data set (docs/reference/data.md).

Sizes: tiny, small, base (63 million parameters, 100,000 steps) and big (214 million, 300,000 steps). The paper,
which counts 65 and 213 million, reports 27.3 (base) and 28.4 (big) BLEU on newstest2014 after 12 hours and 3.5 days on
8 P100 GPUs. This config needs accelerators; we have not trained it.
"""

import common
from ml_collections import ConfigDict

SIZES = {  # layers of encoder and of decoder, d_model, d_ff, heads, dropout, steps, checkpoints averaged
    "tiny": (4, 128, 256, 4, 0.3, 20_000, 10),
    "small": (3, 256, 1024, 4, 0.1, 50_000, 5),
    "base": (6, 512, 2048, 8, 0.1, 100_000, 5),
    "big": (6, 1024, 4096, 16, 0.3, 300_000, 20),
}


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `size=tiny|small|base|big`, `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, size="base", smoke=False)
    if arguments.size not in SIZES:
        raise ValueError(f"unknown size {arguments.size!r}: one of {', '.join(SIZES)}")
    layers, d_model, d_ff, num_heads, dropout, steps, average = SIZES[arguments.size]
    config = common.base()
    config.data.update(corpus="tfds", name="wmt14_translate/de-en", source="en", target="de", dev="validation")
    config.vocab.update(algorithm="bpe", size=37_000)
    config.model.update(num_encoder_layers=layers, num_decoder_layers=layers, d_model=d_model, d_ff=d_ff)
    config.model.update(num_heads=num_heads, dropout=dropout, norm="post")
    config.optimizer.update(schedule="noam", learning_rate=1.0, warmup_steps=4000)
    config.train.update(steps=steps, batch_tokens=25_000, log_every=100, eval_every=2000, checkpoint_every=1000)
    config.train.keep_last = average
    config.eval.update(max_segments=1000)
    config.decode.update(beam_size=4, length_penalty=0.6, max_length_ratio=1.0, max_length_offset=50, average=average)
    return common.smoke(config) if arguments.smoke else config
