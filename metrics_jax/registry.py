"""All metrics by name, and parsing of signatures: a published signature is enough to compute the same score."""

import dataclasses
import difflib
import importlib
import types
import typing
import urllib.parse
import warnings
from typing import Any

from metrics_jax.signature import __version__, format_value

REGISTRY: dict[str, tuple[str, str]] = {  # metric name: module and class
    "bleu": ("surface.bleu", "BLEU"),
    "nist": ("surface.nist", "NIST"),
    "chrf": ("surface.chrf", "ChrF"),
    "ter": ("surface.ter", "TER"),
    "cder": ("surface.error_rates", "CDER"),
    "wer": ("surface.error_rates", "WER"),
    "cer": ("surface.error_rates", "CER"),
    "per": ("surface.error_rates", "PER"),
    "character": ("surface.character", "CharacTER"),
    "eed": ("surface.eed", "EED"),
    "overlap": ("surface.overlap", "WordOverlap"),
    "gtm": ("surface.gtm", "GTM"),
    "rouge": ("surface.rouge", "Rouge"),
    "rouge155": ("surface.rouge155", "Rouge155"),
    "cider": ("surface.cider", "CIDEr"),
    "sari": ("surface.sari", "SARI"),
    "meteor": ("meteor.meteor", "Meteor"),
    "meteor_nltk": ("meteor.meteor", "MeteorNLTK"),
    "meteor15": ("meteor.meteor15", "Meteor15"),
    "wmd": ("embedding.wmd", "WMD"),
    "sms": ("embedding.sms", "SMS"),
    "sms_context": ("embedding.context_mover", "ContextSMS"),
    "bertscore": ("embedding.bertscore", "BERTScore"),
    "infolm": ("embedding.infolm", "InfoLM"),
    "moverscore": ("embedding.moverscore", "MoverScore"),
    "baryscore": ("embedding.baryscore", "BaryScore"),
    "yisi1": ("embedding.yisi", "YiSi1"),
    "twmd": ("embedding.tempered_wmd", "TemperedWMD"),
    "bleurt": ("embedding.bleurt", "BLEURT"),
    "ruse": ("embedding.ruse", "RUSE"),
    "comet": ("embedding.comet", "COMET"),
    "cometqe": ("embedding.comet", "COMETQE"),
    "cometkiwi": ("embedding.comet", "CometKiwi"),
    "xcomet": ("embedding.xcomet", "XCOMET"),
    "xcometqe": ("embedding.xcomet", "XCOMETQE"),
    "metricx23": ("embedding.metricx", "MetricX23"),
    "metricx23qe": ("embedding.metricx", "MetricX23QE"),
    "metricx24": ("embedding.metricx", "MetricX24"),
    "metricx24qe": ("embedding.metricx", "MetricX24QE"),
    "bartscore": ("embedding.generation", "BARTScore"),
    "bartscore_source": ("embedding.generation", "BARTScoreSource"),
    "prism": ("embedding.generation", "Prism"),
    "perplexity": ("embedding.text_perplexity", "TextPerplexity"),
}
SHORTHANDS = {
    "spBLEU": "bleu|tokenize:flores200",
    "chrf++": "chrf|word_order:2",
    **{f"rouge{n}": f"rouge|variant:{n}" for n in range(1, 10)},
    "rougeL": "rouge|variant:L",
    "rougeLsum": "rouge|variant:Lsum",
}


