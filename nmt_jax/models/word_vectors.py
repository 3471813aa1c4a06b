"""Word vectors: skip-gram and CBOW (Mikolov et al., 2013a), optionally with character n-grams."""

import functools

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nmt_jax import platforms
from nmt_jax.data.vocabulary.words import NO_WORD
from nmt_jax.models.layers.hyperparameters import check_choices, check_positive

Subwords = tuple[np.ndarray, np.ndarray]  # word int[P], bucket int[P]

CHOICES = {"algorithm": ("skip_gram", "cbow")}


class Model(nn.Module):
    """Two tables: input vectors, which are the result, and output vectors of the words to predict.

    algorithm: "skip_gram" predicts each word of the window from the centre, "cbow" the centre from the mean of its
    window (Mikolov et al., 2013a, sections 3.1, 3.2). window: number of words to each side. num_buckets: number of hash
    buckets of n-grams of min_n to max_n characters, each with a vector (Bojanowski et al., 2017, section 3.2); 0 for
    words without n-grams.
    """

    vocab_size: int
    d_model: int = 100
    algorithm: str = "skip_gram"
    window: int = 5
    num_buckets: int = 0
    min_n: int = 3
    max_n: int = 6

    def __post_init__(self) -> None:
        check_choices(self, CHOICES)
        check_positive(self, "d_model", "window", "min_n")
        if self.num_buckets < 0:
            raise ValueError(f"num_buckets={self.num_buckets} must not be negative; 0 means words without n-grams")
        if self.max_n < self.min_n:
            raise ValueError(f"max_n={self.max_n} must be at least min_n={self.min_n}")
        super().__post_init__()

    def setup(self) -> None:
        """Create the tables: input vectors uniform, output vectors zero, as in word2vec and fastText."""

        def uniform(rng: Array, shape: tuple[int, int]) -> Array:
            return jax.random.uniform(rng, shape, minval=-0.5, maxval=0.5) / self.d_model

        shape = (self.vocab_size, self.d_model)
        self.words = self.param("words", uniform, shape)
        self.predicted = self.param("predicted", nn.initializers.zeros, shape)
        if self.num_buckets:
            self.buckets = self.param("buckets", uniform, (self.num_buckets, self.d_model))

    def vectors(self, subwords: Subwords | None = None) -> Array:
        """The vectors of all words, float[V, D].

        With n-grams: the mean of the vector of the word and those of its n-grams. The paper sums (Bojanowski et al.,
        2017, section 3.2), but fastText divides by the number. subwords: words and buckets of all n-grams, by word.
        """
        if not self.num_buckets:
            return self.words
        assert subwords is not None
        words, buckets = subwords
        counts = 1.0 + np.bincount(words, minlength=self.vocab_size).astype(np.float32)
        sums = added(self.buckets, jnp.asarray(buckets), jnp.asarray(words), self.vocab_size)
        return (self.words + sums) / counts[:, None]

    def __call__(
        self, words: Array, weights: Array, negatives: Array, subwords: Subwords | None = None
    ) -> tuple[Array, Array]:
        """Return scores float[B, T, P + K], first of P pairs and then of K negatives, and pair weights float[B, T, P].

        words int[B, T + 2 W]: T centres and the words around them; weights float[B, T] of centres; negatives int[B, K].
        A pair at distance d has the weight (W - d + 1) / W: the expectation over the window size, which word2vec draws
        from 1 .. W for each centre. No pair spans a NO_WORD. Skip-gram: P = T + 2 W. CBOW: P = 1, and the mean of the
        window is weighted likewise.
        """
        near = self.near(words) * weights[:, :, None]
        read, predicted = self.vectors(subwords), self.predicted
        centres = words[:, self.window : -self.window]
        if self.algorithm == "skip_gram":
            hidden, pairs = _rows(read, centres), near
            candidates = _rows(predicted, jnp.concatenate([words, negatives], axis=1))
            return inner_products(hidden, candidates), pairs
        total = jnp.sum(near, axis=-1, keepdims=True)
        hidden = jnp.einsum("bts,bsd->btd", near / jnp.maximum(total, 1e-6), _rows(read, words))
        rows = _rows(predicted, jnp.concatenate([centres, negatives], axis=1))
        targets, others = rows[:, : centres.shape[1]], rows[:, centres.shape[1] :]
        score = jnp.sum(hidden * targets, axis=-1, keepdims=True)
        scores = jnp.concatenate([score, inner_products(hidden, others)], axis=-1)
        return scores, weights[:, :, None] * (total > 0)

    def near(self, words: Array) -> Array:
        """Words int[B, T + 2 W] -> float[B, T, T + 2 W]: probability of word s in the window of centre W + t."""
        length, reach = words.shape[1], self.window
        distance = np.abs(np.arange(reach, length - reach)[:, None] - np.arange(length)[None, :])
        share = np.where(distance > 0, np.maximum(reach - distance + 1, 0) / reach, 0).astype(np.float32)
        text = jnp.cumsum(words == NO_WORD, axis=1)
        same = (text[:, reach:-reach, None] == text[:, None, :]) & (words != NO_WORD)[:, None, :]
        return jnp.where(same, share[None], 0.0)


