"""Keys of the config of a phrase-based model, which has no parameters that gradients train."""

from typing import Any

from nmt_jax.schema.key import Key, choice, count, share
from nmt_jax.schema.run import TOP
from nmt_jax.schema.shared_keys import MAX_ROW
from nmt_jax.schema.tasks import TASKS

NAME = "phrase"  # of the task and of the model
DATA = ("corpus", "directory", "name", "source", "target", "train", "dev", "test", "size")

PHRASE_KEYS: dict[str, Any] = {
    "seed": Key(0, "Seed of the pairs that tuning samples.", low=TOP["seed"].low, high=TOP["seed"].high),
    "model": {
        "lowercase": Key(False, "Convert all text to lower case."),
        "aligner": choice("hmm", "Model that aligns the words.", "ibm1", "diagonal", "hmm", "fertility"),
        "iterations": count(5, "EM iterations of each model of the aligner; not for fertility.", high=1000),
        "max_phrase_length": count(7, "Longest phrases.", "words", high=20),
        "max_translations": count(20, "Translations of a phrase to keep, by p(target | source).", high=10_000),
        "ngram_order": count(5, "Longest n-grams of the language model.", "words", high=20),
    },
    "data": {name: TASKS["translate"]["data"][name] for name in DATA}
    | {
        "max_length": count(
            80, "Longest training sentences; pairs with a longer one are skipped.", "tokens", high=MAX_ROW
        )
    },
    "tuning": {
        "n_best": count(100, "Translations of each dev sentence in a round.", high=10_000),
        "max_segments": count(1000, "Dev sentences to translate in a round.", high=1_000_000),
        "interpolation": share(0.5, "Weight of the new weights of a round in the mean with those before."),
    },
    "train": {
        "steps": count(6, "Rounds of tuning.", "rounds", high=1000),
        "minutes": Key(0.0, "Maximum tuning time; 0 = off.", low=0, high=10**9, unit="minutes"),
        "patience": count(0, "Rounds without improvement after which tuning stops; 0 = off.", low=0),
        "early_stopping_metric": Key("bleu", "Metric that tuning optimizes on the development set: bleu, chrf, ter …."),
    },
    "decode": {
        "stack_size": count(100, "Hypotheses in a stack, for each number of translated words.", high=100_000),
        "extensions": count(
            400, "New hypotheses that the language model scores for a stack, chosen by an estimate.", high=1_000_000
        ),
        "distortion_limit": count(6, "Most words that a jump between phrases may skip.", "words", low=0, high=1000),
    },
}

TINY_PHRASE: dict[str, Any] = {
    "model": {"iterations": 1, "max_phrase_length": 3, "ngram_order": 3},
    "data": {"corpus": "grammar", "source": "en", "target": "de", "size": 200},
    "tuning": {"n_best": 5, "max_segments": 4},
    "train": {"steps": 1, "minutes": 0.0},
    "decode": {"stack_size": 10, "extensions": 20},
}
