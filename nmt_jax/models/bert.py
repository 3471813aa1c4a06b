"""BERT pretraining (Devlin et al., 2019): the encoder with the masked-token and next-sentence heads."""

import dataclasses

import flax.linen as nn
import jax
import jax.numpy as jnp

from nmt_jax.models.layers.activations import activation
from nmt_jax.models.layers.bert_stack import Bert
from nmt_jax.models.layers.dense import Dense, matmul
from nmt_jax.models.layers.normalization import LayerNorm

Array = jax.Array


class Model(nn.Module):
    """What is pretrained: the encoder, the head of masked tokens and that of next sentences (section 3.1).

    next_sentence: with that head and the pooler that it reads. causal: for left-to-right language modelling instead of
    masking; the first token then sees no text, so there is no next-sentence head. The other fields are those of `Bert`.
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
    remat: bool = False

    def __post_init__(self) -> None:
        """ValueError on hyperparameters that cannot be meant."""
        if self.causal and self.next_sentence:
            raise ValueError("causal=True needs next_sentence=False: the first token sees nothing of the sentences")
        if self.next_sentence and self.num_segments < 2:
            raise ValueError(f"next_sentence=True needs num_segments=2, not {self.num_segments}: one a sentence")
        self.bert()  # says what else is wrong
        super().__post_init__()

    def bert(self) -> Bert:
        """The encoder, unbound, of which the parameters `encoder` are."""
        names = {field.name for field in dataclasses.fields(Bert)} - {"parent", "name"}
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name in names}
        return Bert(**fields, pooler=self.next_sentence, parent=None)

    def setup(self) -> None:
        """Create the encoder and the heads; the table of words is also the output's."""
        init = nn.initializers.truncated_normal(stddev=self.init_stddev)
        self.encoder = self.bert()
        self.transform = Dense(self.d_model, dtype=self.dtype, kernel_init=init)
        self.transform_norm = LayerNorm(self.epsilon)
        self.output_bias = self.param("output_bias", nn.initializers.zeros, (self.vocab_size,))
        if self.next_sentence:
            self.next_sentence_dense = Dense(2, kernel_init=init)

    def __call__(
        self, ids: Array, mask: Array, segments: Array, positions: Array, train: bool = False
    ) -> tuple[Array, dict[str, Array]]:
        """Ids and segments int[B, S], mask bool[B, S], positions int[B, P] -> logits float[B, P, V] at those positions.

        Nothing is computed for other positions. Intermediates: `hidden` float[B, P, D + 1] and `output_kernel`
        float[D + 1, V], whose product the logits are, for a loss that never holds all of them; with next_sentence
        `next_sentence` float[B, 2], the logits of "the second follows the first" and of "it does not".
        """
        states, out = self.encoder.states(ids, mask, segments, train)
        x = jnp.take_along_axis(states[-1], positions[..., None], axis=1)
        x = self.transform_norm(activation(self.activation, self.dtype)(self.transform(x)))
        hidden = jnp.concatenate([x, jnp.ones((*x.shape[:-1], 1))], axis=-1)
        kernel = jnp.concatenate([self.encoder.embeddings.word.T, self.output_bias[None]])
        heads = {"hidden": hidden, "output_kernel": kernel}
        if self.next_sentence:
            heads["next_sentence"] = self.next_sentence_dense(out["pooled"])
        return matmul(hidden, kernel, self.dtype), heads
