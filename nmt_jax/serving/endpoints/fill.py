"""`POST /api/fill`: the most probable pieces for every mask of a text, by a pretrained BERT."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nmt_jax.errors import UserError
from nmt_jax.schema.key import Key, count
from nmt_jax.serving.endpoints.endpoint import MODEL, Endpoint
from nmt_jax.serving.models import Models
from nmt_jax.serving.text_models import MaskedModel

MOST = 1000  # candidates of an answer, each of which repeats the text


class Fill(NamedTuple):
    """Candidates for masks."""

    model: str
    candidates: int


def parse(models: Models, body: Mapping[str, Any]) -> tuple[Fill, list[str]]:
    """Return the call and the text of a request. Raises UserError if no model fills masks, or for too many of them."""
    model = models.text_model(body["model"], "fill")
    assert isinstance(model, MaskedModel)
    masks, candidates = body["text"].count(model.mask), body["candidates"] or 10
    if masks * candidates > MOST:
        raise UserError(
            f"text: {masks:,} masks with {candidates} candidates each are too many; at most {MOST:,} candidates are "
            "possible: send fewer masks, or lower candidates"
        )
    return Fill(model.name, candidates), [body["text"]]


def compute(models: Models, call: Fill, texts: Sequence[str]) -> list[Any]:
    """Return the candidates for each mask of each text. Raises UserError if a text has no mask or is too long."""
    model = models.text_models[call.model]
    assert isinstance(model, MaskedModel)
    return [
        {
            "model": model.name,
            "masks": [
                [{**one._asdict(), "probability": round(one.probability, 6)} for one in mask]
                for mask in model.fill(text, call.candidates)
            ],
        }
        for text in texts
    ]


ENDPOINT = Endpoint(
    path="/api/fill",
    purpose="The most probable pieces for every mask of a text, and the text with each of them",
    fields={
        "model": MODEL,
        "text": Key("", "A text with masks, written as /api/models says: [MASK]."),
        "candidates": count(10, "Number of pieces for each mask.", high=100),
    },
    required=("text",),
    example={"text": "The old [MASK] sleeps ."},
    parse=parse,
    compute=compute,
)
