"""Questions from a sentence with a marked answer (XQuAD, SQuAD): a recurrent model that can copy words.

    nmt-jax train --config=configs/question_generation.py --config.data.directory=DIRECTORY --workdir=runs/questions
    nmt-jax translate --workdir=runs/questions < DIRECTORY/test.sentence > test.hypothesis
    nmt-jax score test.hypothesis --reference=DIRECTORY/test.question --metrics=bleu,meteor,rougeL --confidence

docs/how-to/sequence-to-sequence.md has the command that makes DIRECTORY. The task is that of Du et al. (2017), with
the answer marked. With the 638 questions of XQuAD (3 minutes of one CPU core, 2026-11-26): BLEU 3.0, METEOR 0.243,
ROUGE-L 0.200, less than the sentence itself gets (docs/results/sequence-to-sequence.md); SQuAD has 87,599.
"""

import common
from ml_collections import ConfigDict


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, smoke=False)
    config = common.base("rnn")
    config.data.update(corpus="text", source="sentence", target="question", max_length=128, num_buckets=4)
    config.vocab.update(algorithm="word", size=1500)
    config.model.update(copying="pointer", max_unknown=80, score="additive", d_attention=128)
    config.model.update(d_embedding=128, d_hidden=256, dropout=0.4, tie_embeddings="three-way")
    config.loss.label_smoothing = 0.0  # copied words of other lines have probability zero
    config.optimizer.update(schedule="cosine", learning_rate=2e-3, warmup_steps=50, clip_norm=1.0)
    config.train.update(steps=500, batch_tokens=256, eval_every=50, checkpoint_every=50, keep_last=2)
    config.train.early_stopping_metric = "loss"
    config.decode.update(max_length_ratio=0.7, average=2)
    return common.smoke(config) if arguments.smoke else config
