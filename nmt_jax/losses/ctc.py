"""Connectionist temporal classification (Graves et al., 2006) of encoder states, as an auxiliary loss."""

import jax
import jax.numpy as jnp
import optax
from jax import Array

from nmt_jax.data.vocabulary.vocab import EOS, PAD

BLANK = PAD  # no label has this id


def ctc_loss(logits: Array, mask: Array, target: Array) -> Array:
    """-log of the probability of all alignments of the target to the states, in nats -> float32[B].

    logits float[B, S, V] of the states, mask bool[B, S], target int[B, T]: EOS and PAD are left out. A target that has
    no alignment, because it is longer than the source, has loss 0. So has a row without states.
    """
    absent = (target == PAD) | (target == EOS)
    padding = 1.0 - mask.astype(jnp.float32)
    inputs = (logits.astype(jnp.float32), padding, target, absent.astype(jnp.float32))
    with jax.default_matmul_precision("highest"):  # it gathers by a product, which would round on accelerators
        losses = optax.ctc_loss(*inputs, blank_id=BLANK)
    # Equal neighbours have a blank between them.
    repeated = jnp.sum((target[:, 1:] == target[:, :-1]) & ~absent[:, 1:], axis=1)
    needed = jnp.sum(~absent, axis=1) + repeated
    states = jnp.sum(mask, axis=1)
    return jnp.where((needed <= states) & (states > 0), losses, 0.0)
