"""Hyperparameters: passed on to parts of a model, and checked; checks raise ValueError with the remedy."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any


def shared_fields(model: Any, part: type) -> dict[str, Any]:
    """The fields of the dataclass `part` that `model` has as well, with the values of `model`."""
    names = {field.name for field in dataclasses.fields(model)} & {field.name for field in dataclasses.fields(part)}
    return {name: getattr(model, name) for name in names - {"parent", "name"}}


def check_choices(model: Any, choices: Mapping[str, Sequence[str]]) -> None:
    """Raise ValueError if a field is not one of its choices."""
    for field, known in choices.items():
        if getattr(model, field) not in known:
            raise ValueError(f"{field}={getattr(model, field)!r}: use one of {', '.join(known)}")


def check_positive(model: Any, *fields: str) -> None:
    """Raise ValueError if a size is below 1."""
    for field in fields:
        if getattr(model, field) < 1:
            raise ValueError(f"{field}={getattr(model, field)} must be at least 1")


def check_rates(model: Any, *fields: str) -> None:
    """Raise ValueError if a dropout rate is outside [0, 1)."""
    for field in fields:
        if not 0.0 <= getattr(model, field) < 1.0:
            raise ValueError(f"{field}={getattr(model, field)} must be in [0, 1)")


def check_heads(model: Any, remedy: str = "change one of them") -> None:
    """Raise ValueError if d_model is not divisible by num_heads."""
    if model.d_model % model.num_heads:
        raise ValueError(f"d_model={model.d_model} is not divisible by num_heads={model.num_heads}: {remedy}")


def check_tying(model: Any) -> None:
    """Raise ValueError if all embeddings are to be tied, but there are two vocabularies."""
    if model.tie_embeddings == "three-way" and model.source_vocab_size != model.target_vocab_size:
        raise ValueError(
            "tie_embeddings='three-way' needs one joint vocabulary, but the vocabularies have "
            f"{model.source_vocab_size} and {model.target_vocab_size} pieces: use 'two-way' or 'none'"
        )
