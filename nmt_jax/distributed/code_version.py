"""A hash of the code, by which the processes of a job find out that their hosts have different versions of it."""

import hashlib
from pathlib import Path

import metrics_jax
import nmt_jax


def code_hash() -> str:
    """Return the first digits of the SHA-256 of all modules of nmt_jax and metrics_jax."""
    digest = hashlib.sha256()
    for package in (nmt_jax, metrics_jax):
        folder = Path(str(package.__file__)).parent
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]
