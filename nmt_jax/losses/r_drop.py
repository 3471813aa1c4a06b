"""R-Drop: two passes with different dropout should predict the same distribution (Liang et al., 2021)."""

import jax
import jax.numpy as jnp


def symmetric_divergence(first: jax.Array, second: jax.Array, weights: jax.Array) -> jax.Array:
    """Return the sum over tokens of (KL(p || q) + KL(q || p)) / 2 in nats (Liang et al., 2021, equation 2).

    first, second float[B, T, V]: logits of p and q; weights float[B, T] of the tokens, 0 for padding.
    """
    log_p, log_q = (jax.nn.log_softmax(logits.astype(jnp.float32)) for logits in (first, second))
    # KL(p || q) + KL(q || p) = sum_v (p_v - q_v) (log p_v - log q_v)
    both = jnp.sum((jnp.exp(log_p) - jnp.exp(log_q)) * (log_p - log_q), axis=-1)
    return 0.5 * jnp.sum(both * weights)
