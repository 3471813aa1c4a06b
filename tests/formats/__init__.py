"""Tests of `nmt_jax.formats`."""
