"""The Transformer encoder of BERT (Devlin et al., 2019) and its variants.

RoBERTa, DistilBERT, MiniLM, XLM-R, RemBERT, ALBERT, ELECTRA, MPNet and others differ in their sizes, embedding tables
and pretraining. The heads for pretraining are in `models.bert`; task heads derive from `fine_tuned.FineTuned`.
"""

import functools
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.activations import activation
from nmt_jax.models.layers.dense import Dense, activation_type
from nmt_jax.models.layers.dropout import Dropout
from nmt_jax.models.layers.encoder_stack import EncoderStack
from nmt_jax.models.layers.hyperparameters import check_choices, check_heads, check_positive, check_rates, shared_fields
from nmt_jax.models.layers.layer_stack import REMAT, run_layers
from nmt_jax.models.layers.normalization import LayerNorm
from nmt_jax.models.layers.packing import embed_positions, same_item
from nmt_jax.models.layers.relative_positions import RelativeBias
from nmt_jax.models.layers.scaled_attention import attend

CHOICES = {"activation": ("gelu_erf", "gelu", "relu"), "dtype": ("float32", "bfloat16"), "remat": tuple(REMAT)}


class Embeddings(nn.Module):
    """norm(word + position + segment), three learned embeddings (Devlin et al., 2019, figure 2).

    width: of the three; if it is not 0, a matrix maps their norm to d_model (Lan et al., 2020, section 3.1).
    """

    vocab_size: int
    max_positions: int
    first_position: int
    num_segments: int
    d_model: int
    width: int
    epsilon: float
    dropout: float
    dtype: str
    init_stddev: float

    def setup(self) -> None:
        init = nn.initializers.truncated_normal(self.init_stddev)
        width = self.width or self.d_model
        self.word = self.param("word", init, (self.vocab_size, width))
        self.position = self.param("position", init, (self.first_position + self.max_positions, width))
        if self.num_segments:
            self.segment = self.param("segment", init, (self.num_segments, width))
        if self.width:
            self.projection = Dense(self.d_model, dtype=self.dtype, kernel_init=init)
        self.norm = LayerNorm(self.epsilon)
        self.drop = Dropout(self.dropout)

    def __call__(self, ids: Array, segments: Array | None, train: bool, packing: Array | None = None) -> Array:
        """Ids and segments int[B, S] -> float[B, S, D]; packing int[B, S]: as for `Bert.states`."""
        length = ids.shape[1]
        if length > self.max_positions:
            raise ValueError(f"a sequence has {length} tokens, but max_positions={self.max_positions}")
        table = self.position[self.first_position : self.first_position + length]
        x = self.word[ids] + embed_positions(table, packing)
        if self.num_segments:
            x = x + (self.segment[None, :1] if segments is None else self.segment[segments])
        x = self.drop(self.norm(x).astype(activation_type(self.dtype)), train)
        return self.projection(x) if self.width else x


class Layer(nn.Module):
    """Self-attention and feed-forward sublayers f, each norm(x + drop(f(x))); all products have a bias."""

    d_model: int
    d_ff: int
    num_heads: int
    activation: str
    epsilon: float
    dropout: float
    attention_dropout: float
    dtype: str
    init_stddev: float

    def setup(self) -> None:
        init = nn.initializers.truncated_normal(stddev=self.init_stddev)
        dense = functools.partial(Dense, dtype=self.dtype, kernel_init=init)
        self.query, self.key, self.value = dense(self.d_model), dense(self.d_model), dense(self.d_model)
        self.attention_output = dense(self.d_model)
        self.attention_norm = LayerNorm(self.epsilon)
        self.ffn_hidden, self.ffn_output = dense(self.d_ff), dense(self.d_model)
        self.ffn_norm = LayerNorm(self.epsilon)
        self.weight_dropout = Dropout(self.attention_dropout)
        self.drop = Dropout(self.dropout)

    def __call__(self, x: Array, mask: Array, bias: Array | None = None, train: bool = False) -> tuple[Array, Array]:
        """x float[B, S, D], mask bool[B, 1, 1 or S, S] -> float[B, S, D], attention weights float[B, H, S, S].

        bias: added to the scores of attention, float[1, H, S, S].
        """

        def heads(y: Array) -> Array:
            return y.reshape(*y.shape[:2], self.num_heads, -1).swapaxes(1, 2)

        query, keys, values = heads(self.query(x)), heads(self.key(x)), heads(self.value(x))
        key = self.weight_dropout.key(train)
        context, weights = self.attend(query, keys, values, mask, bias, key)
        y = self.attention_output(context.swapaxes(1, 2).reshape(x.shape))
        x = self.attention_norm(x + self.drop(y, train))
        y = self.ffn_output(activation(self.activation, self.dtype)(self.ffn_hidden(x)))
        return self.ffn_norm(x + self.drop(y, train)), weights

    def attend(
        self, query: Array, keys: Array, values: Array, mask: Array, bias: Array | None, key: Array | None
    ) -> tuple[Array, Array]:
        """The context and the weights of all heads; arguments as for `attend`."""
        return attend(query, keys, values, mask, self.attention_dropout, key, bias)


# All layers of a model are equal: with a jit of their own, inside the caller's, only one of them is traced.
_apply = nn.jit(lambda layer, x, mask, bias: layer(x, mask, bias))

LARGEST_DISTANCE = 128  # that has a bucket of its own; the same in all published models


