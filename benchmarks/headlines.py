"""Headlines for AG news: what pretraining by denoising gains, beside the first words of the description.

    python -m benchmarks.headlines FOLDER [--models=transformer] [--systems=scratch,denoised] [--seeds=0,1] \
        [--folds=0] [--split=test] [--search=length_penalty=1.5] [--lead=8]

The models have a pointer (`configs/copy_summarize.py`; `--models=transformer,rnn` trains both kinds). They read the
description of a news item and write its title. `denoised` first restores lines of the training descriptions, Brown and
WikiText-2 in which `nmt-jax augment --kind=infill` has masked spans. This is done once, with the descriptions of the
training items of fold 0; the seeds are those of the training on titles.

There are eight folds. Each holds out another eighth of the items, half of it for development. With `--folds=0,1`, a
model is trained for each of the two folds, and the figures are those of the test titles of both together. With
`--split=val`, they are those of the development titles, for choosing a search. `--search` sets an option of
`nmt-jax translate`; it can be repeated. `--lead` is the number of words of the lead.

Prints one JSON line per run, the `lead` first: mean number of words, ROUGE, chrF and METEOR of the headlines, half the
width of the 95 % bootstrap interval, and p-values of paired approximate randomization against the lead and against
`scratch` of the same model and seed. Everything is kept in FOLDER; after an interruption, the same command goes on.
Changes of the config: `--change=train.steps=20`.
"""

import csv
import gzip
import html
import itertools
import pathlib
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from benchmarks import measure, runs
from benchmarks.question_answering import lines, wikitext
from metrics_jax.meteor.meteor import Meteor
from metrics_jax.significance import bootstrap, paired_randomisation
from metrics_jax.surface.tokenizers import tokenize
from metrics_jax.surface.wordnet import WordNet
from nmt_jax.augmentation.answer_spans import sentences
from nmt_jax.pretrained.metrics import open_metric

ITEMS = measure.SHARED / "data" / "ag_news" / "ag_news.train.tsv.gz"
MARKS = {" #39;": "'", "quot;": '"', "\\": " "}
FOLDS = 8
WORDS = (5, 60)  # of a line to be restored
MODELS: dict[str, dict[str, Any]] = {
    "transformer": {"model.num_encoder_layers": 2, "model.num_decoder_layers": 2, "model.dropout": 0.1},
    "rnn": {},
}
DENOISING: dict[str, Any] = {
    "model.dropout": 0.1,
    "optimizer.learning_rate": 2e-3,
    "train.batch_tokens": 2048,
    "train.steps": 3000,
    "train.eval_every": 500,
    "train.checkpoint_every": 500,
    "eval.max_segments": 0,
}
METRICS = {
    **{name: open_metric(name) for name in ("rouge1", "rouge2", "rougeL", "chrf")},
    "meteor": Meteor(wordnet=WordNet(measure.SHARED / "data" / "wordnet3.0")),
}


def clean(text: str) -> str:
    """Return a text without the remains of mark-up."""
    text = re.sub("|".join(map(re.escape, MARKS)), lambda mark: MARKS[mark[0]], text)
    return re.sub("<[^<>]*>", " ", html.unescape(text))


def tokenized(texts: Iterable[str]) -> list[str]:
    """Return texts in lower case, with blanks between words and punctuation."""
    return [" ".join(words) for words in tokenize(list(texts), "13a", lowercase=True)]


def other_sentences() -> Iterator[str]:
    """Yield the sentences of Brown and of WikiText-2."""
    yield from filter(None, lines("brown/brown.train.txt.gz"))
    for paragraph in wikitext():
        for start, end in sentences(paragraph):
            yield paragraph[start:end]


def write(folder: pathlib.Path, split: str, descriptions: list[str], titles: list[str]) -> None:
    """Write the two files of a split."""
    folder.mkdir(parents=True, exist_ok=True)
    for side, texts in ("description", descriptions), ("title", titles):
        (folder / f"{split}.{side}").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")


