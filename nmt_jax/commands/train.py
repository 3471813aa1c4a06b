"""`nmt-jax train`: a config and a folder become a trained model; the same command goes on where it stopped."""

import os
from collections.abc import Sequence

from absl import flags

from nmt_jax import config as configs
from nmt_jax.distributed.process_spec import define_process_flags, find_process_spec
from nmt_jax.errors import UserError
from nmt_jax.training.run import train


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax train`."""
    flags.DEFINE_string(
        "config",
        None,
        "The experiment: FILE.py or FILE.py:ARGUMENT. Not needed to go on with a workdir as it is.",
        flag_values=flag_values,
    )
    flags.DEFINE_string("workdir", None, "The run's folder: made, or gone on with.", flag_values=flag_values)
    flags.DEFINE_multi_string(
        "override",
        [],
        "KEY=VALUE changes one key of the config; --config.KEY=VALUE is the same.",
        flag_values=flag_values,
    )
    define_process_flags(flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, one call."""
    if positional:
        raise UserError(f"nmt-jax train takes no {positional[0]!r}: the experiment is --config=FILE")
    if not flag_values.workdir:
        raise UserError("nmt-jax train needs --workdir=FOLDER, where the run will live")
    overrides = dict(configs.split_override(text) for text in flag_values.override)
    spec = find_process_spec(flag_values, os.environ)
    waits = {"join_seconds": flag_values.join_seconds, "lost_seconds": flag_values.lost_seconds}
    train(flag_values.config, flag_values.workdir, overrides, spec, **waits)
    return 0
