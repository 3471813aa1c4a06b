"""Small attention models learn to translate digits."""

import random

import pytest

from nmt_jax.commands import translate
from nmt_jax.training.run import train
from tests.conftest import ROOT

SETTINGS = {
    "data.source": "source",
    "data.target": "target",
    "data.num_buckets": "2",
    "vocab.size": "24",
    "vocab.byte_fallback": "false",
    "model.d_embedding": "32",
    "model.d_hidden": "64",
    "model.d_attention": "32",
    "model.dropout": "0.0",
    "loss.label_smoothing": "0.0",
    "optimizer.schedule": "linear",
    "optimizer.learning_rate": "5e-3",
    "optimizer.warmup_steps": "50",
    "train.batch_tokens": "1024",
    "train.keep_last": "1",
    "decode.average": "1",
}


@pytest.mark.slow
@pytest.mark.parametrize(("task", "page", "steps"), [("reverse", "rnn_luong", 600), ("copy", "rnn_bahdanau", 300)])
def test_digit_tasks_are_learned(task, page, steps, tmp_path):
    generator = random.Random(0)
    for split, count in (("train", 8000), ("val", 50), ("test", 300)):
        rows = [generator.choices("0123456789", k=generator.randint(3, 10)) for _ in range(count)]
        answers = [row[::-1] if task == "reverse" else row for row in rows]
        for side, lines in (("source", rows), ("target", answers)):
            (tmp_path / f"{split}.{side}").write_text("".join(f"{' '.join(line)}\n" for line in lines))
    settings = SETTINGS | {"data.directory": str(tmp_path), "data.cache": str(tmp_path / "cache")}
    settings |= dict.fromkeys(("train.steps", "train.eval_every", "train.checkpoint_every"), str(steps))
    train(f"{ROOT}/configs/{page}.py", tmp_path / "w", settings)
    results = translate.run(tmp_path / "w", (tmp_path / "test.source").read_text().splitlines())
    answers = (tmp_path / "test.target").read_text().splitlines()
    right = sum(best[0].text == answer for best, answer in zip(results, answers, strict=True))
    assert right / len(answers) > 0.99
