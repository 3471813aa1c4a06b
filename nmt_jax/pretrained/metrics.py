"""Metrics by name or signature, with the objects that they read from files: word vectors, encoders, trained models."""

import dataclasses
import functools
import importlib
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import metrics_jax
from metrics_jax.api import AdditiveMetric
from metrics_jax.registry import metric_class, needs
from nmt_jax.data.lines import find
from nmt_jax.errors import UserError

DTYPES = ("float32", "bfloat16")
NO_EFFECT = "--source has no effect: none of the metrics reads sources; sari and comet do"


class _Opener(NamedTuple):
    """How an object that a metric needs is opened: from any of these options, else the error says what is missing."""

    options: tuple[str, ...]
    missing: str
    open: Callable[[Any], Any]  # from the options of `open_metric` as attributes


def open_metric(
    spec: str,
    *,
    vectors: str | None = None,
    encoder: str | None = None,
    dtype: str = "float32",
    download: bool = False,
    baseline: str | None = None,
    idf: str | None = None,
    cache: str | None = None,
    bleurt: str | None = None,
    ruse: str | None = None,
    comet: str | None = None,
    cometqe: str | None = None,
    cometkiwi: str | None = None,
    xcomet: str | None = None,
    metricx23: str | None = None,
    metricx23qe: str | None = None,
    metricx24: str | None = None,
    bartscore: str | None = None,
    prism: str | None = None,
    perplexity: str | None = None,
    sources: bool = False,
) -> AdditiveMetric:
    """The metric of a name or signature, such as `bleu` or `bertscore|layer:9`; unneeded options are ignored.

    vectors: a file of word vectors. encoder: a folder or installed package with a model, or with `download` a name on
    the Hugging Face hub; without an encoder, the word vectors are used without context. BERTScore's default layer is
    that of bert-score if the encoder is named like a model that bert-score knows, otherwise the last. dtype: of the
    encoder's matrix products. cache: a folder for encoded texts. baseline, idf: files that `Baseline.save` and
    `Idf.save` wrote; the frequencies in `idf` are used with the metric's own formula, unless the signature specifies
    idf. bleurt: a workdir, a folder, or with `download` a name, of a trained BLEURT. ruse: a workdir of a trained RUSE.
    comet … perplexity: folders of their models, see `ESTIMATORS`. Every file is read once for all metrics. sources:
    whether the caller has the source of each text.

    Raises UserError if the metric or an option does not exist, or a needed file is missing or damaged, or sources are.
    """
    named = {"vectors": vectors, "encoder": encoder, "bleurt": bleurt, "ruse": ruse}
    named |= {"comet": comet, "cometqe": cometqe, "cometkiwi": cometkiwi, "xcomet": xcomet}
    named |= {"metricx23": metricx23, "metricx23qe": metricx23qe, "metricx24": metricx24}
    named |= {"bartscore": bartscore, "prism": prism, "perplexity": perplexity}
    options = types.SimpleNamespace(**named, dtype=dtype, download=download, cache=cache)
    try:
        kind = metric_class(spec)
        if "sources" in kind.needs and not sources:
            raise UserError(
                f"--metrics={spec} needs the source of each text: nmt-jax score, mbr, judge and choose_pairs read it "
                "with --source"
            )
        openers = dict(_openers(kind.name, needs(spec)))
        if openers.keys() - {"vectors"}:
            from nmt_jax import platforms  # late: other metrics do not need JAX

            platforms.configure_compilation()
            platforms.keep_freed_memory()
        objects: dict[str, Any] = {}
        for name, opener in openers.items():
            if all(named[option] is None for option in opener.options):
                raise UserError(f"--metrics={spec} needs {opener.missing}")
            objects[name] = opener.open(options)
        if kind.name == "bertscore" and encoder is not None:
            from nmt_jax.pretrained.catalogue import recommended_layer

            if (layer := recommended_layer(encoder, objects["encoder"])) is not None:
                objects["layer"] = layer
        fields = {field.name for field in dataclasses.fields(kind)}
        if baseline is not None and "baseline" in fields:
            objects["baseline"] = _loaded("Baseline", baseline)
        if idf is not None and "idf" in fields:
            objects["idf"] = dataclasses.replace(_loaded("Idf", idf), form=kind.idf_form)
        return metrics_jax.load(spec, **objects)
    except ValueError as error:
        raise UserError(f"--metrics: {error}") from error


def check_sources(metrics: Iterable[AdditiveMetric], given: bool) -> None:
    """Raise UserError if --source is given and no metric reads it."""
    if given and not any("sources" in metric.needs for metric in metrics):
        raise UserError(NO_EFFECT)


def metric_error(error: Exception, where: str = "--metrics") -> UserError:
    """Return the UserError for an exception of a metric; Python's own MemoryError has no message."""
    return UserError(f"{where}: {error}" if str(error) else f"{where}: not enough memory; score fewer or shorter lines")


@functools.cache
def _loaded(kind: str, path: str) -> Any:
    """The object of a public class of `metrics_jax` that a file contains."""
    return getattr(metrics_jax, kind).load(find(path) if kind == "Vectors" else path)


@functools.cache
def _static_encoder(path: str) -> Any:
    return _loaded("Vectors", path).encoder()


@functools.cache
def _encoder(place: str, dtype: str, download: bool, cache: str | None) -> Any:
    from nmt_jax.pretrained import load_encoder

    return dataclasses.replace(load_encoder(place, dtype, download), cache=cache)


