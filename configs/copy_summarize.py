"""Headline generation with a copying decoder (See et al., 2017; Gu et al., 2016) on AG news, with a word vocabulary.

    nmt-jax train --config=configs/copy_summarize.py --config.data.directory=DIRECTORY --workdir=runs/copy_summarize
    nmt-jax translate --workdir=runs/copy_summarize < DIRECTORY/test.description > test.hypothesis
    nmt-jax score test.hypothesis --reference=DIRECTORY/test.title --metrics=rouge1,rouge2,rougeL

docs/how-to/copying.md has the command that makes DIRECTORY from ag_news.train.tsv.gz. The vocabulary holds the 4,000
most frequent words; other words of a description can only be copied. Other settings: --config.model.copying=none and
--config.model.copying=copynet.

ROUGE-1, -2, -L on 318 test headlines (2026-11-21, CPU): pointer 20.9, 3.3, 20.0; copynet 21.0, 3.6, 20.2; none 7.4,
0.6, 7.2. More in docs/results/copying.md.
"""

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `model` is rnn or transformer, `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, model="rnn", smoke=False)
    if arguments.model not in ("rnn", "transformer"):
        raise ValueError(f"model={arguments.model}: choose rnn or transformer")
    config = common.base(arguments.model)
    config.data.update(corpus="text", source="description", target="title", max_length=80, num_buckets=4)
    config.vocab.update(algorithm="word", size=4000)
    config.model.update(copying="pointer", max_unknown=40, dropout=0.3, tie_embeddings="three-way")
    if arguments.model == "rnn":
        config.model.update(score="additive", d_attention=128, d_embedding=128, d_hidden=256)
    else:
        config.model.update(d_model=128, d_ff=512, num_heads=4)
    config.loss.label_smoothing = 0.0  # copied words of other lines have probability zero
    config.optimizer.update(schedule="cosine", learning_rate=2e-3, warmup_steps=100, clip_norm=1.0)
    config.train.update(steps=1000, batch_tokens=512, eval_every=100, checkpoint_every=100, keep_last=2)
    config.train.early_stopping_metric = "loss"  # BLEU of few short headlines is too noisy
    config.decode.update(max_length_ratio=0.5, average=2)
    return common.smoke(config) if arguments.smoke else config
