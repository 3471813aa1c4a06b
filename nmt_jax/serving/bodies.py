"""The JSON bodies of requests: checks of their fields, with errors of one line."""

import json
from typing import Any

from nmt_jax.errors import UserError, did_you_mean
from nmt_jax.schema.key import Key
from nmt_jax.serving.endpoints.endpoint import Endpoint

MOST_CHARACTERS = 10_000  # of a line


def read_body(endpoint: Endpoint, body: bytes) -> dict[str, Any]:
    """Return the fields of a request; those that are absent are None. Raises UserError if the body is invalid."""
    example = json.dumps(endpoint.example)
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        raise UserError("the body is not JSON; send an object such as " + example) from None
    if not isinstance(data, dict):
        raise UserError("the body is not a JSON object; send one such as " + example)
    fields = endpoint.fields
    for name in data:
        if name not in fields:
            raise UserError(
                f"unknown field {name!r:.80}{did_you_mean(name, fields)}; the fields are {', '.join(fields)}"
            )
    for name in endpoint.required:
        if data.get(name) is None:
            raise UserError(f"the field {name!r} is missing; send an object such as {example}")
    for name, value in data.items():
        if value is not None:
            _check(name, fields[name], value, endpoint.most_lines)
    return {name: data.get(name) for name in fields}


def _check(name: str, key: Key, value: Any, most: int) -> None:
    """Raise UserError if a value is not one of its field."""
    if name == "systems":
        if not isinstance(value, dict) or not value:
            raise UserError("systems: must be an object of names and lists of lines")
        for system, lines in value.items():
            _check_texts(f"system {system!r:.80}", [system], 1)
            if problem := key.problem(lines):
                raise UserError(f"systems: {system!r:.80}: {problem}")
            _check_texts(f"systems: {system!r:.80}", lines, most)
        return
    if problem := key.problem(value):
        raise UserError(f"{name}: {problem}")
    if key.type is str:
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
