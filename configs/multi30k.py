"""The tiny Transformer of Wu et al. (2021) on Multi30k image captions, English to German.

    nmt-jax train --config=configs/multi30k.py --config.data.directory=DIRECTORY --workdir=runs/multi30k
    nmt-jax translate --workdir=runs/multi30k < test_2016_flickr.en > test.hypothesis
    nmt-jax score test.hypothesis --reference=test_2016_flickr.de

DIRECTORY holds train.en, train.de, val.en, val.de, ... (plain or .gz). To train for one hour only, add
--config.train.minutes=60.

One hour on 2 CPU cores (5,822 steps, 41 epochs, with other work on the machine), test_2016_flickr, beam 5, average of
the last 10 checkpoints: sacreBLEU 39.93, nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0 (lower-cased
40.31), on 2026-11-21. The full schedule, 14,000 steps (99 epochs; 3 h 9 min with other work on the machine, about two
hours of two quiet cores): 40.37 (lower-cased 40.80), chrF 64.79, TER 43.97 (docs/results/performance.md). The paper
reports 41.02 for its text-only Transformer, lower-cased and tokenized.

bfloat16 products are fast only on processors with such instructions; elsewhere add --config.model.dtype=float32.
"""

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, smoke=False)
    config = common.base()
    config.data.update(corpus="text", source="en", target="de", test="test_2016_flickr", max_length=128, num_buckets=8)
    config.vocab.update(algorithm="bpe", size=8000)
    config.model.update(num_encoder_layers=4, num_decoder_layers=4, d_model=128, d_ff=256, num_heads=4, dropout=0.3)
    config.model.dtype = "bfloat16"  # of products; sums and parameters are float32
    config.loss.label_smoothing = 0.1
    config.optimizer.update(schedule="inverse_sqrt", learning_rate=5e-3, warmup_steps=2000)
    config.train.update(
        steps=14_000, batch_tokens=4096, eval_every=1000, checkpoint_every=250, keep_last=10, patience=10
    )
    config.decode.update(average=10)
    return common.smoke(config) if arguments.smoke else config
