"""The page docs/reference/api.md: signatures and docstrings of the public names of `nmt_jax` and `metrics_jax`."""

import ast
import dataclasses
import functools
import inspect
import itertools
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import metrics_jax
from metrics_jax.api import AdditiveMetric, Result
from metrics_jax.embedding.contextual import ContextualMetric, EncoderMetric, WeightedMetric
from metrics_jax.registry import REGISTRY
from metrics_jax.significance import Comparison, Interval, bootstrap, paired_bootstrap, paired_randomisation
from nmt_jax.api import KINDS, load
from nmt_jax.decoding.search_options import SearchOptions
from nmt_jax.errors import UserError
from nmt_jax.models.layers.text_attention import TextAttention
from nmt_jax.tasks.predictions import Candidate, Filling
from nmt_jax.translation.requests import Hypothesis, Scored

INTRODUCTION = """# Python API

Signatures and docstrings of the public names. [Python interface](python.md) introduces `nmt_jax.load`, and
[Metrics](metrics.md) says what each metric equals. This page is generated from the code:

    python -m nmt_jax.reference docs/reference

In shapes, `N` is the number of texts or segments, `S` and `T` are the lengths of source and target, `D` is a width, and
`K` the number of statistics of a metric.
"""
METRICS = """`import metrics_jax`. All metrics are frozen dataclasses that derive from `AdditiveMetric`: fields are
options, and a call scores a corpus. `metrics_jax.registry.REGISTRY` has their names in signatures. "Parts" are those of
the result.
"""
NEURAL = tuple(name for module, name in REGISTRY.values() if module.startswith("embedding."))
SURFACE = tuple(name for _, name in REGISTRY.values() if name not in NEURAL)
OTHERS = {name: getattr(metrics_jax, name) for name in metrics_jax.__all__ if name not in (*NEURAL, *SURFACE)}
OPTIONS = tuple(one for one in OTHERS.values() if inspect.isclass(one))
FUNCTIONS = tuple(dict.fromkeys(one for one in OTHERS.values() if inspect.isfunction(one)))
DECORATORS = ("property", "cached_property", "classmethod", "staticmethod")  # that callers must know


def markdown() -> str:
    """Return the page."""
    sections: list[Iterable[str]] = [
        [INTRODUCTION, "## Trained models\n"],
        _function(load, "nmt_jax.load"),
        *map(_entry, (*KINDS, Hypothesis, Scored, Candidate, Filling, TextAttention, UserError)),
        _entry(SearchOptions, members=False),
        ["## Metrics\n", METRICS],
        *(_function(one, *(f"metrics_jax.{name}" for name in OTHERS if OTHERS[name] is one)) for one in FUNCTIONS),
        *map(_entry, (Result, AdditiveMetric)),
        ["## Metrics of words and characters\n"],
        *(_metric(getattr(metrics_jax, name)) for name in SURFACE),
        ["## Metrics with embeddings\n"],
        _entry(WeightedMetric, members=False),
        _entry(ContextualMetric, members=False),
        *(_metric(getattr(metrics_jax, name)) for name in NEURAL),
        ["## Options of metrics\n"],
        *map(_entry, OPTIONS),
        ["## Significance\n", "`nmt-jax score --confidence` and `--paired` use these.\n"],
        _function(bootstrap, "metrics_jax.significance.bootstrap"),
        _function(paired_bootstrap, "metrics_jax.significance.paired_bootstrap"),
        _function(paired_randomisation, "metrics_jax.significance.paired_randomisation"),
        *map(_entry, (Interval, Comparison)),
    ]
    return "\n".join(itertools.chain.from_iterable(sections))


def _metric(kind: type[AdditiveMetric]) -> Iterator[str]:
    """Yield the lines about a metric: its options, its docstring, and the parts of its result."""
    yield from _entry(kind, members=False)
    parts = inspect.getdoc(kind.parts) or ""
    if parts != inspect.getdoc(AdditiveMetric.parts):
        columns = f" ({', '.join((*kind.columns, 'long'))})" if issubclass(kind, EncoderMetric) else ""
        yield f"Parts{columns}: {parts[0].lower()}{_prose(parts[1:], ())}\n"


def _function(function: Callable[..., Any], *names: str) -> Iterator[str]:
    """Yield the lines about a function, which may have several names."""
    return _described(f"### {', '.join(f'`{name}`' for name in names)}", _parsed(function), function)


def _entry(thing: type, members: bool = True) -> Iterator[str]:
    """Yield the lines about a class; members: also about its own public methods."""
    name, node, fields = thing.__name__, _parsed(thing), _fields(thing)
    bases = ", ".join(base for base in map(ast.unparse, node.bases) if base[0] != "_")
    heading = f"class {name}({bases})" if bases else f"class {name}"
    code = "\n".join([f"{heading}:", *fields]) if fields else f"{heading}: ..."
    yield f"### `{name}`\n\n```python\n{code}\n```\n"
    yield _prose(inspect.getdoc(thing) or "", [field.strip().partition(":")[0] for field in fields]) + "\n"
    for member in node.body if members else ():
        if isinstance(member, ast.FunctionDef) and (member.name[0] != "_" or member.name == "__call__"):
            yield from _described(f"#### `{name}.{member.name}`", member, thing)


def _described(heading: str, node: ast.FunctionDef, owner: Any) -> Iterator[str]:
    """Yield the lines about a function that is `owner` or a method of it, unless it has no docstring."""
    text = ast.get_docstring(node)
    if text is None:
        return
    lines = _source(owner).splitlines()
    decorators = [one for one in node.decorator_list if ast.unparse(one).rpartition(".")[2] in DECORATORS]
    first = min([node.lineno, *(one.lineno for one in decorators)])
    signature = textwrap.dedent("\n".join(lines[first - 1 : node.body[0].lineno - 1])).rstrip()
    yield f"{heading}\n\n```python\n{signature} ...\n```\n"
    arguments = (*node.args.args, *node.args.kwonlyargs, node.args.kwarg)
    yield _prose(text, [one.arg for one in arguments if one]) + "\n"


def _fields(kind: type) -> list[str]:
    """The public fields of a dataclass or a named tuple as they are written, with defaults and comments."""
    names = [field.name for field in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    names = list(getattr(kind, "_fields", names))
    written: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        if names and one.__module__.partition(".")[0] in ("metrics_jax", "nmt_jax"):
            lines = _source(one).splitlines()
            for node in _parsed(one).body:
                if isinstance(node, ast.AnnAssign) and node.end_lineno:
                    written[ast.unparse(node.target)] = "\n".join(lines[node.lineno - 1 : node.end_lineno])
    return [written[name] for name in names if name[0] != "_"]


@functools.cache
def _source(thing: Any) -> str:
    """The text of a class or a function."""
    return textwrap.dedent(inspect.getsource(thing))


@functools.cache
def _parsed(thing: Any) -> Any:
    """The syntax tree of a class or a function."""
    return ast.parse(_source(thing)).body[0]


def _prose(text: str, names: Sequence[str]) -> str:
    """A docstring as Markdown. In "a, b: text", where a and b are among the names, they become code."""
    known = "|".join(names) or "$"
    listed = re.compile(rf"(?<![\w`.-])(?:{known})(?:, (?:{known}))*(?=( \([^)]*\))?:\s)")
    return listed.sub(lambda found: re.sub(r"\w+", r"`\g<0>`", found[0]), text.replace("<", "&lt;"))
