"""`POST /api/attention`: all attention weights of a line and its translation."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nmt_jax.errors import UserError
from nmt_jax.schema.key import Key
from nmt_jax.serving.endpoints.endpoint import MODEL, Endpoint
from nmt_jax.serving.models import Models
from nmt_jax.serving.translators import Model


def parse(models: Models, body: Mapping[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    """Return the model and the pair of a line and a translation, "" for that of the model. Raises UserError."""
    model = models.model(body["model"])
    if not model.has_attention:
        raise UserError(f"model: {model.name} has no attention")
    num_sources = model.translator.encoder.num_sources
    if body["line"].count("\t") != num_sources - 1:
        raise UserError(f"line: needs {num_sources} sources, separated by tabs")
    return model.name, [(body["line"], body["translation"] or "")]


def compute(models: Models, name: str, pairs: Sequence[tuple[str, str]]) -> list[Any]:
    """Return the pieces and weights of each pair. Raises UserError if a text is too long."""
    return [_attention(models.models[name], *pair) for pair in pairs]


def _attention(model: Model, line: str, translation: str) -> dict[str, Any]:
    """Return pieces, and attention weights by kind as lists [L][H][T][S]."""
    limit = model.config.data.max_length
    task, params = model.task
    if not translation:
        method = model.translator.search()
        translation = model.translator.translate(model.params, [line], method)[0][0].text
    for name, text, vocab in zip(("line", "translation"), (line, translation), task.vocabularies, strict=True):
        if len(vocab.encode(text)) >= limit:
            raise UserError(f"{name}: too long for its attention; at most {limit} pieces are possible")
    weights = task.attention(params, line, translation)
    shown = {
        name: np.round(np.asarray(value, np.float64), 4).tolist() if isinstance(value, np.ndarray) else value
        for name, value in weights.items()
    }
    return {"translation": translation, **shown}


ENDPOINT = Endpoint(
    path="/api/attention",
    purpose="All attention weights of a line and its translation",
    fields={
        "model": MODEL,
        "line": Key("", "A line of source text."),
        "translation": Key("", "Its translation; by default that of the model."),
    },
    required=("line",),
    example={"line": "A man sleeps ."},
    parse=parse,
    compute=compute,
)
