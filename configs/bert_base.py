r"""BERT base (Devlin et al., 2019): 12 layers of width 768, 110 million parameters, for several accelerators.

    nmt-jax train --config=configs/bert_base.py --config.data.directory=DIRECTORY \
        --config.data.train='["articles.txt"]' --config.data.running='["books.txt"]' --workdir=runs/bert_base

The last tenth of the steps uses rows of 512 tokens (appendix A.2). Train it as a second run:

    nmt-jax train ... --workdir=runs/bert_base_512 --config.init_from=runs/bert_base --config.data.max_length=512 \
        --config.train.steps=100000 --config.vocab.model=runs/bert_base/vocab

The format of the files is described in docs/how-to/pretraining.md. This config is the recipe of the paper; we have not
trained it, so there is no accuracy to report.
"""

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, smoke=False)
    config = common.base("bert", "pretrain")
    config.data.update(corpus="text", max_length=128, dev_share=0.001)
    config.vocab.update(algorithm="wordpiece", size=30_522)
    config.model.update(dtype="bfloat16", remat="full")
    config.optimizer.update(name="adamw", schedule="linear", learning_rate=1e-4, warmup_steps=10_000, weight_decay=0.01)
    config.optimizer.update(beta2=0.999, epsilon=1e-6, clip_norm=1.0)
    config.train.update(steps=900_000, batch_tokens=131_072, log_every=100, eval_every=10_000, checkpoint_every=10_000)
    config.train.update(keep_last=2, accumulate=1)
    config.eval.batch_tokens = 32_768
    return common.smoke(config) if arguments.smoke else config
