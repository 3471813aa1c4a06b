"""The models that `config.model_name` may name."""

import importlib
from typing import Any

from nmt_jax.errors import UserError, did_you_mean

MODELS = (
    *("transformer", "rnn", "gpt", "rnn_lm", "bert", "elmo", "word_vectors", "han", "sentence_classifier"),
    *("sentence_head", "siamese_head", "estimator_head", "piece_head", "causal_head", "feature_tagger", "mlp"),
    "dual_encoder",
)


def model_class(name: str) -> Any:
    """Return the class `Model` of the module `name`; its fields are the hyperparameters.

    Raises UserError if there is no model of that name.
    """
    if name not in MODELS:
        hint = did_you_mean(name, MODELS)
        raise UserError(f"config.model_name={name!r}: use one of {', '.join(MODELS)}{hint}")
    return importlib.import_module(f"nmt_jax.models.{name}").Model
