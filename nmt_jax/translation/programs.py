"""The compiled programs that take sources to pieces, with one model or several: a search, samples, given pieces."""

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from nmt_jax.data.vocabulary.vocab import BOS, EOS, PAD
from nmt_jax.decoding.beam_search import SearchRequest, beam_search
from nmt_jax.decoding.ensemble import ensemble
from nmt_jax.decoding.forced import token_log_probs
from nmt_jax.decoding.next_logits import NextLogits, Step, predict
from nmt_jax.decoding.sampling import Sampling
from nmt_jax.decoding.sampling import sample as draw_samples
from nmt_jax.decoding.search import Search
from nmt_jax.decoding.stochastic_beam import stochastic_beam_search

HALVED = 16  # sentences: fewer are not worth a second program


def _mean_attention(caches: tuple[Any, ...]) -> jax.Array:
    """What all models looked at in the last step, float[B*K, S]."""
    return jnp.mean(jnp.stack([cache[1] for cache in caches]), axis=0)


class Programs:
    """The programs of some models of the same vocabularies; each takes the parameters of all of them first.

    never: pieces that are not said. halve: see `beam_search`; for batches of HALVED sentences or more.
    """

    def __init__(self, models: Sequence[Any], never: tuple[int, ...], halve: bool = False) -> None:
        self.models = tuple(models)
        self.never = never
        self.halve = halve

    def _step(self, params: Any, source: jax.Array, rows: int, max_length: int, watched: bool) -> tuple[Step, Any]:
        """The step closure of all models and its cache, for `rows` hypotheses a sentence.

        watched: the cache is then (the models' own, attention float[B*K, S] to the source, the mean over the models).
        """

        def of_one(model: Any, params: Any) -> tuple[Step, Any]:
            def apply(*args: Any, **options: Any) -> Any:
                return model.apply({"params": params}, *args, **options)

            def step(tokens: jax.Array, cache: Any) -> tuple[NextLogits, Any]:
                if watched:
                    (logits, new), seen = apply(tokens, cache[0], method="decode_step", mutable=["attention"])
                    weights = seen["attention"]["cross"][0]
                    new = (new, weights.reshape(len(tokens), -1))
                else:
                    logits, new = apply(tokens, cache, method="decode_step")
                return predict(logits, self.never), new

            cache = apply(apply(source, method="encode"), source, rows, max_length, method="init_cache")
            if watched:
                cache = (cache, jnp.zeros((rows * len(source), math.prod(source.shape[1:]))))
            return step, cache

        steps, caches = zip(*itertools.starmap(of_one, zip(self.models, params, strict=True)), strict=True)
        return ensemble(steps), caches

    @functools.cached_property
    def search(self) -> Any:
        """One compiled program a shape and search."""

        def run(params: Any, source: jax.Array, asked: SearchRequest, search: Search, max_length: int) -> Any:
            watched = search.coverage_penalty > 0
            step, cache = self._step(params, source, search.beam_size, max_length, watched)
            flat = source.reshape(len(source), -1)
            return beam_search(
                step,
                cache,
                asked,
                search=search,
                max_length=max_length,
                bos=BOS,
                eos=EOS,
                attention=_mean_attention if watched else None,
                source_mask=(flat != PAD) & (flat != EOS) if watched else None,
                halve=self.halve and len(source) >= HALVED,
            )

        return jax.jit(run, static_argnames=("search", "max_length"))

    @functools.cached_property
    def sample(self) -> Any:
        """One compiled program a shape and way of drawing."""

        def run(
            params: Any, source: jax.Array, asked: SearchRequest, seeds: jax.Array, sampling: Sampling, max_length: int
        ) -> Any:
            count = sampling.num_samples
            step, cache = self._step(params, source, count, max_length, watched=False)
            given = asked.prefix
            if given is None:
                given = jnp.zeros((len(source), max_length), jnp.int32)
            keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(jax.random.key(sampling.seed), seeds)
            if not sampling.replacement:
                return stochastic_beam_search(
                    step, cache, given, asked.limits, keys, num_samples=count, start=BOS, eos=EOS
                )
            own = jax.vmap(jax.vmap(jax.random.fold_in, in_axes=(None, 0)), in_axes=(0, None))(keys, jnp.arange(count))
            repeat = functools.partial(jnp.repeat, repeats=count, axis=0)
            drawn = draw_samples(
                step, cache, repeat(given), repeat(asked.limits), own.reshape(-1), sampling, start=BOS, eos=EOS
            )
            return jax.tree.map(lambda leaf: leaf.reshape(len(source), count, *leaf.shape[1:]), drawn)

        return jax.jit(run, static_argnames=("sampling", "max_length"))

    @functools.cached_property
    def force(self) -> Any:
        """One compiled program a shape."""

        def run(params: Any, source: jax.Array, target: jax.Array, watched: bool) -> tuple[jax.Array, jax.Array]:
            step, cache = self._step(params, source, 1, target.shape[1], watched)
            return token_log_probs(step, cache, target, start=BOS, attention=_mean_attention if watched else None)

        return jax.jit(run, static_argnames="watched")
