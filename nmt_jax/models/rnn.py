"""Recurrent encoder-decoders with the attention of Bahdanau et al. (2015) or Luong et al. (2015), or without any."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.data.vocabulary.translation_lexicon import Lexicon
from nmt_jax.data.vocabulary.vocab import BOS
from nmt_jax.models.layers.copying import COPYING, check_source_words, make_copying, read_unknown
from nmt_jax.models.layers.dense import Dense, matmul
from nmt_jax.models.layers.dropout import SequenceDropout
from nmt_jax.models.layers.embedding import Embedding
from nmt_jax.models.layers.features import (
    Features,
    Mixed,
    Source,
    check_number,
    columns_of,
    grid_sinusoids,
    source_mask,
)
from nmt_jax.models.layers.hidden_words import HiddenWords
from nmt_jax.models.layers.hyperparameters import check_choices, check_positive, check_rates, check_tying
from nmt_jax.models.layers.images import IMAGE_ENCODERS, ConvolutionalEncoder
from nmt_jax.models.layers.lexicon_bias import lexicon_bias, lexicon_columns
from nmt_jax.models.layers.lstmn import ALL_CELLS
from nmt_jax.models.layers.recurrent_decoder import RANDOM_STREAMS, Carry, Decoder
from nmt_jax.models.layers.recurrent_encoder import Encoder, Unordered
from nmt_jax.models.layers.scores import SCORES, WITH_COVERAGE
from nmt_jax.models.layers.several_sources import COMBINATIONS, SeveralEncoders

CHOICES = {
    "cell": ALL_CELLS,
    "decoder": ("luong", "bahdanau"),
    "attention": ("none", "global", "local-m", "local-p", "hard"),
    "score": SCORES,
    "bridge": ("zero", "copy", "transform", "mean"),
    "combination": COMBINATIONS,
    "image_encoder": IMAGE_ENCODERS,
    "copying": COPYING,
    "tie_embeddings": ("three-way", "two-way", "none"),
    "dtype": ("float32", "bfloat16"),
}


class Model(nn.Module):
    """A recurrent encoder-decoder; d_hidden is the width of every layer of both networks.

    source_columns: of each source, of the grid that its rows are, such as the patches of an image; 0 = a sequence, as
    all sources are by default. With image_encoder="convolution", the decoder attends to the cells of such a grid, to
    which the embeddings of their places are added, without recurrent layers in between. word_dropout: see
    `HiddenWords`. ctc: whether the states of the encoder have an output layer of their own.
    """

    source_vocab_size: int
    target_vocab_size: int
    num_sources: int = 1
    source_columns: tuple[int, ...] = ()
    ctc: bool = False
    cell: str = "lstm"
    num_encoder_layers: int = 1
    num_decoder_layers: int = 1
    pyramid_layers: int = 0
    d_embedding: int = 256
    d_hidden: int = 512
    bidirectional: bool = True
    residual: bool = False
    dropout: float = 0.2
    variational_dropout: bool = False
    word_dropout: float = 0.0
    image_encoder: str = "patches"
    convolution_width: int = 32
    decoder: str = "luong"
    attention: str = "global"
    score: str = "general"
    coverage: bool = False
    d_attention: int = 256
    window: int = 10
    input_feeding: bool = True
    context_every_step: bool = False
    context_gate: bool = False
    bridge: str = "transform"
    combination: str = "concat"
    share_encoder: bool = False
    copying: str = "none"
    selective_read: bool = False
    max_unknown: int = 50
    lexicon: Lexicon | None = None
    lexicon_epsilon: float = 0.001
    tie_embeddings: str = "none"
    dtype: str = "float32"

    def __post_init__(self) -> None:
        check_choices(self, CHOICES)
        check_positive(self, "num_sources", "num_encoder_layers", "num_decoder_layers", "d_embedding", "d_hidden")
        check_positive(self, "d_attention", "window", "convolution_width")
        check_rates(self, "dropout", "word_dropout")
        if self.bidirectional and self.d_hidden % 2:
            raise ValueError(f"d_hidden={self.d_hidden} must be even: each direction of the encoder has half of it")
        if self.decoder == "bahdanau" and self.attention == "none":
            raise ValueError("decoder='bahdanau' needs attention: use decoder='luong' with attention='none'")
        if self.num_sources > 1 and self.bridge == "copy":
            raise ValueError("bridge='copy' supports one source only: use bridge='transform' with several")
        if self.num_sources > 1 and self.combination == "flat" and self.attention.startswith("local"):
            raise ValueError(
                "combination='flat' does not support local attention: use attention='global', or combination='concat'"
            )
        if self.pyramid_layers and any(self.source_columns):
            raise ValueError(f"pyramid_layers={self.pyramid_layers}: the rows of an image are no sequence; use 0")
        if not 0 <= self.pyramid_layers <= self.num_encoder_layers:
            raise ValueError(f"pyramid_layers={self.pyramid_layers} must be 0 to num_encoder_layers")
        if any(self.convolved) and self.bridge == "copy":
            raise ValueError("bridge='copy' copies the last state of an encoder, which images lack: use bridge='mean'")
        if self.coverage and (self.attention == "none" or self.score not in WITH_COVERAGE or self.num_sources > 1):
            raise ValueError(
                f"coverage needs attention to one source with score={' or '.join(map(repr, WITH_COVERAGE))}, not "
                f"attention={self.attention!r}, score={self.score!r}, num_sources={self.num_sources}"
            )
        if self.score == "location" and self.attention.startswith("local"):
            raise ValueError(f"score='location' supports attention='global', not attention={self.attention!r}")
        if self.attention == "hard" and (
            self.num_sources > 1 or self.copying != "none" or self.lexicon or self.coverage
        ):
            raise ValueError("attention='hard' supports one source only, without copying, lexicon and coverage")
        check_tying(self)
        check_source_words(self)
        super().__post_init__()

    def setup(self) -> None:
        self.source_embedding = Embedding(self.source_vocab_size, self.d_embedding)
        if self.tie_embeddings == "three-way":
            self.target_embedding = self.source_embedding
        else:
            self.target_embedding = Embedding(self.target_vocab_size, self.d_embedding)
        d_readout = self.d_hidden if self.tie_embeddings == "none" else self.d_embedding
        if self.tie_embeddings == "none":
            self.output_table = Embedding(self.target_vocab_size, d_readout)
        self.drop = SequenceDropout(self.dropout, self.variational_dropout)
        self.hide_words = HiddenWords(self.word_dropout)
        both = {name: getattr(self, name) for name in ("d_hidden", "residual", "dropout", "dtype")}
        names = ("cell", "bidirectional", "variational_dropout", "pyramid_layers")
        encoder = {"num_layers": self.num_encoder_layers, **both, **{name: getattr(self, name) for name in names}}
        self.convolutions = [
            ConvolutionalEncoder(columns, self.convolution_width, self.d_hidden, self.dtype)
            for columns in self.convolved
        ]
        ordered = tuple(not columns for columns in self.convolved)
        if self.num_sources > 1:
            self.encoder_layers: Any = SeveralEncoders(encoder, ordered, self.share_encoder)
        else:
            self.encoder_layers = Encoder(**encoder) if ordered[0] else Unordered(self.cell, self.num_encoder_layers)
        attention = ("score", "d_attention", "window", "coverage")
        decoder = ("num_sources", "combination", "input_feeding", "context_every_step", "context_gate", "bridge")
        self.decoder_layers = Decoder(
            cell="lstm" if self.cell == "lstmn" else self.cell,
            num_layers=self.num_decoder_layers,
            d_readout=d_readout,
            style=self.decoder,
            attention={"kind": self.attention, **{name: getattr(self, name) for name in attention}},
            **{name: getattr(self, name) for name in decoder},
            **both,
        )
        if self.copying != "none":
            self.copier = make_copying(self.copying, self.max_unknown, d_readout, self.dtype)
        if self.ctc:
            self.ctc_output = Dense(self.target_vocab_size, dtype=self.dtype)

    @property
    def reduction(self) -> int:
        """Rows of the source for each state of the encoder."""
        return 2**self.pyramid_layers

    @property
    def convolved(self) -> tuple[int, ...]:
        """Of each source, the columns of the grid if it is an image that is read by convolutions, else 0."""
        columns = (columns_of(self.source_columns, number) for number in range(self.num_sources))
        return tuple(count if self.image_encoder == "convolution" else 0 for count in columns)

    @property
    def num_unknown(self) -> int:
        """Number of words per line outside the vocabulary, numbered from V on, that the model can copy."""
        return self.max_unknown if self.copying != "none" else 0

    def output_kernel(self) -> Array:
        """The weights float[R, V] of the output layer, tied or not."""
        table = self.output_table if self.tie_embeddings == "none" else self.target_embedding
        return table.table.T

    def _encode(self, source: Source, train: bool) -> dict[str, Any]:
        """Encode a source, or several, for the decoder. Raises ValueError if their number is not num_sources."""
        check_number(source, self.num_sources)
        mask = source_mask(source)
        known: Any = None  # words of the vocabulary
        if isinstance(source, Features | Mixed):
            if self.copying != "none" or self.lexicon:
                raise ValueError("copying and lexicon need a source of words, but this one consists of features")
        else:
            if self.pyramid_layers:
                raise ValueError(f"pyramid_layers={self.pyramid_layers} needs rows of features, not words")
            known = read_unknown(source, self.source_vocab_size)
        if self.num_sources == 1:
            x: Any = self.drop(self._embed_source(source if known is None else known, 0), train)
        elif isinstance(source, Mixed):
            x = [self.drop(self._embed_source(part, number), train) for number, part in enumerate(source.parts)]
        else:  # of one width: dropped out together
            several = self.drop(source.rows if isinstance(source, Features) else self.source_embedding(known), train)
            x = [several[:, number] for number in range(self.num_sources)]
        states, last = self.encoder_layers(x, mask, train)
        mask = mask[..., :: self.reduction]
        decoder = self.decoder_layers
        output = {}
        if self.copying != "none":
            output["copy"] = self.copier.memory(states, mask, source)
        if self.lexicon:
            output["lexicon"] = lexicon_columns(self.lexicon, known, self.target_vocab_size)
        memory, start = decoder.memory(states, mask, last), decoder.start(states, mask, last)
        if self.selective_read:
            memory["copy"] = output["copy"]
        return {"memory": memory, "start": start, "output": output, "states": states}

    def _embed_source(self, source: Any, number: int) -> Array:
        """What the encoder of a source reads, float[B, S, ...]: of an image, its cells with their places."""
        if not isinstance(source, Features):
            return self.source_embedding(source)
        if not self.convolved[number]:
            return source.rows
        cells = self.convolutions[number](source.rows, source_mask(source))
        places = grid_sinusoids(cells.shape[1], self.convolved[number], self.d_hidden)
        return cells + jnp.asarray(places)[None].astype(cells.dtype)

    def _embed(self, words: Array, train: bool = False) -> Array:
        """Target words int[...], including those outside the vocabulary -> float[..., E]."""
        return self.target_embedding(self.hide_words(read_unknown(words, self.target_vocab_size), train))

    def _logits(self, hidden: Array, x: Array, weights: Array, output: dict[str, Any]) -> Array:
        """Readouts float[B, T, R], embedded inputs [B, T, E], weights [B, T, S] -> float[B, T, V, or V + num_unknown].

        The logits of the output layer, biased by the lexicon; or, with copying, log-probabilities of the mixture.
        """
        logits = matmul(hidden, self.output_kernel(), self.dtype)
        if self.lexicon:
            logits += lexicon_bias(weights, output["lexicon"], self.lexicon_epsilon)
        return self.copier(logits, hidden, x, weights, output["copy"]) if self.copying != "none" else logits

    def __call__(
        self, source: Source, target: Array, train: bool = False, teacher_forcing: Array | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Teacher forcing: source int[B, S] or features, labels int[B, T] -> logits float[B, T, V] and intermediates.

        teacher_forcing float[]: the probability that a step reads the true previous piece, drawn from the random stream
        of that name; other steps read the model's best piece. None: all steps read the true piece. `cross`: the
        attention weights as of one layer with a head per source, float[B, N, T, S]. `hidden` float[B, T, R] and
        `output_kernel` float[R, V]: their product is the logits, for a chunked loss; absent with a lexicon, and with
        copying, where the logits are log-probabilities of V + num_unknown words. `attended` float[B, T, N S]: `cross`
        without the axis of sources. `ctc` float[B, S, V]: logits of the states of the encoder.
        """
        encoded = self._encode(source, train)
        inputs = jnp.pad(target[:, :-1], ((0, 0), (1, 0)), constant_values=BOS)
        if teacher_forcing is None:
            x = self.drop(self._embed(inputs, train), train)
            hidden, weights = self.decoder_layers(encoded["start"], x, inputs, encoded["memory"], train)
        else:
            hidden, x, weights = self._scheduled_sampling(encoded, inputs, teacher_forcing, train)
        out: dict[str, Any] = {}
        if not encoded["output"]:
            out |= {"hidden": hidden, "output_kernel": self.output_kernel()}
        if self.ctc:
            out["ctc"] = self.ctc_output(encoded["states"])
        if self.attention != "none":
            by_source = weights.reshape(*weights.shape[:2], self.num_sources, -1)
            out["cross"] = (by_source.swapaxes(1, 2),)
            out["attended"] = weights.reshape(*weights.shape[:2], -1)
        return self._logits(hidden, x, weights, encoded["output"]), out

    def _scheduled_sampling(
        self, encoded: dict[str, Any], inputs: Array, teacher_forcing: Array, train: bool
    ) -> tuple[Array, Array, Array]:
        """Scheduled sampling (Bengio et al., 2015) -> readouts, embedded inputs and attention weights."""
        true = jax.random.uniform(self.make_rng("teacher_forcing"), inputs.shape) < teacher_forcing

        def step(model: "Model", carry: tuple[Carry, Array], at: tuple[Array, Array]) -> Any:
            state, best = carry
            words = jnp.where(at[1], at[0], best)[:, None]
            x = model.drop(model._embed(words, train), train)
            state, (hidden, weights) = model.decoder_layers.step(state, x, words, encoded["memory"], train)
            best = jnp.argmax(model._logits(hidden, x, weights, encoded["output"])[:, 0], axis=-1)
            return (state, best), (hidden[:, 0], x[:, 0], weights[:, 0])

        streams = {**RANDOM_STREAMS, "teacher_forcing": False}
        scan = nn.scan(step, variable_broadcast="params", split_rngs=streams, in_axes=1, out_axes=1)
        return scan(self, (encoded["start"], inputs[:, 0]), (inputs, true))[1]

    def encode(self, source: Source) -> dict[str, Any]:
        """source int[B, S] or features, of several sources [B, N, ...] -> the encoding; leaves lead with B."""
        return self._encode(source, train=False)

    def init_cache(self, encoded: dict[str, Any], source: Source, beam_size: int, max_length: int) -> dict[str, Any]:
        """The decoding cache for K beams a sentence: decoder states of B*K rows, source memory of B rows."""
        start = encoded["start"]
        rows = {"states": start.states, "readout": start.readout, "coverage": start.coverage}
        rows = jax.tree.map(lambda leaf: jnp.repeat(leaf[:, 0], beam_size, axis=0), rows)
        return {**rows, "position": jnp.int32(0), "memory": encoded["memory"], "output": encoded["output"]}

    def decode_step(self, tokens: Array, cache: dict[str, Any]) -> tuple[Array, dict[str, Any]]:
        """The tokens chosen last, int[B*K] -> logits float[B*K, V] of the next ones, as of a call, and the new cache.

        Sows the attention weights, if any, `cross` float[B, K, S], of several sources float[B, K, N, S], into
        "attention".
        """
        rows = tokens.shape[0]
        batch_size = jax.tree.leaves(cache["memory"])[0].shape[0] if cache["memory"] else rows

        def by_sentence(leaf: Array) -> Array:
            return leaf.reshape(batch_size, -1, *leaf.shape[1:])

        names = ("states", "readout", "coverage")  # of each hypothesis
        states, readout, coverage = (jax.tree.map(by_sentence, cache[name]) for name in names)
        words = by_sentence(tokens)
        x = self._embed(words)
        carry, (hidden, weights) = self.decoder_layers.step(
            Carry(states, readout, cache["position"], coverage), x, words, cache["memory"], train=False
        )
        if self.attention != "none":
            self.sow("attention", "cross", weights)
        logits = self._logits(hidden, x, weights, cache["output"]).reshape(rows, -1)
        new = {name: getattr(carry, name) for name in names}
        new = jax.tree.map(lambda leaf: leaf.reshape(rows, *leaf.shape[2:]), new)
        return logits, {**cache, **new, "position": carry.position}
