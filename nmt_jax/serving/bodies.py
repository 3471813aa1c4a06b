"""The JSON bodies of requests: their fields, checks with errors of one line, and their OpenAPI description."""

import json
from collections.abc import Mapping
from typing import Any

from nmt_jax.errors import UserError, did_you_mean
from nmt_jax.schema.key import Key, count

MOST_LINES = 200  # of a request for translations
MOST_SCORED = 20_000  # lines of a request for scores
MOST_CHARACTERS = 10_000  # of a line

MODEL = Key("", "Name of a model, as in /api/models; by default the first.")
FIELDS: dict[str, dict[str, Key]] = {
    "/api/translate": {
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
    },
    "/api/attention": {
        "model": MODEL,
        "line": Key("", "A line of source text."),
        "translation": Key("", "Its translation; by default that of the model."),
    },
    "/api/score": {
        "systems": Key([""], "An object of names of systems and their lists of lines."),
        "references": Key([""], "The reference of each line."),
        "metrics": Key([""], "Metrics, as in /api/models; by default all of them."),
        "paired": Key(False, "Test the difference of every system from the first by paired bootstrap."),
    },
}
REQUIRED = {"/api/translate": ("lines",), "/api/attention": ("line",), "/api/score": ("systems", "references")}


def read_body(path: str, body: bytes) -> dict[str, Any]:
    """Return the fields of a request; those that are absent are None. Raises UserError if the body is invalid."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise UserError("the body is not JSON; send an object such as " + _example(path)) from None
    if not isinstance(data, dict):
        raise UserError("the body is not a JSON object; send one such as " + _example(path))
    fields = FIELDS[path]
    for name in data:
        if name not in fields:
            raise UserError(
                f"unknown field {name!r:.80}{did_you_mean(name, fields)}; the fields are {', '.join(fields)}"
            )
    for name in REQUIRED[path]:
        if data.get(name) is None:
            raise UserError(f"the field {name!r} is missing; send an object such as {_example(path)}")
    for name, value in data.items():
        if value is not None:
            _check(name, fields[name], value)
    return {name: data.get(name) for name in fields}


def _check(name: str, key: Key, value: Any) -> None:
    """Raise UserError if a value is not one of its field."""
    if name == "systems":
        if not isinstance(value, dict) or not value:
            raise UserError("systems: must be an object of names and lists of lines")
        for system, lines in value.items():
            _check_texts(f"system {system!r:.80}", [system], 1)
            if problem := key.problem(lines):
                raise UserError(f"systems: {system!r:.80}: {problem}")
            _check_texts(f"systems: {system!r:.80}", lines, MOST_SCORED)
        return
    if problem := key.problem(value):
        raise UserError(f"{name}: {problem}")
    if key.type is str:
        most = MOST_SCORED if name == "references" else MOST_LINES
        _check_texts(name, value if isinstance(value, list) else [value], most)


def _check_texts(name: str, lines: list[str], most: int) -> None:
    """Raise UserError for too many lines, and for a line that could not be a line of a file."""
    if len(lines) > most:
        raise UserError(f"{name}: {len(lines):,} lines; send at most {most:,} at once")
    for number, line in enumerate(lines, start=1):
        where = f"{name}, line {number}" if len(lines) > 1 else name
        if len(line) > MOST_CHARACTERS:
            raise UserError(f"{where}: {len(line):,} characters; at most {MOST_CHARACTERS:,} are possible")
        if "\n" in line or "\r" in line:
            raise UserError(f"{where}: contains a line break; send one string per line")
        try:
            line.encode()
        except UnicodeEncodeError:
            raise UserError(f"{where}: contains half of a surrogate pair, which is not text") from None


def _example(path: str) -> str:
    examples: dict[str, dict[str, Any]] = {
        "/api/translate": {"lines": ["A man sleeps ."]},
        "/api/attention": {"line": "A man sleeps ."},
        "/api/score": {"systems": {"A": ["A man sleeps ."]}, "references": ["A man is asleep ."]},
    }
    return json.dumps(examples[path])


# OpenAPI

_TYPES: Mapping[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
_PURPOSE = {
    "/api/translate": "Translate lines by beam search or sampling",
    "/api/attention": "All attention weights of a line and its translation",
    "/api/score": "Score systems against references, with confidence intervals",
}


def describe(version: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 description of the server."""
    error = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    failure = {"description": "What is wrong", "content": {"application/json": {"schema": error}}}
    paths: dict[str, Any] = {}
    for path, fields in FIELDS.items():
        schema = {
            "type": "object",
            "additionalProperties": False,
            "properties": {name: _schema(name, key) for name, key in fields.items()},
            "required": list(REQUIRED[path]),
        }
        paths[path] = {
            "post": {
                "summary": _PURPOSE[path],
                "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
                "responses": {
                    "200": {"description": "The result", "content": {"application/json": {}}},
                    **dict.fromkeys(("400", "401", "403", "408", "413", "415", "429", "504"), failure),
                },
            }
        }
    for path, summary in (
        ("/api/models", "The models and metrics of the server"),
        ("/health", "Whether the server accepts requests"),
        ("/metrics", "Counters in Prometheus' text format"),
    ):
        paths[path] = {"get": {"summary": summary, "responses": {"200": {"description": "The answer"}}}}
    return {"openapi": "3.1.0", "info": {"title": "nmt-jax serve", "version": version}, "paths": paths}


def _schema(name: str, key: Key) -> dict[str, Any]:
    bounds = {"low": "minimum", "high": "maximum", "above": "exclusiveMinimum", "below": "exclusiveMaximum"}
    limits = {text: value for field, text in bounds.items() if (value := getattr(key, field)) is not None}
    schema: dict[str, Any] = {"type": _TYPES[key.type], **limits}
    if isinstance(key.default, list):
        schema = {"type": "array", "items": schema}
    if name == "systems":
        schema = {"type": "object", "additionalProperties": schema}
    return {**schema, "description": key.help}
