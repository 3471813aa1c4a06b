"""Speech recognition with attention: the embedded speech, 8,000 short English sentences spoken by espeak-ng.

    apt-get install espeak-ng
    nmt-jax train --config=configs/listen_attend_spell.py:model=transformer --workdir=runs/speech
    nmt-jax corpus --workdir=runs/speech --split=test --output=runs/speech/test
    nmt-jax translate --workdir=runs/speech < runs/speech/test.speech > runs/speech/test.hypothesis
    nmt-jax score runs/speech/test.hypothesis --reference=runs/speech/test.en --metrics=wer,cer

The characters are spelled by a Transformer after two strided convolutions, or, with `model=rnn`, the default, by an
LSTM that attends to a pyramidal biLSTM (Chan et al., 2016). CTC is an auxiliary loss (Kim et al., 2017). WER counts
words, CER characters. `model=transformer` has a WER of 2.9 % on sentences and voices that it never heard, after 24
minutes of one CPU core (2026-11-26, docs/results/speech.md). We have not trained `model=rnn` yet.
"""

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `model=rnn` or `model=transformer`, `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, model="rnn", smoke=False)
    if arguments.model not in ("rnn", "transformer"):
        raise ValueError(f"unknown model {arguments.model!r}: choose rnn or transformer")
    config = common.base(arguments.model)
    if arguments.model == "rnn":
        config.model.update(num_encoder_layers=3, pyramid_layers=2, d_hidden=256, d_embedding=64, d_attention=128)
        config.model.update(score="additive", dropout=0.1)
        config.optimizer.update(schedule="linear", learning_rate=2e-3, warmup_steps=200, clip_norm=1.0)
    else:
        config.model.update(num_encoder_layers=4, num_decoder_layers=2, d_model=144, d_ff=576, num_heads=4)
        config.model.update(subsampling_layers=2, dropout=0.1, tie_embeddings="two-way")
        config.optimizer.update(schedule="linear", learning_rate=2e-3, warmup_steps=400)
    config.vocab.update(algorithm="character", size=100, byte_fallback=False)
    config.loss.update(ctc=0.3, label_smoothing=0.1)
    config.train.update(
        steps=4000 if arguments.model == "rnn" else 3000,
        batch_tokens=1024,
        eval_every=500,
        checkpoint_every=500,
        keep_last=3,
    )
    config.eval.update(max_segments=200)
    config.decode.update(max_length_ratio=0.0, max_length_offset=45, length_penalty=0.0)
    if arguments.smoke:
        common.smoke(config)
        config.model.update(num_encoder_layers=2)
    config.data.update(corpus="speech", source="speech", target="en", size=16 if arguments.smoke else 8000)
    config.data.spec_augment.update(frequency_masks=1, frequency_width=10)
    config.data.update(kind="audio", mels=40, max_length=512, num_buckets=1 if arguments.smoke else 6)
    return config
