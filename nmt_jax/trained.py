"""A trained workdir, opened: its task and its parameters."""

from typing import Any

from nmt_jax.workdir import Workdir


def open_trained(folder: Workdir, *tasks: str, checkpoint: str | int | None = None) -> tuple[Any, Any]:
    """-> (task, parameters) of a workdir that was trained for one of `tasks`.

    checkpoint: "best", "last", or n for the mean of the last n; None is what `decode.average` says, and "best" where
    that is 1. UserError where nothing was trained yet, or something else.
    """
    config = folder.trained_config(*tasks)
    # Below, not above: a mistake is told before the seconds that importing JAX takes.
    from nmt_jax import checkpoint as checkpoints
    from nmt_jax import compilation, sharding
    from nmt_jax.tasks import make_task

    compilation.cache_compilations()
    mesh = sharding.make_mesh(config.mesh.model)
    task = make_task(config, folder.path, mesh)
    average = config.decode.average if "decode" in config else 1
    which = checkpoint or (average if average > 1 else "best")
    return task, checkpoints.load_params(folder.path, which, sharding.replicated(mesh))
