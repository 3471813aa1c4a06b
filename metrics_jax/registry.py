"""The metrics by name, and signatures read back: what a paper prints, a reader can run."""

import dataclasses
import difflib
import importlib
import types
import typing
import warnings
from typing import Any

from metrics_jax.signature import show_value
from metrics_jax.version import __version__

REGISTRY: dict[str, tuple[str, str]] = {  # a metric's name: its module and class
    "bleu": ("surface.bleu", "BLEU"),
    "nist": ("surface.nist", "NIST"),
    "chrf": ("surface.chrf", "ChrF"),
    "ter": ("surface.ter", "TER"),
    "cder": ("surface.edits", "CDER"),
    "wer": ("surface.edits", "WER"),
    "per": ("surface.edits", "PER"),
    "overlap": ("surface.overlap", "WordOverlap"),
    "rouge": ("surface.rouge", "Rouge"),
    "rouge155": ("surface.rouge155", "Rouge155"),
    "meteor": ("meteor.meteor", "Meteor"),
    "meteor_nltk": ("meteor.meteor_nltk", "MeteorNLTK"),
    "meteor15": ("meteor.meteor15", "Meteor15"),
    "wmd": ("embedding.wmd", "WMD"),
    "sms": ("embedding.sms", "SMS"),
    "bertscore": ("embedding.bertscore", "BERTScore"),
    "moverscore": ("embedding.moverscore", "MoverScore"),
    "yisi1": ("embedding.yisi", "YiSi1"),
    "twmd": ("embedding.tempered_wmd", "TemperedWMD"),
    "bleurt": ("embedding.bleurt", "BLEURT"),
    "ruse": ("embedding.ruse", "RUSE"),
}
SHORTHANDS = {
    "chrf++": "chrf|word_order:2",
    **{f"rouge{n}": f"rouge|variant:{n}" for n in range(1, 10)},
    "rougeL": "rouge|variant:L",
    "rougeLsum": "rouge|variant:Lsum",
}


def parse(signature: str, **objects: Any) -> Any:
    """A signature, or its beginning (`bleu`, `bleu|tokenize:zh`, `rougeL`), -> the metric; left-out options default.

    What a signature holds only the fingerprint of (a model, a synonym database) is handed over by name in `objects`.
    `nrefs` belongs to a call and is skipped. ValueError for a name, option or value that does not exist, and where a
    fingerprint is another one; a warning if the signature was written by another version.
    """
    name, kind, items = _find(signature)
    kinds = typing.get_type_hints(kind)
    fields = [field.name for field in dataclasses.fields(kind)]
    options, fingerprints = dict(objects), {}
    for item in items:
        key, colon, text = item.partition(":")
        if key == "version" and text != __version__:
            warnings.warn(f"signature of version {text}, read by version {__version__}", stacklevel=2)
        if key in ("version", "nrefs"):
            continue
        if not colon or key not in fields:
            near = difflib.get_close_matches(key, fields, n=1) or fields
            raise ValueError(f"{name} has no option {item!r}; did you mean {' or '.join(near)}, as option:value?")
        if _is_plain(kinds[key]) or text in _words(kinds[key]):
            options[key] = _read(text, kinds[key], f"{name}|{key}")
        else:
            fingerprints[key] = text
    if missing := [key for key in needs(signature) if key not in options]:
        raise ValueError(f"{name} needs {', '.join(missing)}, which a signature cannot hold")
    metric = kind(**options)
    for key, fingerprint in fingerprints.items():
        if show_value(getattr(metric, key)) != fingerprint:
            raise ValueError(f"{name} was computed with {key} {fingerprint}: pass the same one as {key}=...")
    return metric


def needs(signature: str) -> list[str]:
    """Names of the objects that the metric of a signature cannot be without: word vectors, an encoder."""
    fields = dataclasses.fields(metric_class(signature))
    return [field.name for field in fields if field.default is dataclasses.MISSING]


def metric_class(signature: str) -> Any:
    """The class of the metric of a signature, imported now; its fields are the options."""
    return _find(signature)[1]


def _find(signature: str) -> tuple[str, Any, list[str]]:
    """A signature -> the metric's name, its class, and the options as they stand there."""
    name, *items = signature.split("|")
    if name in SHORTHANDS:
        name, *more = SHORTHANDS[name].split("|")
        items = more + items
    if name not in REGISTRY:
        near = difflib.get_close_matches(name, [*REGISTRY, *SHORTHANDS], n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join([*REGISTRY, *SHORTHANDS])}"
        raise ValueError(f"no metric {name!r}; {hint}")
    room, class_name = REGISTRY[name]
    return name, getattr(importlib.import_module(f"metrics_jax.{room}"), class_name), items


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)


def _is_plain(kind: Any) -> bool:
    """Whether every alternative of a type can be read from text."""
    plain = (str, int, float, bool, types.NoneType)
    return all(one in plain or typing.get_origin(one) in (tuple, typing.Literal) for one in _alternatives(kind))


def _words(kind: Any) -> tuple[Any, ...]:
    """What a type allows to be written out, beside other alternatives."""
    literals = [one for one in _alternatives(kind) if typing.get_origin(one) is typing.Literal]
    return tuple(word for one in literals for word in typing.get_args(one))


def _read(text: str, kind: Any, where: str) -> Any:
    """`text` as a value of the first alternative of `kind` that takes it."""
    for one in _alternatives(kind):
        if one is types.NoneType and text == "none":
            return None
        if one is bool and text in ("true", "false"):
            return text == "true"
        if typing.get_origin(one) is tuple:
            return tuple(_read(part, typing.get_args(one)[0], where) for part in text.split("+")) if text else ()
        if one is str or typing.get_origin(one) is typing.Literal:
            return text
        if one in (int, float):
            try:
                return one(text)
            except ValueError:
                continue
    wanted = " or ".join("none" if one is types.NoneType else one.__name__ for one in _alternatives(kind))
    raise ValueError(f"{where}: {text!r} is not {wanted}")
