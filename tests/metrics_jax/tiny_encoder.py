"""An encoder of letters with random vectors that see their neighbours; it has five layers over its embeddings."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from metrics_jax.embedding.encoder import Encoder

LETTERS, D, LAYERS = 128, 8, 5


def tokenize(texts, special=True):
    """[CLS], a token a letter, [SEP]; a letter that does not begin its word is another token, ##letter."""
    rows = []
    for text in texts:
        ids = [3 + ord(one) % LETTERS + LETTERS * (n > 0) for word in text.split() for n, one in enumerate(word)]
        rows.append([1, *ids, 2] if special else ids)
    mask = np.arange(max(map(len, rows), default=0))[None] < np.array([[len(row)] for row in rows])
    ids, marks = np.zeros(mask.shape, int), np.zeros(mask.shape, bool)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
        marks[number, : len(row)] = np.isin(row, (1, 2))
    return ids, mask, marks


def pieces(ids):
    names = ["[PAD]", "[CLS]", "[SEP]"]
    return [names[one] if one < 3 else "##" * (one >= 3 + LETTERS) + chr((one - 3) % LETTERS) for one in ids]


@jax.jit
def embed(table, ids, mask):
    x = jnp.where(mask[..., None], table[ids], 0.0)
    states = [x]
    for _ in range(LAYERS):
        left, right = jnp.roll(x, 1, axis=1).at[:, 0].set(0.0), jnp.roll(x, -1, axis=1).at[:, -1].set(0.0)
        x = jnp.where(mask[..., None], jnp.tanh(x + 0.5 * left - 0.25 * right), 0.0)
        states.append(x)
    return jnp.stack(states)


def make(max_length=1000, table=None) -> Encoder:
    if table is None:
        table = np.random.default_rng(0).normal(size=(3 + 2 * LETTERS, D))
    partial = jax.tree_util.Partial(embed, jnp.asarray(table, jnp.float32))
    return Encoder(tokenize, partial, pieces, max_length, "a" * 64)


def plain(**options) -> Encoder:
    """The same without [CLS] and [SEP]."""
    return dataclasses.replace(make(**options), tokenize=lambda texts: tokenize(texts, special=False))


def states(encoder, text, layer):
    """Unit vectors float64[S, D], ids int[S] and special bool[S] of one text."""
    ids, mask, special = encoder.tokenize([text])
    vectors = np.asarray(encoder.embed(ids, mask)[layer][0], np.float64).reshape(ids.shape[1], -1)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), ids[0], special[0]
