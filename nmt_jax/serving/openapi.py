"""The OpenAPI description of the JSON interface."""

from collections.abc import Iterable, Mapping
from typing import Any

from nmt_jax.schema.key import Key
from nmt_jax.serving.endpoints.endpoint import Endpoint

_TYPES: Mapping[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def describe(endpoints: Iterable[Endpoint], version: str) -> dict[str, Any]:
    """Return the OpenAPI 3.1 description of the server."""
    error = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    failure = {"description": "What is wrong", "content": {"application/json": {"schema": error}}}
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        schema = {
            "type": "object",
            "additionalProperties": False,
            "properties": {name: _schema(name, key) for name, key in endpoint.fields.items()},
            "required": list(endpoint.required),
        }
        paths[endpoint.path] = {
            "post": {
                "summary": endpoint.purpose,
                "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
                "responses": {
                    "200": {
                        "description": "The result; as events, parts of it come first",
                        "content": {"application/json": {}} | ({"text/event-stream": {}} if endpoint.stream else {}),
                    },
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
