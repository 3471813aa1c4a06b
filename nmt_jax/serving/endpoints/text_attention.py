"""`POST /api/text_attention`: all attention weights between the pieces of one text."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nmt_jax.errors import UserError
from nmt_jax.schema.key import Key
from nmt_jax.serving.endpoints.endpoint import MODEL, Endpoint
from nmt_jax.serving.models import Models

MOST_WEIGHTS = 600_000  # of an answer


def parse(models: Models, body: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the model and the text. Raises UserError if no model has attention."""
    return models.text_model(body["model"], "attention").name, [body["text"]]


def compute(models: Models, name: str, texts: Sequence[str]) -> list[Any]:
    """Return the pieces and weights [L][H][T][T] of each text. Raises UserError if a text is too long."""
    answers = []
    for text in texts:
        pieces, weights = models.text_models[name].attention(text)
        if weights.size > MOST_WEIGHTS:
            most = int((MOST_WEIGHTS / (weights.shape[0] * weights.shape[1])) ** 0.5)
            raise UserError(f"text: {len(pieces)} pieces are too many for its attention; at most {most} are possible")
        rounded = np.round(weights.astype(np.float64), 4).tolist()
        answers.append({"model": name, "pieces": pieces, "weights": rounded})
    return answers


ENDPOINT = Endpoint(
    path="/api/text_attention",
    purpose="All attention weights between the pieces of one text, by a language model or an encoder",
    fields={"model": MODEL, "text": Key("", "A line of text.")},
    required=("text",),
    example={"text": "A man sleeps ."},
    parse=parse,
    compute=compute,
)
