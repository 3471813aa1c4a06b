"""The tasks that `config.task` may name."""

import importlib
from pathlib import Path
from typing import Any

from jax.sharding import Mesh
from ml_collections import ConfigDict

TASKS = (
    *("translate", "language_model", "classify", "sentences", "tag", "span", "pretrain", "word_vectors"),
    "retrieval",
    *("bidirectional_language_model", "feature_tagger", "ruse"),
)


def make_task(config: ConfigDict, workdir: Path, mesh: Mesh) -> Any:
    """Return the task that `config.task` names: for "language_model", the class `LanguageModel` of that module."""
    module = importlib.import_module(f"nmt_jax.tasks.{config.task}")
    return getattr(module, config.task.title().replace("_", ""))(config, workdir, mesh)
