"""Launchers: each module turns a command of `nmt-jax` into processes or into a job of one scheduler."""
