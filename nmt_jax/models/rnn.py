"""Recurrent encoder-decoders: with the attention of Bahdanau et al. (2015), of Luong et al. (2015), or without any."""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from nmt_jax.data.vocab import BOS, PAD
from nmt_jax.models.hyperparameters import check_choices, check_positive, check_rates, check_tying
from nmt_jax.models.layers import Embedding, matmul
from nmt_jax.models.recurrent import CELLS, Encoder, SequenceDropout
from nmt_jax.models.recurrent_decoder import Carry, Decoder
from nmt_jax.models.scores import SCORES

Array = jax.Array

CHOICES = {
    "cell": tuple(CELLS),
    "decoder": ("luong", "bahdanau"),
    "attention": ("none", "global", "local-m", "local-p"),
    "score": SCORES,
    "bridge": ("zero", "copy", "transform", "mean"),
    "tie_embeddings": ("three-way", "two-way", "none"),
    "dtype": ("float32", "bfloat16"),
}


class Model(nn.Module):
    """Sequence to sequence by recurrent networks; `d_hidden` is the width of every layer on either side."""

    source_vocab_size: int
    target_vocab_size: int
    cell: str = "lstm"
    num_encoder_layers: int = 1
    num_decoder_layers: int = 1
    d_embedding: int = 256
    d_hidden: int = 512
    bidirectional: bool = True
    residual: bool = False
    dropout: float = 0.2
    variational_dropout: bool = False
    decoder: str = "luong"
    attention: str = "global"
    score: str = "general"
    d_attention: int = 256
    window: int = 10
    input_feeding: bool = True
    context_every_step: bool = False
    bridge: str = "transform"
    tie_embeddings: str = "none"
    dtype: str = "float32"

    def __post_init__(self) -> None:
        """ValueError on hyperparameters that cannot be meant."""
        check_choices(self, CHOICES)
        check_positive(self, "num_encoder_layers", "num_decoder_layers", "d_embedding", "d_hidden")
        check_positive(self, "d_attention", "window")
        check_rates(self, "dropout")
        if self.bidirectional and self.d_hidden % 2:
            raise ValueError(f"d_hidden={self.d_hidden} is odd: a bidirectional encoder takes half of it each way")
        if self.decoder == "bahdanau" and self.attention == "none":
            raise ValueError(
                "decoder='bahdanau' reads its context before each step: use decoder='luong' without attention"
            )
        check_tying(self)
        super().__post_init__()

    def setup(self) -> None:
        """Create embeddings, encoder, decoder, and the output layer where it is not tied."""
        self.source_embedding = Embedding(self.source_vocab_size, self.d_embedding)
        if self.tie_embeddings == "three-way":
            self.target_embedding = self.source_embedding
        else:
            self.target_embedding = Embedding(self.target_vocab_size, self.d_embedding)
        d_readout = self.d_hidden if self.tie_embeddings == "none" else self.d_embedding
        if self.tie_embeddings == "none":
            self.output_table = Embedding(self.target_vocab_size, d_readout)
        self.drop = SequenceDropout(self.dropout, self.variational_dropout)
        self.encoder_layers = Encoder(
            self.cell,
            self.num_encoder_layers,
            self.d_hidden,
            self.bidirectional,
            self.residual,
            self.dropout,
            self.variational_dropout,
            self.dtype,
        )
        self.decoder_layers = Decoder(
            cell=self.cell,
            num_layers=self.num_decoder_layers,
            d_hidden=self.d_hidden,
            d_readout=d_readout,
            style=self.decoder,
            attention={
                "score": self.score,
                "kind": self.attention,
                "d_attention": self.d_attention,
                "window": self.window,
            },
            input_feeding=self.input_feeding,
            context_every_step=self.context_every_step,
            residual=self.residual,
            bridge=self.bridge,
            dropout=self.dropout,
            dtype=self.dtype,
        )

    def output_kernel(self) -> Array:
        """-> float[R, V] of the output layer, tied or not."""
        table = self.output_table if self.tie_embeddings == "none" else self.target_embedding
        return table.table.T

    def _encode(self, source: Array, train: bool) -> dict[str, Any]:
        """What the decoder needs of a source: words int[B, S], or features float[B, S, D]."""
        words = source.ndim == 2
        mask = source != PAD if words else jnp.any(source != 0, axis=-1)
        x = self.source_embedding(source) if words else source
        states, last = self.encoder_layers(self.drop(x, train), mask, train)
        decoder = self.decoder_layers
        return {"memory": decoder.memory(states, mask, last), "start": decoder.start(states, mask, last)}

    def __call__(
        self, source: Array, target: Array, train: bool = False, teacher_forcing: Array | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Teacher forcing: source int[B, S], labels int[B, T] -> logits float[B, T, V] and named intermediates.

        teacher_forcing float[]: the share of steps that read the true previous piece (drawn from the random stream of
        that name), the others read the model's own best one; None: all of them.
        `cross`: the attention weights as of one layer and head, float[B, 1, T, S]; `hidden` float[B, T, R] and
        `output_kernel` float[R, V], whose product the logits are, for a loss that never holds all of them.
        """
        encoded = self._encode(source, train)
        inputs = jnp.pad(target[:, :-1], ((0, 0), (1, 0)), constant_values=BOS)
        if teacher_forcing is None:
            x = self.drop(self.target_embedding(inputs), train)
            hidden, weights = self.decoder_layers(encoded["start"], x, encoded["memory"], train)
        else:
            hidden, weights = self._scheduled_sampling(encoded, inputs, teacher_forcing, train)
        kernel = self.output_kernel()
        out: dict[str, Any] = {"hidden": hidden, "output_kernel": kernel}
        if self.attention != "none":
            out["cross"] = (weights[:, None],)
        return matmul(hidden, kernel, self.dtype), out

    def _scheduled_sampling(
        self, encoded: dict[str, Any], inputs: Array, teacher_forcing: Array, train: bool
    ) -> tuple[Array, Array]:
        """Readouts and weights of a decoder that reads its own best pieces now and then (Bengio et al., 2015)."""
        true = jax.random.uniform(self.make_rng("teacher_forcing"), inputs.shape) < teacher_forcing

        def step(model: "Model", carry: tuple[Carry, Array], at: tuple[Array, Array]) -> Any:
            state, best = carry
            x = model.target_embedding(jnp.where(at[1], at[0], best)[:, None])
            state, (hidden, weights) = model.decoder_layers.step(state, model.drop(x, train), encoded["memory"], train)
            best = jnp.argmax(matmul(hidden[:, 0], model.output_kernel(), model.dtype), axis=-1)
            return (state, best), (hidden[:, 0], weights[:, 0])

        streams: dict[Any, bool] = {"params": False, "dropout": True, "teacher_forcing": False}
        scan = nn.scan(step, variable_broadcast="params", split_rngs=streams, in_axes=1, out_axes=1)
        return scan(self, (encoded["start"], inputs[:, 0]), (inputs, true))[1]

    def encode(self, source: Array) -> dict[str, Any]:
        """source int[B, S] or float[B, S, D] -> what decoding needs of it, leading with B."""
        return self._encode(source, train=False)

    def init_cache(self, encoded: dict[str, Any], source: Array, beam_size: int, max_length: int) -> dict[str, Any]:
        """What decoding carries from step to step, for K beams a sentence: the carry of B*K rows, the memory of B."""
        start = encoded["start"]
        rows = jax.tree.map(lambda leaf: jnp.repeat(leaf[:, 0], beam_size, axis=0), (start.states, start.readout))
        return {"states": rows[0], "readout": rows[1], "position": jnp.int32(0), "memory": encoded["memory"]}

    def decode_step(self, tokens: Array, cache: dict[str, Any]) -> tuple[Array, dict[str, Any]]:
        """The tokens chosen last, int[B*K] -> logits float[B*K, V] of the next ones, and the cache one step on."""
        rows = tokens.shape[0]
        batch_size = jax.tree.leaves(cache["memory"])[0].shape[0] if cache["memory"] else rows

        def by_sentence(leaf: Array) -> Array:
            return leaf.reshape(batch_size, -1, *leaf.shape[1:])

        states, readout = jax.tree.map(by_sentence, (cache["states"], cache["readout"]))
        x = self.target_embedding(by_sentence(tokens))
        carry, (hidden, _) = self.decoder_layers.step(
            Carry(states, readout, cache["position"]), x, cache["memory"], train=False
        )
        logits = matmul(hidden, self.output_kernel(), self.dtype).reshape(rows, -1)
        states, readout = jax.tree.map(lambda leaf: leaf.reshape(rows, *leaf.shape[2:]), (carry.states, carry.readout))
        return logits, {**cache, "states": states, "readout": readout, "position": carry.position}
