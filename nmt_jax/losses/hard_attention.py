"""The gradient of hard attention: a reward for the positions that were drawn."""

import jax
import jax.numpy as jnp


def hard_attention(
    attention: jax.Array, log_probs: jax.Array, weights: jax.Array, reward: float, entropy: float
) -> jax.Array:
    """Return a sum whose gradient adds the attention's share to that of the cross-entropy (Xu et al., 2015, eq. 12).

    attention float[B, T, S]: the probability of the position that was drawn, elsewhere 0, see `layers.attention`.
    log_probs float[B, T]: of the target tokens. weights float[B, T]: 0 for padding of the target. reward, entropy:
    lambda_r and lambda_e.

    Step t is rewarded with the log-probability of the tokens from t on, since it does not change earlier ones. The
    baseline is the mean of the other rows of the batch, or of the micro-batch if `train.accumulate` is above 1, instead
    of a moving average, so that no state is kept. The entropy is that of the positions drawn, -log a, which has the
    gradient of the entropy in expectation.
    """
    drawn = jnp.log(jnp.where(weights > 0, attention.sum(axis=-1), 1.0))
    to_go = jnp.flip(jnp.cumsum(jnp.flip(log_probs * weights, axis=1), axis=1), axis=1)
    real = (weights > 0).astype(to_go.dtype)
    others = jnp.maximum(real.sum(axis=0, keepdims=True) - real, 1)
    baseline = ((to_go * real).sum(axis=0, keepdims=True) - to_go * real) / others
    advantage = jax.lax.stop_gradient(reward * (to_go - baseline) - entropy * drawn)
    return -jnp.sum(weights * advantage * drawn)
