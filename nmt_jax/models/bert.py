"""BERT pretraining (Devlin et al., 2019): the encoder with the masked-token and next-sentence heads."""

import flax.linen as nn
import jax.numpy as jnp
from jax import Array

from nmt_jax.models.layers.activations import activation
from nmt_jax.models.layers.bert_stack import Bert
from nmt_jax.models.layers.dense import Dense, matmul
from nmt_jax.models.layers.hyperparameters import shared_fields
from nmt_jax.models.layers.normalization import LayerNorm


class Model(nn.Module):
    """The encoder with the heads of masked-token and next-sentence prediction (section 3.1).

    next_sentence: add the next-sentence head and the pooler that it reads. causal: left-to-right language modelling
    instead of masking; excludes next_sentence, because the first token attends to no text. The other fields are those
    of `Bert`.
    """

    vocab_size: int
    num_layers: int = 12
    d_model: int = 768
    d_ff: int = 3072
    num_heads: int = 12
    max_positions: int = 512
    num_segments: int = 2
    activation: str = "gelu_erf"
    epsilon: float = 1e-12
    dropout: float = 0.1
    attention_dropout: float = 0.1
    dtype: str = "float32"
    init_stddev: float = 0.02
    next_sentence: bool = True
    causal: bool = False
    remat: str = "none"
    scan_layers: bool = False

    def __post_init__(self) -> None:
        if self.causal and self.next_sentence:
            raise ValueError(
                "causal=True needs next_sentence=False, because the first token does not attend to the sentences"
            )
        if self.next_sentence and self.num_segments < 2:
            raise ValueError(f"next_sentence=True needs num_segments=2, one per sentence, not {self.num_segments}")
        self.bert()  # checks the other fields
        super().__post_init__()

    def bert(self) -> Bert:
        """The encoder, unbound; its parameters are `encoder`."""
        return Bert(**shared_fields(self, Bert), pooler=self.next_sentence, parent=None)

    def setup(self) -> None:
        init = nn.initializers.truncated_normal(stddev=self.init_stddev)
        self.encoder = self.bert()
        self.transform = Dense(self.d_model, dtype=self.dtype, kernel_init=init)
        self.transform_norm = LayerNorm(self.epsilon)
        self.output_bias = self.param("output_bias", nn.initializers.zeros, (self.vocab_size,))
        if self.next_sentence:
            self.next_sentence_dense = Dense(2, kernel_init=init)

    def __call__(
        self,
        ids: Array,
        mask: Array,
        segments: Array,
        positions: Array,
        train: bool = False,
        packing: Array | None = None,
    ) -> tuple[Array, dict[str, Array]]:
        """Ids and segments int[B, S], mask bool[B, S], positions int[B, P] -> logits float[B, P, V] at those positions.

        Intermediates: `hidden` float[B, P, D + 1] and `output_kernel` float[D + 1, V], whose product is the logits, for
        a chunked loss; with next_sentence also `next_sentence` float[B, 2], the logits of "the second sentence follows
        the first" and of "it does not".
        packing: the number of each token's example, int[B, S], in rows that hold several independent ones; the
        next-sentence head reads only the first of them.
        """
        states, out = self.encoder.states(ids, mask, segments, train, packing)
        x = jnp.take_along_axis(states[-1], positions[..., None], axis=1)
        x = self.transform_norm(activation(self.activation, self.dtype)(self.transform(x)))
        hidden = jnp.concatenate([x, jnp.ones((*x.shape[:-1], 1), x.dtype)], axis=-1)
        kernel = jnp.concatenate([self.encoder.embeddings.word.T, self.output_bias[None]])
        heads = {"hidden": hidden, "output_kernel": kernel}
        if self.next_sentence:
            heads["next_sentence"] = self.next_sentence_dense(out["pooled"])
        return matmul(hidden, kernel, self.dtype), heads
