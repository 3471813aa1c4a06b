"""The attention of pretrained encoders between the pieces of a text."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from nmt_jax.errors import UserError
from nmt_jax.models.layers.bert_stack import Bert
from nmt_jax.models.layers.text_attention import TextAttention, padded
from nmt_jax.pretrained.huggingface import Pretrained
from nmt_jax.pretrained.reproducibility import exact_products


@dataclasses.dataclass(frozen=True, eq=False)
class EncoderAttention:
    """Computes the attention of an encoder to texts."""

    pretrained: Pretrained

    def __call__(self, text: str) -> TextAttention:
        """Return the pieces of a text, [CLS] and [SEP] included, and the weights between them.

        Raises UserError if the text has more pieces than the model reads.
        """
        tokenizer, most = self.pretrained.tokenizer, self.pretrained.max_length
        ids = tokenizer([text])[0][0]
        if len(ids) > most:
            raise UserError(f"the text has {len(ids)} pieces, but the encoder reads at most {most}")
        batch = padded(ids, most, 0)
        mask = np.arange(batch.shape[1])[None] < len(ids)
        layers = jax.device_get(_weights(self.pretrained.model)(self._params, batch, mask))
        return TextAttention(tokenizer.pieces(ids), np.concatenate(layers)[..., : len(ids), : len(ids)])

    @functools.cached_property
    def _params(self) -> Any:
        """The parameters on the device."""
        return jax.device_put(self.pretrained.params)


@functools.cache
def _weights(model: Bert) -> Callable[..., tuple[jax.Array, ...]]:
    """A compiled function from parameters, ids int[1, S] and mask bool[1, S] to L weights float32[1, H, S, S]."""

    @jax.jit
    def weights(params: Any, ids: jax.Array, mask: jax.Array) -> tuple[jax.Array, ...]:
        with exact_products(model.dtype):
            found: tuple[jax.Array, ...] = model.apply({"params": params}, ids, mask)[1]["attention"]
        return found

    return weights
