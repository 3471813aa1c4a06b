"""Where a training can run: each room turns a command of `nmt-jax` into processes or a job of one scheduler."""
