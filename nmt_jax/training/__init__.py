"""The training loop, its step, optimizers and log."""
