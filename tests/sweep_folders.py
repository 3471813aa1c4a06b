"""Folders of runs as training leaves them, without the training."""

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from nmt_jax.sweeps.runs import Run, name
from nmt_jax.workdir import Workdir

CONFIG: dict[str, Any] = {
    "task": "language_model",
    "model_name": "gpt",
    "seed": 0,
    "encoder": {"num_layers": 7},
    "model": {"d_model": 32, "num_layers": 2, "score": "dot", "tied": True},
    "optimizer": {"learning_rate": 0.001},
    "train": {"steps": 20, "minutes": 0.0, "patience": 0, "early_stopping_metric": "perplexity"},
}


def changed(point: Mapping[str, Any]) -> dict[str, Any]:
    """CONFIG with other values of dotted keys."""
    config = json.loads(json.dumps(CONFIG))
    for key, value in point.items():
        *groups, tail = key.split(".")
        node = config
        for group in groups:
            node = node[group]
        node[tail] = value
    return config


def make_run(
    folder: pathlib.Path, point: Mapping[str, Any], perplexities: Sequence[float] = (), steps: int = 20, log: str = ""
) -> Run:
    """A run of which these perplexities were measured, evenly over `steps`; the last step has a checkpoint."""
    texts = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in point.items()}
    run = Run(texts, Workdir(folder / name(texts)))
    run.workdir.path.mkdir(parents=True)
    run.workdir.config_file.write_text(json.dumps(changed(point)))
    rows: list[dict[str, Any]] = []
    for number, value in enumerate(perplexities, start=1):
        step = steps * number // len(perplexities)
        row = {"step": step, "loss": value / 10, "learning_rate": 0.1 / number, "tokens_per_second": 100.0 * number}
        rows += [row | {"seconds": 30.0 * number, "skipped": 0}]
        rows += [{"step": step, "dev/loss": value / 20, "dev/perplexity": value}]
    if rows:
        run.workdir.metrics_file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        checkpoint = run.workdir.checkpoints / str(steps)
        checkpoint.mkdir(parents=True)
        shapes = {"params/kernel": [4, 5], "params/bias": [5], "rest/opt_state": [25]}
        record = {"shapes": shapes, "meta": {"stale": 0, "seconds": 60.0}}
        (checkpoint / "_CHECKPOINT_METADATA").write_text(json.dumps({"custom_metadata": record}))
    if log:
        run.log.write_text(log)
    return run
