"""A pretrained encoder that reads a translation, its reference and its source separately, and estimates its quality."""

import itertools
from collections.abc import Sequence

import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.fine_tuned import FineTuned
from nmt_jax.models.layers.hyperparameters import check_choices
from nmt_jax.models.layers.pooling import POOLING, pool


class Model(FineTuned):
    """y = MLP([h; x_1; h * x_1; |h - x_1|; h * x_2; |h - x_2|]), COMET's estimator (Rei et al., 2020, section 2.3).

    h, x_1 and x_2 are the pooled states of the translation, of its reference, and of its source; without a reference,
    x_1 is the source. hidden_sizes: widths of the layers of the MLP, whose activations are tanh. dropout: applied
    before each layer.
    """

    pooling: str = "mean"
    hidden_sizes: Sequence[int] = (384, 192)

    def __post_init__(self) -> None:
        check_choices(self, {"pooling": POOLING})
        for size in self.hidden_sizes:
            if size < 1:
                raise ValueError(f"hidden_sizes={list(self.hidden_sizes)}: widths must be at least 1")
        super().__post_init__()

    def setup(self) -> None:
        super().setup()
        self.hidden = [self.dense(size) for size in self.hidden_sizes]

    def __call__(self, ids: Array, mask: Array, segments: Array | None = None, train: bool = False) -> Array:
        """Ids int[B, N, S], mask bool[B, N, S], segments int[B, N, S] or None -> float32[B, num_outputs].

        N: number of texts, the translation first.
        """
        length = ids.shape[-1]
        mask = mask.reshape(-1, length)
        segments = None if segments is None else segments.reshape(-1, length)
        states = self.states(ids.reshape(-1, length), mask, segments, train)
        pooled = pool(states, mask, self.pooling).reshape(*ids.shape[:2], -1)
        translation, *others = jnp.moveaxis(pooled, 1, 0)
        compared = ((translation * other, jnp.abs(translation - other)) for other in others)
        x = jnp.concatenate([translation, others[0], *itertools.chain.from_iterable(compared)], axis=-1)
        for layer in self.hidden:
            x = jnp.tanh(layer(self.drop(x, train)))
        return self.output(self.drop(x, train))
