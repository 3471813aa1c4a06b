"""A tiny language model over which everything can be enumerated, and what the searches are asked to find."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from nmt_jax.decoding.step import Next

V, T, BOS, EOS = 4, 4, 2, 3


def make(seed: int, batch_size: int) -> np.ndarray:
    """A model whose next token hangs on the last two, one a sentence: log-probabilities float[B, V, V, V]."""
    return np.asarray(
        jax.nn.log_softmax(2 * np.random.default_rng(seed).normal(size=(batch_size, V, V, V))), np.float32
    )


def certain(log_probs) -> Next:
    """Log-probabilities float[N, V] in two parts, neither of which is what it seems."""
    shift = jnp.arange(len(log_probs), dtype=jnp.float32) % 3
    return Next(log_probs + shift[:, None], shift)


def make_step(table):
    """The step closure of the models of B sentences, or of some of them, whatever number of rows each has."""

    def step(tokens, cache):
        previous, shared = cache["previous"], cache["shared"]
        sentence = jnp.repeat(shared, tokens.shape[0] // len(shared))
        return certain(jnp.asarray(table)[sentence, previous, tokens]), {"previous": tokens, "shared": cache["shared"]}

    return step


def make_cache(table, rows: int):
    """The cache of B sentences with so many rows each."""
    return {"previous": jnp.full(len(table) * rows, BOS), "shared": jnp.arange(len(table))}


def log_probability(table, tokens) -> float:
    """Of tokens under one sentence's model."""
    history = (BOS, BOS, *tokens)
    return sum(float(table[history[i], history[i + 1], history[i + 2]]) for i in range(len(tokens)))


def texts(length: int = T) -> list[tuple[int, ...]]:
    """Every text that ends within `length` tokens, and every one cut there."""
    words = [token for token in range(V) if token != EOS]
    ended = [(*text, EOS) for n in range(length) for text in itertools.product(words, repeat=n)]
    return ended + list(itertools.product(words, repeat=length))


def until_end(row) -> tuple[int, ...]:
    """The tokens of a row up to EOS."""
    row = [int(token) for token in row]
    return tuple(row[: row.index(EOS) + 1] if EOS in row else row)
