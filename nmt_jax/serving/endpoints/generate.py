"""`POST /api/generate`: the continuation of a text by a language model, with the probability of every piece."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nmt_jax.decoding.sampling import Sampling
from nmt_jax.errors import UserError
from nmt_jax.schema.key import Key, count
from nmt_jax.serving.endpoints.endpoint import MODEL, Endpoint
from nmt_jax.serving.models import Models
from nmt_jax.serving.text_models import LanguageModel

SAMPLING = ("temperature", "top_k", "top_p", "seed")


class Generate(NamedTuple):
    """Continuation by a language model."""

    model: str
    sampling: Sampling
    length: int
    alternatives: int


def parse(models: Models, body: Mapping[str, Any]) -> tuple[Generate, list[str]]:
    """Return the call and the text of a request. Raises UserError if it is invalid."""
    model = models.text_model(body["model"], "generate")
    try:
        sampling = Sampling(**{name: body[name] for name in SAMPLING if body[name] is not None})
    except ValueError as error:
        raise UserError(str(error)) from None
    alternatives = 8 if body["alternatives"] is None else body["alternatives"]
    return Generate(model.name, sampling, body["length"] or 100, alternatives), [body["text"] or ""]


def compute(models: Models, call: Generate, texts: Sequence[str]) -> list[Any]:
    """Return each text with its continuation. Raises UserError if a text is too long."""
    model = models.text_models[call.model]
    assert isinstance(model, LanguageModel)
    drawn = model.generate(texts, call.sampling, call.length)
    answers = []
    for text, ids in zip(texts, drawn, strict=True):
        predictions = model.predictions(ids, call.alternatives)
        pieces = [
            {
                "piece": one.piece,
                "probability": round(one.probability, 6),
                "alternatives": [{"piece": best.piece, "probability": round(best.probability, 6)} for best in one.best],
            }
            for one in predictions
        ]
        # A model of bytes can write a line break, but a sample is one line.
        line = " ".join(model.text_of(ids).split("\n"))
        answers.append({"model": model.name, "text": line, "given": model.num_pieces(text), "pieces": pieces})
    return answers


ENDPOINT = Endpoint(
    path="/api/generate",
    purpose="Continue a text with a language model; the answer has the probability of every piece",
    fields={
        "model": MODEL,
        "text": Key("", "The beginning of a line; by default empty."),
        "length": count(100, "Maximum number of pieces of the continuation.", low=1, high=500),
        "temperature": Key(1.0, "Temperature; 0 takes the most probable piece.", low=0, high=10),
        "top_k": count(0, "Draw only from the k most probable pieces; 0: from all.", low=0),
        "top_p": Key(1.0, "Draw only from the most probable pieces with this probability.", above=0, high=1),
        "seed": count(0, "Random seed.", low=0),
        "alternatives": count(8, "Number of the most probable pieces to list at each place.", low=0, high=50),
    },
    required=(),
    example={"text": "The old man", "length": 20},
    parse=parse,
    compute=compute,
)
