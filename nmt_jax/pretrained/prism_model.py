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
from nmt_jax.pretrained.reproducibility import exact_products
from nmt_jax.pretrained.translation_models import load_translation_model


def load_prism(
    workdir: str | os.PathLike[str], dtype: str = "float32", download: bool = False, revision: str = "main"
) -> Generator:
    """The best checkpoint of a workdir of task "translate" that reads one source, as a scorer of paraphrases.

    dtype: of the matrix products. A workdir is never downloaded: the other arguments have no effect. Raises UserError
    as `load_translation_model` does.
    """
    found = load_translation_model(workdir, dtype, "--prism")

    def rows(vocab: Vocab, texts: Sequence[str]) -> list[TextRow]:
        ids = [vocab.encode(text) for text in texts]
        return [TextRow(np.array([*one[: found.longest - 1], EOS], np.int32), len(one) + 1) for one in ids]

    log_probs = jax.tree_util.Partial(_log_probs(found.model), jax.device_put(found.params))
    read, write = functools.partial(rows, found.source), functools.partial(rows, found.target)
    return Generator(read, write, log_probs, found.longest, found.fingerprint, dtype)


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
