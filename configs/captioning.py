"""Attention over images (Xu et al., 2015): a model that describes the embedded scenes. It needs no data.

    nmt-jax train --config=configs/captioning.py --workdir=runs/captioning
    nmt-jax corpus --workdir=runs/captioning --split=test --output=runs/captioning/test
    nmt-jax translate --workdir=runs/captioning < runs/captioning/test.scenes > runs/captioning/test.hypothesis
    nmt-jax score runs/captioning/test.hypothesis --reference=runs/captioning/test.en

16 minutes of one CPU core; on the 1,000 test scenes, with beam 5, BLEU 99.89 and an exact-caption accuracy of 99.3 %,
though no combination of shape and colour of these scenes was in training (2026-11-26). In 97.8 % of the words for size,
colour and shape, the decoder looks at the object that they describe (docs/results/images.md).

`model=hard` reads one place of the image for each word, and learns by the reward of the words that it predicts: 87.0 %
of the captions are exact, 100.0 % of the words point to their object (11 minutes of one CPU core).
`model=transformer` projects patches and reads them with a Transformer. It gets 82 % of the captions right for
combinations of training, but 18 % for others.
"""

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `model=soft` or `hard`, the attention of Xu et al. (2015), or `transformer`; `smoke=true`."""
    arguments = common.parse_arg(arg, model="soft", smoke=False)
    if arguments.model in ("soft", "hard"):
        config = common.base("rnn")
        config.model.update(cell="lstm", decoder="bahdanau", score="additive", bridge="mean", context_gate=True)
        config.model.update(d_embedding=64, d_hidden=128, d_attention=128, dropout=0.1, word_dropout=0.5)
        config.model.update(image_encoder="convolution", convolution_width=16)
        if arguments.model == "hard":
            config.model.attention = "hard"
            config.loss.hard_attention.reward = 0.1
    elif arguments.model == "transformer":
        config = common.base()
        config.model.update(num_encoder_layers=2, num_decoder_layers=1, d_model=128, d_ff=512, num_heads=4, dropout=0.1)
    else:
        raise ValueError(f"model={arguments.model}: use soft, hard or transformer")
    config.vocab.update(algorithm="word", size=100)
    config.optimizer.update(schedule="linear", learning_rate=2e-3, warmup_steps=200)
    config.train.update(steps=4000, batch_tokens=1024, eval_every=500, checkpoint_every=500, keep_last=3)
    config.eval.update(max_segments=200)
    config.decode.update(max_length_ratio=0.0, max_length_offset=30)  # whatever the number of patches
    if arguments.smoke:
        common.smoke(config)
    config.data.update(corpus="scenes", source="scenes", target="en", size=200 if arguments.smoke else 20_000)
    image_size = 48 if arguments.model == "transformer" else 96
    config.data.update(kind="image", image_size=image_size, patch_size=16, max_length=64, num_buckets=1)
    return config
