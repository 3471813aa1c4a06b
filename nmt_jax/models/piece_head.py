"""A pretrained encoder with one output per piece: its tag, or whether an answer starts or ends there."""

from jax import Array

from nmt_jax.models.layers.bert_stack import FineTuned


class Model(FineTuned):
    """y_t = W drop(h_t) + b (Devlin et al., 2019, sections 4.2 and 5.3)."""

    def __call__(self, ids: Array, mask: Array, segments: Array | None = None, train: bool = False) -> Array:
        """Ids int[B, S], mask bool[B, S], segments int[B, S] or None -> float32[B, S, num_outputs]."""
        return self.output(self.drop(self.states(ids, mask, segments, train), train))
