r"""BERT large (Devlin et al., 2019): 24 layers of width 1024, 340 million parameters, for several accelerators.

    nmt-jax train --config=configs/bert_large.py --config.data.directory=DIRECTORY \
        --config.data.train='["articles.txt"]' --config.data.running='["books.txt"]' --workdir=runs/bert_large

The last tenth of the steps uses rows of 512 tokens (appendix A.2). Train it as a second run:

    nmt-jax train ... --workdir=runs/bert_large_512 --config.init_from=runs/bert_large --config.data.max_length=512 \
        --config.train.steps=100000 --config.vocab.model=runs/bert_large/vocab

The format of the files is described in docs/how-to/pretraining.md. This config is the recipe of the paper; we have not
trained it, so there is no accuracy to report.
"""

import bert_base
import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, smoke=False)
    config = bert_base.get_config()
    config.model.update(num_layers=24, d_model=1024, d_ff=4096, num_heads=16)
    config.train.accumulate = 4
    return common.smoke(config) if arguments.smoke else config
