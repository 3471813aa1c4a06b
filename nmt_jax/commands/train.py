"""`nmt-jax train`: a config and a folder become a trained model; the same command goes on where it stopped."""

import dataclasses
import os
import pathlib
import shutil
from collections.abc import Mapping, Sequence

from absl import flags
from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.distributed.process_spec import ProcessSpec, define_place_flags, find_place
from nmt_jax.errors import UserError
from nmt_jax.workdir import Workdir


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
    define_place_flags(flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, one call."""
    if positional:
        raise UserError(f"nmt-jax train takes no {positional[0]!r}: the experiment is --config=FILE")
    if not flag_values.workdir:
        raise UserError("nmt-jax train needs --workdir=FOLDER, where the run will live")
    overrides = dict(configs.split_override(text) for text in flag_values.override)
    place = find_place(flag_values, os.environ)
    waits = {"join_seconds": flag_values.join_seconds, "lost_seconds": flag_values.lost_seconds}
    run(flag_values.config, pathlib.Path(flag_values.workdir), overrides, place, **waits)
    return 0


def run(
    spec: str | None,
    workdir: pathlib.Path | str,
    overrides: Mapping[str, str] | None = None,
    place: ProcessSpec | None = None,
    **waits: float,
) -> dict[str, float]:
    """Train the experiment `spec` (None: the one the workdir was begun with) in `workdir` -> the last metrics.

    Continues the workdir if a checkpoint lies there, else starts from the workdir `config.init_from`, else from
    scratch. place: which of several processes this is, of which each makes this call; waits: how long they wait for
    each other, see `Processes`.
    UserError for a config that cannot be meant, or that describes another model than the workdir's.
    """
    folder = Workdir(pathlib.Path(workdir))
    config = resolve(spec, folder, overrides or {})
    # Below, not above: a mistake in the config is told before the seconds that importing JAX takes.
    from nmt_jax import allocation, compilation
    from nmt_jax.distributed import sharding
    from nmt_jax.distributed.processes import Processes, check_shared, describe
    from nmt_jax.tasks.registry import make_task
    from nmt_jax.training import loop

    check_model(config)
    compilation.configure()
    allocation.keep_freed_memory()
    card = describe(config.to_dict(), folder.path) if place else None
    with Processes(place, card, **waits) as processes:
        processes.broadcast(lambda: begin(config, folder))
        if place:
            check_shared(processes, folder.path)
        task = make_task(config, folder.path, sharding.make_mesh(config.mesh.model))
        return loop.run(config, folder.path, task, processes)


def resolve(spec: str | None, folder: Workdir, overrides: Mapping[str, str]) -> ConfigDict:
    """The config of the run; UserError where a workdir that has checkpoints was made for another model."""
    if spec:
        config = configs.load(spec, overrides)
    elif folder.config_file.is_file():
        config = configs.override(folder.config(), overrides)
    else:
        raise UserError("nmt-jax train needs --config=FILE to begin a workdir, such as --config=configs/quickstart.py")
    if folder.started:
        try:
            configs.check_same_model(folder.config(), config)
        except UserError as error:
            raise UserError(f"{folder.path}: {error}") from None
    return config


def check_model(config: ConfigDict) -> None:
    """UserError for a task or model that does not exist or cannot be built, before a vocabulary is trained for it.

    A model over a pretrained encoder has required fields that are no sizes: its task knows them.
    """
    from nmt_jax.models.registry import model_class
    from nmt_jax.tasks.registry import TASKS

    if config.task not in TASKS:
        raise UserError(f"config.task={config.task!r} is none of {', '.join(TASKS)}")
    model = model_class(config.model_name)
    if "encoder" in config:
        from nmt_jax.tasks import fine_tuning

        fine_tuning.check_model(config)
        return
    fields = dataclasses.fields(model)
    sizes = [field.name for field in fields if field.init and field.default is field.default_factory]  # both missing
    configs.build_model(model, config.model, **dict.fromkeys(sizes, config.vocab.size))


def begin(config: ConfigDict, folder: Workdir) -> None:
    """Write the config into the workdir.

    Before the first checkpoint nothing is lost by a change of mind: a vocabulary made for other settings goes, so that
    `vocab/` always belongs to `config.json`.
    """
    try:
        if folder.vocab.is_dir() and not folder.started and folder.config_file.is_file():
            old = folder.config()
            if any(old.get(part) != config.get(part) for part in ("vocab", "encoder", "encoders", "data")):
                shutil.rmtree(folder.vocab)
        folder.path.mkdir(parents=True, exist_ok=True)
        configs.save(config, folder.config_file)
    except OSError as error:
        raise UserError(f"{folder.path}: cannot write the workdir: {error.strerror}") from None