def load(signature: str, **objects: Any) -> Any:
    """Make the metric of a name or a signature, or of the beginning of one: `bleu`, `bleu|tokenize:zh`, `rougeL`.

    Options that are left out have their defaults. A signature holds only the fingerprint of objects such as encoders or
    synonym databases: pass these by option name in `objects`. `nrefs` belongs to a call and is skipped. Raises
    ValueError for an unknown name, option or value, for a missing object, and for an object with another fingerprint.
    Warns if the signature was written by another version.
    """
    name, kind, items = _find(signature)
    kinds = typing.get_type_hints(kind)
    fields = [field.name for field in dataclasses.fields(kind)]
    if unknown := [key for key in objects if key not in fields]:
        raise ValueError(f"{name} has no option {unknown[0]!r}; its options are {', '.join(fields)}")
    options, fingerprints = dict(objects), {}
    for item in items:
        key, colon, text = item.partition(":")
        if key == "version" and text != __version__:
            warnings.warn(f"the signature is of version {text}, but this is version {__version__}", stacklevel=2)
        if key in ("version", "nrefs"):
            continue
        if not colon or key not in fields:
            near = difflib.get_close_matches(key, fields, n=1) or fields
            raise ValueError(f"{name} has no option {item!r}; did you mean {' or '.join(near)} (written option:value)?")
        if _is_readable(text, kinds[key]):
            options[key] = _read(text, kinds[key], f"{name}|{key}")
        else:
            fingerprints[key] = text
    if missing := [key for key in needs(signature) if key not in options]:
        raise ValueError(f"{name} needs {', '.join(missing)}: pass it by keyword, since a signature cannot contain it")
    metric = kind(**options)
    for key, fingerprint in fingerprints.items():
        if format_value(getattr(metric, key)) != fingerprint:
            raise ValueError(f"{name} was computed with {key} {fingerprint}: pass the same one as {key}=...")
    return metric


parse = load  # its name in earlier versions


def needs(signature: str) -> list[str]:
    """Names of the options without a default, such as an encoder, that the metric of a signature needs."""
    fields = dataclasses.fields(metric_class(signature))
    return [field.name for field in fields if field.default is dataclasses.MISSING]


def metric_class(signature: str) -> Any:
    """The class of the metric of a signature; its dataclass fields are the options. Imports its module."""
    return _find(signature)[1]


def _find(signature: str) -> tuple[str, Any, list[str]]:
    """Split a signature into the metric's name, its class, and the list of `option:value`."""
    name, *items = signature.split("|")
    if name in SHORTHANDS:
        name, *more = SHORTHANDS[name].split("|")
        items = more + items
    if name not in REGISTRY:
        near = difflib.get_close_matches(name, [*REGISTRY, *SHORTHANDS], n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join([*REGISTRY, *SHORTHANDS])}"
        raise ValueError(f"no metric {name!r}; {hint}")
    module, class_name = REGISTRY[name]
    return name, getattr(importlib.import_module(f"metrics_jax.{module}"), class_name), items


def _alternatives(kind: Any) -> tuple[Any, ...]:
    """The members of a union type; a single type is its own only member."""
    return typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)


def _is_readable(text: str, kind: Any) -> bool:
    """Whether `text` can be a value of a type, rather than the fingerprint of an object."""
    plain, origins = (str, int, float, bool, types.NoneType), (tuple, typing.Literal)
    members = _alternatives(kind)
    literals = {value for one in members if typing.get_origin(one) is typing.Literal for value in typing.get_args(one)}
    return text in literals or all(one in plain or typing.get_origin(one) in origins for one in members)


def _read(text: str, kind: Any, option: str) -> Any:
    """Parse `text` as the first alternative of type `kind` that accepts it; `option` is named in errors."""
    for one in _alternatives(kind):
        if one is types.NoneType and text == "none":
            return None
        if one is bool and text in ("true", "false"):
            return text == "true"
        if typing.get_origin(one) is tuple:
            return tuple(_read(part, typing.get_args(one)[0], option) for part in text.split("+")) if text else ()
        if one is str or typing.get_origin(one) is typing.Literal:
            return urllib.parse.unquote(text)
        if one in (int, float):
            try:
                return one(text)
            except ValueError:
                continue
    expected = " or ".join("none" if one is types.NoneType else one.__name__ for one in _alternatives(kind))
    raise ValueError(f"{option}: {text!r} is not {expected}")
