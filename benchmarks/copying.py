"""What copying gains on names and numbers: RNNs and Transformers with a vocabulary of words, English to German.

    python -m benchmarks.copying FOLDER [--pairs=100000] [--models=rnn,transformer] [--seeds=0,1] [--systems=...]

Text is a sample of Multi30k and Tatoeba, with punctuation apart. Of the names and numbers that are copied in few pairs,
half are hidden from the training part, and half of the pairs of the others; the test part consists of pairs in which
such words are copied. Prints one JSON line per run: BLEU without tokenization, and the recall of copied words, in
percent, that are never or rarely seen in training; with the p-values of paired approximate randomization against the
runs `none` and `pointer` of the same model and seed. `coverage` is a pointer that is trained with the coverage loss in
the last fifth of its steps (See et al., 2017, section 5), `selective` a CopyNet that reads what it has copied.
Everything is kept in FOLDER; after an interruption, the same command goes on. Changes of the config:
`--change=train.steps=3000`.
"""

import argparse
import collections
import dataclasses
import gzip
import pathlib
import re
import zlib
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from benchmarks import measure, runs

RARE = 10  # pairs in which a rare word occurs, at most
DEV_SIZE = 500
CONFIG = {
    "data.source": "en",
    "data.target": "de",
    "data.max_length": 50,
    "model.max_unknown": 20,
    "optimizer.schedule": "inverse_sqrt",  # does not depend on the number of steps, which grows for `coverage`
    "optimizer.warmup_steps": 200,
    "train.batch_tokens": 1024,
    "train.steps": 2000,
    "train.eval_every": 500,
    "train.checkpoint_every": 250,
    "eval.max_segments": 0,
    "decode.max_length_ratio": 1.5,
}
COVERAGE = {"rnn": {"model.coverage": "true"}, "transformer": {}}  # a Transformer has the loss only
SYSTEMS = {
    "none": {"model.copying": "none"},
    "pointer": {"model.copying": "pointer"},
    "coverage": {"model.copying": "pointer"},
    "copynet": {"model.copying": "copynet"},
    "selective": {"model.copying": "copynet", "model.selective_read": "true"},
}
ONLY_RNN = ("copynet", "selective")

Pair = tuple[str, str]
Counts = collections.Counter[str]


def corpus(pairs: int) -> list[Pair]:
    """Return the first pairs of Multi30k and Tatoeba in the order of their check sums, words and marks apart."""
    data = measure.SHARED / "data"
    captions = (read_gzip(data / "multi30k" / f"train.{language}.gz") for language in ("en", "de"))
    found = [*zip(*captions, strict=True), *map(columns, read_gzip(data / "tatoeba" / "eng-deu.train.tsv.gz"))]
    texts = {(apart(source), apart(target)) for source, target in found}
    return sorted(texts, key=lambda pair: (check_sum("\t".join(pair)), pair))[:pairs]


def read_gzip(path: pathlib.Path) -> list[str]:
    """Return the lines of a compressed file."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().split("\n")[:-1]


def columns(line: str) -> Pair:
    """Return the English and the German sentence of a line of Tatoeba."""
    source, target = line.split("\t")[:2]
    return source, target


def apart(text: str) -> str:
    """Return a text with blanks between words and marks."""
    return " ".join(re.findall(r"\w+|[^\w\s]", text))


def check_sum(text: str) -> int:
    """Return a number that decides where a text belongs."""
    return zlib.crc32(text.encode())


def words(pair: Pair) -> set[str]:
    """Return the words of both sides."""
    return {*pair[0].split(), *pair[1].split()}


def copied(pair: Pair) -> Counts:
    """Return the words that stand on both sides and begin with a capital or a digit."""
    both = collections.Counter(pair[0].split()) & collections.Counter(pair[1].split())
    return collections.Counter({word: n for word, n in both.items() if word[0].isupper() or word[0].isdigit()})


def split(pairs: Sequence[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Return (training, test) pairs; no sentence is in both."""
    counts = collections.Counter(word for pair in pairs for word in words(pair))
    rare = {word for pair in pairs for word in copied(pair) if counts[word] <= RARE}
    hidden = {word for word in rare if check_sum(word) % 2}
    training: list[Pair] = []
    test: list[Pair] = []
    balance: Counts = collections.Counter()  # of the other rare words: training pairs minus test pairs
    for pair in pairs:
        names = rare & copied(pair).keys()
        if names & hidden or any(balance[word] > 0 for word in names):
            test.append(pair)
            balance.subtract(names)
        elif not words(pair) & hidden:  # else a hidden word is translated, or added
            training.append(pair)
            balance.update(names)
    sources, targets = ({pair[side] for pair in test} for side in (0, 1))
    return [pair for pair in training if pair[0] not in sources and pair[1] not in targets], test


