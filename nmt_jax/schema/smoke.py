"""Values for smoke tests by task: a few sentences of the embedded corpus."""

from typing import Any

TINY_SIZES = {"num_layers": 1, "d_model": 16, "d_ff": 32, "vocab_size": 400}
TINY_ENCODER = {"place": "", "keep_layers": 0, "dtype": "float32"} | TINY_SIZES

# Changes for `smoke=true`. A task whose default data is small needs none.
TINY_TASKS: dict[str, dict[str, Any]] = {
    "translate": {
        "data": {"corpus": "grammar", "source": "en", "target": "de", "size": 200, "max_length": 64, "num_buckets": 1}
        | {"synthetic": "", "synthetic_ratio": 0.0, "upsample": 1},
        "vocab": {"size": 400, "source_model": "", "target_model": "", "lexicon": ""},
        "eval": {"max_segments": 4, "batch_tokens": 512},
    },
    "retrieval": {
        "data": {"corpus": "grammar", "source": "en", "target": "de", "size": 200, "max_length": 64, "num_buckets": 1}
        | {"synthetic": "", "synthetic_ratio": 0.0, "upsample": 1},
        "vocab": {"size": 400, "source_model": "", "target_model": ""},
        "eval": {"max_pairs": 40, "batch_tokens": 512},
    },
    "language_model": {
        "data": {"corpus": "grammar", "size": 200, "block_length": 16},
        "vocab": {"size": 400, "model": ""},
        "eval": {"context": 8, "batch_tokens": 512},
    },
    "classify": {
        "data": {"corpus": "grammar", "size": 100, "max_words": 16, "num_buckets": 2, "vectors": ""},
        "vocab": {"size": 400, "model": ""},
        "eval": {"batch_tokens": 2048},
    },
    "sentences": {
        "encoder": TINY_ENCODER,
        "data": {"corpus": "grammar", "size": 100, "max_length": 32, "num_buckets": 1, "texts": ["sentence"]}
        | {"scores": False},
        "eval": {"batch_tokens": 2048},
        "train": {"early_stopping_metric": "accuracy"},
    },
    "ruse": {
        "encoders": {"places": [], "layers": [-1], "num_layers": 1, "d_model": 16, "d_ff": 32},
        "data": {"corpus": "grammar", "size": 100},
        "vocab": {"size": 400},
    },
    "tag": {
        "encoder": TINY_ENCODER,
        "data": {"corpus": "grammar", "size": 100, "max_length": 32, "num_buckets": 1},
        "eval": {"batch_tokens": 2048},
    },
    "span": {
        "encoder": TINY_ENCODER,
        "data": {"corpus": "grammar", "size": 40, "max_length": 64, "max_question": 24, "stride": 16}
        | {"num_buckets": 1},
        "eval": {"batch_tokens": 2048},
    },
    "pretrain": {
        "data": {"corpus": "grammar", "size": 800, "max_length": 32},
        "vocab": {"size": 400, "model": ""},
        "eval": {"batch_tokens": 2048},
    },
    "bidirectional_language_model": {
        "data": {"corpus": "grammar", "size": 200, "block_length": 16},
        "vocab": {"min_count": 1, "size": 400},
        "eval": {"context": 8, "batch_tokens": 512},
    },
    "feature_tagger": {
        "data": {"corpus": "grammar", "size": 100, "max_length": 32, "num_buckets": 1, "vectors": "", "elmo": ""},
        "vocab": {"size": 400},
        "eval": {"batch_tokens": 2048},
    },
    "word_vectors": {
        "data": {"corpus": "grammar", "size": 200, "block_length": 16},
        "vocab": {"min_count": 1, "size": 400},
    },
}
