"""Basic layers: matrix products and dense layers, activations, dropout, normalization, feed-forward, embeddings.

With dtype "bfloat16" the operands of a product, and of both products of its gradient, are rounded to bfloat16
(Micikevicius et al., 2018). What lies between two products is float32 on CPUs; on accelerators it has the model's type,
so that half as many bytes move, while norms, softmax, loss and the optimizer still compute in float32.
"""

import functools
from collections.abc import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from nmt_jax import platforms
from nmt_jax.models.layers.lookup import look_up
from nmt_jax.models.layers.quantization import Quantized, quantized_product

FEW_ROWS = 64  # by measurement: the same row gets the same sums in a product of more rows


def matmul(x: Array, kernel: Array | Quantized, dtype: str = "float32") -> Array:
    """x float[..., D] times kernel float[D, F] -> float32[..., F]; operands rounded to `dtype`, sums in float32."""
    if isinstance(kernel, Quantized):
        return quantized_product(x, kernel)
    # In float32 XLA's CPU compiler copies the gradient transposed under JAX's own rule, which takes a tenth of a step;
    # in bfloat16 that rule would not round the gradient.
    if platforms.current().product_gradient == "derived" and dtype == "float32":
        return _plain_matmul(x, kernel, dtype)
    return _matmul(x, kernel, dtype, x.dtype.name)


def activation_type(dtype: str) -> str:
    """The type of activations between the products of a model that computes in `dtype`."""
    return dtype if platforms.current().activations == "model" else "float32"


def hidden_product(x: Array, kernel: Array | Quantized, dtype: str) -> Array:
    """x float[..., D] times kernel float[D, F] -> [..., F] in the type of activations."""
    if isinstance(kernel, Quantized):
        return quantized_product(x, kernel).astype(activation_type(dtype))
    if activation_type(dtype) == "float32":
        return matmul(x, kernel, dtype)
    return jnp.dot(x.astype(dtype), kernel.astype(dtype))


def product(a: Array, b: Array, dtype: str) -> Array:
    """a float[N, D] times b float[D, M] -> float32[N, M]: operands rounded to `dtype`, sums in float32."""
    if dtype == "float32" and len(a) < FEW_ROWS and platforms.current().few_rows == "transposed":
        # XLA's CPU compiler adds the terms of few rows in another order than those of many, unless b is transposed.
        # The barrier keeps it from undoing that.
        return jax.lax.dot_general(a, jax.lax.optimization_barrier(b.T), (((1,), (1,)), ((), ())))
    return jnp.dot(a.astype(dtype), b.astype(dtype), preferred_element_type=jnp.float32)


def transposed(a: Array, dtype: str) -> Array:
    """a float[N, M] -> [M, N] as an operand of a product in `dtype`."""
    if platforms.current().transpose == "lazy" or dtype == "float32":
        return a.T
    # CPUs multiply untransposed bfloat16 matrices twice as fast as transposed ones; in float32 there is no difference.
    # The barrier keeps XLA from fusing the transpose into the product.
    return jax.lax.optimization_barrier(a.astype(jnp.bfloat16).T)


def _plain_matmul(x: Array, kernel: Array, dtype: str) -> Array:
    return product(x.reshape(-1, x.shape[-1]), kernel, dtype).reshape(*x.shape[:-1], -1)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def _matmul(x: Array, kernel: Array, dtype: str, x_dtype: str) -> Array:
    return _plain_matmul(x, kernel, dtype)


def _matmul_forward(x: Array, kernel: Array, dtype: str, x_dtype: str) -> tuple[Array, tuple[Array, Array]]:
    return _plain_matmul(x, kernel, dtype), (x.astype(dtype), kernel)


def _matmul_backward(dtype: str, x_dtype: str, saved: tuple[Array, Array], gradient: Array) -> tuple[Array, Array]:
    x, kernel = saved
    rows = gradient.reshape(-1, gradient.shape[-1]).astype(dtype)
    d_x = product(rows, transposed(kernel, dtype), dtype).reshape(x.shape).astype(x_dtype)
    return d_x, product(transposed(x.reshape(-1, x.shape[-1]), dtype), rows, dtype)


