"""Lexicon bias: a translation lexicon beside the output layer (Arthur et al., 2016)."""

import jax.numpy as jnp
from jax import Array

from nmt_jax.data.vocabulary.translation_lexicon import Lexicon


def lexicon_columns(lexicon: Lexicon, source: Array, vocab_size: int) -> Array:
    """p_lex(e | f_j) of all target words e and source words f_j (L_F in the paper): source int[B, S] -> float[B, S, V].

    Gathered once per batch and used at every step.
    """
    targets, probabilities = jnp.asarray(lexicon.targets)[source], jnp.asarray(lexicon.probabilities)[source]
    rows, places = jnp.arange(source.shape[0])[:, None, None], jnp.arange(source.shape[1])[None, :, None]
    return jnp.zeros((*source.shape, vocab_size)).at[rows, places, targets].add(probabilities)


def lexicon_bias(weights: Array, columns: Array, epsilon: float) -> Array:
    """log(p_lex + epsilon) with p_lex(e) = sum_j a_j p_lex(e | f_j) (Arthur et al., 2016, section 3, model bias).

    weights float[B, T, S] of the attention, columns float[B, S, V] -> float[B, T, V], to be added to the logits.
    epsilon > 0: the probability of pairs that the lexicon does not list, 0.001 in the paper.
    """
    return jnp.log(jnp.einsum("bts,bsv->btv", weights, columns) + epsilon)
