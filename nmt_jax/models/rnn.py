"""Recurrent encoder-decoders: with the attention of Bahdanau et al. (2015), of Luong et al. (2015), or without any."""

from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp

from nmt_jax.data.vocab import BOS, PAD
from nmt_jax.models.attention import Attention
from nmt_jax.models.layers import Dense, Dropout, Embedding, matmul
from nmt_jax.models.recurrent import CELLS, Cell, Encoder, SequenceDropout, State
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


class Carry(NamedTuple):
    """What a decoder takes from one step to the next, for K hypotheses a sentence."""

    states: tuple[State, ...]  # of each layer, float[B, K, H]
    readout: Array  # float[B, K, R], the last step's
    position: Array  # int32[]


class Decoder(nn.Module):
    """Layers of cells that attend to the source.

    `luong`: s_t = cell(y_{t-1}, s_{t-1}), c_t = attend(s_t), readout tanh(W_c [c_t; s_t]) (Luong et al., 2015, eq. 5),
    which input feeding gives to the next step's cell.
    `bahdanau`: c_t = attend(s_{t-1}), s_t = cell([y_{t-1}; c_t], s_{t-1}), readout maxout(U s_t + V y_{t-1} + C c_t)
    (Bahdanau et al., 2015, appendix A.2.2, but with s_t).
    """

    cell: str
    num_layers: int
    d_hidden: int
    d_readout: int
    style: str
    attention: dict[str, Any]
    input_feeding: bool
    context_every_step: bool
    residual: bool
    bridge: str
    dropout: float
    dtype: str

    def setup(self) -> None:
        """Cells, attention, readout, and the layer between encoder and decoder."""
        self.cells = [Cell(self.cell, self.d_hidden, self.dtype) for _ in range(self.num_layers)]
        if self.attention["kind"] != "none":
            self.attend = Attention(**self.attention, d_query=self.d_hidden, dtype=self.dtype)
        maxout = 2 if self.style == "bahdanau" else 1
        self.output = Dense(maxout * self.d_readout, dtype=self.dtype)
        self.drop = Dropout(self.dropout)
        if self.bridge in ("transform", "mean"):
            vectors = CELLS[self.cell][2]
            self.bridges = [[Dense(self.d_hidden) for _ in range(vectors)] for _ in range(self.num_layers)]

    @property
    def attends(self) -> bool:
        """Whether there is any attention."""
        return self.attention["kind"] != "none"

    def memory(self, states: Array, mask: Array, last: tuple[State, ...]) -> dict[str, Array]:
        """The encoder's states float[B, S, D], mask and last states -> what every step sees of the source."""
        memory = self.attend.memory(states, mask) if self.attends else {}
        return memory | ({"last": last[-1][0]} if self.context_every_step else {})

    def start(self, states: Array, mask: Array, last: tuple[State, ...]) -> Carry:
        """The state before the first step, of one hypothesis a sentence.

        bridge: "zero"; "copy" the encoder's last states (of both directions, side by side); "transform" them by
        tanh(W . + b); "mean" the same of the mean of all states.
        """
        rows = states.shape[0]
        mean = (states * mask[..., None]).sum(axis=1) / jnp.maximum(mask.sum(axis=1), 1)[:, None]
        layers = []
        for number in range(self.num_layers):
            source = last[min(number, len(last) - 1)]
            if self.bridge == "zero":
                state = tuple(jnp.zeros((rows, self.d_hidden)) for _ in source)
            elif self.bridge == "copy":
                state = source
            else:
                given = source if self.bridge == "transform" else (mean,) * len(source)
                state = tuple(jnp.tanh(layer(x)) for layer, x in zip(self.bridges[number], given, strict=True))
            layers.append(tuple(vector[:, None] for vector in state))
        return Carry(tuple(layers), jnp.zeros((rows, 1, self.d_readout)), jnp.int32(0))

    def step(self, carry: Carry, x: Array, memory: dict[str, Array], train: bool) -> tuple[Carry, tuple[Array, Array]]:
        """One step: embedded tokens x float[B, K, E] -> the next carry; readout float[B, K, R], weights [B, K, S]."""
        inputs, context = [x], None
        if self.style == "bahdanau":
            context, weights = self._look(carry.states[-1][0], memory, carry.position[None])
            inputs += context
        elif self.input_feeding:
            inputs.append(carry.readout)
        y = jnp.concatenate([*inputs, *self._every_step(x, memory)], axis=-1)
        states = []
        for cell, state in zip(self.cells, carry.states, strict=True):
            states.append(cell(y, state))
            y = self._next_input(y, states[-1][0], train)
        if self.style == "luong":
            context, weights = self._look(states[-1][0], memory, carry.position[None])
        readout = self._read(y, x, context or [], train)
        return Carry(tuple(states), readout, carry.position + 1), (readout, weights)

    def __call__(self, carry: Carry, x: Array, memory: dict[str, Array], train: bool) -> tuple[Array, Array]:
        """All steps: x float[B, T, E] -> readouts float[B, T, R], weights float[B, T, S].

        Without input feeding the cells know nothing of the attention: they run first, and all steps look at once.
        """
        if self.style == "bahdanau" or self.input_feeding:
            scan = nn.scan(
                lambda decoder, carry, x: decoder.step(carry, x[:, None], memory, train),
                variable_broadcast="params",
                split_rngs={"params": False, "dropout": True},
                in_axes=1,
                out_axes=1,
            )
            _, (readouts, weights) = scan(self, carry, x)
            return readouts[:, :, 0], weights[:, :, 0]
        y = jnp.concatenate([x, *self._every_step(x, memory)], axis=-1)
        everywhere = jnp.ones(x.shape[:2], bool)
        for cell, state in zip(self.cells, carry.states, strict=True):
            outputs, _ = cell.run(y, everywhere, tuple(vector[:, 0] for vector in state))
            y = self._next_input(y, outputs, train)
        context, weights = self._look(outputs, memory, jnp.arange(x.shape[1]))
        return self._read(y, x, context, train), weights

    def _every_step(self, x: Array, memory: dict[str, Array]) -> list[Array]:
        """The encoder's last output beside every input, if that is wanted (Cho et al., 2014)."""
        if not self.context_every_step:
            return []
        last = memory["last"][:, None, :]
        return [jnp.broadcast_to(last, (*x.shape[:2], last.shape[-1]))]

    def _next_input(self, x: Array, y: Array, train: bool) -> Array:
        """What a layer read and put out -> what the next one reads."""
        y = self.drop(y, train)
        return x + y if self.residual and x.shape == y.shape else y

    def _look(self, query: Array, memory: dict[str, Array], position: Array) -> tuple[list[Array], Array]:
        """The context in a list, empty without attention, and the weights."""
        if not self.attends:
            return [], jnp.zeros((*query.shape[:2], 0))
        context, weights = self.attend(query, memory, position)
        return [context], weights

    def _read(self, state: Array, x: Array, context: list[Array], train: bool) -> Array:
        """What the output layer reads, float[B, K, R]."""
        if self.style == "luong":
            return self.drop(jnp.tanh(self.output(jnp.concatenate([*context, state], axis=-1))), train)
        wide = self.output(jnp.concatenate([state, x, *context], axis=-1))
        return self.drop(wide.reshape(*wide.shape[:-1], self.d_readout, 2).max(axis=-1), train)


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
        for field, choices in CHOICES.items():
            if getattr(self, field) not in choices:
                raise ValueError(f"{field}={getattr(self, field)!r} is none of {', '.join(choices)}")
        for field in ("num_encoder_layers", "num_decoder_layers", "d_embedding", "d_hidden", "d_attention", "window"):
            if getattr(self, field) < 1:
                raise ValueError(f"{field}={getattr(self, field)} must be at least 1")
        if not 0.0 <= self.dropout < 1.0:
            raise ValueError(f"dropout={self.dropout} must be in [0, 1)")
        if self.bidirectional and self.d_hidden % 2:
            raise ValueError(f"d_hidden={self.d_hidden} is odd: a bidirectional encoder takes half of it each way")
        if self.decoder == "bahdanau" and self.attention == "none":
            raise ValueError(
                "decoder='bahdanau' reads its context before each step: use decoder='luong' without attention"
            )
        if self.tie_embeddings == "three-way" and self.source_vocab_size != self.target_vocab_size:
            raise ValueError(
                "tie_embeddings='three-way' needs one joint vocabulary, but the vocabularies have "
                f"{self.source_vocab_size} and {self.target_vocab_size} pieces: use 'two-way' or 'none'"
            )
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
        encoded = self._encode(source, train=False)
        return encoded | {"start": encoded["start"]._replace(position=jnp.zeros(source.shape[0], jnp.int32))}

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
