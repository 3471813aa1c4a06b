"""`manifest.json` of a workdir: ties its vocabulary and the model in its config to its checkpoints."""

import json
import pathlib
import warnings
from typing import Any

from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.errors import UserError
from nmt_jax.files import sha256, whole_file

FILE = "manifest.json"


def write_manifest(workdir: pathlib.Path, config: ConfigDict) -> None:
    """Writes the values of the config that define the model, and the SHA-256 of each file in `workdir/vocab`."""
    folder = workdir / "vocab"
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")]
    content = {
        "model": _model_part(config),
        "vocab": {str(path.relative_to(folder)): sha256(path) for path in files},
    }
    with whole_file(workdir / FILE) as file:
        file.write((json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())


def check_manifest(workdir: pathlib.Path, config: ConfigDict) -> None:
    """Raises UserError if a file of the vocabulary or a key of the model is not what the checkpoints were trained with.

    A workdir of an older version has no manifest, which is a warning.
    """
    path = workdir / FILE
    if not path.exists():
        advice = "`nmt-jax train` writes one"
        warnings.warn(
            f"{workdir}: has no {FILE}, so its vocabulary and config cannot be verified; {advice}", stacklevel=2
        )
        return
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        model, vocab = dict(content["model"]), dict(content["vocab"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        raise UserError(f"{path}: not a manifest; restore it from a copy, or delete it to skip the checks") from None
    found = _model_part(config)
    for key in {**model, **found}:
        was, now = model.get(key, configs.ABSENT), found.get(key, configs.ABSENT)
        if was != now:
            raise UserError(
                f"{workdir / 'config.json'}: {key} was {was!r} when the checkpoints were written, and is {now!r} now; "
                "restore it"
            )
    for name, digest in vocab.items():
        file = workdir / "vocab" / name
        if not file.is_file():
            raise UserError(f"{file}: missing; restore the vocabulary of the checkpoints from a copy")
        if sha256(file) != digest:
            raise UserError(
                f"{file}: is not the vocabulary that the checkpoints were trained with; restore it from a copy"
            )


def _model_part(config: ConfigDict) -> dict[str, Any]:
    """The leaves of a config that must not change, as JSON returns them."""
    leaves = {key: value for key, value in configs.flatten(config).items() if key.split(".")[0] in configs.SAME_MODEL}
    part: dict[str, Any] = json.loads(json.dumps(leaves))
    return part
