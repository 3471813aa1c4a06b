r"""Named-entity tagging from stored features: static word vectors, ELMo, or both (Peters et al., 2018).

    nmt-jax train --config=configs/elmo_tagger.py --config.data.directory=DIRECTORY --workdir=runs/elmo_tagger \
        --config.data.vectors=glove.txt --config.data.elmo=runs/elmo
    nmt-jax plot --kind=layers --workdir=runs/elmo_tagger

DIRECTORY holds wikigold.conll; one sentence in ten is held out. configs/elmo.py trains runs/elmo. The measures are the
accuracy of tags, and precision, recall and F1 of entities, in percent: F1 35.3 with GloVe alone and 55.2 with GloVe and
ELMo, in 0.8 and 2.5 minutes (2026-11-21; docs/results/elmo.md).
"""

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, smoke=False)
    config = common.base("feature_tagger", "feature_tagger")
    config.data.update(corpus="files", train="wikigold.conll", dev="", scheme="iob1", num_buckets=4)
    config.optimizer.update(schedule="cosine", learning_rate=3e-3, warmup_steps=20, clip_norm=1.0)
    config.train.update(steps=600, batch_tokens=1024, eval_every=100, checkpoint_every=100, keep_last=1)
    return common.smoke(config) if arguments.smoke else config