class Bert(EncoderStack):
    """BERT, RoBERTa, DistilBERT, MiniLM, XLM-R, RemBERT, ALBERT, ELECTRA, MPNet; the defaults are BERT base, uncased.

    first_position: number of unused rows at the start of the position table (2 in RoBERTa). num_segments: 0 means no
    segment embeddings. pooler: add tanh(W h + b) of the last state of the first token. init_stddev: standard deviation
    of the truncated normal initializer. causal: tokens do not attend to later tokens. remat, scan_layers: of
    `run_layers`. embedding_width: that of `Embeddings`, 0 for none (RemBERT, ALBERT, ELECTRA). share_layers: all layers
    have the parameters of one (ALBERT). relative_buckets: scores have a `RelativeBias` with as many buckets, which all
    layers share (MPNet).
    """

    vocab_size: int = 30522
    num_layers: int = 12
    d_model: int = 768
    d_ff: int = 3072
    num_heads: int = 12
    max_positions: int = 512
    first_position: int = 0
    num_segments: int = 2
    activation: str = "gelu_erf"
    epsilon: float = 1e-12
    pooler: bool = True
    dropout: float = 0.1
    attention_dropout: float = 0.1
    dtype: str = "float32"
    init_stddev: float = 0.02
    causal: bool = False
    remat: str = "none"
    scan_layers: bool = False
    embedding_width: int = 0
    share_layers: bool = False
    relative_buckets: int = 0

    def __post_init__(self) -> None:
        check_choices(self, CHOICES)
        check_positive(self, "vocab_size", "num_layers", "d_model", "d_ff", "num_heads", "max_positions")
        check_rates(self, "dropout", "attention_dropout")
        if min(self.first_position, self.num_segments) < 0:
            raise ValueError("first_position and num_segments must not be negative")
        if self.embedding_width < 0:
            raise ValueError("embedding_width must not be negative")
        if self.relative_buckets and not 4 <= self.relative_buckets <= LARGEST_DISTANCE:
            raise ValueError(f"relative_buckets={self.relative_buckets} must be 0 or 4 to {LARGEST_DISTANCE}")
        check_heads(self)
        super().__post_init__()

    @nn.nowrap
    def layer(self, number: int) -> Layer:
        return Layer(**shared_fields(self, Layer))

    def layer_name(self, number: int) -> str:
        return "layers_0" if self.share_layers else super().layer_name(number)

    def setup(self) -> None:
        self.embeddings = Embeddings(**shared_fields(self, Embeddings), width=self.embedding_width)
        self.layers = [self.layer(number) for number in range(1 if self.share_layers else self.num_layers)]
        if self.relative_buckets:
            self.relative_bias = RelativeBias(self.num_heads, self.relative_buckets, LARGEST_DISTANCE)
        if self.pooler:
            init = nn.initializers.truncated_normal(stddev=self.init_stddev)
            self.pooler_dense = Dense(self.d_model, dtype=self.dtype, kernel_init=init)

    def __call__(
        self, ids: Array, mask: Array, segments: Array | None = None, train: bool = False
    ) -> tuple[Array, dict[str, Any]]:
        """Ids int[B, S], mask bool[B, S] (False: padding), segments int[B, S] or all 0 -> hidden float[L+1, B, S, D].

        Layer 0 is the embeddings. Intermediates: `attention`, L weights float[B, H, S, S], and with a pooler `pooled`
        float[B, D]. States at padding are meaningless. Raises ValueError if S exceeds max_positions.
        """
        hidden, intermediates = self.states(ids, mask, segments, train)
        return jnp.stack(hidden), intermediates

    def begin(
        self,
        ids: Array,
        mask: Array,
        segments: Array | None = None,
        train: bool = False,
        packing: Array | None = None,
    ) -> tuple[Array, tuple[Array, Array | None]]:
        """The embeddings, and which positions each token attends to and with what bias; arguments as for `states`."""
        x = self.embeddings(ids, segments, train, packing)
        bias = self.relative_bias(ids.shape[1], ids.shape[1]) if self.relative_buckets else None
        return x, (self.visible(mask, packing), bias)

    def visible(self, mask: Array, packing: Array | None = None) -> Array:
        """The positions that each token attends to: mask bool[B, S] -> bool[B, 1, 1 or S, S]."""
        mask = mask[:, None, None, :] if packing is None else same_item(packing, packing)
        return mask & jnp.tril(jnp.ones((mask.shape[-1],) * 2, bool))[None, None] if self.causal else mask

    def states(
        self, ids: Array, mask: Array, segments: Array | None, train: bool, packing: Array | None = None
    ) -> tuple[list[Array], dict[str, Any]]:
        """As `__call__`, but the hidden states are a list: using only the last does not cost a stack of all.

        packing: the number of each token's example, int[B, S], in rows that hold several independent ones.
        """
        x, (visible, bias) = self.begin(ids, mask, segments, train, packing)
        draws = train or self.is_initializing()  # inside jit, random streams would differ

        def step(layer: Layer, x: Array) -> tuple[Array, tuple[Array, Array]]:
            y, weights = layer(x, visible, bias, train) if draws else _apply(layer, x, visible, bias)
            return y, (x, weights)

        layers = self.layers * (self.num_layers // len(self.layers))
        x, outputs = run_layers(layers, step, x, scan=self.scan_layers, remat=self.remat)
        inputs, attention = zip(*outputs, strict=True)
        intermediates: dict[str, Any] = {"attention": attention}
        if self.pooler:
            intermediates["pooled"] = jnp.tanh(self.pooler_dense(x[:, 0]))
        return [*inputs, x], intermediates
