"""Sentences from meaning representations (BAGEL and SFHOT): a recurrent model that copies values it has never seen.

    nmt-jax train --config=configs/data_to_text.py --config.data.directory=DIRECTORY --workdir=runs/data_to_text
    nmt-jax translate --workdir=runs/data_to_text < DIRECTORY/test.meaning > test.hypothesis
    nmt-jax score test.hypothesis --reference=DIRECTORY/test.sentence --metrics=bleu,nist,meteor,rougeL,cider

docs/how-to/sequence-to-sequence.md has the command that makes DIRECTORY. Names, numbers and addresses that are not
among the 300 most frequent words can only be copied (See et al., 2017).

BLEU with four references 66.9, NIST 8.21, METEOR 0.801, ROUGE-L 0.816, CIDEr-D 4.37 on 108 meanings (2026-11-26, 4
minutes of one CPU core); the nearest training meaning 48.0. More in docs/results/sequence-to-sequence.md.
"""

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, smoke=False)
    config = common.base("rnn")
    config.data.update(corpus="text", source="meaning", target="sentence", max_length=80, num_buckets=4)
    config.vocab.update(algorithm="word", size=300)
    config.model.update(copying="pointer", max_unknown=40, score="additive", d_attention=96)
    config.model.update(d_embedding=96, d_hidden=192, dropout=0.3, tie_embeddings="three-way")
    config.loss.label_smoothing = 0.0  # copied words of other lines have probability zero
    config.optimizer.update(schedule="cosine", learning_rate=2e-3, warmup_steps=100, clip_norm=1.0)
    config.train.update(steps=1000, batch_tokens=512, eval_every=100, checkpoint_every=100, keep_last=2)
    config.train.early_stopping_metric = "loss"  # BLEU of few short sentences is too noisy
    config.decode.update(max_length_ratio=2.0, average=2)
    return common.smoke(config) if arguments.smoke else config
