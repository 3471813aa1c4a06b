"""Share of padding, and rows per epoch, with packing and without, on the text of a config.

    python -m benchmarks.packing configs/multi30k.py data.directory=DIRECTORY [KEY=VALUE ...]

Prints one line of JSON. Nothing is trained but a vocabulary, unless the config names one. `places` is the number of all
tokens of the batches of an epoch, padding included; of a translation, on both sides. `cpu_seconds` is the time in which
rows are planned. A language model without packing reads running text instead of lines.
"""

import argparse
import math
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import measure

SIDES = {"translate": ("source", "target"), "language_model": ("weights",), "pretrain": ("ids",)}  # arrays, by task


def measured(page: str, changes: dict[str, str], folder: Path) -> dict[str, Any]:
    """Return the figures of an epoch of a config."""
    from nmt_jax import config as configs
    from nmt_jax.distributed import sharding
    from nmt_jax.tasks.registry import make_task

    task = make_task(configs.load(page, changes), folder / "workdir", sharding.make_mesh())
    task.batches(1)  # reads and prepares the text
    start = time.process_time()
    batches = task.batches(1)
    seconds = time.process_time() - start
    epoch = task.batches(batches.batches_per_epoch)
    shapes = [[epoch[number][name].shape for name in SIDES[task.config.task]] for number in range(len(epoch))]
    return {
        "padding": {name: round(share, 4) for name, share in batches.padding.items()},
        "batches": len(shapes),
        "rows": sum(sides[0][0] for sides in shapes),
        "places": sum(math.prod(side) for sides in shapes for side in sides),
        "shapes": [list(shape) for shape in batches.shapes],
        "cpu_seconds": round(seconds, 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("config", help="Config page.")
    parser.add_argument("changes", nargs="*", metavar="KEY=VALUE", help="Keys to change.")
    options = parser.parse_args()
    changes = dict(change.split("=", 1) for change in options.changes)
    with tempfile.TemporaryDirectory() as folder:
        found = {
            name: measured(options.config, {"data.cache": folder, **changes, "data.packing": packing}, Path(folder))
            for name, packing in (("without", "false"), ("packed", "true"))
        }
    measure.report(benchmark="packing", config=options.config, **found)


if __name__ == "__main__":
    main()
