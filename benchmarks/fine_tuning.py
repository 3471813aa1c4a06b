"""GPT and BERT of the same size, pretrained on the same text, fine-tuned on CoLA, SST-2, MRPC and the STS benchmark.

    python -m benchmarks.fine_tuning FOLDER [--models=bert,gpt] [--tasks=cola,sst2,mrpc,stsb] [--seeds=0,1] [--select]

BERT is that of `configs/bert_tiny.py`. GPT reads the same documents in rows of the same length, and as many batches of
as many tokens. Both are fine-tuned with `configs/glue.py` for the same steps; the last weights count.

Prints one line of JSON per pretraining: perplexity and seconds. And one per fine-tuning: the measure of the task on
its development file, the bounds of its 95 % bootstrap interval, and for the second model the p-value of a paired
permutation test against the first one with the same seed. With `--select`, a tenth of the training file takes the place
of the development file: for choosing hyperparameters. Everything is kept in FOLDER; after an interruption, the same
command goes on. Changes of the fine-tunings: `--change=train.steps=20`.
"""

import functools
import itertools
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from benchmarks import measure, runs
from benchmarks.language_models import trained
from metrics_jax.prediction.classification import accuracy, matthews, precision_recall_f1
from metrics_jax.prediction.correlation import spearman
from nmt_jax.config import load
from nmt_jax.data.readers.labelled import Labelled, open_labelled
from nmt_jax.data.readers.monolingual import open_documents
from nmt_jax.workdir import Workdir

DATA = measure.SHARED / "data"
MEASURES = {"cola": "matthews", "sst2": "accuracy", "mrpc": "f1", "stsb": "spearman"}
LEARNING_RATE = 3e-4  # of both: the best on a tenth of the training file of SST-2
LENGTH = 64  # tokens per row, in pretraining and in the tasks
PRETRAINING: dict[str, tuple[str, dict[str, Any]]] = {  # page and changes
    "bert": ("bert_tiny.py", {"data.directory": DATA}),
    "gpt": (
        "gpt.py",
        {
            "data.train": "train.txt",
            "data.dev": "dev.txt",
            "data.dev_share": 0.0,
            "data.test_share": 0.0,
            "data.block_length": LENGTH,
            "vocab.algorithm": "bpe",
            "vocab.size": 8000,
            "model.num_layers": 4,
            "model.d_model": 256,
            "model.d_ff": 1024,
            "model.dropout": 0.0,
            "model.attention_dropout": 0.0,
            "optimizer.learning_rate": 2e-3,
            "optimizer.warmup_steps": 300,
            "train.batch_tokens": 2048,
            "train.steps": 4000,
            "train.eval_every": 2000,
        },
    ),
}


def prepare(data: pathlib.Path) -> None:
    """Write the text of BERT as lines, and the files of the tasks."""
    data.mkdir(parents=True)
    config = load(str(measure.ROOT / "configs" / "bert_tiny.py"), {"data.directory": str(DATA)})
    for split in ("train", "dev"):
        lines = [line for document in open_documents(config.data, split) for line in document]
        (data / f"{split}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for task in MEASURES:
        for path in (DATA / task).glob("*.tsv"):
            (data / path.name).write_bytes(path.read_bytes())


def pretrained(folder: pathlib.Path, model: str) -> dict[str, Any]:
    """Train a model on plain text; returns the last perplexity of the development text, and the seconds."""
    page, own = PRETRAINING[model]
    found = trained(folder / model, page, {"data.directory": folder / "data", **own})
    return found | {"dev_perplexity": found["dev_perplexity"][-1]}


def predictions(workdir: pathlib.Path, texts: Sequence[Labelled]) -> list[str]:
    """Return the predictions of the last weights, made unless they exist."""
    inputs, output = workdir / "texts.tsv", workdir / "predictions.txt"
    if not output.exists():
        inputs.write_text("".join("\t".join(text.sentences) + "\n" for text in texts), encoding="utf-8")
        runs.nmt_jax("classify", f"--workdir={workdir}", "--checkpoint=last", f"--input={inputs}", f"--output={output}")
    return runs.read(output)


def value(task: str, predicted: np.ndarray, labels: np.ndarray) -> float:
    """The measure of a task, times 100; `predicted` and `labels` are numbers."""
    if task == "cola":
        return 100 * matthews(predicted, labels)
    if task == "sst2":
        return 100 * accuracy(predicted, labels)
    if task == "mrpc":
        return 100 * precision_recall_f1(predicted, labels).f1
    return 100 * float(spearman(predicted, labels))


def p_value(task: str, one: np.ndarray, other: np.ndarray, labels: np.ndarray) -> float:
    """The p-value of a paired permutation test: the predictions of two systems change places at random."""

    def difference(one: np.ndarray, other: np.ndarray) -> float:
        return value(task, one, labels) - value(task, other, labels)

    options = {"permutation_type": "samples", "vectorized": False, "n_resamples": 1000, "rng": 0}
    return float(stats.permutation_test((one, other), difference, **options).pvalue)


def interval(task: str, predicted: np.ndarray, labels: np.ndarray) -> list[float]:
    """The bounds of a 95 % bootstrap interval over texts."""
    function = functools.partial(value, task)
    options = {"paired": True, "vectorized": False, "n_resamples": 1000, "method": "percentile", "rng": 0}
    low, high = stats.bootstrap((predicted, labels), function, **options).confidence_interval
    return [round(float(low), 1), round(float(high), 1)]


def main() -> None:
    parser = runs.parser()
    parser.add_argument("--models", default="bert,gpt")
    parser.add_argument("--tasks", default=",".join(MEASURES))
    parser.add_argument("--select", action="store_true", help="Measure on a tenth of the training file.")
    options = parser.parse_args()

    folder, models = options.folder, options.models.split(",")
    if not (folder / "data").exists():
        prepare(folder / "data")
    for model in models:
        measure.report(benchmark="fine_tuning", model=model, **pretrained(folder, model))
    held_out = {"data.dev": "", "data.folds": 10} if options.select else {}
    changes = held_out | dict(options.change)
    for task, seed in itertools.product(options.tasks.split(","), options.seeds):
        found: dict[str, np.ndarray] = {}
        for model in models:
            changed = [f"{key}={value}".replace("/", "_") for key, value in changes.items()]
            workdir = folder / "-".join([model, task, str(seed), *changed])
            keys = {"data.directory": folder / "data", "data.max_length": LENGTH, "encoder.place": folder / model}
            keys |= {"optimizer.learning_rate": LEARNING_RATE, "seed": seed}
            page = f"glue.py:task={task}{',gpt=true' if model == 'gpt' else ''}"
            runs.train(workdir, page, keys | changes)
            texts = list(open_labelled(Workdir(workdir).config().data, "dev"))
            labels = np.array([text.label for text in texts], float)
            found[model] = np.array(predictions(workdir, texts), float)
            figures = {
                MEASURES[task]: value(task, found[model], labels),
                "interval": interval(task, found[model], labels),
            }
            if model != models[0]:
                figures["p"] = p_value(task, found[models[0]], found[model], labels)
            measure.report(benchmark="fine_tuning", model=model, task=task, seed=seed, **figures)


if __name__ == "__main__":
    main()
