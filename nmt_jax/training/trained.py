"""Trained workdirs, opened: a task and its parameters, or several models as one translator."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nmt_jax.errors import UserError
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.translation.translator import Translator


def open_trained(folder: Workdir, *tasks: str, checkpoint: str | int | None = None) -> tuple[Any, Any]:
    """-> (task, parameters) of a workdir that was trained for one of `tasks`.

    checkpoint: "best", "last", or n for the mean of the last n; None is what `decode.average` says, and "best" where
    that is 1. UserError where nothing was trained yet, or something else.
    """
    config = folder.trained_config(*tasks)
    # Below, not above: a mistake is told before the seconds that importing JAX takes.
    from nmt_jax import platforms
    from nmt_jax.checkpoints.reading import load_params
    from nmt_jax.distributed import sharding
    from nmt_jax.tasks.registry import make_task

    platforms.configure_compilation()
    mesh = sharding.make_mesh(config.mesh.model)
    task = make_task(config, folder.path, mesh)
    average = config.decode.average if "decode" in config else 1
    which = checkpoint or (average if average > 1 else "best")
    return task, load_params(folder.path, which, sharding.replicated(mesh))


def open_translator(
    folders: Sequence[Workdir], *, checkpoint: str | int | None = None, allow_unknown: bool = False
) -> tuple["Translator", tuple[Any, ...]]:
    """-> what translates with the models of all workdirs together, and their parameters; settings are the first's.

    Arguments as those of `open_trained` and `tasks.translator`. UserError where vocabularies differ.
    """
    from nmt_jax.translation.translator import Translator

    opened = [open_trained(folder, "translate", checkpoint=checkpoint) for folder in folders]
    tasks, params = zip(*opened, strict=True)
    first = tasks[0]
    for folder, task in zip(folders, tasks, strict=True):
        if [vocab.fingerprint for vocab in task.vocabularies] != [vocab.fingerprint for vocab in first.vocabularies]:
            raise UserError(
                f"{folder.path}: its vocabulary is not that of {folders[0].path}: an ensemble has one; train with "
                f"--config.vocab.source_model={folders[0].path}/vocab/joint.model, or the like"
            )
        if task.num_sources != first.num_sources:
            raise UserError(f"{folder.path}: reads {task.num_sources} sources, {folders[0].path} {first.num_sources}")
    models = [task.model for task in tasks]
    return Translator(first.config, models, first.vocabularies, first.mesh, allow_unknown), params
