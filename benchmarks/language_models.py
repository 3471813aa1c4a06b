"""Perplexity of language models with the same pieces: GPT, LSTMs that carry their state, Kneser-Ney n-grams.

    python -m benchmarks.language_models FOLDER [--models=gpt,awd_lstm,pointer] [--seeds=0,1] [--orders=3,5] [--test]

The text is the Brown corpus and the validation part of WikiText-2. Of 20 documents of Brown, one is for development and
one for the test; of 10 articles of WikiText-2 as well. All models are trained on the same BPE pieces, the networks for
the same number of tokens. `awd_lstm` is that of Merity et al. (2018), `pointer` the same with a pointer at 100 words.

Prints one line of JSON per model: perplexity per piece of the development text after each evaluation, seconds, and
with `--test` the perplexity and bits per character of the test text. Everything is kept in FOLDER; after an
interruption, the same command goes on. Changes of the configs: `--change=train.steps=500`.
"""

import gzip
import json
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from benchmarks import measure, runs
from nmt_jax.workdir import Workdir

SPLITS = ("train", "dev", "test")
EVERY = {"brown": 20, "wikitext2": 10}  # of so many documents, one is for development and one for the test
ARTICLE = re.compile(r"^ = [^=].* = $")  # the title of an article of WikiText-2
COMMON = {
    "data.train": "train.txt",
    "data.dev": "dev.txt",
    "data.test": "test.txt",
    "vocab.algorithm": "bpe",
    "vocab.size": 8000,
    "optimizer.warmup_steps": 300,
    "optimizer.ema_decay": 0.998,
    "train.batch_tokens": 8192,
    "train.steps": 4500,
    "train.eval_every": 1500,
    "train.checkpoint_every": 500,
}
LSTM = {
    "model.num_layers": 2,
    "model.d_embedding": 256,
    "model.d_hidden": 512,
    "model.dropout": 0.3,
    "model.input_dropout": 0.2,
    "model.hidden_dropout": 0.2,
    "model.weight_dropout": 0.2,
    "optimizer.learning_rate": 3e-3,
}
GPT = {
    "data.block_length": 256,
    "model.num_layers": 4,
    "model.d_model": 256,
    "model.d_ff": 1024,
    "model.dropout": 0.2,
    "eval.context": 128,
    "optimizer.learning_rate": 2e-3,
}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {  # page and changes
    "gpt": ("gpt.py", GPT),
    "awd_lstm": ("awd_lstm.py", LSTM),
    "pointer": ("awd_lstm.py", LSTM | {"model.pointer_window": 100}),
}


def documents(name: str) -> Iterator[list[str]]:
    """Yield the lines of each document of `brown` or `wikitext2`, without empty ones."""
    [path] = (measure.SHARED / "data" / name).glob("*.txt.gz")
    document: list[str] = []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in (one.rstrip("\n") for one in file):
            begins = not line if name == "brown" else ARTICLE.match(line)
            if begins and document:
                yield document
                document = []
            if line.strip():
                document.append(line.strip())
    yield document


def prepare(folder: pathlib.Path) -> None:
    """Write train.txt, dev.txt and test.txt."""
    folder.mkdir(parents=True)
    lines: dict[str, list[str]] = {split: [] for split in SPLITS}
    for name, every in EVERY.items():
        for number, document in enumerate(documents(name)):
            lines[{every - 2: "dev", every - 1: "test"}.get(number % every, "train")] += document
    for split in SPLITS:
        (folder / f"{split}.txt").write_text("".join(f"{line}\n" for line in lines[split]), encoding="utf-8")


def trained(workdir: pathlib.Path, page: str, keys: dict[str, Any]) -> dict[str, Any]:
    """Train in `workdir`, and return the perplexities of the development text and the seconds."""
    runs.train(workdir, page, keys)
    rows = Workdir(workdir).metrics()
    perplexities = [round(row["dev/perplexity"], 2) for row in rows if "dev/perplexity" in row]
    return {"dev_perplexity": perplexities, "seconds": round(max(row.get("seconds", 0) for row in rows))}


def tested(workdir: pathlib.Path, text: pathlib.Path) -> dict[str, float]:
    """Return the measures of `nmt-jax perplexity`: perplexity, and bits per character unless pieces are words."""
    command = [sys.executable, "-m", "nmt_jax", "perplexity", f"--workdir={workdir}", f"--input={text}"]
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=measure.ROOT)
    measures = dict(line.split() for line in finished.stdout.splitlines())
    names = ("perplexity", "bits_per_character")
    return {f"test_{name}": float(measures[name]) for name in names if name in measures}


def ngrams(workdir: pathlib.Path, order: str, test: bool) -> dict[str, Any]:
    """Return the perplexities of a Kneser-Ney model of the pieces of a trained model."""
    command = [sys.executable, "-m", "benchmarks.ngram", f"--workdir={workdir}", f"--order={order}"]
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=measure.ROOT)
    found = json.loads(finished.stdout)
    return {"dev_perplexity": [found["dev"]]} | ({"test_perplexity": found["test"]} if test else {})


def chosen(text: str) -> Iterable[str]:
    """Return the items of a list separated by commas."""
    return filter(None, text.split(","))


def main() -> None:
    parser = runs.parser()
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--orders", default="3,5", help="Orders of n-gram models; empty: none.")
    parser.add_argument("--test", action="store_true", help="Measure the test text as well.")
    options = parser.parse_args()

    folder = options.folder
    if not (folder / "data").exists():
        prepare(folder / "data")
    for model in chosen(options.models):
        page, own = MODELS[model]
        for seed in options.seeds:
            workdir = folder / f"{model}-{seed}"
            keys = {**COMMON, **own, "data.directory": folder / "data", "seed": seed}
            found = trained(workdir, page, keys | dict(options.change))
            if options.test:
                found |= tested(workdir, folder / "data" / "test.txt")
            measure.report(benchmark="language_models", model=model, seed=seed, **found)
    for order in chosen(options.orders):
        found = ngrams(next(folder.glob("*/done")).parent, order, options.test)
        measure.report(benchmark="language_models", model=f"{order}-gram", **found)


if __name__ == "__main__":
    main()
