"""A metric of its name or signature, with what it reads from files: word vectors, an encoder, weights, a baseline."""

import dataclasses
import functools
from typing import Any

from metrics_jax import parse
from metrics_jax.api import AdditiveMetric
from metrics_jax.registry import metric_class, needs
from nmt_jax.data.lines import find
from nmt_jax.errors import UserError

DTYPES = ("float32", "bfloat16")


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
) -> AdditiveMetric:
    """The metric of a name or signature (`bleu`, `bertscore|layer:9`); what it has no use for is not read.

    vectors: a file of word vectors. encoder: a folder or installed package with a model, or with `download` a name on
    the Hugging Face hub; without one the vectors encode, each word by itself. dtype: of the encoder's products. cache:
    a folder that keeps what was encoded. baseline, idf: files that `Baseline.save` and `Idf.save` wrote; the counts of
    `idf` become weights in the metric's own form, unless the signature says which weights. bleurt: a workdir, a folder,
    or with `download` a name, of what was trained to be that metric; ruse: a workdir. What is read is read once for all
    metrics. UserError for a metric or option that does not exist, for what is needed and not given, and for
    what is missing or broken.
    """
    try:
        kind, wanted = metric_class(spec), needs(spec)
        objects: dict[str, Any] = {}
        if {"encoder", "scorer", "regressor"} & set(wanted):
            from nmt_jax import platforms  # late: other metrics have no need of JAX

            platforms.configure_compilation()
            platforms.keep_freed_memory()
        if "vectors" in wanted:
            if vectors is None:
                raise UserError(f"--metrics={spec} needs word vectors: --vectors=FILE, such as GloVe's")
            objects["vectors"] = _vectors(vectors)
        if "encoder" in wanted:
            if encoder is None and vectors is None:
                raise UserError(
                    f"--metrics={spec} needs an encoder: --encoder=PLACE, the folder of a model as Hugging Face has "
                    "them or an installed package with one; or --vectors=FILE, word vectors such as GloVe's"
                )
            objects["encoder"] = (
                _encoder(encoder, dtype, download, cache) if encoder is not None else _static_encoder(str(vectors))
            )
        if "scorer" in wanted:
            if bleurt is None:
                raise UserError(
                    f"--metrics={spec} needs what was trained for it: --bleurt=WORKDIR, or a model's folder"
                )
            objects["scorer"] = _scorer(bleurt, dtype, download)
        if "regressor" in wanted:
            if ruse is None:
                raise UserError(f"--metrics={spec} needs what was trained for it: --ruse=WORKDIR of configs/ruse.py")
            objects["regressor"] = _regressor(ruse, dtype, cache)
        fields = {field.name for field in dataclasses.fields(kind)}
        if baseline is not None and "baseline" in fields:
            objects["baseline"] = _baseline(baseline)
        if idf is not None and "idf" in fields:
            objects["idf"] = dataclasses.replace(_idf(idf), form=kind.idf_form)
        return parse(spec, **objects)
    except ValueError as error:
        raise UserError(f"--metrics: {error}") from error


@functools.cache
def _vectors(name: str) -> Any:
    """The word vectors of a file."""
    from metrics_jax import Vectors

    return Vectors.load(find(name))


@functools.cache
def _static_encoder(name: str) -> Any:
    """An encoder of the word vectors of a file."""
    return _vectors(name).encoder()


@functools.cache
def _encoder(place: str, dtype: str, download: bool, cache: str | None) -> Any:
    """The encoder of a folder, a package, or the hub."""
    from nmt_jax.pretrained import load_encoder

    return dataclasses.replace(load_encoder(place, dtype, download), cache=cache)


@functools.cache
def _scorer(place: str, dtype: str, download: bool) -> Any:
    """The BLEURT of a workdir, a folder, a package, or the hub."""
    from nmt_jax.pretrained.bleurt_scorer import load_bleurt

    return load_bleurt(place, dtype, download)


@functools.cache
def _regressor(workdir: str, dtype: str, cache: str | None) -> Any:
    """The RUSE of a workdir."""
    from nmt_jax.pretrained.ruse_regressor import load_ruse

    found = load_ruse(workdir, dtype)
    encoders = tuple(dataclasses.replace(encoder, cache=cache) for encoder in found.encoders)
    return dataclasses.replace(found, encoders=encoders)


@functools.cache
def _baseline(name: str) -> Any:
    """The baseline of a file."""
    from metrics_jax import Baseline

    return Baseline.load(name)


@functools.cache
def _idf(name: str) -> Any:
    """The frequencies of a file."""
    from metrics_jax import Idf

    return Idf.load(name)
