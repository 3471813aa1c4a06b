"""How well a model describes, translates or finds the embedded scenes, or answers questions, and where it looks.

    python -m benchmarks.scenes WORKDIR [--split=test] [--scenes=1000] [--beam_size=5] [--pictures=other]

WORKDIR: of configs/captioning.py or similar. Prints one JSON line. Of a model that describes images:

- exact: captions that are right as a whole, in percent, and right but for the words of one kind: size, colour, shape;
- words: of size, colour and shape that are right, in percent of those in the captions with the right number of words;
- pointing: the pointing game (Zhang et al., 2016) on the words for size, colour and shape of the true captions: how
  often the patch with most attention overlaps the box of the object that the word describes; `pointing_centre`: its
  centre lies in the box; `pointing_chance`: a random patch overlaps the box. Boxes are never used in training.

Of a model that translates sentences, with or without their images:

- meaning: ambiguous words that got the translation that the image shows, in percent; `other_meaning`: the other one;
- bleu_plain, bleu_ambiguous: BLEU of the sentences without and with such a word. `--pictures=other` gives each sentence
  the image of the next one.

Of a model that answers questions, with or without their images:

- accuracy, and accuracy_KIND: right answers in percent, of all questions and of each kind, such as "colour";
- most_frequent, and most_frequent_KIND: the same of the answer that is the most frequent of its kind in training.

Of a model that finds images (configs/retrieval.py:scenes=true), among the first scenes with different captions:

- images_recall_K, captions_recall_K: the image of a caption, or the caption of an image, is among the first K found, in
  percent; images_interval, captions_interval: the 95 % bootstrap interval of the recall at 1.

`--split=known` has new scenes with the combinations of shape and colour of the training scenes.
"""

import argparse
import collections
import pathlib
from collections.abc import Sequence

import numpy as np

from benchmarks import measure
from nmt_jax.data import scenes
from nmt_jax.data.readers import sources
from nmt_jax.data.readers.images import scene_name

KINDS = ("size", "colour", "shape")  # the words of an object, in this order
SAMPLES = 1000  # of a bootstrap interval
TRAINED = 2000  # training questions that the most frequent answers are counted in


def described(words: Sequence[tuple[str, int | None]]) -> list[str | None]:
    """The kind of each word of a caption; None for words that describe no object."""
    counts: collections.Counter[int] = collections.Counter()
    kinds: list[str | None] = []
    for _, number in words:
        kinds.append(None if number is None else KINDS[counts[number]])
        counts.update([] if number is None else [number])
    return kinds


def caption_figures(found: Sequence[str], expected: Sequence[scenes.Scene], language: str) -> dict[str, float]:
    """Shares of right captions, and of right words of each kind, in percent."""
    right: collections.Counter[str] = collections.Counter()
    total: collections.Counter[str] = collections.Counter()
    for text, scene in zip(found, expected, strict=True):
        words, hypothesis = scene.words(language), text.split()
        comparable = len(hypothesis) == len(words)
        wrong = {
            kind
            for (word, _), kind, other in zip(words, described(words), hypothesis, strict=False)
            if comparable and word != other
        }
        right["exact"] += comparable and not wrong
        for kind in KINDS:
            right[f"exact_without_{kind}"] += comparable and wrong <= {kind}
        total.update(["exact", *(f"exact_without_{kind}" for kind in KINDS)])
        for (word, _), kind, other in zip(words, described(words), hypothesis, strict=False):
            if comparable and kind:
                total[f"words_{kind}"] += 1
                right[f"words_{kind}"] += word == other
    return {name: 100 * right[name] / total[name] for name in total}


def pointing(attention: np.ndarray, box: Sequence[int], size: int) -> tuple[bool, bool, float]:
    """Whether the patch with most attention overlaps a box, whether its centre lies in it, and the chance to overlap.

    attention float[C, C] of the patches; box: left, top, right, bottom in an image of `size` pixels, as `Object.box`.
    """
    columns = attention.shape[0]
    side = size / columns
    edges = np.arange(columns) * side
    left, top, right, bottom = box
    across, down = ((edges < high) & (edges + side > low) for low, high in ((left, right), (top, bottom)))
    row, column = np.unravel_index(np.argmax(attention), attention.shape)
    x, y = (column + 0.5) * side, (row + 0.5) * side
    inside = left <= x < right and top <= y < bottom
    return bool(across[column] and down[row]), bool(inside), float(across.mean() * down.mean())


def pointing_figures(
    attention: Sequence[np.ndarray], expected: Sequence[scenes.Scene], language: str, size: int, columns: int
) -> dict[str, float]:
    """The pointing game over all words that describe an object, in percent, and by the kind of word.

    attention: of each scene, float[T, S] of a vocabulary of words; the S places begin with those of the image.
    """
    hits = collections.defaultdict(list)
    for weights, scene in zip(attention, expected, strict=True):
        words, boxes = scene.words(language), scene.boxes(size)
        for row, (_, number), kind in zip(weights, words, described(words), strict=False):
            if number is not None:
                overlaps, inside, chance = pointing(row[: columns**2].reshape(columns, columns), boxes[number], size)
                hits["pointing"].append(overlaps)
                hits[f"pointing_{kind}"].append(overlaps)
                hits["pointing_centre"].append(inside)
                hits["pointing_chance"].append(chance)
    return {name: 100 * float(np.mean(values)) for name, values in hits.items()}


def meaning_figures(found: Sequence[str], expected: Sequence[scenes.Scene]) -> dict[str, float]:
    """How often a German translation has the noun that an ambiguous object is called, or that of the other meaning."""
    right, other = [], []
    for text, scene in zip(found, expected, strict=True):
        for one in scene.objects:
            if one.ambiguous:
                words = [word.rstrip(",") for word in text.split()]
                right.append(one.noun.german in words)
                other.append(one.other_meaning.german in words)
    return {"meaning": 100 * float(np.mean(right)), "other_meaning": 100 * float(np.mean(other)), "words": len(right)}


