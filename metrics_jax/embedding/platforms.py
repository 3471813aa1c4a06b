"""Choices that depend on the kind of processor; no other module of metrics_jax makes any."""

# Tokens per device in one batch of an encoder: enough to keep the device busy. The last rows of a length go into one of
# the smaller sizes, which leaves less of the batch empty.
BATCH_TOKENS = {"cpu": (1024, 512, 256, 128), "accelerator": (16384, 8192, 4096, 2048)}

# Whether a batch of pairs is encoded and compared by one program, so that token vectors stay on the devices. If not,
# each distinct text of a span is encoded once, its vectors lie on the host, and programs are smaller and fewer.
ONE_PROGRAM = {"cpu": False, "accelerator": True}


def batch_tokens(platform: str) -> tuple[int, ...]:
    """Batch sizes in tokens per device, largest first, for a JAX platform ("cpu", "gpu", "tpu")."""
    return BATCH_TOKENS[_kind(platform)]


def one_program(platform: str) -> bool:
    """Whether pairs of texts are scored by one program on a JAX platform."""
    return ONE_PROGRAM[_kind(platform)]


def _kind(platform: str) -> str:
    return "cpu" if platform == "cpu" else "accelerator"
