"""Options of a beam search, the score that hypotheses are ranked by, and rules on the next piece."""

import dataclasses

import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.decoding.next_logits import IMPOSSIBLE

NORMALIZATIONS = ("wu", "length")
STOPPING = ("bound", "beam", "limit")


@dataclasses.dataclass(frozen=True)
class SearchOptions:
    """The options of a beam search; `beam_size=1` is greedy search.

    A hypothesis Y is ranked by log p(Y|X) / penalty(|Y|) + coverage_penalty * coverage, Wu et al. (2016), eq. 14. The
    penalty is ((5 + |Y|) / 6)^length_penalty, or |Y|^length_penalty if normalization="length"; |Y| includes EOS.

    stopping: when the search for a sentence ends. "bound": when no live hypothesis can still be among the n best.
    "beam": when beam_size hypotheses have ended, as in most programs. "limit": at the length limit.
    min_length: in pieces, without EOS. no_repeat_ngram_size: if n > 0, no n-gram occurs twice (Paulus et al., 2018).
    repetition_penalty: factor >= 1 on the log-probabilities of pieces that were generated before (Keskar et al., 2019).
    num_groups: if > 1, diverse beam search (Vijayakumar et al., 2016): the beam is divided into groups, and a group
    loses `diversity` for each time that an earlier group chose the same piece in the same step.

    Raises ValueError if an option is invalid.
    """

    beam_size: int = 5
    n_best: int = 1
    length_penalty: float = 0.0
    normalization: str = "wu"
    coverage_penalty: float = 0.0
    stopping: str = "bound"
    min_length: int = 0
    no_repeat_ngram_size: int = 0
    repetition_penalty: float = 1.0
    num_groups: int = 1
    diversity: float = 0.5

    def __post_init__(self) -> None:
        for name, least in (("beam_size", 1), ("n_best", 1), ("num_groups", 1), ("min_length", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name}={getattr(self, name)}: must be at least {least}")
        for name in ("length_penalty", "coverage_penalty", "no_repeat_ngram_size", "diversity"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name}={getattr(self, name)}: must be at least 0")
        if self.n_best > self.beam_size:
            raise ValueError(
                f"n_best={self.n_best} needs a beam of that size: beam_size={self.n_best} (now {self.beam_size})"
            )
        if not 1 <= self.repetition_penalty < float("inf"):
            raise ValueError(f"repetition_penalty={self.repetition_penalty}: must be at least 1, which disables it")
        if self.beam_size % self.num_groups:
            raise ValueError(f"beam_size={self.beam_size} is not divisible by num_groups={self.num_groups}")
        for name, choices in (("normalization", NORMALIZATIONS), ("stopping", STOPPING)):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name}={getattr(self, name)!r} must be one of {', '.join(choices)}")

    @property
    def has_rules(self) -> bool:
        """Whether any rule of `follow_rules` applies."""
        return self.min_length > 0 or self.no_repeat_ngram_size > 0 or self.repetition_penalty > 1

    def penalty(self, length: Array | float) -> Array:
        """The divisor of the log-probability of a hypothesis of `length` pieces."""
        length = jnp.asarray(length, jnp.float32)
        base = (5.0 + length) / 6.0 if self.normalization == "wu" else jnp.maximum(length, 1.0)
        return base**self.length_penalty


def coverage(attention: Array, mask: Array) -> Array:
    """Return the sum over s of log min(attention_s, 1), at most 0: Wu et al. (2016), eq. 14.

    attention float[..., S]: summed over steps. mask bool[..., S]: False in padding.
    """
    return jnp.sum(jnp.where(mask, jnp.log(jnp.clip(attention, 1e-9, 1.0)), 0.0), axis=-1)


def follow_rules(search: SearchOptions, log_probs: Array, generated: Array, position: Array, eos: int) -> Array:
    """Apply the rules of `search` to log_probs float[N, V], given the first `position` pieces of generated int[N, T].

    repetition_penalty: Keskar et al. (2019), section 4.1; no_repeat_ngram_size: Paulus et al. (2018), section 2.5.
    """
    rows = jnp.arange(generated.shape[0])[:, None]
    if search.repetition_penalty > 1:
        old = jnp.zeros(log_probs.shape, bool).at[rows, generated].max(jnp.arange(generated.shape[1])[None] < position)
        log_probs = jnp.where(old, log_probs * search.repetition_penalty, log_probs)
    if search.no_repeat_ngram_size:
        again = repeats(generated, position, search.no_repeat_ngram_size, log_probs.shape)
        log_probs = jnp.where(again, IMPOSSIBLE, log_probs)
    if search.min_length:
        too_soon = (jnp.arange(log_probs.shape[1]) == eos) & (position < search.min_length)
        log_probs = jnp.where(too_soon[None], IMPOSSIBLE, log_probs)
    return log_probs


def repeats(generated: Array, position: Array, n: int, shape: tuple[int, ...]) -> Array:
    """Which pieces would repeat an n-gram of generated int[N, T] up to `position` -> bool[N, V]."""
    num_windows = generated.shape[1] - n + 1
    if num_windows <= 0:
        return jnp.zeros(shape, bool)
    last = jax.lax.dynamic_slice_in_dim(generated, jnp.maximum(position - n + 1, 0), max(n - 1, 1), axis=1)
    same = jnp.arange(num_windows)[None] + n - 1 < position  # n-grams that are complete
    for offset in range(n - 1):
        same = same & (generated[:, offset : offset + num_windows] == last[:, offset, None])
    rows = jnp.arange(generated.shape[0])[:, None]
    return jnp.zeros(shape, bool).at[rows, generated[:, n - 1 :]].max(jnp.broadcast_to(same, (len(rows), num_windows)))


def force(log_probs: Array, forced: Array) -> Array:
    """Rule out all pieces but the forced one: log_probs float[N, V], forced int[N], 0 where any piece is allowed."""
    others = jnp.arange(log_probs.shape[1])[None] != forced[:, None]
    return jnp.where((forced > 0)[:, None] & others, IMPOSSIBLE, log_probs)