_matmul.defvjp(_matmul_forward, _matmul_backward)


class Dense(nn.Module):
    """y = x W + b, with W initialized after Glorot and Bengio (2010) unless `kernel_init` is given, and b = 0."""

    features: int
    use_bias: bool = True
    dtype: str = "float32"
    kernel_init: nn.initializers.Initializer = nn.initializers.xavier_uniform()

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """x float[..., D] -> [..., features] in the type of activations."""
        kernel = self.param("kernel", self.kernel_init, (x.shape[-1], self.features))
        y = hidden_product(x, kernel, self.dtype)
        if self.use_bias:
            bias = self.param("bias", nn.initializers.zeros, (self.features,))
            y = y + jnp.broadcast_to(bias, y.shape).astype(y.dtype)
        return y


def gelu_erf(x: Array) -> Array:
    """GELU, x Phi(x) (Hendrycks and Gimpel, 2016, section 2), by erf: on CPUs twice as fast as by erfc, within 1e-6."""
    return 0.5 * x * (1 + jax.lax.erf(x * np.float32(0.5**0.5)))


def gelu_polynomial(x: Array) -> Array:
    """GELU within 1e-4, the precision of a bfloat16 product; on CPUs two thirds of the time of `gelu_erf`.

    Phi is 1/2 plus an odd polynomial of degree 15, the best approximation on |x| <= 4.2 that is 1/2 at its ends, so
    that Phi is 0 or 1 beyond.
    """
    inside = jnp.clip(x, -4.2, 4.2)
    square = inside * inside
    fourth = square * square
    # Evaluated in pairs (Estrin, 1960): independent terms.
    low = 0.3984659 - 0.0655283 * square + (0.009298283 - 0.0009506711 * square) * fourth
    high = 6.689253e-05 - 3.038066e-06 * square + (7.941845e-08 - 9.018297e-10 * square) * fourth
    return x * (0.5 + inside * (low + high * (fourth * fourth)))


def gelu_exact(x: Array) -> Array:
    """GELU as JAX computes it, by erfc."""
    return nn.gelu(x, approximate=False)


@jax.custom_vjp
def _relu(x: Array) -> Array:
    """max(x, 0); the backward pass reads the result, which the next product keeps anyway, instead of x."""
    return nn.relu(x)


def _relu_forward(x: Array) -> tuple[Array, Array]:
    y = nn.relu(x)
    return y, y


_relu.defvjp(_relu_forward, lambda y, gradient: (jnp.where(y > 0, gradient, 0),))

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": nn.relu,
    "gelu": nn.gelu,  # the approximation by tanh (Hendrycks and Gimpel, 2016, section 2)
    "gelu_erf": gelu_erf,
    "swiglu": nn.silu,
    "quick_gelu": lambda x: x * nn.sigmoid(1.702 * x),  # a coarser approximation (section 2 there), in CLIP
}


def activation(name: str, dtype: str) -> Callable[[Array], Array]:
    """Return the function `name` of ACTIVATIONS for use between two products in `dtype`."""
    if activation_type(dtype) != "float32":
        return _relu if name == "relu" else jax.checkpoint(gelu_exact if name == "gelu_erf" else ACTIVATIONS[name])
    if name != "gelu_erf":
        return ACTIVATIONS[name]
    if platforms.current().gelu == "exact":
        return gelu_exact
    return gelu_polynomial if dtype == "bfloat16" else gelu_erf


