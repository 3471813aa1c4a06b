"""Skip-gram word vectors (Mikolov et al., 2013b) from two million words of novels, the Brown corpus and speeches.

    nmt-jax train --config=configs/word2vec.py --config.data.directory=DIRECTORY --workdir=runs/word2vec
    echo "king - man + woman" | nmt-jax neighbours --workdir=runs/word2vec

DIRECTORY holds the files that `data.train` and `data.running` name below.

Accuracy on analogies (nearest of 18,646 words): family 61 %, past tense 61 %, plurals 26 %, comparatives 21 % after
1,000 steps (11 epochs, 1.3 CPU-minutes; 2026-11-21; docs/results/word-vectors.md).
"""

import common
from ml_collections import ConfigDict

BOOKS = ("alice_in_wonderland", "moby_dick", "pride_and_prejudice", "sherlock_holmes", "tale_of_two_cities")


def get_config(arg: str = "") -> ConfigDict:
    """Return the config; `smoke=true` for a one-step test."""
    arguments = common.parse_arg(arg, smoke=False)
    config = common.base("word_vectors", "word_vectors")
    config.data.update(corpus="text", train=["brown/brown.train.txt", "state_union/state_union.txt"])
    config.data.train.append("inaugural/inaugural.txt")
    config.data.running = [f"gutenberg/{book}.txt" for book in BOOKS]
    config.model.update(algorithm="skip_gram", d_model=100, window=5)
    config.optimizer.update(name="adagrad", schedule="linear", learning_rate=0.4, warmup_steps=0, epsilon=1e-7)
    config.train.update(steps=1000, batch_tokens=16_384, eval_every=200, checkpoint_every=500, keep_last=1)
    return common.smoke(config) if arguments.smoke else config
