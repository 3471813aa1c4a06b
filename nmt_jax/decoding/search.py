"""What a beam search looks for, and what may be asked of it: the options, and how hypotheses are ranked."""

import dataclasses

import jax
import jax.numpy as jnp

Array = jax.Array

NORMALIZATIONS = ("wu", "length")
STOPPING = ("bound", "beam", "limit")


@dataclasses.dataclass(frozen=True)
class Search:
    """The options of a beam search, `beam_size=1` being greedy; a compiled program belongs to each.

    A hypothesis Y is ranked by log p(Y|X) / penalty(|Y|) + coverage_penalty * coverage, of Wu et al. (2016), eq. 14:
    the penalty is ((5 + |Y|) / 6)^length_penalty, or with normalization="length" |Y|^length_penalty, EOS counted.

    stopping says when a sentence is done: "bound", when nothing that lives can still come under the n best; "beam",
    when beam_size hypotheses have ended, as most programs do; "limit", at its longest length.
    min_length is in pieces, EOS not counted. no_repeat_ngram_size n > 0: no n pieces in a row come twice (Paulus et
    al., 2018). repetition_penalty >= 1 multiplies the log-probabilities of pieces that were said (Keskar et al., 2019).
    num_groups > 1: diverse beam search (Vijayakumar et al., 2016), whose groups of beam_size / num_groups lose
    `diversity` for each time that an earlier group chose the same piece in this step. ValueError for what cannot be.
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
                raise ValueError(f"{name}={getattr(self, name)}: at least {least}")
        for name in ("length_penalty", "coverage_penalty", "no_repeat_ngram_size", "diversity"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name}={getattr(self, name)}: at least 0")
        if self.n_best > self.beam_size:
            raise ValueError(
                f"n_best={self.n_best} results need a beam as wide: beam_size={self.n_best} (it is {self.beam_size})"
            )
        if not 1 <= self.repetition_penalty < float("inf"):
            raise ValueError(f"repetition_penalty={self.repetition_penalty}: at least 1, which is none")
        if self.beam_size % self.num_groups:
            raise ValueError(f"beam_size={self.beam_size} is not divisible into num_groups={self.num_groups}")
        for name, choices in (("normalization", NORMALIZATIONS), ("stopping", STOPPING)):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name}={getattr(self, name)!r} is none of {', '.join(choices)}")

    @property
    def has_rules(self) -> bool:
        """Whether `decoding.rules` has something to say."""
        return self.min_length > 0 or self.no_repeat_ngram_size > 0 or self.repetition_penalty > 1

    def penalty(self, length: Array | float) -> Array:
        """What the log-probability of a hypothesis of so many pieces is divided by."""
        length = jnp.asarray(length, jnp.float32)
        base = (5.0 + length) / 6.0 if self.normalization == "wu" else jnp.maximum(length, 1.0)
        return base**self.length_penalty


def coverage(attention: Array, mask: Array) -> Array:
    """attention float[..., S] summed over steps, mask bool[..., S] -> sum over s of log min(attention_s, 1), at most 0.

    Wu et al. (2016), eq. 14.
    """
    return jnp.sum(jnp.where(mask, jnp.log(jnp.clip(attention, 1e-9, 1.0)), 0.0), axis=-1)
