"""Choices that depend on the kind of processor; no other module of metrics_jax makes any."""

# Tokens per device in one batch of an encoder: enough to keep the device busy. The last rows of a length go into one of
# the smaller sizes, which leaves less of the batch empty.
BATCH_TOKENS = {"cpu": (1024, 512, 256, 128), "accelerator": (16384, 8192, 4096, 2048)}


def batch_tokens(platform: str) -> tuple[int, ...]:
    """Batch sizes in tokens per device, largest first, for a JAX platform ("cpu", "gpu", "tpu")."""
    return BATCH_TOKENS["cpu" if platform == "cpu" else "accelerator"]
