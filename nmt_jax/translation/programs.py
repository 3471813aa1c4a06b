"""The compiled programs of a translator, for one model or an ensemble: decoding, and scoring of translations."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from nmt_jax.data.vocabulary.vocab import BOS, EOS
from nmt_jax.decoding import stepwise
from nmt_jax.decoding.beam_search import SearchRequest
from nmt_jax.decoding.method import DecodingMethod, StepModel
from nmt_jax.decoding.next_logits import NextLogits, Step, ensemble, predict, token_log_probs
from nmt_jax.models.layers.features import Source, reduction_of, source_mask, word_mask
from nmt_jax.platforms import compiled
from nmt_jax.translation import kept_programs

MIN_HALVED = 16  # sentences: a smaller batch is not worth a second program


def _mean_attention(caches: tuple[Any, ...]) -> jax.Array:
    """The attention weights of the last step, the mean over the models, float[B*K, S]."""
    return jnp.mean(jnp.stack([cache[1] for cache in caches]), axis=0)


class Programs:
    """The programs of models with the same vocabularies; each takes the parameters of all models first.

    suppressed: ids that are never generated. halve: see `beam_search`; for batches of MIN_HALVED sentences or more.
    """

    def __init__(self, models: Sequence[Any], suppressed: tuple[int, ...], halve: bool = False) -> None:
        self.models, self.suppressed, self.halve = tuple(models), suppressed, halve

    def _step(self, params: Any, source: Source, rows: int, max_length: int, with_attention: bool) -> tuple[Step, Any]:
        """The step closure of all models and its cache, for `rows` hypotheses per sentence.

        with_attention: the cache is a pair of the models' own cache and the attention weights to the source,
        float[B*K, S], the mean over the models.
        """

        def of_one(model: Any, params: Any) -> tuple[Step, Any]:
            def apply(*args: Any, **options: Any) -> Any:
                return model.apply({"params": params}, *args, **options)

            def step(tokens: jax.Array, cache: Any) -> tuple[NextLogits, Any]:
                if with_attention:
                    (logits, new), state = apply(tokens, cache[0], method="decode_step", mutable=["attention"])
                    weights = state["attention"]["cross"][0]
                    new = (new, weights.reshape(len(tokens), -1))
                else:
                    logits, new = apply(tokens, cache, method="decode_step")
                return predict(logits, self.suppressed), new

            cache = apply(apply(source, method="encode"), source, rows, max_length, method="init_cache")
            if with_attention:
                states = math.prod(source_mask(source, reduction_of(model)).shape[1:])
                cache = (cache, jnp.zeros((rows * len(source), states)))
            return step, cache

        steps, caches = zip(*itertools.starmap(of_one, zip(self.models, params, strict=True)), strict=True)
        return ensemble(steps), caches

    def decoding_bytes(self, params: Any, source: Source, method: DecodingMethod, max_length: int) -> int:
        """Return about how much memory `decode` needs beside the parameters; nothing is computed or compiled."""
        rows = len(source) * method.width

        def first_step(params: Any, source: Source) -> Any:
            step, cache = self._step(params, source, method.width, max_length, method.needs_attention)
            return cache, step(jnp.zeros(rows, jnp.int32), cache)[0]

        cache, logits = (
            sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(part))
            for part in jax.eval_shape(first_step, params, source)
        )
        # A reordered copy of the cache; scores of the continuations and their order; finished and live hypotheses.
        return 2 * cache + 3 * logits + 2 * 4 * rows * max_length

    def search(
        self,
        params: Any,
        source: Source,
        request: SearchRequest,
        seeds: jax.Array,
        method: DecodingMethod,
        max_length: int,
    ) -> tuple[jax.Array, jax.Array]:
        """Return the hypotheses of a batch of sources; for other programs, which make it a part of theirs."""
        return method.run(self._prepared(params, source, method, max_length), request, seeds)

    decode = compiled(row_by_row=True, static_argnames=("method", "max_length"))(search)

    def _prepared(self, params: Any, source: Source, method: DecodingMethod, max_length: int) -> StepModel:
        """The models as a decoding method sees them."""
        step, cache = self._step(params, source, method.width, max_length, method.needs_attention)
        prepared = StepModel(step, cache, max_length, BOS, EOS, halve=self.halve and len(source) >= MIN_HALVED)
        if method.needs_attention:
            mask = word_mask(source, reduction_of(self.models[0])).reshape(len(source), -1)
            prepared = prepared._replace(attention=_mean_attention, source_mask=mask)
        return prepared

    @compiled(row_by_row=True, static_argnames=("method", "max_length"))
    def begin(
        self, params: Any, source: Source, request: SearchRequest, method: stepwise.Method, max_length: int
    ) -> Any:
        """The state of `decode` before its first step."""
        return stepwise.begin(method, self._prepared(params, source, method, max_length), request)

    @compiled(row_by_row=True, static_argnames=("method", "max_length", "steps"))
    def proceed(
        self,
        params: Any,
        source: Source,
        request: SearchRequest,
        seeds: jax.Array,
        state: Any,
        method: stepwise.Method,
        max_length: int,
        steps: int,
    ) -> tuple[Any, jax.Array, jax.Array, jax.Array]:
        """Advance `decode` by a number of steps: the state, the hypotheses so far, and whether they are finished."""
        prepared = self._prepared(params, source, method, max_length)
        return stepwise.proceed(method, prepared, request, seeds, state, steps)

    def log_probs(
        self, params: Any, source: Source, target: jax.Array, with_attention: bool
    ) -> tuple[jax.Array, jax.Array]:
        """Return the log-probabilities and attention of given targets; for other programs, as `search`."""
        step, cache = self._step(params, source, 1, target.shape[1], with_attention)
        attention = _mean_attention if with_attention else None
        return token_log_probs(step, cache, target, start=BOS, attention=attention)

    force = compiled(row_by_row=True, static_argnames="with_attention")(log_probs)

    def kept(self, name: str, devices: int) -> Callable[..., Any]:
        """The program "decode" or "force" for data on a number of devices, kept on disk where that is possible."""
        if name in self._kept and kept_programs.possible(devices):
            return self._kept[name]
        program: Callable[..., Any] = getattr(self, name)
        return program

    @functools.cached_property
    def _kept(self) -> dict[str, kept_programs.KeptPrograms]:
        definition = kept_programs.description((self.models, self.suppressed, self.halve))
        functions: dict[str, Callable[..., tuple[jax.Array, ...]]] = {"decode": self.search, "force": self.log_probs}
        if definition is None:
            return {}
        return {name: kept_programs.KeptPrograms(function, [name, definition]) for name, function in functions.items()}
