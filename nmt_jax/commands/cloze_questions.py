"""The kind of `nmt-jax augment` that makes questions about paragraphs, for `config.task=span`."""

import json
import sys
from typing import Any

from absl import flags

from nmt_jax.augmentation.answer_spans import KINDS
from nmt_jax.augmentation.cloze_questions import ClozeQuestions, Question
from nmt_jax.commands import streams
from nmt_jax.commands.shared_flags import values
from nmt_jax.data.lines import chunks, read_lines
from nmt_jax.distributed.parts import JOB, Part, Parts, digest
from nmt_jax.errors import UserError
from nmt_jax.progress import track
from nmt_jax.schema.number_flags import define_float
from nmt_jax.storage.paths import path_of

KIND = "cloze_questions"
FLAGS = ("answers", "sentence", "unanswerable")
CHUNK = 256  # paragraphs whose questions are written together, as an article
SETTINGS = ("kind", "source", *FLAGS, "rate", "copies", "seed")  # that decide the output
COUNTS = ("paragraphs", "asked", "questions", "other", "unanswerable")


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags that only this kind has."""
    help_text = f"{KIND}: kinds of answers: {', '.join(KINDS)}."
    flags.DEFINE_list("answers", list(KINDS), help_text, flag_values)
    help_text = (
        f"{KIND}: the sentence that becomes the question. own: that of the answer; other: another one of the text with "
        "the same answer and with common words, if there is one (Fabbri et al., 2020)."
    )
    flags.DEFINE_enum("sentence", "own", ["own", "other"], help_text, flag_values)
    help_text = f"{KIND}: share of the questions that are also asked of another paragraph, which lacks the answer."
    define_float(flag_values, "unanswerable", 0.0, help_text, low=0, high=1)


def main(flag_values: flags.FlagValues) -> int:
    """Write the questions as PREFIX.json, print its name, and on stderr the counts."""
    if unknown := set(flag_values.answers) - {*KINDS}:
        raise UserError(f"--answers={','.join(sorted(unknown))}: use some of {', '.join(KINDS)}")
    source, parts = flag_values.source, Parts(path_of(f"{flag_values.output}.json"), values(flag_values, *SETTINGS))
    streams.check_distinct([source], [str(parts.output)])
    if not (parts.folder / JOB).exists():
        streams.check_new(flag_values, parts.output)
    paragraphs = list(track(read_lines(source), "paragraphs read"))
    parts.check(flag_values.overwrite)
    parts.start()
    totals, blocks = _write(flag_values, parts, paragraphs)
    if not totals["questions"]:
        parts.discard()
        raise UserError(
            f"{source}: no question was made of {totals['paragraphs']:,} paragraphs: a line must be a paragraph of "
            "English sentences, with names, dates, numbers or nouns after an article"
        )
    parts.join(blocks, b'{"version": "v2.0", "data": [', b"]}\n")
    print(parts.output)
    print(
        f"nmt-jax: {totals['paragraphs']:,} paragraphs: {totals['questions']:,} questions about {totals['asked']:,} of "
        f"them, {totals['other']:,} of another sentence; {totals['unanswerable']:,} more without an answer",
        file=sys.stderr,
    )
    return 0


def _write(flag_values: flags.FlagValues, parts: Parts, paragraphs: list[str]) -> tuple[dict[str, int], int]:
    """Write a part for each block of paragraphs that has none; returns the counts of all, and the number of blocks."""
    options = values(flag_values, "rate", "seed") | {"kinds": flag_values.answers}
    maker = ClozeQuestions(paragraphs, other=flag_values.sentence == "other", **options)
    whole = digest(paragraphs)  # questions may depend on all of the text
    finished, totals, blocks = parts.finished(), dict.fromkeys(COUNTS, 0), 0
    numbered = track(chunks(range(len(paragraphs)), CHUNK), "paragraphs", len(paragraphs), CHUNK)
    for blocks, numbers in enumerate(numbered, start=1):
        block = blocks - 1
        if block in finished:
            parts.check_input(block, whole)
        else:
            article, counts = _article(maker, paragraphs, numbers, flag_values.copies, flag_values.unanswerable)
            data = json.dumps(article, ensure_ascii=False).encode("utf-8", "replace")
            parts.write(block, Part(b",\n" * (block > 0) + data, whole, counts))
        for name, count in parts.read(block).summary.items():
            totals[name] += count
    return totals, blocks


def _article(
    maker: ClozeQuestions, paragraphs: list[str], numbers: list[int], count: int, unanswerable: float
) -> tuple[dict[str, Any], dict[str, int]]:
    """The questions about some paragraphs as an article of SQuAD 2.0, and their counts."""
    entries, counts = [], dict.fromkeys(COUNTS, 0)
    for number in numbers:
        questions = maker.of(number, count)
        counts["paragraphs"] += 1
        counts["asked"] += bool(questions)
        counts["questions"] += len(questions)
        counts["other"] += sum(one.other for one in questions)
        if questions:
            asked = [_row(f"{number + 1}-{n}", one) for n, one in enumerate(questions, start=1)]
            entries.append({"context": paragraphs[number], "qas": asked})
        for other, one in maker.elsewhere(number, questions, unanswerable):
            row = _row(f"{number + 1}-{questions.index(one) + 1}-elsewhere", one._replace(answer=""))
            entries.append({"context": paragraphs[other], "qas": [row]})
            counts["unanswerable"] += 1
    return {"title": f"lines {numbers[0] + 1} to {numbers[-1] + 1}", "paragraphs": entries}, counts


def _row(name: str, question: Question) -> dict[str, Any]:
    answers = [{"text": question.answer, "answer_start": question.start}] if question.answer else []
    return {"id": name, "question": question.question, "answers": answers, "is_impossible": not answers}
