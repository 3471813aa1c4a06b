"""Loss curves in the precision of accelerators beside those in float32, executed on a CPU.

    python -m benchmarks.precision_curves --folder=FOLDER [--steps=400] [--dropout=0.0] [--output=curves.png]

Two models, each trained twice from one seed on the same batches: the Transformer of `configs/multi30k.py` on Multi30k,
and a BERT of 3 layers on its German captions. One run is in float32 with the choices for CPUs, the other in bfloat16
with those for accelerators (`nmt_jax.platforms`). Without dropout (the default) both compute the same function;
platforms draw different masks. Runs are continued from FOLDER after an interruption.

One JSON line per model: the loss of both runs (the mean of the last tenth of the steps), their mean and largest
relative difference over the second half, and the dev losses. The picture has one column per model.
"""

import argparse
import gzip
import pathlib
import time
from typing import Any

import numpy as np

from benchmarks import measure

DATA = measure.SHARED / "data" / "multi30k"
PAIR = ("float32", "bfloat16")
CAPTIONS = 8  # per document of the BERT
COMMON = {"log_every": 1, "keep_last": 1, "early_stopping_metric": "loss"}
SMOOTHING = 9  # steps, of the lines in the picture


def captions(folder: pathlib.Path) -> pathlib.Path:
    """Write the German captions of Multi30k as documents, and return the file."""
    path = folder / "captions.txt"
    with gzip.open(DATA / "train.de.gz", "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()
    documents = ("\n".join(lines[first : first + CAPTIONS]) for first in range(0, len(lines), CAPTIONS))
    path.write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    return path


def changes(steps: int, dropout: float, folder: pathlib.Path) -> dict[str, dict[str, Any]]:
    """Return the changed config keys of each page; the models and batches are small enough for a CPU."""
    warmup = max(steps // 2, 1)
    train = {"steps": steps, "eval_every": steps, "checkpoint_every": max(steps // 4, 1), "batch_tokens": 1024}
    common = {f"train.{key}": value for key, value in {**COMMON, **train}.items()}
    common |= {"model.dropout": dropout, "optimizer.warmup_steps": warmup}
    bert = {"num_layers": 3, "d_model": 128, "d_ff": 512, "attention_dropout": dropout, "next_sentence": False}
    bert = {f"model.{key}": value for key, value in bert.items()}
    text = captions(folder)
    bert |= {"data.directory": text.parent, "data.train": f'["{text.name}"]', "data.running": "[]"}
    return {
        "multi30k": common | {"data.directory": DATA, "eval.max_segments": 0, "train.patience": 0},
        "bert_tiny": common | bert | {"optimizer.learning_rate": 3e-3},
    }


def trained(page: str, workdir: pathlib.Path, given: dict[str, Any], dtype: str) -> list[dict[str, Any]]:
    """Train a page in `workdir` in a precision, and return the rows of its log."""
    from nmt_jax import platforms
    from nmt_jax.training.run import train
    from nmt_jax.workdir import Workdir

    chosen = platforms.CPU if dtype == "float32" else platforms.ACCELERATOR
    settings = {key: str(value) for key, value in (given | {"model.dtype": dtype}).items()}
    with platforms.use(chosen):
        train(str(measure.ROOT / "configs" / f"{page}.py"), workdir, settings)
    return Workdir(workdir).metrics()


def losses(rows: list[dict[str, Any]]) -> np.ndarray:
    """Return the training loss of every step, float[steps]."""
    return np.array([row["loss"] for row in rows if "loss" in row])


def figures(runs: dict[str, list[dict[str, Any]]]) -> dict[str, float]:
    """Return the losses of two runs and their relative differences."""
    ours = [losses(runs[dtype]) for dtype in PAIR]
    last = max(len(ours[0]) // 10, 1)
    difference = np.abs(ours[1] / ours[0] - 1)[len(ours[0]) // 2 :]
    found = {f"loss_{dtype}": float(one[-last:].mean()) for dtype, one in zip(PAIR, ours, strict=True)}
    found |= {f"dev_loss_{dtype}": [row["dev/loss"] for row in runs[dtype] if "dev/loss" in row][-1] for dtype in PAIR}
    return found | {"mean_difference": float(difference.mean()), "largest_difference": float(difference.max())}


def drawn(runs: dict[str, dict[str, list[dict[str, Any]]]]) -> Any:
    """Return the figure: the losses of each model in both precisions, and below them their relative difference."""
    from nmt_jax.reporting.plots.style import SYSTEMS, new_figure

    figure = new_figure(10.0, 5.2, layout="constrained")
    panels = figure.subplots(2, len(runs), sharex=True, height_ratios=(3, 1), squeeze=False)
    for (page, both), (above, below) in zip(runs.items(), panels.T, strict=True):
        curves = [losses(both[dtype]) for dtype in PAIR]
        window = np.ones(min(SMOOTHING, len(curves[0]))) / min(SMOOTHING, len(curves[0]))
        steps = np.arange(1, len(curves[0]) + 1)
        names = ("float32, CPU", "bfloat16, accelerator")
        for curve, name, color, style in zip(curves, names, SYSTEMS[1::-1], ("-", "--"), strict=True):
            smooth = np.convolve(curve, window, mode="valid")
            first = (len(curve) - len(smooth)) // 2
            above.plot(steps[first : first + len(smooth)], smooth, style, color=color, linewidth=1.8, label=name)
        above.set_title(f"training loss of configs/{page}.py (nats per token)")
        above.legend(frameon=False)
        below.plot(steps, 100 * (curves[1] / curves[0] - 1), color=SYSTEMS[5], linewidth=0.8)
        below.set_title("difference of each step, %", fontsize=8)
        below.set_xlabel("step")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="Folder of the workdirs.")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--pages", default="multi30k,bert_tiny")
    parser.add_argument("--output", type=pathlib.Path, help="Picture; by default curves.png in the folder.")
    options = parser.parse_args()

    from nmt_jax.reporting.plots.style import check_output, drawing, save

    options.folder.mkdir(parents=True, exist_ok=True)
    folder = options.folder.resolve()
    output = check_output(options.output or folder / "curves.png")
    runs: dict[str, dict[str, list[dict[str, Any]]]] = {}
    given = changes(options.steps, options.dropout, folder)
    for page in options.pages.split(","):
        start = time.perf_counter()
        runs[page] = {dtype: trained(page, folder / f"{page}-{dtype}", given[page], dtype) for dtype in PAIR}
        seconds = time.perf_counter() - start
        measure.report(
            benchmark="precision_curves", page=page, steps=options.steps, seconds=seconds, **figures(runs[page])
        )
    with drawing():
        save(drawn(runs), output)


if __name__ == "__main__":
    main()
