"""Trains an experiment: resolves its config, prepares the workdir and the processes, and starts the loop."""

import dataclasses
import pathlib
import sys
from collections.abc import Mapping

from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.distributed.process_spec import ProcessSpec
from nmt_jax.errors import UserError
from nmt_jax.schema.phrase import NAME as PHRASE
from nmt_jax.storage.files import remove_folder
from nmt_jax.training.lock import WorkdirLock
from nmt_jax.training.record import read_record
from nmt_jax.workdir import Workdir, check_manifest


def train(
    spec: str | None,
    workdir: pathlib.Path | str,
    overrides: Mapping[str, str] | None = None,
    process_spec: ProcessSpec | None = None,
    **timeouts: float,
) -> dict[str, float]:
    """Train the experiment `spec` in `workdir` and return the last metrics.

    Continues from the newest checkpoint of the workdir; without one, starts from the workdir `config.init_from`, or
    from scratch.

    spec: config file, `FILE.py` or `FILE.py:ARGUMENT`; None for the config saved in the workdir.
    overrides: config keys and their new values, such as {"model.d_model": "512"}.
    process_spec: which of several processes this one is; every process makes this call.
    timeouts: `join_seconds` and `lost_seconds` of `Processes`.

    Raises UserError if the config is invalid or describes another model than the workdir's, or if another process is
    training in the workdir.
    """
    folder = Workdir(workdir)
    config = resolve_config(spec, folder, overrides or {})
    if config.task == PHRASE:
        from nmt_jax.training.phrases import finished_measures, train_phrases  # late, as below

        if process_spec:
            raise UserError("config.task=phrase: a phrase-based model is trained by one process")
        with WorkdirLock(folder.path) as lock:
            if measures := finished_measures(config, folder):
                return measures
            if not read_record(folder):  # otherwise the config stays that of the weights until they are replaced
                write_config(config, folder)
            measures = train_phrases(config, folder, lock)
            write_config(config, folder)
            return measures
    # Imported here, so that an invalid config is reported before JAX is loaded, which takes seconds.
    from nmt_jax import platforms
    from nmt_jax.distributed import sharding
    from nmt_jax.distributed.processes import Processes
    from nmt_jax.tasks.registry import make_task
    from nmt_jax.training import loop

    check_model(config)
    platforms.configure_compilation()
    platforms.keep_freed_memory()
    with (
        Processes(process_spec, config, folder.path, **timeouts) as processes,
        WorkdirLock(folder.path, processes.first) as lock,
    ):
        processes.broadcast(lambda: write_config(config, folder))
        task = make_task(config, folder.path, sharding.make_mesh(config.mesh.model))
        return loop.run(config, folder.path, task, processes, lock)


def resolve_config(spec: str | None, folder: Workdir, overrides: Mapping[str, str]) -> ConfigDict:
    """Return the config of a run: the file `spec`, or the workdir's own config, with `overrides`.

    Raises UserError if the run of the workdir cannot continue with it.
    """
    if spec:
        config = configs.load(spec, overrides)
    elif folder.config_file.is_file():
        config = configs.override(folder.config(), overrides)
    else:
        raise UserError(
            "nmt-jax train needs --config=FILE to start a new workdir, for example --config=configs/quickstart.py"
        )
    check_continuation(config, folder)
    return config


def check_continuation(config: ConfigDict, folder: Workdir) -> None:
    """Raise UserError if the run of the workdir cannot continue with this config.

    Without a checkpoint everything may change but `task` and `model_name`: a workdir with others was not meant.
    """
    if not folder.config_file.exists():
        return
    old = folder.config()
    if config.task == old.task == PHRASE and folder.phrases.is_dir():
        _check_same_model(old, config, folder)
    elif folder.started:
        check_manifest(folder.path, old)
        _check_same_model(old, config, folder)
        record = read_record(folder)
        if record and config.train.steps < record.step:
            raise UserError(
                f"train.steps={config.train.steps}: {folder.path} has already reached step {record.step}; "
                "set it to that or more, or use a new --workdir"
            )
    elif differing := [key for key in ("task", "model_name") if old[key] != config[key]]:
        key = differing[0]
        raise UserError(
            f"{folder.config_file}: belongs to another experiment ({key} is {old[key]!r}, not {config[key]!r}), "
            "which has no checkpoint yet; use a new --workdir, or delete this file"
        )


def _check_same_model(old: ConfigDict, config: ConfigDict, folder: Workdir) -> None:
    try:
        configs.check_same_model(old, config)
    except UserError as error:
        raise UserError(f"{folder.path}: {error}") from None


def announce_changes(old: ConfigDict, new: ConfigDict) -> None:
    """Print a line for every key of which the value changes."""
    before, after = configs.flatten(old), configs.flatten(new)
    for key in {**before, **after}:
        value, other = before.get(key, configs.ABSENT), after.get(key, configs.ABSENT)
        if value != other:
            print(f"nmt-jax: {key}: {value!r} -> {other!r}", file=sys.stderr)


def check_model(config: ConfigDict) -> None:
    """Raise UserError if the task or model does not exist or cannot be built; called before any data is read.

    Raises it too if prepared data would be in an object store. Fields without a default are sizes that come from the
    data, except those of a model over a pretrained encoder, which its task checks.
    """
    from nmt_jax.data.prepared.cache import cache_directory
    from nmt_jax.models.registry import model_class
    from nmt_jax.tasks.registry import TASKS

    if "cache" in config.get("data", {}):
        cache_directory(config.data)
    if config.task == PHRASE:
        raise UserError("config.task='phrase': a phrase-based model, but this needs a neural model")
    if config.task not in TASKS:
        raise UserError(f"config.task={config.task!r}: use one of {', '.join(TASKS)}")
    model = model_class(config.model_name)
    if "encoder" in config:
        from nmt_jax.tasks import fine_tuning

        fine_tuning.check_model(config)
        return
    fields = dataclasses.fields(model)
    # Both defaults of a required field are the same marker, MISSING.
    sizes = [field.name for field in fields if field.init and field.default is field.default_factory]
    configs.build_model(model, config.model, **dict.fromkeys(sizes, 1))  # any number: nothing is computed


def write_config(config: ConfigDict, folder: Workdir) -> None:
    """Write the config into the workdir, and print the keys that it changes.

    Before the first checkpoint, a vocabulary that was made for other settings is deleted, so that `vocab/` always
    belongs to `config.json`.
    """
    try:
        if folder.config_file.exists():
            check_continuation(config, folder)  # again: another process may have trained since then
            old = folder.config()
            announce_changes(old, config)
            parts = ("vocab", "encoder", "encoders", "data")
            if not folder.started and any(old.get(part) != config.get(part) for part in parts):
                remove_folder(folder.vocab)
        folder.path.mkdir(parents=True, exist_ok=True)
        configs.save(config, folder.config_file)
    except OSError as error:
        raise UserError(f"{folder.path}: cannot write the workdir: {error.strerror or error}") from None
