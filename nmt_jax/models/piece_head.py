"""A pretrained encoder with one output per piece: its tag, or whether an answer starts or ends there."""

from jax import Array

from nmt_jax.models.layers.fine_tuned import FineTuned
from nmt_jax.models.layers.recurrent_encoder import Encoder


class Model(FineTuned):
    """y_t = W drop(h_t) + b (Devlin et al., 2019, sections 4.2 and 5.3).

    bilstm_layers: of a bidirectional LSTM of width d_model, whose states are h (section 5.3); 0 for none.
    """

    bilstm_layers: int = 0

    def setup(self) -> None:
        super().setup()
        self.bilstm = Encoder("lstm", self.bilstm_layers, self.encoder.d_model)

    def __call__(self, ids: Array, mask: Array, segments: Array | None = None, train: bool = False) -> Array:
        """Ids int[B, S], mask bool[B, S], segments int[B, S] or None -> float32[B, S, num_outputs]."""
        states, _ = self.bilstm(self.states(ids, mask, segments, train), mask, train)
        return self.output(self.drop(states, train))
