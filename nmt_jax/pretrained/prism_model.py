"""The translation models of Prism: workdirs of task "translate"."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from metrics_jax.embedding.comet import TextRow
from metrics_jax.embedding.generation import Generator
from nmt_jax.data.vocabulary.vocab import EOS, Vocab
from nmt_jax.errors import UserError
from nmt_jax.models.registry import model_class
from nmt_jax.pretrained.loading import read_run, trained_params
from nmt_jax.pretrained.reproducibility import exact_products, fingerprint


def load_prism(
    workdir: str | os.PathLike[str], dtype: str = "float32", download: bool = False, revision: str = "main"
) -> Generator:
    """The best checkpoint of a workdir of task "translate" that reads one source, as a scorer of paraphrases.

    dtype: of the matrix products. A workdir is never downloaded: the other arguments have no effect. Raises UserError
    if the workdir has another task or no checkpoint, or its model copies words or reads several sources.
    """
    folder, config = read_run(workdir, ["translate"], "--prism needs 'translate', as configs/transformer.py trains it")
    names = ("joint", "joint") if config["vocab"]["joint"] else ("source", "target")
    source, target = (Vocab.load(folder / "vocab" / f"{name}.model") for name in names)
    if config["data"].get("kind", "text") != "text":
        raise UserError(f"{folder}: Prism needs a model of text, but config.data.kind={config['data']['kind']!r}")
    several = "," in config["data"]["source"] or config["vocab"].get("lexicon")
    if several or config["model"].get("copying", "none") != "none":
        raise UserError(f"{folder}: Prism needs a model of one source, without a lexicon and without copying")
    sizes = {"source_vocab_size": len(source), "target_vocab_size": len(target)}
    model = model_class(config["model_name"])(**{**config["model"], "dtype": dtype}, **sizes)
    params, longest = trained_params(folder), int(config["data"]["max_length"])

    def rows(vocab: Vocab, texts: Sequence[str]) -> list[TextRow]:
        ids = [vocab.encode(text) for text in texts]
        return [TextRow(np.array([*one[: longest - 1], EOS], np.int32), len(one) + 1) for one in ids]

    settings = repr([config["model_name"], sorted(config["model"].items(), key=str), dtype, longest])
    hashed = fingerprint((source.fingerprint + target.fingerprint + settings).encode(), params)
    log_probs = jax.tree_util.Partial(_log_probs(model), jax.device_put(params))
    read, write = functools.partial(rows, source), functools.partial(rows, target)
    return Generator(read, write, log_probs, longest, hashed, dtype)


@functools.cache
def _log_probs(model: nn.Module) -> Callable[..., jax.Array]:
    """A compiled function of params, sources, mask and targets to log-probabilities; the same for equal models."""

    @jax.jit
    def log_probs(params: Any, sources: jax.Array, mask: jax.Array, targets: jax.Array) -> jax.Array:
        with exact_products(model.dtype):
            found: Any = model.apply({"params": params}, sources, targets)
        logits = found[0].astype(jnp.float32)
        chosen = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
        return jnp.asarray(chosen - jax.nn.logsumexp(logits, axis=-1))

    return log_probs
