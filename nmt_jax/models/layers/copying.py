"""Output layers that copy words of the source: pointer-generator and CopyNet.

A word outside the vocabulary has a number V, V + 1, ... within its line (`Vocab.encode`). It is read as UNK and can be
generated only by copying. `Pointer` (See et al., 2017) and `CopyNet` (Gu et al., 2016) return log-probabilities of
V + U words: those of the vocabulary, and at most U others of the source.
"""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.data.vocabulary.vocab import UNK
from nmt_jax.models.layers.dense import Dense
from nmt_jax.models.layers.scaled_attention import MASKED


def read_unknown(words: Array, vocab_size: int) -> Array:
    """Words int[...] -> int[...] below V, as embeddings are read: words outside the vocabulary become UNK."""
    return jnp.where(words < vocab_size, words, UNK)


def mixture(generate: Array, copy: Array, source: Array, max_unknown: int) -> Array:
    """log p(w) = log(p_g(w) + sum of p_c(j) over the positions j with x_j = w).

    generate float[B, T, V], copy float[B, T, S]: logarithms of p_g and p_c, which together sum to 1; source int[B, S]
    -> float[B, T, V + U], MASKED where p is 0.
    """
    rows, steps = jnp.arange(copy.shape[0])[:, None, None], jnp.arange(copy.shape[1])[None, :, None]
    # Relative to the maximum, so that small probabilities do not underflow.
    largest = jnp.maximum(generate.max(axis=-1, keepdims=True), copy.max(axis=-1, keepdims=True))
    largest = jax.lax.stop_gradient(largest)
    p = jnp.pad(jnp.exp(generate - largest), ((0, 0), (0, 0), (0, max_unknown)))
    p = p.at[rows, steps, source[:, None, :]].add(jnp.exp(copy - largest))
    return jnp.where(p > 0, largest + jnp.log(jnp.where(p > 0, p, 1.0)), MASKED)


class Pointer(nn.Module):
    """p(w) = p_gen p_vocab(w) + (1 - p_gen) sum over x_j = w of a_j (See et al., 2017, eq. 9).

    p_gen = sigmoid(w_h^T h* + w_s^T s + w_x^T x + b) (eq. 8) with the context h*, the readout s and the embedding x of
    the previous word. a is the attention of the decoder, normalized to sum to 1 (local attention sums to less).
    """

    max_unknown: int

    def setup(self) -> None:
        self.gate = Dense(1)

    def memory(self, states: Array, mask: Array, source: Array) -> dict[str, Array]:
        """The memory that all steps copy from: states float[B, S, D], mask bool[B, S], words int[B, S]."""
        return {"states": states, "mask": mask, "source": source}

    def __call__(self, logits: Array, readout: Array, x: Array, weights: Array, memory: dict[str, Array]) -> Array:
        """Logits float[B, T, V], readout [B, T, R], x [B, T, E], weights [B, T, S] -> log p float[B, T, V + U]."""
        context = jnp.einsum("bts,bsd->btd", weights, memory["states"])
        gate = self.gate(jnp.concatenate([context, readout, x], axis=-1))
        visible = memory["mask"][:, None, :] & (weights > 0)
        attention = jax.nn.log_softmax(jnp.where(visible, jnp.log(jnp.where(visible, weights, 1.0)), MASKED))
        generate = jax.nn.log_sigmoid(gate) + jax.nn.log_softmax(logits)
        return mixture(generate, jax.nn.log_sigmoid(-gate) + attention, memory["source"], self.max_unknown)


