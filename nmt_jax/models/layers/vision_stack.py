"""The vision Transformer (Dosovitskiy et al., 2021), also as the image encoder of CLIP (Radford et al., 2021)."""

from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.activations import ACTIVATIONS
from nmt_jax.models.layers.dense import Dense, activation_type
from nmt_jax.models.layers.hyperparameters import check_choices, check_heads, check_positive
from nmt_jax.models.layers.normalization import LayerNorm
from nmt_jax.models.layers.transformer_layers import EncoderLayer

CHOICES = {"norms": ("last", "first"), "activation": tuple(ACTIVATIONS), "dtype": ("float32", "bfloat16")}


class VisionTransformer(nn.Module):
    """Self-attention among a class embedding and the patches of an image (Dosovitskiy et al., 2021, eq. 1 to 3).

    norms: beside those of the layers, one after the "last" layer, or in CLIP one before the "first", whose patches are
    projected without a bias.
    """

    image_size: int
    patch_size: int
    num_layers: int
    d_model: int
    d_ff: int
    num_heads: int
    activation: str = "gelu_erf"
    epsilon: float = 1e-12
    norms: str = "last"
    dtype: str = "float32"

    def __post_init__(self) -> None:
        check_choices(self, CHOICES)
        check_positive(self, "image_size", "patch_size", "num_layers", "d_model", "d_ff", "num_heads")
        check_heads(self)
        if self.image_size % self.patch_size:
            raise ValueError(f"patch_size={self.patch_size} must divide image_size={self.image_size}")
        super().__post_init__()

    @property
    def num_patches(self) -> int:
        """Patches of an image."""
        return (self.image_size // self.patch_size) ** 2

    @nn.compact
    def __call__(self, patches: Array) -> Array:
        """Patches float[B, P, 3 patch_size^2], in the order of `ImageFiles.cut` -> their states float32[B, P, D]."""
        per_head = self.d_model // self.num_heads
        attention: dict[str, Any] = {"d_model": self.d_model, "num_heads": self.num_heads, "use_bias": True}
        attention |= {"d_k": per_head, "d_v": per_head, "dropout": 0.0, "dtype": self.dtype}
        feed_forward: dict[str, Any] = {"d_ff": self.d_ff, "activation": self.activation}
        feed_forward |= {"dropout": 0.0, "dtype": self.dtype}
        init = nn.initializers.truncated_normal(0.02)
        first = self.param("class_embedding", init, (self.d_model,))
        positions = self.param("positions", init, (1 + self.num_patches, self.d_model))
        x = Dense(self.d_model, use_bias=self.norms == "last", dtype=self.dtype, name="projection")(patches)
        x = jnp.concatenate([jnp.broadcast_to(first, (len(x), 1, self.d_model)), x], axis=1) + positions[None]
        if self.norms == "first":
            x = LayerNorm(self.epsilon, name="first_norm")(x)
        x, everywhere = x.astype(activation_type(self.dtype)), jnp.ones((1, 1, 1, 1 + self.num_patches), bool)
        for number in range(self.num_layers):
            layer = EncoderLayer(attention, feed_forward, "pre", 0.0, self.epsilon, name=f"layers_{number}")
            x, _ = layer(x, everywhere)
        if self.norms == "last":
            x = LayerNorm(self.epsilon, name="final_norm")(x)
        return x[:, 1:].astype(jnp.float32)
