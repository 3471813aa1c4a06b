"""`POST /api/translate`: translations of lines by beam search or sampling."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt_jax.alignment.attention import between_words, word_numbers
from nmt_jax.decoding.sampling import Sampling
from nmt_jax.decoding.stepwise import Method
from nmt_jax.errors import UserError
from nmt_jax.schema.key import Key, count
from nmt_jax.serving.endpoints.endpoint import MODEL, MOST_LINES, Endpoint
from nmt_jax.serving.models import Models
from nmt_jax.serving.translators import Model
from nmt_jax.translation.requests import Hypothesis, Line

SEARCH = ("n_best", "beam_size", "length_penalty", "num_groups", "diversity")
SAMPLING = ("temperature", "top_k", "top_p", "seed")
SHORT = 2000  # characters of a request whose length in pieces is looked at
STREAMED = 8  # lines that are translated together for a stream
GROUP = 10_000  # characters that are translated together, or one line
MOST_WEIGHTS = 4_000_000  # of attention, in an answer


class Translate(NamedTuple):
    """Translation of lines with a model; lines that are padded to the same length share batches with many rows."""

    model: str
    method: Method
    attention: bool
    padded_length: int


def parse(models: Models, body: Mapping[str, Any]) -> tuple[Translate, list[Line]]:
    """Return the call and the lines of a request. Raises UserError if it is invalid."""
    model = models.model(body["model"])
    lines = body["lines"]
    for name in ("prefixes", "constraints"):
        if body[name] is not None and len(body[name]) != len(lines):
            raise UserError(f"{name}: {len(body[name])} lines, but 'lines' has {len(lines)}")
    method: Method
    try:
        if body["num_samples"]:
            _check_absent(body, SEARCH, "with num_samples")
            given = {name: body[name] for name in ("num_samples", *SAMPLING) if body[name] is not None}
            method = Sampling(**given)
        else:
            _check_absent(body, SAMPLING, "without num_samples")
            options = {name: body[name] for name in SEARCH}
            n_best, beam_size = options["n_best"] or 1, options["beam_size"] or model.config.decode.beam_size
            method = model.translator.search(**options | {"beam_size": max(beam_size, n_best)})
    except ValueError as error:
        raise UserError(str(error)) from None
    if body["attention"] and not model.has_attention:
        raise UserError(f"attention: the model {model.name} has none")
    prefixes, constraints = (body[name] or [""] * len(lines) for name in ("prefixes", "constraints"))
    num_sources, items = model.translator.encoder.num_sources, []
    for number, (line, prefix, phrases) in enumerate(zip(lines, prefixes, constraints, strict=True), start=1):
        if line.count("\t") != num_sources - 1:
            raise UserError(f"lines, line {number}: needs {num_sources} sources, separated by tabs")
        items.append(Line(line, prefix, tuple(filter(None, phrases.split("\t"))), f"line {number}: "))
    short = sum(map(len, lines)) <= SHORT
    padded_length = max(map(model.translator.encoder.padded_length, items), default=0) if short else 0
    return Translate(model.name, method, bool(body["attention"]), padded_length), items


def compute(
    models: Models, call: Translate, lines: Sequence[Line], most_together: int = MOST_LINES
) -> Iterator[list[dict[str, Any]]]:
    """Yield the hypotheses of each line, translating at most `most_together` lines at once, and fewer long lines.

    Raises UserError if a line cannot be translated, or if there are too many attention weights.
    """
    model, num_weights = models.models[call.model], 0
    longest = max((len(line.text) for line in lines), default=0)
    together = min(max(GROUP // max(longest, 1), 1), most_together)
    for first in range(0, len(lines), together):
        some = lines[first : first + together]
        found = model.translator.translate(model.params, some, call.method)
        if call.attention:
            num_weights += _count_weights(model, some, found, MOST_WEIGHTS - num_weights)
            found = model.translator.add_attention(model.params, some, found)
        yield from ([_hypothesis(one, call.attention) for one in group] for group in found)


def stream(models: Models, call: Translate, lines: Sequence[Line]) -> Iterator[Any]:
    """Yield the hypotheses of each line as soon as they are known, those of a single line also while they grow."""
    model, results = models.models[call.model], []
    if len(lines) == 1:
        found: list[Hypothesis] = []
        for found in model.translator.grow(model.params, lines[0], call.method):
            yield {"line": 0, "hypotheses": [_hypothesis(one, attention=False) for one in found]}
        scored = [found]
        if call.attention:
            _count_weights(model, lines, scored, MOST_WEIGHTS)
            scored = model.translator.add_attention(model.params, lines, scored)
        results = [[_hypothesis(one, call.attention) for one in group] for group in scored]
    else:
        for line, hypotheses in enumerate(compute(models, call, lines, STREAMED)):
            results.append(hypotheses)
            yield {"line": line, "hypotheses": hypotheses}
    yield _answer(call, results)


def _answer(call: Translate, results: Sequence[Any]) -> Any:
    return {"model": call.model, "results": results}


def _count_weights(model: Model, lines: Sequence[Line], found: Sequence[Sequence[Hypothesis]], most: int) -> int:
    """Return the number of weights between the pieces of lines and their hypotheses. Raises UserError beyond `most`."""
    encode = model.translator.vocabularies[0].encode
    lengths = [len(encode(line.text)) + 1 for line in lines]
    total = sum(length * (len(one.ids) + 1) for length, group in zip(lengths, found, strict=True) for one in group)
    if total > most:
        raise UserError(
            f"attention: more than {MOST_WEIGHTS:,} weights; send fewer or shorter lines, ask for fewer hypotheses, or "
            "leave out attention"
        )
    return total


def _check_absent(body: Mapping[str, Any], names: Sequence[str], because: str) -> None:
    """Raise UserError if a field is set that has no effect."""
    for name in names:
        if body[name] is not None:
            raise UserError(f"{name}: has no effect {because}")


def _hypothesis(found: Hypothesis, attention: bool) -> dict[str, Any]:
    """Return a hypothesis for JSON: text, score, and with attention also words and the weights between them [T][S]."""
    text = " ".join(found.text.split("\n"))  # as on the command line; models of bytes can write a line break
    entry: dict[str, Any] = {"text": text, "score": round(found.score, 6)}
    if attention and found.scored:
        scored = found.scored
        weights = between_words(scored.attention, scored.source_pieces, scored.pieces)
        entry |= {
            "source_words": _words(scored.source_pieces),
            "words": _words(scored.pieces),
            "attention": np.round(np.asarray(weights, np.float64), 4).tolist(),
            "log_probs": [round(value, 4) for value in scored.log_probs],
            "pieces": scored.pieces,
        }
    return entry


def _words(pieces: Sequence[str]) -> list[str]:
    """Return the words that pieces form, as `word_numbers` counts them."""
    numbers = word_numbers(pieces)
    words = [""] * (numbers.max(initial=-1) + 1)
    for number, piece in zip(numbers.tolist(), pieces, strict=True):
        if number >= 0:
            words[number] += piece.strip("▁")
    return words


ENDPOINT = Endpoint(
    path="/api/translate",
    purpose="Translate lines by beam search or sampling",
    fields={
        "model": MODEL,
        "lines": Key([""], f"Lines to translate, at most {MOST_LINES}; several sources are separated by tabs."),
        "prefixes": Key([""], "The beginning of the translation of each line."),
        "constraints": Key([""], "Phrases that the translation of each line must contain, separated by tabs."),
        "n_best": count(1, "Number of translations of a line.", high=20),
        "beam_size": count(5, "Number of hypotheses of the beam search; by default that of the model.", high=64),
        "length_penalty": Key(0.0, "Exponent of the length penalty; by default that of the model.", low=0, high=10),
        "num_groups": count(1, "Groups of hypotheses of a diverse beam search.", high=64),
        "diversity": Key(0.5, "Penalty of a piece that another group has chosen.", low=0, high=100),
        "num_samples": count(0, "Number of samples of a line, instead of a search.", low=0, high=20),
        "temperature": Key(1.0, "Temperature of the samples.", low=0, high=10),
        "top_k": count(0, "Draw only from the k most probable pieces; 0: from all.", low=0),
        "top_p": Key(1.0, "Draw only from the most probable pieces with this probability.", above=0, high=1),
        "seed": count(0, "Random seed of the samples.", low=0),
        "attention": Key(False, "Include attention weights between words."),
        "stream": Key(False, "Answer with server-sent events, as results become known."),
    },
    required=("lines",),
    example={"lines": ["A man sleeps ."]},
    parse=parse,
    compute=compute,
    answer=_answer,
    stream=stream,
)
