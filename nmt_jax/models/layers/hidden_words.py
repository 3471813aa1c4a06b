"""Words that a decoder does not see in training, so that it looks at the source instead of guessing the next word."""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.data.vocabulary.vocab import BOS, UNK


class HiddenWords(nn.Module):
    """Word dropout of Bowman et al. (2016): in training, a fraction of the words that a decoder reads are <unk>."""

    rate: float

    @nn.compact
    def __call__(self, words: Array, train: bool) -> Array:
        """Words int[...] -> int[...]; the begin of sentence stays."""
        if not (train and self.rate):
            return words
        hidden = jax.random.uniform(self.make_rng("dropout"), words.shape) < self.rate
        return jnp.where(hidden & (words != BOS), UNK, words)
