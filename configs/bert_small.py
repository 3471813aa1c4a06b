r"""BERT small (Turc et al., 2019): 4 layers of width 512, 29 million parameters, for one accelerator.

    nmt-jax train --config=configs/bert_small.py --config.data.directory=DIRECTORY \
        --config.data.train='["articles.txt"]' --config.data.running='["books.txt"]' --workdir=runs/bert_small

The format of the files is described in docs/how-to/pretraining.md. We have not trained this page, so there is no
accuracy to report.
"""

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, smoke=False)
    config = common.base("bert", "pretrain")
    config.data.update(corpus="text", max_length=128, dev_share=0.005)
    config.vocab.update(algorithm="wordpiece", size=30_522)
    config.model.update(num_layers=4, d_model=512, d_ff=2048, num_heads=8, max_positions=512, dtype="bfloat16")
    config.optimizer.update(name="adamw", schedule="linear", learning_rate=5e-4, warmup_steps=10_000, weight_decay=0.01)
    config.optimizer.update(beta2=0.999, epsilon=1e-6, clip_norm=1.0)
    config.train.update(steps=250_000, batch_tokens=32_768, log_every=100, eval_every=5000, checkpoint_every=5000)
    config.train.keep_last = 2
    config.eval.batch_tokens = 32_768
    return common.smoke(config) if arguments.smoke else config
