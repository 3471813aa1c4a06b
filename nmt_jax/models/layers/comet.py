"""The parts of COMET's models beside the encoder (Rei et al., 2020): a mixture of layers, pooling, and an estimator."""

from collections.abc import Callable, Sequence

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.dense import Dense
from nmt_jax.models.layers.pooling import pool

TRANSFORMATIONS = ("softmax", "sparsemax")
POOLING = ("avg", "cls", "max", "default")  # "default" is the first token of the last layer
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"tanh": jnp.tanh, "sigmoid": nn.sigmoid}


def sparsemax(scores: Array) -> Array:
    """The point of the probability simplex nearest to scores float[N] (Martins and Astudillo, 2016, algorithm 1)."""
    ordered = jnp.sort(scores)[::-1]
    sums, counts = jnp.cumsum(ordered), jnp.arange(1, len(scores) + 1)
    size = jnp.sum(1 + counts * ordered > sums)  # of the support
    return jnp.maximum(scores - (sums[size - 1] - 1) / size, 0)


class LayerMixture(nn.Module):
    """gamma sum_l s_l h_l over the embeddings and all layers, with learned gamma and s (Rei et al., 2020, eq. 1).

    transformation: maps the learned weights to s. normalize: scale the states of each text to mean 0 and variance 1
    before they are added.
    """

    transformation: str = "softmax"
    normalize: bool = False

    @nn.compact
    def __call__(self, states: Sequence[Array], mask: Array) -> Array:
        """L + 1 states float[B, S, D] and mask bool[B, S] -> float[B, S, D]."""
        weights = self.param("weights", nn.initializers.zeros, (len(states),))
        gamma = self.param("gamma", nn.initializers.ones, (1,))
        shares = jax.nn.softmax(weights) if self.transformation == "softmax" else sparsemax(weights)
        if self.normalize:
            states = [_normalized(state, mask) for state in states]
        return gamma[0] * sum(
            (shares[number] * state for number, state in enumerate(states)), start=jnp.zeros((), states[0].dtype)
        )


def _normalized(states: Array, mask: Array) -> Array:
    """States float[B, S, D] with mean 0 and variance 1 over all numbers of a text."""
    real = mask[..., None]
    count = jnp.sum(mask, axis=1)[:, None, None] * states.shape[-1]
    mean = jnp.sum(jnp.where(real, states, 0), axis=(1, 2), keepdims=True) / count
    variance = jnp.sum(jnp.where(real, jnp.square(states - mean), 0), axis=(1, 2), keepdims=True) / count
    return (states - mean) / jnp.sqrt(variance + 1e-12)


class LayerChoice(nn.Module):
    """A mixture of the layers of an encoder, or one of them. layer: its number, or None for the mixture."""

    layer: int | None = None
    transformation: str = "softmax"
    normalize: bool = False

    @nn.compact
    def __call__(self, states: Sequence[Array], mask: Array) -> Array:
        """L + 1 states float[B, S, D] and mask bool[B, S] -> float32[B, S, D]."""
        if self.layer is not None:
            return states[self.layer].astype(jnp.float32)
        mixture = LayerMixture(self.transformation, self.normalize, name="mixture")
        return mixture([state.astype(jnp.float32) for state in states], mask)


class SentenceHead(nn.Module):
    """The vectors of texts from the states of an encoder: a mixture of layers, pooled. pooling: one of POOLING."""

    choice: LayerChoice
    pooling: str = "avg"

    def __call__(self, states: Sequence[Array], mask: Array) -> Array:
        """L + 1 states float[B, S, D] and mask bool[B, S] -> float32[B, 1, D]."""
        if self.pooling == "default":
            return states[-1][:, :1].astype(jnp.float32)
        chosen = self.choice(states, mask)
        if self.pooling == "cls":
            return chosen[:, :1]
        if self.pooling == "max":
            return jnp.max(jnp.where(mask[..., None], chosen, -jnp.inf), axis=1, keepdims=True)
        return pool(chosen, mask, "mean")[:, None]


class Estimator(nn.Module):
    """A multilayer perceptron with one output. final_activation: None for a linear output."""

    hidden_sizes: tuple[int, ...]
    activation: str = "tanh"
    final_activation: str | None = None

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """x float[B, F] -> float32[B]."""
        for number, size in enumerate(self.hidden_sizes):
            x = ACTIVATIONS[self.activation](Dense(size, name=f"hidden_{number}")(x))
        y = Dense(1, name="output")(x)[:, 0]
        return ACTIVATIONS[self.final_activation](y) if self.final_activation else y


class UnifiedHead(nn.Module):
    """Scores of rows that hold several texts, from their first token, and labels of tokens (Guerreiro et al., 2024).

    word_layer: the layer that labels are computed from; None for a model without labels.
    """

    choice: LayerChoice
    estimator: Estimator
    word_layer: int | None = None
    num_labels: int = 0

    def setup(self) -> None:
        if self.word_layer is not None:
            self.labels = Dense(self.num_labels)

    def __call__(self, states: Sequence[Array], mask: Array) -> Array:
        """L + 1 states float[B, S, D] and mask bool[B, S] -> the score of each row, float32[B, 1, 1].

        With labels, float32[B, S, 1 + num_labels]: the score at every token, and the probabilities of its labels.
        """
        scores = self.estimator(self.choice(states, mask)[:, 0])[:, None, None]
        if self.word_layer is None:
            return scores
        labels = jax.nn.softmax(self.labels(states[self.word_layer].astype(jnp.float32)))
        return jnp.concatenate([jnp.broadcast_to(scores, (*mask.shape, 1)), labels], axis=-1)
