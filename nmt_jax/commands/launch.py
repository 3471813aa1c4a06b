"""`nmt-jax launch`: where a training runs – processes of this machine, SLURM, Kubernetes, a TPU pod – and no more."""

from collections.abc import Sequence
from typing import Any

from absl import flags

from nmt_jax.errors import UserError
from nmt_jax.launchers import kubernetes, local, slurm, tpu

PLACES = {"local": local, "slurm": slurm, "kubernetes": kubernetes, "tpu": tpu}


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax launch`: they stand before `--`, the command to launch behind it."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_enum("on", "local", list(PLACES), "Where to run.", **given)
    flags.DEFINE_integer("processes", 1, "Processes that train together, one a host.", lower_bound=1, **given)
    flags.DEFINE_bool("dry_run", False, "Print what would be started or submitted, and do nothing.", **given)
    flags.DEFINE_integer("devices", 0, "local: simulated CPU devices a process; 0 = the real ones.", **given)
    flags.DEFINE_multi_string("sbatch", [], "slurm: KEY=VALUE makes a line #SBATCH --KEY=VALUE.", **given)
    flags.DEFINE_integer("grace", 120, "slurm, kubernetes: seconds between the notice and the end.", **given)
    flags.DEFINE_string("name", "nmt-jax", "slurm, kubernetes: the job's name; tpu: that of the TPU.", **given)
    flags.DEFINE_string("image", None, "kubernetes: the container image, with nmt-jax installed.", **given)
    flags.DEFINE_multi_string("resource", [], "kubernetes: NAME=COUNT a process, such as nvidia.com/gpu=8.", **given)
    flags.DEFINE_string("volume", None, "kubernetes: CLAIM:PATH, where a volume that all share is mounted.", **given)
    flags.DEFINE_string("zone", None, "tpu: the zone.", **given)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, processes or a job out."""
    command = list(positional)
    if command[:1] == ["nmt-jax"]:
        command = command[1:]
    if command[:1] not in (["train"], ["sweep"]):
        raise UserError(
            "nmt-jax launch needs the command behind `--`: nmt-jax launch [FLAG …] -- nmt-jax train --config=FILE "
            "--workdir=FOLDER, or nmt-jax sweep …"
        )
    if command[0] == "sweep" and flag_values.on != "slurm":
        raise UserError("nmt-jax launch: a sweep becomes jobs with --on=slurm; here, run `nmt-jax sweep` itself")
    launcher: Any = PLACES[flag_values.on]
    return int(launcher.launch(flag_values, command))
