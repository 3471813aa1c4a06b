"""The verbs of `nmt-jax`, one module each, and the flags that they share."""