def dropout(x: Array, rate: float, key: Array) -> Array:
    """Set units of x float[..., D] to zero with probability `rate`, and scale up the others by 1 / (1 - rate).

    The mask is the same on any number of devices. On CPUs the rate is rounded to a multiple of 1/256.
    """
    if platforms.current().dropout == "hash":
        return _hashed_dropout(x, jax.random.key_data(key), rate)
    # One random byte per unit: a quarter of the random bits of a Bernoulli draw, the main cost of dropout on a CPU.
    keep = round(256 * (1 - rate))
    words = jax.random.bits(key, (*x.shape[:-1], -(-x.shape[-1] // 4)), jnp.uint32)
    units = jax.lax.bitcast_convert_type(words, jnp.uint8).reshape(*x.shape[:-1], -1)[..., : x.shape[-1]]
    return jnp.where(units < keep, x * (256 / keep), 0.0)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _hashed_dropout(x: Array, key: Array, rate: float) -> Array:
    """Dropout by a mask that is computed where it is used, also in the backward pass: no random bits are in memory.

    A unit is kept if the hash of its position and of key uint32[2] is below a threshold. Every device computes the part
    of the mask that it needs.
    """
    kept = hash_positions(x.shape, key) < np.uint32(min(round((1.0 - rate) * 2**32), 2**32 - 1))
    return jnp.where(kept, x * (1.0 / (1.0 - rate)), 0.0).astype(x.dtype)


def _hashed_dropout_forward(x: Array, key: Array, rate: float) -> tuple[Array, Array]:
    return _hashed_dropout(x, key, rate), key


def _hashed_dropout_backward(rate: float, key: Array, gradient: Array) -> tuple[Array, None]:
    # Without the barrier XLA keeps the mask of the forward pass in memory.
    return _hashed_dropout(gradient, jax.lax.optimization_barrier(key), rate), None


_hashed_dropout.defvjp(_hashed_dropout_forward, _hashed_dropout_backward)


def hash_positions(shape: tuple[int, ...], key: Array) -> Array:
    """A pseudo-random number, uint32, for every position of an array of `shape`, from key uint32[2].

    Positions are counted modulo 2^32: larger arrays repeat their numbers. The mixing function is `lowbias32` (Wellons,
    2018, "Prospecting for hash functions"), with half of the mixed key before each of its two multiplications.
    """
    # The numbers of rows are counted apart from those of columns, so that a unit takes no multiplication.
    row = jnp.zeros((*shape[:-1], 1), jnp.uint32)
    for axis, size in enumerate(shape[:-1]):
        row = row * np.uint32(size) + jax.lax.broadcasted_iota(jnp.uint32, row.shape, axis)
    column = jax.lax.broadcasted_iota(jnp.uint32, shape, len(shape) - 1)
    first = _mix(key[0] ^ _mix(key[1], 0), 0)  # so that keys that differ in a few bits have nothing in common
    x = jnp.broadcast_to(row * np.uint32(shape[-1]), shape) + column
    return _mix(x ^ jnp.broadcast_to(first, shape), _mix(key[1] ^ first, 0))


def _mix(x: Array, key: Array | int) -> Array:
    """A bijection of uint32 in which every bit of the result depends on all bits of x."""
    x = (x ^ (x >> 16)) * np.uint32(0x7FEB352D)
    x = x ^ jnp.broadcast_to(jnp.uint32(key), x.shape)
    x = (x ^ (x >> 15)) * np.uint32(0x846CA68B)
    return x ^ (x >> 16)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def dropped_relu(x: Array, rate: float, key: Array) -> Array:
    """`dropout` of max(x, 0); the backward pass reads only the result: units of 0 have no gradient for both reasons."""
    return dropout(nn.relu(x), rate, key)


def _dropped_relu_forward(x: Array, rate: float, key: Array) -> tuple[Array, Array]:
    y = dropped_relu(x, rate, key)
    return y, y


def _dropped_relu_backward(rate: float, y: Array, gradient: Array) -> tuple[Array, None]:
    return jnp.where(y > 0, gradient * (1.0 / (1.0 - rate)), 0).astype(y.dtype), None


dropped_relu.defvjp(_dropped_relu_forward, _dropped_relu_backward)


class Dropout(nn.Module):
    """`dropout` with the module's own random stream; the identity outside training or if the rate is 0."""

    rate: float

    @nn.compact
    def __call__(self, x: Array, train: bool) -> Array:
        """x float[..., D] -> float[..., D]."""
        key = self.key(train)
        return x if key is None else dropout(x, self.rate, key)

    def key(self, train: bool) -> Array | None:
        """A random key for one mask; None if nothing is dropped."""
        return self.make_rng("dropout") if train and self.rate else None


class SequenceDropout(nn.Module):
    """Dropout on float[..., T, D], with a new mask at every step or, if `variational`, one mask for all T steps.

    Variational dropout: Gal and Ghahramani (2016).
    """

    rate: float
    variational: bool

    @nn.compact
    def __call__(self, x: Array, train: bool) -> Array:
        """x float[..., T, D] -> float[..., T, D]."""
        if not self.variational:
            return Dropout(self.rate)(x, train)
        return x * Dropout(self.rate)(jnp.ones((*x.shape[:-2], 1, x.shape[-1])), train)


class WordDropout(nn.Module):
    """Dropout of whole words: all vectors of a dropped word in a row become zero (Gal and Ghahramani, 2016, sec. 4.2).

    The others are scaled up by 1 / (1 - rate).
    """

    rate: float
    vocab_size: int

    @nn.compact
    def __call__(self, x: Array, words: Array, train: bool) -> Array:
        """x float[B, T, D], the vectors of words int[B, T] -> float[B, T, D]."""
        if not (train and self.rate):
            return x
        kept = dropout(jnp.ones((words.shape[0], self.vocab_size)), self.rate, self.make_rng("dropout"))
        return x * jnp.take_along_axis(kept, words, axis=1)[..., None]


def layer_norm(x: Array, scale: Array, bias: Array, epsilon: float) -> Array:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias over the last axis of [..., D] (Ba et al., 2016, eq. 4).

    Computed in float32; the result has the type of x.
    """
    if x.dtype != jnp.float32:
        return _narrow_layer_norm(x, scale, bias, epsilon)
    centred = x - jnp.mean(x, axis=-1, keepdims=True)
    normal = centred * jax.lax.rsqrt(jnp.mean(centred * centred, axis=-1, keepdims=True) + epsilon)
    return normal * jnp.broadcast_to(scale, x.shape) + jnp.broadcast_to(bias, x.shape)


@functools.partial(jax.custom_vjp, nondiff_argnums=(3,))
def _narrow_layer_norm(x: Array, scale: Array, bias: Array, epsilon: float) -> Array:
    """`layer_norm` of bfloat16 that keeps only the mean and the deviation of a row in float32 for the backward pass."""
    return layer_norm(x.astype(jnp.float32), scale, bias, epsilon).astype(x.dtype)


def _narrow_forward(x: Array, scale: Array, bias: Array, epsilon: float) -> tuple[Array, tuple[Array, ...]]:
    wide = x.astype(jnp.float32)
    mean = jnp.mean(wide, axis=-1, keepdims=True)
    factor = jax.lax.rsqrt(jnp.mean(jnp.square(wide - mean), axis=-1, keepdims=True) + epsilon)
    return _narrow_layer_norm(x, scale, bias, epsilon), (x, mean, factor, scale)


def _narrow_backward(epsilon: float, saved: tuple[Array, ...], gradient: Array) -> tuple[Array, Array, Array]:
    x, mean, factor, scale = saved
    normal, gradient = (x.astype(jnp.float32) - mean) * factor, gradient.astype(jnp.float32)
    d_normal = gradient * jnp.broadcast_to(scale, x.shape)
    parallel = normal * jnp.mean(d_normal * normal, axis=-1, keepdims=True)
    d_x = factor * (d_normal - jnp.mean(d_normal, axis=-1, keepdims=True) - parallel)
    rows = tuple(range(x.ndim - 1))
    terms = gradient * normal
    if platforms.current().scale_gradient == "stored":
        # XLA does not fuse them into their sum on GPUs, and would write them in float32.
        terms = jax.lax.optimization_barrier(terms.astype(x.dtype)).astype(jnp.float32)
    return d_x.astype(x.dtype), jnp.sum(terms, axis=rows), jnp.sum(gradient, axis=rows)


_narrow_layer_norm.defvjp(_narrow_forward, _narrow_backward)


class LayerNorm(nn.Module):
    """`layer_norm` with a learned scale and bias."""

    epsilon: float = 1e-6

    @nn.compact
    def __call__(self, x: Array) -> Array:
        """x [..., D] -> [..., D] of the same type."""
        scale = self.param("scale", nn.initializers.ones, (x.shape[-1],))
        bias = self.param("bias", nn.initializers.zeros, (x.shape[-1],))
        return layer_norm(x, scale, bias, self.epsilon)


class FeedForward(nn.Module):
    """FFN(x) = act(x W1 + b1) W2 + b2 (Vaswani et al., 2017, eq. 2).

    The activation `swiglu` makes it (silu(x W1) * x V) W2 (Shazeer, 2020, eq. 6), with biases.
    """

    d_ff: int
    activation: str
    dropout: float
    dtype: str

    @nn.compact
    def __call__(self, x: Array, train: bool) -> Array:
        """x float[..., D] -> float[..., D]; dropout is applied to the F hidden units."""
        hidden = Dense(self.d_ff, dtype=self.dtype, name="hidden")(x)
        drop = Dropout(self.dropout)
        if self.activation == "relu" and hidden.dtype != jnp.float32 and (key := drop.key(train)) is not None:
            return Dense(x.shape[-1], dtype=self.dtype, name="output")(dropped_relu(hidden, self.dropout, key))
        hidden = activation(self.activation, self.dtype)(hidden)
        if self.activation == "swiglu":
            hidden = hidden * Dense(self.d_ff, dtype=self.dtype, name="gate")(x)
        return Dense(x.shape[-1], dtype=self.dtype, name="output")(drop(hidden, train))


class Embedding(nn.Module):
    """A table of V vectors of width D, N(0, 1/D), that may also serve as the output layer (Press and Wolf, 2017).

    `table` is in the type of activations; the parameter is float32.
    """

    vocab_size: int
    d_model: int
    dtype: str = "float32"

    def setup(self) -> None:
        init = nn.initializers.normal(self.d_model**-0.5)
        table = self.param("table", init, (self.vocab_size, self.d_model))
        self.table = table.astype(activation_type(self.dtype))  # once, for the one sum of its gradients (`lookup`)

    def __call__(self, tokens: Array) -> Array:
        """Tokens int[...] -> [..., D] in the type of activations, times sqrt(D) (Vaswani et al., 2017, section 3.4)."""
        return self.rows(tokens) * self.d_model**0.5

    def rows(self, tokens: Array) -> Array:
        """Tokens int[...] -> [..., D] in the type of activations, as they are in the table."""
        return look_up(self.table, tokens) if platforms.current().row_gradient == "by_device" else self.table[tokens]


@functools.lru_cache
def sinusoids(length: int, d_model: int) -> np.ndarray:
    """Embeddings of the positions 0 .. length-1, float32[length, D]: first all sines, then all cosines.

    PE(p, i) = sin(p / 10000^(2 i / D)), and likewise with cos (Vaswani et al., 2017, section 3.5, which interleaves the
    two).
    """
    half = -(-d_model // 2)
    angles = np.arange(length)[:, None] / 10000.0 ** (np.arange(half) / half)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)[:, :d_model].astype(np.float32)


class Positions(nn.Module):
    """Embeddings of the positions 0 .. max_positions-1: `sinusoidal` or `learned` (Gehring et al., 2017)."""

    kind: str
    max_positions: int
    d_model: int

    def setup(self) -> None:
        if self.kind == "learned":
            init = nn.initializers.normal(1.0)
            self.table = self.param("table", init, (self.max_positions, self.d_model))

    def __call__(self, length: int) -> Array:
        """Return float[length, D]. Raises ValueError if `length` exceeds the learned table."""
        if self.kind == "sinusoidal":
            return jnp.asarray(sinusoids(length, self.d_model))
        if length > self.max_positions:
            raise ValueError(f"a sequence has {length} positions, but max_positions={self.max_positions}")
        return self.table[:length]
