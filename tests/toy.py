"""A toy task, small enough to train in a blink, with rows of uneven padding; also a program, to be killed by tests.

python -m tests.toy WORKDIR [KEY=JSON …] trains in WORKDIR with the changed keys of `config()`;
place=[COORDINATOR, N, I] makes it process I of N.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from nmt_jax import loop, sharding
from nmt_jax.data.share import ALL, Share
from nmt_jax.distributed.place import Place
from nmt_jax.distributed.processes import Processes, describe
from nmt_jax.errors import UserError
from nmt_jax.tasks import Step

ROOT = Path(__file__).resolve().parent.parent
VOCABULARY, WIDTH = 16, 8
SHAPES = ((8, 5, 7), (16, 3, 4))


def config(**changes: Any) -> ConfigDict:
    """All keys the loop reads; `changes` as {"train.steps": 30}."""
    base = ConfigDict(
        {
            "seed": 3,
            "init_from": "",
            "model": {"d_model": WIDTH},
            "optimizer": {
                "name": "adam",
                "learning_rate": 0.02,
                "schedule": "inverse_sqrt",
                "warmup_steps": 5,
                "beta1": 0.9,
                "beta2": 0.98,
                "epsilon": 1e-9,
                "weight_decay": 0.0,
                "layer_decay": 1.0,
                "clip_norm": 0.0,
                "ema_decay": 0.0,
            },
            "train": {
                "steps": 30,
                "batch_tokens": 64,
                "accumulate": 1,
                "log_every": 1,
                "eval_every": 8,
                "checkpoint_every": 5,
                "keep_last": 3,
                "keep_best": 1,
                "early_stopping_metric": "bleu",
                "patience": 0,
                "minutes": 0.0,
                "watchdog_minutes": 0.0,
            },
            "eval": {"max_segments": 10},
            "mesh": {"model": 1, "fsdp": False},
            "toy": {"pause": 0.0, "evaluation_pause": 0.0, "dropout": 0.25, "poison": []},
        }
    )
    base.update_from_flattened_dict(changes)
    return base


class Toy:
    """Predict a target token from the mean of the source and the token before it."""

    measures = ("loss", "bleu")
    unit = "tokens"
    next_command = "nmt-jax translate --workdir={workdir}"

    def __init__(self, config: ConfigDict):
        self.config, self.evaluations = config, 0

    def summary(self) -> list[tuple[str, str]]:
        return [("corpus", "none [toy]")]

    def batches(self, steps: int) -> "ToyBatches":
        share = sharding.share(sharding.make_mesh(self.config.mesh.model), self.config.train.accumulate)
        return ToyBatches(steps, self.config.toy.pause, self.config.toy.poison, share)

    def dummy_batch(self, shape: tuple[int, int, int]) -> dict[str, np.ndarray]:
        return {"source": np.ones(shape[:2], np.int32), "target": np.ones((shape[0], shape[2]), np.int32)}

    def init(self, rng: jax.Array) -> Any:
        keys = jax.random.split(rng, 2)
        kernel = jax.random.normal(keys[1], (WIDTH, VOCABULARY))
        embedding = jax.random.normal(keys[0], (VOCABULARY, WIDTH))
        return {"embedding": {"table": embedding}, "output": {"kernel": kernel, "bias": jnp.zeros(VOCABULARY)}}

    def warm_start(self, params: Any) -> Any:
        return params

    def loss_fn(self, params: Any, batch: Any, step: Step | None) -> tuple[jax.Array, jax.Array]:
        source, target = batch["source"], batch["target"]
        mask = (source > 0)[..., None]
        summary = (params["embedding"]["table"][source] * mask).sum(1) / jnp.maximum(mask.sum(1), 1)
        before = jnp.pad(target, ((0, 0), (1, 0)))[:, :-1]
        hidden = jnp.tanh(params["embedding"]["table"][before] + summary[:, None])
        if step and self.config.toy.dropout:
            hidden *= jax.random.bernoulli(step.rng, 1 - self.config.toy.dropout, hidden.shape)
        log_probs = jax.nn.log_softmax(hidden @ params["output"]["kernel"] + params["output"]["bias"][None, None])
        losses = -jnp.take_along_axis(log_probs, target[..., None], -1)[..., 0]
        weights = (target > 0).astype(jnp.float32)
        poison = jnp.where((source == -1).any(), jnp.nan, 0.0)  # a batch that breaks the loss
        return (losses * weights).sum() + poison, weights.sum()

    def evaluate(self, params: Any) -> dict[str, float]:
        self.evaluations += 1
        time.sleep(self.config.toy.evaluation_pause)
        loss, weight = jax.jit(self.loss_fn)(params, ToyBatches(1)[99], None)
        return {"dev/loss": float(loss / weight), "dev/bleu": float(100 * jnp.exp(-loss / weight))}


class ToyBatches:
    """Batch n is drawn from n alone; row lengths run from 1 to the width, and the last row is all padding."""

    shapes = SHAPES

    def __init__(self, steps: int, pause: float = 0.0, poison: Any = (), share: Share = ALL):
        self.steps, self.pause, self.poison, self.share = steps, pause, set(poison), share

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        time.sleep(self.pause)
        rng = np.random.default_rng(index)
        rows, *widths = SHAPES[index % len(SHAPES)]
        batch = {}
        for name, width in zip(("source", "target"), widths, strict=True):
            lengths = rng.integers(1, width + 1, rows)
            lengths[-1] = 0
            tokens = np.sort(rng.integers(1, VOCABULARY, (rows, width)), axis=1)
            batch[name] = np.where(np.arange(width) < lengths[:, None], tokens, 0).astype(np.int32)
        if index in self.poison:
            batch["source"][0, 0] = -1
        return {name: array[self.share.of(rows)] for name, array in batch.items()}


def train(workdir: Path, place: Place | None = None, **changes: Any) -> dict[str, float]:
    """Run the loop in `workdir`."""
    settings = config(**changes)
    card = describe(settings.to_dict(), workdir) if place else None
    with Processes(place, card, join_seconds=30.0, lost_seconds=10.0) as processes:
        return loop.run(settings, workdir, Toy(settings), processes)


def rows(workdir: Path) -> list[dict[str, Any]]:
    """The rows of metrics.jsonl, less what depends on the time of day."""
    lines = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    return [
        {name: row[name] for name in row if name not in ("tokens_per_second", "texts_per_second", "seconds")}
        for row in lines
    ]


if __name__ == "__main__":
    pairs = (argument.split("=", 1) for argument in sys.argv[2:])
    arguments = {key: json.loads(value) for key, value in pairs}
    place = arguments.pop("place", None)
    try:
        train(Path(sys.argv[1]), place and Place(*place), **arguments)
    except UserError as error:
        print(f"nmt-jax: error: {error}", file=sys.stderr)
        sys.exit(2)