def _rows(table: Array, numbers: Array) -> Array:
    """table float[V, D], numbers int[B, N] -> float[B, N, D]."""
    if platforms.current().row_lookup == "direct":
        return table[numbers]
    # On CPUs XLA adds a gradient to rows numbered by one axis four times as fast.
    return table[numbers.reshape(-1)].reshape(*numbers.shape, -1)


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def added(table: Array, rows: Array, targets: Array, size: int) -> Array:
    """table float[N, D] -> float[size, D]: row rows[p] of the table is added to row targets[p], for each p of P.

    P is processed in chunks, because P rows take many times the memory of both tables.
    """

    def add(total: Array, chunk: tuple[Array, Array]) -> tuple[Array, None]:
        source, target = chunk
        vectors = table.at[source].get(mode="fill", fill_value=0.0)
        return total.at[target].add(vectors, mode="drop"), None

    return jax.lax.scan(add, jnp.zeros((size, table.shape[1])), (_chunked(rows), _chunked(targets)))[0]


def _chunked(numbers: Array) -> Array:
    """int[P] -> int[C, P / C], the last chunk padded with an index that is out of range for every table."""
    size = platforms.current().ngrams_per_chunk
    return jnp.pad(numbers, (0, -len(numbers) % size), constant_values=np.iinfo(np.int32).max).reshape(-1, size)


def _added_forward(table: Array, rows: Array, targets: Array, size: int) -> tuple[Array, tuple[int, Array, Array]]:
    return added(table, rows, targets, size), (len(table), rows, targets)


def _added_backward(size: int, saved: tuple[int, Array, Array], gradient: Array) -> tuple[Array, None, None]:
    count, rows, targets = saved
    return added(gradient, targets, rows, count), None, None


added.defvjp(_added_forward, _added_backward)


def inner_products(x: Array, y: Array) -> Array:
    """x float[B, T, D], y float[B, S, D] -> float[B, T, S]."""
    einsum = platforms.current().batched_product == "einsum"
    return jnp.einsum("btd,bsd->bts", x, y) if einsum else _inner_products(x, y)


@jax.custom_vjp
def _inner_products(x: Array, y: Array) -> Array:
    # XLA's CPU compiler multiplies batches of untransposed matrices two to three times as fast: the smaller operand of
    # each product is transposed beforehand, and the barriers keep the compiler from undoing that.
    return _transposed(jnp.einsum("bsd,bdt->bst", y, _transposed(x)))


def _forward(x: Array, y: Array) -> tuple[Array, tuple[Array, Array]]:
    return _inner_products(x, y), (x, y)


def _backward(saved: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    x, y = saved
    return jnp.einsum("bts,bsd->btd", gradient, y), jnp.einsum("bst,btd->bsd", _transposed(gradient), x)


_inner_products.defvjp(_forward, _backward)


def _transposed(x: Array) -> Array:
    """float[B, N, M] -> float[B, M, N], materialized."""
    return jax.lax.optimization_barrier(jnp.swapaxes(x, 1, 2))
