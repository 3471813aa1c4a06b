"""`nmt-jax train`: trains the model of a config in a workdir; the same command resumes an interrupted run."""

import os
from collections.abc import Sequence

from absl import flags

from nmt_jax import config as configs
from nmt_jax import schema
from nmt_jax.commands import streams
from nmt_jax.commands.shared_flags import define_override_flag, overrides, values
from nmt_jax.distributed.process_spec import define_process_flags, find_process_spec
from nmt_jax.errors import UserError
from nmt_jax.schema.reference import help_entries
from nmt_jax.training.run import train


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax train`."""
    help_text = "Config file: FILE.py or FILE.py:ARGUMENT; optional for an existing workdir, which has a config."
    flags.DEFINE_string("config", None, help_text, flag_values)
    flags.DEFINE_string("workdir", None, "Folder of the run; created, or continued if it exists.", flag_values)
    define_override_flag(flag_values)
    define_process_flags(flag_values)


def more_help(flag_values: flags.FlagValues) -> tuple[str, Sequence[tuple[str, str]]]:
    """Return the keys of the config `--config=FILE` for `--help`; without that flag, those of the default config."""
    spec = flag_values.config
    config = configs.flatten(configs.load(spec, overrides(flag_values))) if spec else schema.defaults()
    kind = f"model {config['model_name']}, task {config['task']}"
    return f"Keys of the config for {kind}; those of a page: --config=FILE --help", [*help_entries(config)]


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Train."""
    streams.check_no_arguments("train", positional, "--config=FILE")
    if not flag_values.workdir:
        raise UserError("nmt-jax train needs --workdir=FOLDER, the folder of the run")
    spec = find_process_spec(flag_values, os.environ)
    waits = values(flag_values, "join_seconds", "lost_seconds")
    train(flag_values.config, flag_values.workdir, overrides(flag_values), spec, **waits)
    return 0
