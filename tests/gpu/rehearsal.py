"""`nmt-jax` with the choices for GPUs, on the CPU: python -m tests.gpu.rehearsal VERB ..."""

import sys

from nmt_jax import platforms
from nmt_jax.__main__ import main

if __name__ == "__main__":
    with platforms.use(platforms.ACCELERATOR):
        sys.exit(main(sys.argv[1:]))
