"""Opening of trained workdirs: a task with its parameters, or several models as one translator."""

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nmt_jax.errors import UserError
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.translation.translator import Translator


def open_trained(folder: Workdir, *tasks: str, checkpoint: str | int | None = None) -> tuple[Any, Any]:
    """Return the task and the parameters of a workdir that was trained for one of `tasks`.

    The parameters are split over `mesh.model` devices, as in training, or as many as there are. `mesh.fsdp` does not
    split them: a training step gathers them whole, so they fit on a device.

    checkpoint: "best", "last", or n for the mean of the last n checkpoints; None for `decode.average` of the config,
    or "best" if that is 1. Raises UserError if the workdir has no checkpoint, or was trained for another task.

    Where a language model is wanted, the folder may also be a GPT-2 in Hugging Face's format, which has no checkpoints.
    """
    if "language_model" in tasks and is_published(folder):
        if checkpoint is not None:
            raise UserError(f"{folder.path}: a published model has no checkpoints; leave out --checkpoint")
        from nmt_jax.training.published_language_model import open_published

        return open_published(folder.path)
    config = folder.trained_config(*tasks)
    # Imported here, so that errors are reported before JAX is loaded, which takes seconds.
    import jax

    from nmt_jax import platforms
    from nmt_jax.checkpoints import kept_parameters
    from nmt_jax.distributed import sharding
    from nmt_jax.tasks.registry import make_task

    platforms.configure_compilation()
    together = jax.distributed.is_initialized()  # else each process works on its own
    devices = jax.devices() if together else jax.local_devices()
    mesh = sharding.make_mesh(math.gcd(config.mesh.model, len(devices)), devices)
    task = make_task(config, folder.path, mesh)
    average = config.decode.average if "decode" in config else 1
    which = checkpoint or (average if average > 1 else "best")
    shardings = functools.partial(sharding.shard_state, mesh=mesh)
    return task, kept_parameters.load(folder.path, which, shardings)


def is_published(folder: Workdir) -> bool:
    """Whether a folder is no workdir but a published language model."""
    if folder.checkpoints.exists() or not folder.config_file.is_file():
        return False
    from nmt_jax.pretrained.gpt import is_gpt

    return is_gpt(folder.path)


def open_translator(
    folders: Sequence[Workdir],
    *,
    checkpoint: str | int | None = None,
    allow_unknown: bool = False,
    dtype: str | None = None,
) -> tuple["Translator", tuple[Any, ...]]:
    """Return a translator that uses the models of all workdirs as an ensemble, and the parameters of each model.

    Settings are those of the first workdir. For `checkpoint` see `open_trained`, for `allow_unknown` see `Translator`.
    dtype: of the matrix products, as in `decode.dtype`; None for that of the config. Raises UserError if the
    vocabularies, the numbers or the kinds of sources differ, or if a model cannot compute in `dtype`.
    """
    from nmt_jax.models.layers.features import reduction_of
    from nmt_jax.translation.translator import Translator

    opened = [open_trained(folder, "translate", checkpoint=checkpoint) for folder in folders]
    tasks, params = zip(*opened, strict=True)
    first = tasks[0]
    for folder, task in zip(folders, tasks, strict=True):
        if [vocab.fingerprint for vocab in task.vocabularies] != [vocab.fingerprint for vocab in first.vocabularies]:
            raise UserError(
                f"{folder.path}: the vocabulary differs from that of {folders[0].path}; an ensemble needs one "
                f"vocabulary: train with --config.vocab.source_model={folders[0].path}/vocab/joint.model or similar"
            )
        if task.num_sources != first.num_sources:
            other = f"that of {folders[0].path} reads {first.num_sources}"
            raise UserError(f"{folder.path}: the model reads {task.num_sources} sources, {other}")
        if task.reader != first.reader:
            raise UserError(f"{folder.path}: config.data describes another kind of source than {folders[0].path}")
        if reduction_of(task.model) != reduction_of(first.model):
            raise UserError(
                f"{folder.path}: the encoder makes one state of {reduction_of(task.model)} rows, but that of "
                f"{folders[0].path} of {reduction_of(first.model)}; an ensemble needs the same number"
            )
    dtype = dtype or first.config.decode.dtype
    converted = [_with_dtype(*one, dtype) for one in zip(folders, tasks, params, strict=True)]
    models, params = zip(*converted, strict=True)
    return Translator(first.config, models, first.vocabularies, first.mesh, allow_unknown), params


def _with_dtype(folder: Workdir, task: Any, params: Any, dtype: str) -> tuple[Any, Any]:
    """Return the model of a task and its parameters for matrix products in `dtype`."""
    if dtype == "model":
        return task.model, params
    if dtype != "int8":
        return task.model.clone(dtype=dtype), params
    if task.config.model_name != "transformer":
        raise UserError(
            f"{folder.path}: a model of config.model_name={task.config.model_name} has no products in int8; use "
            "float32 or bfloat16"
        )
    import jax

    from nmt_jax.models.layers.quantization import quantize_parameters

    return task.model, jax.jit(quantize_parameters)(params)
