"""A dual encoder that finds the translation of a sentence, or the image of a caption, among many.

    nmt-jax train --config=configs/retrieval.py --config.data.directory=DIRECTORY --workdir=runs/retrieval
    nmt-jax retrieve --workdir=runs/retrieval --candidates=DIRECTORY/val.de < DIRECTORY/val.en > val.found

DIRECTORY holds Multi30k, as for multi30k.py. `scenes=true` learns to find the embedded scenes, and needs no data:

    nmt-jax train --config=configs/retrieval.py:scenes=true --workdir=runs/scenes

Recall at 1 (the accuracy of the first one found) among the 1,000 sentences of test_2016_flickr: English to German
94.5 %, German to English 94.3 %, with a median rank of 1 (2026-11-26, 3 minutes of one CPU core). The text encoders are
the mean of embeddings, without a layer (docs/results/retrieval.md).

Recall at 1 of `scenes=true` among 1,000 test scenes with different captions: captions of images 98.2 %, images of
captions 97.9 %, though no combination of shape and colour of the test was in training (2026-11-26, 26 minutes of one
CPU core).
"""

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `scenes=true` for images and captions, `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, scenes=False, smoke=False)
    config = common.base("dual_encoder", "retrieval")
    config.model.update(num_layers=0, d_model=128, d_ff=512, num_heads=4, d_output=128, dropout=0.1)
    config.optimizer.update(schedule="cosine", learning_rate=2e-3, warmup_steps=100, clip_norm=1.0)
    config.train.update(steps=2000, batch_tokens=4096, eval_every=250, checkpoint_every=250, keep_last=1)
    config.data.update(corpus="text", source="en", target="de", max_length=64, num_buckets=4)
    if arguments.smoke:
        common.smoke(config)
    if arguments.scenes:
        config.model.update(num_layers=1, image_encoder="convolution", convolution_width=4 if arguments.smoke else 16)
        config.vocab.update(algorithm="word", size=100)
        config.data.update(corpus="scenes", source="scenes", target="en", size=200 if arguments.smoke else 20_000)
        config.data.update(kind="image", image_size=96, patch_size=16, max_length=64, num_buckets=1)
    return config
