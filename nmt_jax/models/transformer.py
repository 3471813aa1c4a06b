"""The encoder-decoder Transformer (Vaswani et al., 2017); each column of its table 3 is a field."""

from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from nmt_jax.data.vocabulary.vocab import BOS
from nmt_jax.models.layers.activations import ACTIVATIONS
from nmt_jax.models.layers.copying import check_copying, make_copying, read_unknown
from nmt_jax.models.layers.dense import Dense, activation_type, matmul
from nmt_jax.models.layers.dropout import Dropout
from nmt_jax.models.layers.embedding import Embedding, Positions
from nmt_jax.models.layers.features import (
    Features,
    Mixed,
    Source,
    check_number,
    columns_of,
    grid_sinusoids,
    parts_of,
    source_mask,
)
from nmt_jax.models.layers.hidden_words import HiddenWords
from nmt_jax.models.layers.hyperparameters import check_choices, check_heads, check_positive, check_rates, check_tying
from nmt_jax.models.layers.images import IMAGE_ENCODERS, ConvolutionalEncoder
from nmt_jax.models.layers.layer_stack import REMAT, Step, run_layers
from nmt_jax.models.layers.normalization import LayerNorm
from nmt_jax.models.layers.packing import embed_positions, restarting_positions, same_item
from nmt_jax.models.layers.subsampling import StridedConvolutions
from nmt_jax.models.layers.transformer_layers import COMBINATIONS, DecoderLayer, EncoderLayer

CHOICES = {
    "image_encoder": IMAGE_ENCODERS,
    "combination": COMBINATIONS,
    "copying": ("none", "pointer"),
    "positions": ("sinusoidal", "learned"),
    "tie_embeddings": ("three-way", "two-way", "none"),
    "norm": ("pre", "post"),
    "activation": tuple(ACTIVATIONS),
    "dtype": ("float32", "bfloat16"),
    "remat": tuple(REMAT),
}