def prepare(data: pathlib.Path, pairs: int) -> None:
    """Write the parts of the corpus."""
    training, test = split(corpus(pairs))
    data.mkdir(parents=True, exist_ok=True)
    for name, part in ("val", training[:DEV_SIZE]), ("train", training[DEV_SIZE:]), ("test", test):
        for language, texts in zip(("en", "de"), zip(*part, strict=True), strict=True):
            (data / f"{name}.{language}").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")


@dataclasses.dataclass(frozen=True)
class Recall:
    """The recall of copied words that occur in `low` to `high` training pairs, in percent."""

    counts: Counts
    low: int
    high: int
    higher_is_better: ClassVar[bool] = True

    def statistics(self, hypotheses: Sequence[str], pairs: Sequence[Pair]) -> np.ndarray:
        """Numbers of found and of all such words of each pair, float[N, 2]."""
        rows = []
        for hypothesis, pair in zip(hypotheses, pairs, strict=True):
            names = collections.Counter(
                {word: n for word, n in copied(pair).items() if self.low <= self.counts[word] <= self.high}
            )
            rows.append([(names & collections.Counter(hypothesis.split())).total(), names.total()])
        return np.array(rows, float)

    def score(self, statistics: np.ndarray) -> np.ndarray:
        """Sums float[..., 2] -> recall in percent; 0 if there is no such word."""
        return 100 * statistics[..., 0] / np.maximum(statistics[..., 1], 1)


def train(workdir: pathlib.Path, model: str, system: str, keys: dict[str, object]) -> None:
    """Train a model, unless that is done; `coverage` in two stages, of which the second continues the first."""
    stages: list[dict[str, object]] = [keys]
    if system == "coverage":
        keys = {**keys, **COVERAGE[model]}
        steps = int(str(keys["train.steps"]))
        stages = [{**keys, "train.steps": steps - steps // 5}, {**keys, "loss.coverage": 1.0}]
    for number, stage in enumerate(stages):
        runs.train(workdir, f"copy_summarize.py:model={model}", stage, marker=f"stage{number}")


def systems(options: argparse.Namespace) -> Iterator[tuple[str, int, str]]:
    """Yield the model, the seed and the system of each run, baselines first."""
    for model in options.models.split(","):
        for seed in options.seeds:
            for system in options.systems.split(","):
                if model == "rnn" or system not in ONLY_RNN:
                    yield model, seed, system


def main() -> None:
    parser = runs.parser()
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--models", default="rnn,transformer")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help=", ".join(SYSTEMS))
    options = parser.parse_args()

    from metrics_jax import BLEU
    from metrics_jax.significance import paired_randomisation

    data = options.folder / "data"
    runs.keep_options(options.folder, pairs=options.pairs)
    if not (data / "test.de").exists():
        prepare(data, options.pairs)
    pairs = [*zip(runs.read(data / "test.en"), runs.read(data / "test.de"), strict=True)]
    sizes = {"training_pairs": len(runs.read(data / "train.en")), "test_pairs": len(pairs)}
    training = zip(runs.read(data / "train.en"), runs.read(data / "train.de"), strict=True)
    counts = collections.Counter(word for pair in training for word in words(pair))
    metrics = {"bleu": BLEU("none"), "never": Recall(counts, 0, 0), "rarely": Recall(counts, 1, RARE)}
    found: dict[tuple[str, str, int, str], np.ndarray] = {}
    for model, seed, system in systems(options):
        workdir = options.folder / f"{model}-{system}-{seed}"
        keys = {"data.directory": data, "seed": seed, **CONFIG, **SYSTEMS[system], **dict(options.change)}
        train(workdir, model, system, keys)
        hypotheses = runs.translated(workdir, data / "test.en")
        figures: dict[str, float | None] = {}
        for name, metric in metrics.items():
            references = [target for _, target in pairs] if name == "bleu" else pairs
            statistics = found[name, model, seed, system] = metric.statistics(hypotheses, references)
            figures[name] = float(metric.score(statistics.sum(axis=0)))
            for baseline in ("none", "pointer"):
                other = found.get((name, model, seed, baseline))
                if other is not None and system != baseline:
                    compared = {baseline: other, system: statistics}
                    p_value = paired_randomisation(metric, compared, baseline, trials=1000)[1].p_value
                    figures[f"{name}_p_{baseline}"] = p_value
        measure.report(benchmark="copying", model=model, system=system, seed=seed, **figures, **sizes)


if __name__ == "__main__":
    main()
