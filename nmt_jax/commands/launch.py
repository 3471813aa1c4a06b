"""`nmt-jax launch`: runs a verb in several local processes, on SLURM, on Kubernetes or on a TPU pod."""

from collections.abc import Sequence
from typing import Any

from absl import flags

from nmt_jax.commands import streams
from nmt_jax.errors import UserError
from nmt_jax.launchers import kubernetes, local, slurm, tpu
from nmt_jax.launchers.names import check_one_line, value_of
from nmt_jax.schema.number_flags import define_integer

LAUNCHERS = {"local": local, "slurm": slurm, "kubernetes": kubernetes, "tpu": tpu}
SHARING = (  # verbs whose processes share the lines of the input and write one output
    *("translate", "generate", "mbr", "rerank", "classify", "summarize", "neighbours", "tag", "answer", "align"),
    *("score", "perturb", "judge"),
)
USED_BY = {  # flags that not every launcher uses
    "processes": ("local", "slurm", "kubernetes"),
    "devices": ("local",),
    "array": ("slurm",),
    "sbatch": ("slurm",),
    "grace": ("slurm", "kubernetes"),
    "name": ("slurm", "kubernetes", "tpu"),
    "image": ("kubernetes",),
    "resource": ("kubernetes",),
    "tpu": ("kubernetes",),
    "node_selector": ("kubernetes",),
    "volume": ("kubernetes",),
    "zone": ("tpu",),
}


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax launch`, which come before `--`; the command to launch follows it."""
    flags.DEFINE_enum("on", "local", list(LAUNCHERS), "Where to run the command.", flag_values)
    help_text = "Number of processes that do the job together, one per host."
    define_integer(flag_values, "processes", 1, help_text, low=1, high=10_000)
    flags.DEFINE_bool("dry_run", False, "Print what would be started or submitted without doing it.", flag_values)
    help_text = "local: number of simulated CPU devices per process; 0: use the real ones."
    define_integer(flag_values, "devices", 0, help_text, low=0, high=1024)
    help_text = "slurm: divide the lines among this many jobs, which run whenever there is room; 0: one job."
    define_integer(flag_values, "array", 0, help_text, low=0, high=10_000)
    flags.DEFINE_multi_string("sbatch", [], "slurm: KEY=VALUE adds the line #SBATCH --KEY=VALUE.", flag_values)
    help_text = "slurm, kubernetes: seconds between the signal to save and the end of the job."
    define_integer(flag_values, "grace", 120, help_text, low=1, high=86_400)
    flags.DEFINE_string("name", "nmt-jax", "Name of the job (slurm, kubernetes) or of the TPU.", flag_values)
    flags.DEFINE_string("image", None, "kubernetes: container image with nmt-jax installed.", flag_values)
    help_text = "kubernetes: NAME=COUNT per process, for example nvidia.com/gpu=8."
    flags.DEFINE_multi_string("resource", [], help_text, flag_values)
    help_text = "kubernetes: TPU slice, such as v5e:4x4; chooses its nodes and chips, and a process per host."
    flags.DEFINE_string("tpu", None, help_text, flag_values)
    help_text = (
        "kubernetes: LABEL=VALUE that nodes must have, such as cloud.google.com/gke-accelerator=nvidia-h100-80gb."
    )
    flags.DEFINE_multi_string("node_selector", [], help_text, flag_values)
    flags.DEFINE_string("volume", None, "kubernetes: CLAIM:PATH, a shared volume and where to mount it.", flag_values)
    flags.DEFINE_string("zone", None, "tpu: zone of the TPU.", flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Start the processes or submit the job."""
    command = list(positional)
    if command[:1] == ["nmt-jax"]:
        command = command[1:]
    if not command:
        raise UserError(
            "nmt-jax launch needs a command after `--`: nmt-jax launch [FLAG …] -- nmt-jax train --config=FILE "
            "--workdir=FOLDER"
        )
    if command[0] not in ("train", "sweep", *SHARING):
        raise UserError(
            f"nmt-jax launch: {command[0]!r} is not one of train, sweep, {', '.join(SHARING)}; run it directly"
        )
    if command[0] == "sweep" and flag_values.on != "slurm":
        raise UserError("nmt-jax launch: sweeps need --on=slurm; elsewhere, run `nmt-jax sweep` itself")
    several = flag_values.processes > 1 or flag_values.array or flag_values.on == "tpu"
    if command[0] in SHARING and several and not value_of("output", command):
        raise UserError(f"nmt-jax launch: processes write one file: nmt-jax {command[0]} --output=FILE …")
    if flag_values.array and command[0] not in SHARING:
        raise UserError(f"--array divides lines among jobs: it works with {', '.join(SHARING)}")
    if flag_values.array and flag_values.processes > 1:
        raise UserError(f"--array={flag_values.array} starts jobs of one process each: omit --processes")
    for name, launchers in USED_BY.items():
        streams.check_effect(flag_values, [name], flag_values.on in launchers, f"without --on={'|'.join(launchers)}")
    check_one_line([*command, flag_values.volume or "", *flag_values.sbatch])
    launcher: Any = LAUNCHERS[flag_values.on]
    return int(launcher.launch(flag_values, command))
