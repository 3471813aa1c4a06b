"""Decoding in several calls, so that hypotheses can be shown while they grow."""

from typing import Any

import jax.numpy as jnp
from jax import Array

from nmt_jax.decoding.beam_search import Searcher, SearchRequest, make_searcher
from nmt_jax.decoding.method import Search, StepModel
from nmt_jax.decoding.sampling import Sampling, continue_sample, start_sample

Method = Search | Sampling  # with replacement


def begin(method: Method, model: StepModel, request: SearchRequest) -> Any:
    """The state before the first step of `method.run`."""
    if isinstance(method, Search):
        return _searcher(method, model, request).start(model.cache)
    no_seeds = jnp.zeros(len(request.limits), jnp.uint32)
    prefix, limits, _ = method.expand(request, no_seeds, model.max_length)
    return start_sample(model.cache, prefix, limits, model.bos)


def proceed(
    method: Method, model: StepModel, request: SearchRequest, seeds: Array, state: Any, steps: int
) -> tuple[Any, Array, Array, Array]:
    """Advance by a number of steps, or to the end.

    Returns the new state, the best hypotheses so far, tokens int32[B, n, T] and scores float32[B, n], and whether they
    are those of `method.run`, bool[]. The cache of the model is that of the state.
    """
    until = state.position + steps
    if isinstance(method, Search):
        searcher = _searcher(method, model, request)
        state = searcher.run(state, 0, until)
        tokens, scores = searcher.finish(state)
        finished = searcher.finished(state).all()
    else:
        expanded = method.expand(request, seeds, model.max_length)
        state = continue_sample(model.step, state, *expanded, method, eos=model.eos, until=until)
        tokens, scores = method.by_sentence(state.tokens, state.log_probs)
        finished = state.done.all()
    return state, tokens, scores, finished | (state.position >= model.max_length)


def _searcher(method: Search, model: StepModel, request: SearchRequest) -> Searcher:
    limits = model.max_length, model.bos, model.eos
    return make_searcher(model.step, request, method, *limits, model.attention, model.source_mask)
