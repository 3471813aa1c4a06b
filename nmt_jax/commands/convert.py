"""`nmt-jax convert`: reads a checkpoint of PyTorch without unpickling, and writes it as safetensors."""

import sys
from collections.abc import Sequence

from absl import flags

from nmt_jax.commands import streams
from nmt_jax.errors import UserError
from nmt_jax.pretrained.conversion import convert
from nmt_jax.storage.paths import local_path_of, path_of


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax convert`."""
    help_text = "Checkpoint of PyTorch or Lightning (.bin, .pt, .pth, .ckpt, or the index of several), or its folder."
    flags.DEFINE_string("input", None, help_text, flag_values)
    flags.DEFINE_string("output", None, "Folder to create.", flag_values)
    help_text = "Folder with config.json and tokenizer of the encoder, for checkpoints without them, such as COMET's."
    flags.DEFINE_string("base", None, help_text, flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Write the folder, and on stderr what it contains."""
    streams.check_no_arguments("convert", positional, "--input=FILE_OR_FOLDER")
    if not flag_values.input or not flag_values.output:
        raise UserError("nmt-jax convert needs --input=FILE_OR_FOLDER and --output=FOLDER")
    source = local_path_of(flag_values.input).expanduser().absolute()
    output = path_of(flag_values.output).expanduser().absolute()
    base = local_path_of(flag_values.base).expanduser().absolute() if flag_values.base else None
    if base and not base.is_dir():
        raise UserError(f"--base={flag_values.base}: no such folder")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UserError(f"{output}: already exists; name a new folder")
    found = convert(source, output, base)
    print(f"{output}: {found.tensors} tensors", file=sys.stderr)
    if found.skipped:
        print(f"skipped settings of the classes {', '.join(found.skipped)}", file=sys.stderr)
    licence = found.licence or "not stated in a model card beside the checkpoint"
    print(f"licence of the weights: {licence}", file=sys.stderr)
    return 0
