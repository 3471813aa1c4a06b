"""`nmt-jax plan`: compiles the programs of a config for accelerators that are not there, and prints what they need."""

import pathlib
import re
from collections.abc import Sequence
from typing import Any

from absl import flags

from nmt_jax import config as configs
from nmt_jax.commands import streams
from nmt_jax.commands.shared_flags import define_estimator_flags, define_override_flag, overrides, values
from nmt_jax.errors import UserError
from nmt_jax.planning import accelerators
from nmt_jax.planning.accelerators import Topology
from nmt_jax.pretrained.metrics import DTYPES, ESTIMATORS, open_metric
from nmt_jax.schema.number_flags import define_float, define_integer

KINDS = ("train", "eval", "decode")
METRICS = ("bertscore", "moverscore", "yisi1", "twmd")  # with an encoder
COMETS = ("comet", "cometqe", "cometkiwi", "xcomet", "xcometqe")
ESTIMATED = (*COMETS, "metricx23", "metricx23qe", "metricx24", "metricx24qe")  # with a trained model
PLACES = tuple(name for name in ESTIMATED if name in ESTIMATORS)  # flags of the models
OF_CONFIGS = ("config", "override", "programs", "workdir", "tries")  # flags
PEAKS = {  # flags, the fields that they replace, and their units
    "peak_tflops": ("flops", 1e12, "Peak of bfloat16 products in TFLOP/s, for a device that is not in the list."),
    "bandwidth_gbs": ("bandwidth", 1e9, "Bandwidth of device memory in GB/s."),
    "memory_gb": ("memory", 1e9, "Device memory in GB."),
    "network_gbs": ("network", 1e9, "Bandwidth of a device to the others in GB/s, in one direction."),
}


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax plan`."""
    flags.DEFINE_string("config", None, "Config file: FILE.py or FILE.py:ARGUMENT.", flag_values)
    define_override_flag(flag_values)
    help_text = "Devices to compile for, such as v5e:4x4 or h100:8; repeat the flag for several; list: print the names."
    flags.DEFINE_multi_string("topology", [], help_text, flag_values)
    help_text = "Programs to compile: training step, evaluation loss, beam search."
    flags.DEFINE_list("programs", list(KINDS), help_text, flag_values)
    help_text = "Shape of the training batch, such as 512x64x64; default: that of the corpus or the config."
    flags.DEFINE_string("batch", None, help_text, flag_values)
    help_text = "Workdir with a vocabulary and a corpus, whose sizes are used in place of those of the config."
    flags.DEFINE_string("workdir", None, help_text, flag_values)
    help_text = "Number of other settings to compile where a step does not fit or is not bound by arithmetic."
    define_integer(flag_values, "tries", 4, help_text, low=0, high=20)
    help_text = "Plan metrics in place of a config, with an encoder or a trained model, such as bertscore or comet."
    flags.DEFINE_list("metrics", [], help_text, flag_values)
    flags.DEFINE_string("encoder", None, "Encoder of the metrics: model folder or installed package.", flag_values)
    flags.DEFINE_enum("dtype", "float32", DTYPES, "Data type of the encoder's matrix products.", flag_values)
    flags.DEFINE_boolean("download", False, "Download the encoder of this name from the Hugging Face Hub.", flag_values)
    define_estimator_flags(flag_values, PLACES)
    for name, (_, _, help_text) in PEAKS.items():
        define_float(flag_values, name, None, help_text, above=0)
    flags.DEFINE_enum("format", "text", ["text", "json"], "Output format; text is Markdown.", flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Print the table."""
    streams.check_no_arguments("plan", positional, "--config=FILE")
    if "list" in flag_values.topology:
        print("\n".join(accelerators.listing()))
        return 0
    if not flag_values.topology:
        raise UserError("nmt-jax plan needs --topology=NAME:SIZE, such as v5e:4x4; --topology=list prints the names")
    given = values(flag_values, *PEAKS)
    changes = {field: given[name] * unit for name, (field, unit, _) in PEAKS.items() if given[name]}
    topologies = [Topology.parse(text, changes) for text in flag_values.topology]
    batch = _shape(flag_values.batch) if flag_values.batch else None
    trains = flag_values.metrics or "train" in flag_values.programs
    streams.check_effect(flag_values, ("batch", "tries"), bool(trains), "without train among --programs")
    if flag_values.metrics:
        streams.check_effect(flag_values, OF_CONFIGS, False, "with --metrics")
        plans = _of_metrics(flag_values, topologies, batch)
    elif flag_values.config:
        streams.check_effect(flag_values, ("encoder", "dtype", "download", *PLACES), False, "without --metrics")
        plans = _of_config(flag_values, topologies, batch)
    else:
        raise UserError("nmt-jax plan needs --config=FILE, for example --config=configs/transformer.py, or --metrics")
    from nmt_jax.planning import table

    print(table.WRITERS[flag_values.format](plans))
    for plan in plans:
        if plan.excess:
            raise UserError(
                f"{flag_values.config} does not fit {plan.topology}: with the best of the settings tried, a device "
                f"lacks {plan.excess / 1e9:.2f} GB; use more or larger devices, or a smaller model or batch"
            )
    return 0


def _of_config(flag_values: flags.FlagValues, topologies: list[Topology], batch: tuple[int, ...] | None) -> list[Any]:
    """The plans of a config."""
    config = configs.load(flag_values.config, overrides(flag_values))
    if unknown := sorted(set(flag_values.programs) - set(KINDS)):
        raise UserError(f"--programs={unknown[0]}: use some of {', '.join(KINDS)}")
    accelerators.prepare_environment()
    # Imported here: JAX takes seconds, and reads its environment when it is imported.
    from nmt_jax.planning import planner
    from nmt_jax.training.run import check_model

    check_model(config)
    workdir = pathlib.Path(flag_values.workdir) if flag_values.workdir else None
    request = planner.Request(flag_values.programs, batch, workdir, flag_values.tries)
    return [planner.plan_config(config, topology, topology.devices(), request) for topology in topologies]


def _of_metrics(flag_values: flags.FlagValues, topologies: list[Topology], batch: tuple[int, ...] | None) -> list[Any]:
    """The plans of metrics with an encoder or a trained model."""
    for spec in flag_values.metrics:
        name = spec.partition("|")[0]
        if name not in (*METRICS, *ESTIMATED):
            known = ", ".join((*METRICS, *ESTIMATED))
            raise UserError(f"--metrics={spec}: nothing of it is planned; use some of {known}")
        if name in METRICS and not flag_values.encoder:
            raise UserError(f"--metrics={spec} needs --encoder=PLACE, a model folder or package")
    accelerators.prepare_environment()
    from nmt_jax.planning import planner

    options = values(flag_values, "encoder", "dtype", "download", *PLACES)
    opened = [open_metric(spec, sources=True, **options) for spec in flag_values.metrics]
    return [planner.plan_metrics(opened, topology, topology.devices(), batch) for topology in topologies]


def _shape(text: str) -> tuple[int, ...]:
    """The numbers of 512x64x64."""
    if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)+", text):
        raise UserError(f"--batch={text}: write the number of rows and the lengths, such as 512x64x64")
    return tuple(map(int, text.split("x")))
