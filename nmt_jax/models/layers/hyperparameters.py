"""Checks of hyperparameters that models share: each a ValueError in one sentence that says what to do."""

from collections.abc import Mapping, Sequence
from typing import Any


def check_choices(model: Any, choices: Mapping[str, Sequence[str]]) -> None:
    """ValueError for a field that is none of its choices."""
    for field, known in choices.items():
        if getattr(model, field) not in known:
            raise ValueError(f"{field}={getattr(model, field)!r} is none of {', '.join(known)}")


def check_positive(model: Any, *fields: str) -> None:
    """ValueError for a size below 1."""
    for field in fields:
        if getattr(model, field) < 1:
            raise ValueError(f"{field}={getattr(model, field)} must be at least 1")


def check_rates(model: Any, *fields: str) -> None:
    """ValueError for a dropout rate outside [0, 1)."""
    for field in fields:
        if not 0.0 <= getattr(model, field) < 1.0:
            raise ValueError(f"{field}={getattr(model, field)} must be in [0, 1)")


def check_tying(model: Any) -> None:
    """ValueError where all embeddings shall be tied, but there are two vocabularies."""
    if model.tie_embeddings == "three-way" and model.source_vocab_size != model.target_vocab_size:
        raise ValueError(
            "tie_embeddings='three-way' needs one joint vocabulary, but the vocabularies have "
            f"{model.source_vocab_size} and {model.target_vocab_size} pieces: use 'two-way' or 'none'"
        )