def bleu_figures(found: Sequence[str], expected: Sequence[scenes.Scene], language: str) -> dict[str, float]:
    """BLEU of the translations of scenes without and with an ambiguous object."""
    from metrics_jax import BLEU

    figures = {}
    for name, ambiguous in (("plain", False), ("ambiguous", True)):
        chosen = [n for n, scene in enumerate(expected) if any(one.ambiguous for one in scene.objects) == ambiguous]
        references = [expected[n].caption(language) for n in chosen]
        figures[f"bleu_{name}"] = BLEU()([found[n] for n in chosen], references).score
    return figures


def answer_figures(
    found: Sequence[str], asked: Sequence[scenes.Question], trained: Sequence[scenes.Question]
) -> dict[str, float]:
    """Right answers in percent, of all questions and by kind, beside the most frequent answers of `trained` ones."""
    counts = collections.Counter((one.kind, one.answer) for one in trained)
    frequent = {kind: answer for (kind, answer), _ in reversed(counts.most_common())}
    right = collections.defaultdict(list)
    for text, one in zip(found, asked, strict=True):
        for name, answer in (("accuracy", text), ("most_frequent", frequent[one.kind])):
            right[name].append(answer == one.answer)
            right[f"{name}_{one.kind}"].append(answer == one.answer)
    return {name: 100 * float(np.mean(values)) for name, values in sorted(right.items())}


def recall_figures(similarities: np.ndarray) -> dict[str, object]:
    """Recall of both directions, in percent; similarities float[N, N] of images to captions, in the same order."""
    from metrics_jax.prediction.retrieval import ranks, recall_at

    figures: dict[str, object] = {}
    for name, table in (("captions", similarities), ("images", similarities.T)):
        found, random = ranks(table), np.random.default_rng(0)
        figures |= {f"{name}_recall_{k}": 100 * recall_at(found, k) for k in (1, 5, 10)}
        samples = [100 * recall_at(random.choice(found, len(found)), 1) for _ in range(SAMPLES)]
        figures[f"{name}_interval"] = np.percentile(samples, [2.5, 97.5]).round(1).tolist()
    return figures


def with_different_captions(split: str, first: int, count: int, language: str) -> dict[str, int]:
    """The captions of the first scenes with different ones, from scene `first` on, with the numbers of the scenes."""
    found: dict[str, int] = {}
    number = first
    while len(found) < count:
        found.setdefault(scenes.scene(split, number).caption(language), number)
        number += 1
    return found


def found_images(workdir: pathlib.Path, split: str, count: int) -> dict[str, object]:
    """The figures of a model that finds images."""
    from nmt_jax.training.trained import open_trained
    from nmt_jax.workdir import Workdir

    task, params = open_trained(Workdir(workdir), "retrieval")
    data = task.config.data
    split, first = ("train", data.size) if split == "known" else (split, 0)
    chosen = with_different_captions(split, first, count, data.target)
    images = task.vectors(params, [scene_name(split, number) for number in chosen.values()], "source")
    return recall_figures(images @ task.vectors(params, list(chosen), "target").T)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("workdir", type=pathlib.Path)
    parser.add_argument("--split", default="test", choices=("test", "dev", "known"))
    parser.add_argument("--scenes", type=int, default=1000)
    parser.add_argument("--beam_size", type=int, default=5)
    parser.add_argument("--pictures", default="own", choices=("own", "other"))
    options = parser.parse_args()

    from nmt_jax.training.trained import open_translator
    from nmt_jax.workdir import Workdir

    if Workdir(options.workdir).config().task == "retrieval":
        measure.report(benchmark="scenes", **found_images(options.workdir, options.split, options.scenes))
        return
    translator, params = open_translator([Workdir(options.workdir)])
    data = translator.config.data
    split, first = ("train", data.size) if options.split == "known" else (options.split, 0)
    step = 2 if (split, data.name) == ("train", scenes.QUESTIONS) else 1  # every second one has a lesson
    numbers = range(first, first + step * options.scenes, step)
    expected = [scenes.scene(split, number, data.name) for number in numbers]
    shift = int(options.pictures == "other")
    lines = []
    for number, scene in zip(numbers, expected, strict=True):
        parts = zip(data.source.split(","), sources.kinds(data), strict=True)
        name = scene_name(split, number + shift, data.name)
        lines.append(sources.join([scene.text(language) if kind == "text" else name for language, kind in parts]))
    best = translator.translate(params, lines, translator.search(beam_size=options.beam_size))
    found = [hypotheses[0].text for hypotheses in best]
    if data.name == scenes.QUESTIONS:
        asked, trained = (
            [scene.question for scene in some if scene.question]
            for some in (expected, [scenes.scene("train", number, data.name) for number in range(TRAINED)])
        )
        measure.report(benchmark="scenes", **answer_figures(found, asked, trained))
        return
    if translator.encoder.reader.has_text:
        figures = meaning_figures(found, expected) | bleu_figures(found, expected, data.target)
        measure.report(benchmark="scenes", **figures)
        return
    figures = caption_figures(found, expected, data.target)
    captions = [scene.caption(data.target) for scene in expected]
    scored = translator.score(params, lines, captions, with_attention=True)
    weights, columns = [one.attention for one in scored], data.image_size // data.patch_size
    figures |= pointing_figures(weights, expected, data.target, data.image_size, columns)
    measure.report(benchmark="scenes", **figures)


if __name__ == "__main__":
    main()
