"""Visual question answering: an English question and a picture to the answer, one word, on the embedded scenes.

    nmt-jax train --config=configs/visual_question.py --workdir=runs/questions
    nmt-jax corpus --workdir=runs/questions --split=test --output=runs/questions/test
    nmt-jax translate --workdir=runs/questions --input=runs/questions/test.question,scenes > runs/questions/test.found
    python -m benchmarks.scenes runs/questions    # accuracy by kind of question

The questions are about size, colour, shape, number, existence and position of one to four objects, such as "what
colour is the small circle ?". No test scene has a combination of shape and colour of the training scenes.
Every second training scene has a lesson, a question with a longer answer: what is in the picture, which red circles are
there, where is the small ring, where is the bar relative to the ring. `pictures=false` is the same model without the
picture.

84 minutes of one CPU core: accuracy 97.2 % on 1,000 test questions (sizes 100.0, colours 95.4, shapes 96.1,
numbers 98.5, existence 97.2, position 95.6; 2026-11-27, docs/results/images.md).
"""

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `pictures=false` for the question alone, `smoke=true`."""
    arguments = common.parse_arg(arg, pictures=True, smoke=False)
    config = common.base()
    config.model.update(num_encoder_layers=3, num_decoder_layers=1, d_model=64, d_ff=256, num_heads=4, dropout=0.1)
    if arguments.pictures:
        config.model.update(image_encoder="convolution", convolution_width=16)
    config.vocab.update(algorithm="word", size=100)
    config.optimizer.update(schedule="linear", learning_rate=2e-3, warmup_steps=200)
    config.train.update(steps=12_000, batch_tokens=2048, eval_every=500, checkpoint_every=500, keep_last=3)
    config.train.early_stopping_metric = "loss"  # BLEU needs four words
    config.eval.update(max_segments=0)
    config.loss.label_smoothing = 0.0
    config.decode.update(max_length_ratio=0.0, max_length_offset=20)  # whatever the length of the question
    if arguments.smoke:
        common.smoke(config)
    config.data.update(corpus="scenes", name="questions", source="question", target="answer", num_buckets=1)
    config.data.update(max_length=64, size=200 if arguments.smoke else 80_000)
    if arguments.pictures:
        config.data.update(source="question,scenes", kind="text,image", image_size=96, patch_size=32)
    return config