class Model(nn.Module):
    """The Transformer; d_k and d_v, the widths of keys and values per head, default (0) to d_model / num_heads.

    A source of feature rows is projected to width D instead of embedded, so that `three-way` ties as `two-way` does.
    source_columns: of each source, of the grid that its rows are, such as the patches of an image; 0 = a sequence, as
    all sources are by default. The patches of a grid are read by `image_encoder`. Only sinusoidal positions have two
    dimensions. Several sources are read one after the other by one encoder, which adds a learned embedding of the
    source. combination: with "joint" each state of the encoder depends on all sources; otherwise on its own source
    only, and the decoder combines the sources, see `DecoderLayer`. word_dropout: see `HiddenWords`. ctc: whether the
    states of the encoder have an output layer of their own. copying: with "pointer" the model copies source words by
    the attention of the last decoder layer, the mean over its first `copy_heads` heads, or over all (0).
    """

    source_vocab_size: int
    target_vocab_size: int
    num_sources: int = 1
    combination: str = "joint"
    source_columns: tuple[int, ...] = ()
    ctc: bool = False
    num_encoder_layers: int = 3
    num_decoder_layers: int = 3
    subsampling_layers: int = 0
    d_model: int = 256
    d_ff: int = 1024
    num_heads: int = 4
    d_k: int = 0
    d_v: int = 0
    dropout: float = 0.1
    attention_dropout: float = 0.0
    relu_dropout: float = 0.0
    word_dropout: float = 0.0
    image_encoder: str = "patches"
    convolution_width: int = 32
    positions: str = "sinusoidal"
    max_positions: int = 1024
    tie_embeddings: str = "three-way"
    norm: str = "pre"
    activation: str = "relu"
    copying: str = "none"
    copy_heads: int = 0
    max_unknown: int = 50
    dtype: str = "float32"
    remat: str = "none"
    scan_layers: bool = False

    def __post_init__(self) -> None:
        check_choices(self, CHOICES)
        check_positive(self, "d_model", "d_ff", "num_heads", "num_encoder_layers", "num_decoder_layers")
        check_positive(self, "max_positions", "convolution_width", "num_sources")
        check_rates(self, "dropout", "attention_dropout", "relu_dropout", "word_dropout")
        if self.subsampling_layers and any(self.source_columns):
            raise ValueError(
                f"subsampling_layers={self.subsampling_layers}: the rows of an image are no sequence; use 0"
            )
        if not (self.d_k and self.d_v):
            check_heads(self, "change one of them, or set d_k and d_v")
        if not 0 <= self.copy_heads <= self.num_heads:
            raise ValueError(f"copy_heads={self.copy_heads} must be from 0 to num_heads={self.num_heads}")
        check_tying(self)
        check_copying(self)
        super().__post_init__()

    def setup(self) -> None:
        per_head = self.d_model // self.num_heads
        d_k, d_v = self.d_k or per_head, self.d_v or per_head
        attention = {"d_model": self.d_model, "num_heads": self.num_heads, "d_k": d_k, "d_v": d_v}
        feed_forward = {"d_ff": self.d_ff, "activation": self.activation}
        layer: dict[str, Any] = {
            "attention": {**attention, "dropout": self.attention_dropout, "dtype": self.dtype},
            "feed_forward": {**feed_forward, "dropout": self.relu_dropout, "dtype": self.dtype},
            "norm": self.norm,
            "dropout": self.dropout,
        }
        self.encoder = [EncoderLayer(**layer) for _ in range(self.num_encoder_layers)]
        layer |= {"combination": self.combination, "num_sources": self.num_sources}
        self.decoder = [DecoderLayer(**layer) for _ in range(self.num_decoder_layers)]
        self.subsampling = StridedConvolutions(self.subsampling_layers, self.d_model, self.dtype)
        self.row_layers = [self._row_layer(number) for number in range(self.num_sources)]
        if self.num_sources > 1:
            self.source_number = Positions("learned", self.num_sources, self.d_model)
        self.source_embedding = Embedding(self.source_vocab_size, self.d_model, self.dtype)
        if self.tie_embeddings == "three-way":
            self.target_embedding = self.source_embedding
        else:
            self.target_embedding = Embedding(self.target_vocab_size, self.d_model, self.dtype)
        if self.tie_embeddings == "none":
            self.output_table = Embedding(self.target_vocab_size, self.d_model, self.dtype)
        self.position = Positions(self.positions, self.max_positions, self.d_model)
        self.target_position = self.position
        if self.positions != "sinusoidal":
            self.target_position = Positions(self.positions, self.max_positions, self.d_model)
        self.embedding_dropout = Dropout(self.dropout)
        self.hide_words = HiddenWords(self.word_dropout)
        if self.norm == "pre":
            self.encoder_norm = LayerNorm()
            self.decoder_norm = LayerNorm()
        if self.copying != "none":
            self.copier = make_copying(self.copying, self.max_unknown, self.d_model)
        if self.ctc:
            self.ctc_output = Dense(self.target_vocab_size, dtype=self.dtype)

    @property
    def num_unknown(self) -> int:
        """Number of words per line outside the vocabulary, numbered from V on, that the model can copy."""
        return self.max_unknown if self.copying != "none" else 0

    @property
    def reduction(self) -> int:
        """Rows of the source for each state of the encoder."""
        return 2**self.subsampling_layers

    def output_kernel(self) -> Array:
        """The weights float[D, V] of the output layer, tied or not."""
        table = self.output_table if self.tie_embeddings == "none" else self.target_embedding
        return table.table.T

    def _run(self, layers: Sequence[nn.Module], step: Step, x: Array) -> tuple[Array, list[Any]]:
        return run_layers(layers, step, x, scan=self.scan_layers, remat=self.remat)

    def _row_layer(self, number: int) -> nn.Module:
        """What turns the rows of a source into embeddings."""
        columns, suffix = columns_of(self.source_columns, number), f"_{number}" if number else ""
        if columns and self.image_encoder == "convolution":
            name = f"source_convolutions{suffix}"
            return ConvolutionalEncoder(columns, self.convolution_width, self.d_model, self.dtype, name=name)
        return Dense(self.d_model, dtype=self.dtype, name=f"source_projection{suffix}")

    def _known(self, words: Array) -> Array:
        """Words int[...] as embeddings are read."""
        return read_unknown(words, self.target_vocab_size) if self.copying != "none" else words

    def _word_attention(self, crosses: Sequence[Array]) -> Array:
        """The attention that copies, float32[B, T, S]; crosses: attention float32[B, H, T, S] of each decoder layer.

        Without copying, the mean over the heads of the last layer but one, which aligns words best (Garg et al., 2019).
        """
        if self.copying == "none":
            return crosses[-2:][0].mean(axis=1)
        return crosses[-1][:, : self.copy_heads or None].mean(axis=1)

    def _embed_source(self, source: Any, number: int, packing: Array | None) -> Array:
        """The embeddings of a source, int[B, S] or features, with their positions, float[B, S, D]."""
        if not isinstance(source, Features):
            if self.subsampling_layers:
                raise ValueError(f"subsampling_layers={self.subsampling_layers} needs rows of features, not words")
            x = self.source_embedding(self._known(source))
        elif isinstance(layer := self.row_layers[number], ConvolutionalEncoder):
            x = layer(source.rows, source_mask(source))
        else:
            x = layer(self.subsampling(source.rows, source_mask(source)))
        columns, length = columns_of(self.source_columns, number), x.shape[1]
        if columns and self.positions == "sinusoidal":
            return x + jnp.asarray(grid_sinusoids(length, columns, self.d_model))[None]
        return x + embed_positions(self.position(length), packing)

    def _embed_sources(self, source: Source, packing: Array | None) -> Array:
        """The embeddings of all sources one after the other, float[B, N S, D]."""
        check_number(source, self.num_sources)
        if self.num_sources == 1:
            return self._embed_source(source, 0, packing)
        numbers = self.source_number(self.num_sources)[:, None, None]  # [N, 1, 1, D]
        parts = zip(parts_of(source), numbers, strict=True)
        embedded = [self._embed_source(part, k, packing) + number for k, (part, number) in enumerate(parts)]
        return jnp.concatenate(embedded, axis=1)

    def _source_mask(self, source: Source) -> Array:
        """Which states of the encoder, of all sources, are not padding, bool[B, N S]."""
        return source_mask(source, self.reduction).reshape(len(source), -1)

    def _copy_memory(self, encoded: Array, source: Source) -> dict[str, Array]:
        """What all steps copy from; raises ValueError if the source has no words."""
        if isinstance(source, Features | Mixed):
            raise ValueError("copying needs a source of words, but this one consists of features")
        return self.copier.memory(encoded, self._source_mask(source), source)

    def _encode(self, source: Source, train: bool, packing: Array | None = None) -> tuple[Array, tuple[Array, ...]]:
        mask = self._source_mask(source)[:, None, None, :] if packing is None else same_item(packing, packing)
        x = self._embed_sources(source, packing)
        if self.num_sources > 1 and self.combination != "joint":
            number = jnp.repeat(jnp.arange(self.num_sources), x.shape[1] // self.num_sources)[None]
            mask = mask & same_item(number, number)
        x = self.embedding_dropout(x.astype(activation_type(self.dtype)), train)
        x, weights = self._run(self.encoder, lambda layer, x: layer(x, mask, train), x)
        return (self.encoder_norm(x) if self.norm == "pre" else x), tuple(weights)

    def __call__(
        self, source: Source, target: Array, train: bool = False, packing: tuple[Array, Array] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Teacher forcing: source int[B, S] or features, labels int[B, T] -> logits float[B, T, V] and intermediates.

        The places of several sources (`features.Source`) follow each other: S is N S then.
        packing: the numbers of the pairs, int[B, S] and int[B, T], in rows that hold several independent ones.
        `encoder`, `decoder`, `cross`: L attention weights each, float[B, H, ., .]. `hidden` float[B, T, D] and
        `output_kernel` float[D, V]: their product is the logits; a chunked loss uses them instead. With copying, these
        two are absent, the logits are log-probabilities of V + num_unknown words, and `attended` float[B, T, S] is the
        attention that copies. `ctc`: logits of the states of the encoder, float[B, S, V].
        """
        source_packing, target_packing = packing or (None, None)
        encoded, encoder_weights = self._encode(source, train, source_packing)
        inputs = jnp.pad(target[:, :-1], ((0, 0), (1, 0)), constant_values=BOS)
        length = target.shape[1]
        causal = jnp.tril(jnp.ones((length, length), bool))[None, None]
        mask = self._source_mask(source)[:, None, None, :]
        if source_packing is not None and target_packing is not None:
            inputs = jnp.where(restarting_positions(target_packing) == 0, BOS, inputs)
            causal = causal & same_item(target_packing, target_packing)
            mask = same_item(target_packing, source_packing)
        x = self.target_embedding(self.hide_words(self._known(inputs), train))
        x += embed_positions(self.target_position(length), target_packing)
        embedded = self.embedding_dropout(x.astype(activation_type(self.dtype)), train)

        def decode(layer: DecoderLayer, x: Array) -> tuple[Array, tuple[Array, Array]]:
            x, weights, cross = layer(x, causal, layer.memory(encoded), mask, train)
            return x, (weights, cross)

        x, weights = self._run(self.decoder, decode, embedded)
        decoder_weights, cross_weights = zip(*weights, strict=True)
        hidden = self.decoder_norm(x) if self.norm == "pre" else x
        kernel = self.output_kernel()
        logits = matmul(hidden, kernel, self.dtype)
        out: dict[str, Any] = {"encoder": encoder_weights, "decoder": decoder_weights, "cross": cross_weights}
        if self.ctc:
            out["ctc"] = self.ctc_output(encoded)
        if self.copying == "none":
            return logits, {**out, "hidden": hidden, "output_kernel": kernel}
        attended, memory = self._word_attention(cross_weights), self._copy_memory(encoded, source)
        return self.copier(logits, hidden, embedded, attended, memory), {**out, "attended": attended}

    def encode(self, source: Source) -> Array:
        """source int[B, S] or features -> float[B, S, D]."""
        return self._encode(source, train=False)[0]

    def init_cache(self, encoded: Array, source: Source, beam_size: int, max_length: int) -> dict[str, Any]:
        """The decoding cache for K beams a sentence and T steps.

        Keys and values lead with B and are never reordered. `ancestry` int[B*K, T] holds the beam slot in which token t
        of a beam's history was written, or -1 for later tokens.
        """
        batch_size = encoded.shape[0]
        cache = {
            "position": jnp.int32(0),
            "ancestry": jnp.full((batch_size * beam_size, max_length), -1, jnp.int32),
            "past": tuple(
                layer.self_attention.init_memory(batch_size, beam_size, max_length) for layer in self.decoder
            ),
            "memory": tuple(layer.memory(encoded) for layer in self.decoder),
            "source_mask": self._source_mask(source),
        }
        if self.copying != "none":
            cache["copy"] = self._copy_memory(encoded, source)
        return cache

    def decode_step(self, tokens: Array, cache: dict[str, Any]) -> tuple[Array, dict[str, Any]]:
        """The tokens chosen last, int[B*K] -> logits float[B*K, V] of the next ones, as of a call, and the new cache.

        Sows `cross` float[B, K, S] into "attention": the attention that copies, or else the one that aligns best.
        """
        batch_size = cache["source_mask"].shape[0]
        beam_size, position = tokens.shape[0] // batch_size, cache["position"]
        slots = jnp.arange(beam_size)
        ancestry = cache["ancestry"].at[:, position].set(jnp.tile(slots, batch_size))
        history = ancestry.reshape(batch_size, 1, beam_size, -1, 1) == slots.reshape(1, 1, 1, 1, -1)
        history = history.reshape(batch_size, 1, beam_size, -1)  # [B, 1, K, T * K]
        mask = cache["source_mask"][:, None, None, :]
        x = self.target_embedding(self._known(tokens.reshape(batch_size, beam_size)))
        x = (x + self.target_position(ancestry.shape[1])[position][None, None]).astype(activation_type(self.dtype))
        embedded, past, crosses = x, [], []
        for layer, old, memory in zip(self.decoder, cache["past"], cache["memory"], strict=True):
            x, new, cross = layer.step(x, old, position, history, memory, mask)
            past.append(new)
            crosses.append(cross)
        weights = self._word_attention(crosses)
        self.sow("attention", "cross", weights)
        hidden = self.decoder_norm(x) if self.norm == "pre" else x
        logits = matmul(hidden, self.output_kernel(), self.dtype)
        if self.copying != "none":
            logits = self.copier(logits, hidden, embedded, weights, cache["copy"])
        cache = {**cache, "position": position + 1, "ancestry": ancestry, "past": tuple(past)}
        return logits.reshape(tokens.shape[0], -1), cache
