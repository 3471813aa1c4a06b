"""Words that a model does not see in training.

Without words of the target, a decoder looks at the source instead of guessing the next word; without words of a source,
it looks at another source, such as a picture.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
from jax import Array

from nmt_jax.data.vocabulary.vocab import BOS, EOS, PAD, UNK
from nmt_jax.models.layers.features import Features, Mixed, Source


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


def hide_source_words(rng: Array, source: Source, rate: float) -> Source:
    """Replace a fraction of the words of all texts by <unk> (Caglayan et al., 2019); ends and features stay."""
    if isinstance(source, Features):
        return source
    if isinstance(source, Mixed):
        parts = enumerate(source.parts)
        return Mixed(tuple(hide_source_words(jax.random.fold_in(rng, number), part, rate) for number, part in parts))
    hidden = jax.random.uniform(rng, source.shape) < rate
    return jnp.where(hidden & (source != PAD) & (source != EOS), UNK, source)
