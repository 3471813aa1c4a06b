"""A multilayer perceptron over features, with ReLU hidden layers and a linear output."""

import flax.linen as nn
from jax import Array

from nmt_jax.models.layers.dense import Dense
from nmt_jax.models.layers.dropout import Dropout
from nmt_jax.models.layers.hyperparameters import check_positive, check_rates


class Model(nn.Module):
    """y = W_n drop(relu(... relu(W_1 drop(x) + b_1) ...)) + b_n; with num_layers=0 a linear regression."""

    num_outputs: int = 1
    num_layers: int = 1  # of hidden layers
    d_hidden: int = 256
    dropout: float = 0.1

    def __post_init__(self) -> None:
        check_positive(self, "num_outputs", "d_hidden")
        check_rates(self, "dropout")
        if self.num_layers < 0:
            raise ValueError(f"num_layers={self.num_layers} must not be negative")
        super().__post_init__()

    def setup(self) -> None:
        self.hidden = [Dense(self.d_hidden) for _ in range(self.num_layers)]
        self.output = Dense(self.num_outputs)
        self.drop = Dropout(self.dropout)

    def __call__(self, features: Array, train: bool = False) -> Array:
        """Features float[B, F] -> float32[B, num_outputs]."""
        x = self.drop(features, train)
        for dense in self.hidden:
            x = self.drop(nn.relu(dense(x)), train)
        return self.output(x)