def prepare(folder: pathlib.Path) -> None:
    """Write the folds, and the lines to be restored: Brown and WikiText-2 once, the descriptions four times."""
    with gzip.open(ITEMS, "rt", encoding="utf-8", newline="\n") as file:
        rows = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]
    titles, descriptions = (tokenized(clean(row[column]) for row in rows) for column in (1, 2))
    for fold in range(FOLDS):
        held_out = range(fold, len(rows), FOLDS)
        train = [n for n in range(len(rows)) if n not in held_out]
        for split, numbers in ("train", train), ("val", held_out[1::2]), ("test", held_out[::2]):
            parts = [[texts[n] for n in numbers] for texts in (descriptions, titles)]
            write(folder / f"data-{fold}", split, *parts)
    own = runs.read(folder / "data-0" / "train.description")
    texts = [text for text in [*tokenized(other_sentences()), *own * 4] if WORDS[0] <= len(text.split()) <= WORDS[1]]
    texts.sort(key=lambda text: zlib.crc32(text.encode()))
    for split, part in ("val", texts[:500]), ("train", texts[500:]):
        write(folder / "clean", split, part, part)
        sides = [
            f"--{flag}={folder / 'clean' / split}.{side}"
            for flag, side in (("source", "description"), ("target", "title"))
        ]
        flags = ["--kind=infill", "--rate=0.3", "--keep_unchanged", "--overwrite"]
        runs.nmt_jax("augment", *flags, *sides, f"--output={folder / 'denoising' / split}")


def trained(
    folder: pathlib.Path, model: str, system: str, fold: int, seed: int, change: dict[str, Any]
) -> pathlib.Path:
    """Train a model on a fold, unless that is done; returns its workdir."""
    page, common = f"copy_summarize.py:model={model}", MODELS[model] | {"vocab.size": 6000}
    first = folder / f"{model}-pretrained"
    runs.train(first, page, {**common, **DENOISING, "data.directory": folder / "denoising", **change})
    workdir, data = folder / f"{model}-{system}-{fold}-{seed}", folder / f"data-{fold}"
    keys = {**common, "data.directory": data, "seed": seed}
    keys["vocab.source_model"] = first / "vocab" / "joint.model"  # `scratch` has the same vocabulary
    if system == "denoised":
        keys |= {"init_from": first, "optimizer.learning_rate": 5e-4}
    runs.train(workdir, page, keys | change)
    return workdir


def main() -> None:
    parser = runs.parser()
    parser.add_argument("--models", default="transformer")
    parser.add_argument("--systems", default="scratch,denoised")
    parser.add_argument("--folds", type=runs.numbers, default="0")
    parser.add_argument("--split", default="test", choices=("val", "test"))
    parser.add_argument("--search", type=runs.change, action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--lead", type=int, default=8)
    options = parser.parse_args()

    if not set(options.folds) <= set(range(FOLDS)):
        parser.error(f"--folds: choose from 0 to {FOLDS - 1}")
    folder, folds, change = options.folder, options.folds, dict(options.change)
    search = [f"--{key}={value}" for key, value in options.search]
    if not (folder / "denoising" / "train.title").exists():
        prepare(folder)
    titles, descriptions = (
        [text for fold in folds for text in runs.read(folder / f"data-{fold}" / f"{options.split}.{side}")]
        for side in ("title", "description")
    )
    found: dict[tuple[str, str | None, str, int | None], np.ndarray] = {}

    def report(model: str | None, system: str, seed: int | None, texts: list[str]) -> None:
        figures: dict[str, float | None] = {"words": float(np.mean([len(text.split()) for text in texts]))}
        for name, metric in METRICS.items():
            own = found[name, model, system, seed] = metric.statistics(texts, titles)
            interval = bootstrap(metric, own)
            figures |= {name: interval.score, f"{name}_half_width": interval.half_width}
            for baseline, key in ("lead", (name, None, "lead", None)), ("scratch", (name, model, "scratch", seed)):
                if system != baseline and (other := found.get(key)) is not None:
                    pair = {baseline: other, system: own}
                    figures[f"{name}_p_{baseline}"] = paired_randomisation(metric, pair, baseline)[1].p_value
        measure.report(benchmark="headlines", split=options.split, model=model, system=system, seed=seed, **figures)

    report(None, "lead", None, [" ".join(text.split()[: options.lead]) for text in descriptions])
    for model, seed in itertools.product(options.models.split(","), options.seeds):
        for system in options.systems.split(","):
            texts: list[str] = []
            for fold in folds:
                source = folder / f"data-{fold}" / f"{options.split}.description"
                texts += runs.translated(trained(folder, model, system, fold, seed, change), source, *search)
            report(model, system, seed, texts)


if __name__ == "__main__":
    main()
