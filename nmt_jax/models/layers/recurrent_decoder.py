"""The recurrent decoder with the attention of Bahdanau et al. (2015), of Luong et al. (2015), or without any."""

from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.attention import Attention
from nmt_jax.models.layers.cells import CELLS, State
from nmt_jax.models.layers.copying import selective_read
from nmt_jax.models.layers.dense import Dense
from nmt_jax.models.layers.dropout import Dropout
from nmt_jax.models.layers.recurrent import Cell
from nmt_jax.models.layers.recurrent_encoder import masked_mean
from nmt_jax.models.layers.several_sources import SeveralAttention

# Which of the decoder's random streams draw anew in every step.
RANDOM_STREAMS: Any = {"params": False, "dropout": True, "positions": True, "averaging": False}


class Carry(NamedTuple):
    """The state of a decoder between two steps, for K hypotheses a sentence."""

    states: tuple[State, ...]  # of each layer, float[B, K, H]
    readout: Array  # float[B, K, R], of the previous step
    position: Array  # int32[]
    coverage: Array | None = None  # float32[B, K, S]: the sum of the attention so far, if the scores read it


class Decoder(nn.Module):
    """Stacked cells with attention to the source.

    `luong`: s_t = cell(y_{t-1}, s_{t-1}), c_t = attend(s_t), readout tanh(W_c [c_t; s_t]) (Luong et al., 2015, eq. 5),
    which input feeding adds to the input of the next step.
    `bahdanau`: c_t = attend(s_{t-1}), s_t = cell([y_{t-1}; c_t], s_{t-1}), readout maxout(U s_t + V y_{t-1} + C c_t)
    (Bahdanau et al., 2015, appendix A.2.2, but with s_t).
    context_gate: c_t is multiplied by beta_t = sigmoid(w^T s + b), where s is the query of the attention, s_{t-1} of
    `bahdanau` (Xu et al., 2015, section 4.2.1).
    If the memory has the words to copy, `copy`, [y_{t-1}; zeta(y_{t-1})] takes the place of y_{t-1} (`selective_read`).
    With several sources, their states, masks and weights have an additional axis N, such as states float[B, N, S, D].
    """

    cell: str
    num_layers: int
    d_hidden: int
    d_readout: int
    style: str
    attention: dict[str, Any]
    num_sources: int
    combination: str
    input_feeding: bool
    context_every_step: bool
    context_gate: bool
    residual: bool
    bridge: str
    dropout: float
    dtype: str

    def setup(self) -> None:
        self.cells = [Cell(self.cell, self.d_hidden, self.dtype) for _ in range(self.num_layers)]
        if self.attention["kind"] != "none":
            fields = {**self.attention, "d_query": self.d_hidden, "dtype": self.dtype}
            several = self.num_sources > 1
            self.attend = (
                SeveralAttention(self.combination, self.num_sources, fields) if several else Attention(**fields)
            )
            if self.context_gate:
                self.gate = Dense(1, dtype=self.dtype)
        maxout = 2 if self.style == "bahdanau" else 1
        self.output = Dense(maxout * self.d_readout, dtype=self.dtype)
        self.drop = Dropout(self.dropout)
        if self.bridge in ("transform", "mean"):
            vectors = CELLS[self.cell].num_vectors
            self.bridges = [[Dense(self.d_hidden) for _ in range(vectors)] for _ in range(self.num_layers)]

    @property
    def attends(self) -> bool:
        """Whether the decoder has attention."""
        return self.attention["kind"] != "none"

    def memory(self, states: Array, mask: Array, last: tuple[State, ...]) -> dict[str, Array]:
        """The encoder's states float[B, S, D], mask and last states -> the memory that all steps use."""
        memory = self.attend.memory(states, mask) if self.attends else {}
        return memory | ({"last": last[-1][0]} if self.context_every_step else {})

    def start(self, states: Array, mask: Array, last: tuple[State, ...]) -> Carry:
        """The state before the first step, of one hypothesis a sentence.

        bridge: "zero"; "copy": the last states of the encoder, both directions concatenated; "transform":
        tanh(W h + b) of these; "mean": the same of the mean of all states.
        """
        rows = states.shape[0]
        mean = masked_mean(states, mask).reshape(rows, -1)  # several sources are concatenated
        layers = []
        for number in range(self.num_layers):
            source = last[min(number, len(last) - 1)]
            if self.bridge == "zero":
                state = tuple(jnp.zeros((rows, self.d_hidden)) for _ in source)
            elif self.bridge == "copy":
                state = source
            else:
                inputs = source if self.bridge == "transform" else (mean,) * len(source)
                state = tuple(jnp.tanh(layer(x)) for layer, x in zip(self.bridges[number], inputs, strict=True))
            layers.append(tuple(vector[:, None] for vector in state))
        coverage = jnp.zeros((rows, 1, mask.shape[-1])) if self.attention["coverage"] else None
        return Carry(tuple(layers), jnp.zeros((rows, 1, self.d_readout)), jnp.int32(0), coverage)

    def step(
        self, carry: Carry, x: Array, words: Array, memory: dict[str, Any], train: bool
    ) -> tuple[Carry, tuple[Array, Array]]:
        """One step: tokens `words` int[B, K], embedded x float[B, K, E] -> the next carry, (readout, weights).

        Readout float[B, K, R], weights float[B, K, S].
        """
        if "copy" in memory:
            x = jnp.concatenate([x, selective_read(words, carry.readout, memory["copy"])], axis=-1)
        inputs, context = [x], None
        if self.style == "bahdanau":
            context, weights = self._attend(carry.states[-1][0], memory, carry.position[None], carry.coverage)
            inputs += context
        elif self.input_feeding:
            inputs.append(carry.readout)
        y = jnp.concatenate([*inputs, *self._every_step(x, memory)], axis=-1)
        states = []
        for cell, state in zip(self.cells, carry.states, strict=True):
            states.append(cell(y, state))
            y = self._next_input(y, states[-1][0], train)
        if self.style == "luong":
            context, weights = self._attend(states[-1][0], memory, carry.position[None], carry.coverage)
        readout = self._readout(y, x, context or [], train)
        coverage = None if carry.coverage is None else carry.coverage + weights
        return Carry(tuple(states), readout, carry.position + 1, coverage), (readout, weights)

    def __call__(
        self, carry: Carry, x: Array, words: Array, memory: dict[str, Any], train: bool
    ) -> tuple[Array, Array]:
        """All steps: words int[B, T], x float[B, T, E] -> readouts float[B, T, R], weights float[B, T, S].

        If no step depends on the attention or the readout of the one before, the cells run first, and all steps attend
        at once.
        """
        if self.style == "bahdanau" or self.input_feeding or carry.coverage is not None or "copy" in memory:
            scan = nn.scan(
                lambda decoder, carry, at: decoder.step(carry, at[0][:, None], at[1][:, None], memory, train),
                variable_broadcast="params",
                split_rngs=RANDOM_STREAMS,
                in_axes=1,
                out_axes=1,
            )
            _, (readouts, weights) = scan(self, carry, (x, words))
            return readouts[:, :, 0], weights[:, :, 0]
        y = jnp.concatenate([x, *self._every_step(x, memory)], axis=-1)
        everywhere = jnp.ones(x.shape[:2], bool)
        for cell, state in zip(self.cells, carry.states, strict=True):
            outputs, _ = cell.run(y, everywhere, tuple(vector[:, 0] for vector in state))
            y = self._next_input(y, outputs, train)
        context, weights = self._attend(outputs, memory, jnp.arange(x.shape[1]))
        return self._readout(y, x, context, train), weights

    def _every_step(self, x: Array, memory: dict[str, Array]) -> list[Array]:
        """The last output of the encoder as an additional input, with context_every_step (Cho et al., 2014)."""
        if not self.context_every_step:
            return []
        last = memory["last"][:, None, :]
        return [jnp.broadcast_to(last, (*x.shape[:2], last.shape[-1]))]

    def _next_input(self, x: Array, y: Array, train: bool) -> Array:
        """Input x and output y of a layer -> the input of the next one."""
        y = self.drop(y, train)
        return x + y if self.residual and x.shape == y.shape else y

    def _attend(
        self, query: Array, memory: dict[str, Any], position: Array, coverage: Array | None = None
    ) -> tuple[list[Array], Array]:
        """Attend -> the context in a list, which is empty without attention, and the weights."""
        if not self.attends:
            return [], jnp.zeros((*query.shape[:2], 0))
        covered = [] if coverage is None else [coverage]
        context, weights = self.attend(query, memory, position, *covered)
        if self.context_gate:
            context = context * jax.nn.sigmoid(self.gate(query).astype(jnp.float32))
        return [context], weights

    def _readout(self, state: Array, x: Array, context: list[Array], train: bool) -> Array:
        """The readout, the input of the output layer and part of the next state, float32[B, K, R]."""
        if self.style == "luong":
            wide = self.output(jnp.concatenate([*context, state], axis=-1)).astype(jnp.float32)
            return self.drop(jnp.tanh(wide), train)
        wide = self.output(jnp.concatenate([state, x, *context], axis=-1)).astype(jnp.float32)
        return self.drop(wide.reshape(*wide.shape[:-1], self.d_readout, 2).max(axis=-1), train)