class CopyNet(nn.Module):
    """p(w) = (exp psi_g(w) + sum over x_j = w of exp psi_c(x_j)) / Z: one softmax over both (Gu et al., 2016, eq. 4-6).

    psi_g are the logits of the output layer (eq. 7), psi_c(x_j) = tanh(h_j^T W_c) s (eq. 8) with the encoder states h
    and the readout s. `selective_read` is the other half of the paper.
    """

    max_unknown: int
    d_readout: int
    dtype: str = "float32"

    def setup(self) -> None:
        self.key = Dense(self.d_readout, use_bias=False, dtype=self.dtype)

    def memory(self, states: Array, mask: Array, source: Array) -> dict[str, Array]:
        """The memory that all steps copy from: states float[B, S, D], mask bool[B, S], words int[B, S]."""
        return {"keys": jnp.tanh(self.key(states)), "states": states, "mask": mask, "source": source}

    def __call__(self, logits: Array, readout: Array, x: Array, weights: Array, memory: dict[str, Array]) -> Array:
        """Logits float[B, T, V], readout [B, T, R], x [B, T, E], weights [B, T, S] -> log p float[B, T, V + U]."""
        scores = copy_scores(readout, memory, memory["mask"][:, None, :])
        both = jax.nn.log_softmax(jnp.concatenate([logits, scores], axis=-1))
        vocab_size = logits.shape[-1]
        return mixture(both[..., :vocab_size], both[..., vocab_size:], memory["source"], self.max_unknown)


def copy_scores(readout: Array, memory: dict[str, Array], mask: Array) -> Array:
    """psi_c(x_j) of `CopyNet` where mask bool[B, 1 or T, S], MASKED elsewhere: readout float[B, T, R] -> [B, T, S]."""
    scores = jnp.einsum("btr,bsr->bts", readout, memory["keys"])
    return jnp.where(jnp.broadcast_to(mask, scores.shape), scores, MASKED)


def selective_read(words: Array, readout: Array, memory: dict[str, Array]) -> Array:
    """zeta(y_{t-1}) = sum_j rho_j h_j over the positions j where y_{t-1} stands (Gu et al., 2016, section 3.3, eq. 9).

    rho is the probability of copying x_j in the previous step, renormalized over these positions; zeta is 0 if there is
    none. Words y_{t-1} int[B, T], previous readout float[B, T, R], memory of `CopyNet` -> float[B, T, D].
    """
    same = memory["mask"][:, None, :] & (memory["source"][:, None, :] == words[:, :, None])
    rho = jnp.where(same, jax.nn.softmax(copy_scores(readout, memory, same)), 0.0)
    return jnp.einsum("bts,bsd->btd", rho, memory["states"])


COPYING = ("none", "pointer", "copynet")


def check_copying(model: Any) -> None:
    """Raise ValueError if a model that copies has two vocabularies or several sources, or if max_unknown < 0."""
    if model.copying != "none" and model.source_vocab_size != model.target_vocab_size:
        raise ValueError(
            f"copying={model.copying!r} needs one joint vocabulary, but the vocabularies have "
            f"{model.source_vocab_size} and {model.target_vocab_size} pieces"
        )
    if model.copying != "none" and model.num_sources > 1:
        raise ValueError(f"copying supports one source only, but num_sources={model.num_sources}: use copying='none'")
    if model.max_unknown < 0:
        raise ValueError(f"max_unknown={model.max_unknown} must not be negative")


def check_source_words(model: Any) -> None:
    """Raise ValueError if a field of copying or of the lexicon is invalid in a recurrent model."""
    check_copying(model)
    if model.lexicon_epsilon <= 0:
        raise ValueError(f"lexicon_epsilon={model.lexicon_epsilon} must be positive")
    if model.selective_read and model.copying != "copynet":
        raise ValueError(f"selective_read needs copying='copynet', not {model.copying!r}")
    if model.copying == "none" and not model.lexicon:
        return
    if model.attention == "none":
        raise ValueError("copying and lexicon need attention: use attention='global', or leave them out")
    if model.lexicon and model.num_sources > 1:
        raise ValueError(f"a lexicon supports one source only, but num_sources={model.num_sources}: leave it out")


def make_copying(name: str, max_unknown: int, d_readout: int, dtype: str = "float32") -> nn.Module:
    """Return the module of that name; d_readout: width R of the readout."""
    return Pointer(max_unknown) if name == "pointer" else CopyNet(max_unknown, d_readout, dtype)