@functools.cache
def _masked_encoder(place: str, dtype: str, download: bool) -> Any:
    from nmt_jax.pretrained.masked_encoder import load_masked_encoder

    return load_masked_encoder(place, dtype, download)


@functools.cache
def _context_vectors(place: str, dtype: str, download: bool) -> Any:
    from nmt_jax.pretrained.context_vectors import load_context_vectors

    return load_context_vectors(place, dtype, download)


@functools.cache
def _scorer(place: str, dtype: str, download: bool) -> Any:
    from nmt_jax.pretrained.learned_metrics import load_bleurt

    return load_bleurt(place, dtype, download)


@functools.cache
def _regressor(workdir: str, dtype: str, cache: str | None) -> Any:
    from nmt_jax.pretrained.learned_metrics import load_ruse

    found = load_ruse(workdir, dtype)
    encoders = tuple(dataclasses.replace(encoder, cache=cache) for encoder in found.encoders)
    return dataclasses.replace(found, encoders=encoders)


@functools.cache
def _estimator(flag: str, place: str, dtype: str, download: bool, cache: str | None) -> Any:
    module, function, _ = ESTIMATORS[flag]
    found = getattr(importlib.import_module(f"nmt_jax.pretrained.{module}"), function)(place, dtype, download)
    return dataclasses.replace(found, cache=cache) if hasattr(found, "cache") else found


def _openers(metric: str, fields: Iterable[str]) -> Iterator[tuple[str, _Opener]]:
    """The openers of the objects that a metric needs, by field; that of a field `estimator` depends on the metric."""
    for field in fields:
        if metric == "infolm" and field == "encoder":
            yield field, MASKED
        elif field in OPENERS:
            yield field, OPENERS[field]
        elif field == "estimator":
            yield field, _estimator_opener(SAME_MODEL.get(metric, metric))


def _estimator_opener(flag: str) -> _Opener:
    def opened(options: Any) -> Any:
        return _estimator(flag, getattr(options, flag), options.dtype, options.download, options.cache)

    return _Opener((flag,), f"a trained model: --{flag}=PLACE, {ESTIMATORS[flag][2]}", opened)


CONVERTED = "the folder of a published model, converted by nmt-jax convert"
TRAINED = f"{CONVERTED}, or a workdir of configs/comet.py"
ESTIMATORS = {  # by flag, the name of the metric: module and function that load its model, and what it is
    "comet": ("comet_models", "load_comet", TRAINED),
    "cometqe": ("comet_models", "load_cometqe", TRAINED),
    "cometkiwi": ("comet_models", "load_cometkiwi", CONVERTED),
    "xcomet": ("comet_models", "load_xcomet", CONVERTED),
    "metricx23": ("seq2seq_metrics", "load_metricx23", CONVERTED),
    "metricx23qe": ("seq2seq_metrics", "load_metricx23", CONVERTED),
    "metricx24": ("seq2seq_metrics", "load_metricx24", CONVERTED),
    "bartscore": ("seq2seq_metrics", "load_bartscore", "the folder of a BART, mBART or T5, in Hugging Face's format"),
    "prism": ("prism_model", "load_prism", "a workdir of task 'translate' whose model paraphrases"),
    "perplexity": (
        "language_models",
        "load_language_model",
        "a workdir of task 'language_model', such as configs/gpt.py trains, or the file of an n-gram model",
    ),
}
SAME_MODEL = {  # the flag of another metric
    "xcometqe": "xcomet",
    "metricx24qe": "metricx24",
    "bartscore_source": "bartscore",
}

MASKED = _Opener(
    ("encoder",),
    "a masked language model: --encoder=PLACE, a folder in Hugging Face's format with its head, or a workdir of task "
    "'pretrain', such as configs/bert_tiny.py trains",
    lambda options: _masked_encoder(options.encoder, options.dtype, options.download),
)
OPENERS = {  # by the name of the metric's field
    "vectors": _Opener(
        ("vectors",),
        "word vectors: --vectors=FILE, in GloVe or word2vec format",
        lambda options: _loaded("Vectors", options.vectors),
    ),
    "encoder": _Opener(
        ("encoder", "vectors"),
        "an encoder: --encoder=PLACE, a model folder in Hugging Face's format, a workdir, or an installed package with "
        "a model; or --vectors=FILE, word vectors in GloVe or word2vec format",
        lambda options: (
            _static_encoder(options.vectors)
            if options.encoder is None
            else _encoder(options.encoder, options.dtype, options.download, options.cache)
        ),
    ),
    "context": _Opener(
        ("encoder",),
        "a model of words in context: --encoder=PLACE, a model folder in Hugging Face's format, an installed package "
        "with a model, or a workdir, that of an ELMo included",
        lambda options: _context_vectors(options.encoder, options.dtype, options.download),
    ),
    "scorer": _Opener(
        ("bleurt",),
        "a trained model: --bleurt=PLACE, a workdir of configs/bleurt.py or the folder of a published model",
        lambda options: _scorer(options.bleurt, options.dtype, options.download),
    ),
    "regressor": _Opener(
        ("ruse",),
        "a trained model: --ruse=WORKDIR, a workdir of configs/ruse.py",
        lambda options: _regressor(options.ruse, options.dtype, options.cache),
    ),
}
