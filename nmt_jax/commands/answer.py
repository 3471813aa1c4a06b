"""`nmt-jax answer`: reads questions with the texts that hold the answers, writes the answers."""

import json
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from nmt_jax.commands import streams
from nmt_jax.commands.output import define_output_flags, open_output
from nmt_jax.data.lines import find
from nmt_jax.data.readers.questions import Question, SquadFile, read_asked
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.tasks.span import Candidate

CHUNK = 64


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax answer`."""
    streams.define_prediction_flags(flag_values, CHUNK, ": JSON lines, or a .json file in SQuAD 1.1 format")
    define_output_flags(flag_values)
    help_text = "Output format: an answer per line; json, an object per question; squad, one object {ID: ANSWER, …}."
    flags.DEFINE_enum("format", "text", ["text", "json", "squad"], help_text, flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Answer the questions of the input."""
    options = streams.prediction_options("answer", flag_values, positional)
    show = {"text": _text, "json": _json, "squad": _squad}[flag_values.format]
    heading, ending = (b"{", b"}\n") if flag_values.format == "squad" else (b"", b"")
    chunk, workdirs = options.pop("chunk"), [options["workdir"]]
    with open_output("answer", flag_values, [flag_values.input], chunk, workdirs=workdirs) as output:
        task, params = open_answerer(**options)

        def answer(first: int, questions: Sequence[Question]) -> Iterator[bytes]:
            answered = zip(questions, task.predict(params, questions), strict=True)
            return (show(number, *pair).encode() for number, pair in enumerate(answered, start=first))

        output.write(read_questions(flag_values.input), answer, "answered", heading=heading, ending=ending)
    return 0


def open_answerer(workdir: pathlib.Path | str, checkpoint: str | int | None = None) -> tuple[Any, Any]:
    """Return the task and the parameters of a model for question answering; raises UserError if there is none."""
    return open_trained(Workdir(workdir), "span", checkpoint=checkpoint)


def read_questions(path: str | None) -> Iterator[Question]:
    """Return the questions of a file of JSON lines, of a .json file in SQuAD 1.1 format, or of stdin if None."""
    if path and pathlib.Path(path.removesuffix(".gz")).suffix == ".json":
        return iter(SquadFile(find(path), answered=False))
    return read_asked(streams.open_lines(path), path or "stdin")


def run(
    workdir: pathlib.Path | str,
    questions: Iterable[Question],
    *,
    checkpoint: str | int | None = None,
    chunk: int = CHUNK,
) -> Iterator[tuple[Question, list["Candidate"]]]:
    """Answer questions with the model of `workdir`; returns an iterator of each question and its n-best answers.

    checkpoint: "best", "last", or n for the mean of the last n. Raises UserError if the workdir has no trained model
    for question answering.
    """
    task, params = open_answerer(workdir, checkpoint)
    return streams.predict_in_chunks(task, params, questions, chunk)


def _text(number: int, question: Question, candidates: list["Candidate"]) -> str:
    """Return the best answer on one line, though it may span a line break of its context."""
    return " ".join(_best(candidates).split()) + "\n"


def _json(number: int, question: Question, candidates: list["Candidate"]) -> str:
    n_best = [{**one._asdict(), "probability": round(one.probability, 6)} for one in candidates]
    return streams.json_row(id=question.id, answer=_best(candidates), n_best=n_best) + "\n"


def _squad(number: int, question: Question, candidates: list["Candidate"]) -> str:
    """Return the answer as an item of one JSON object."""
    item = json.dumps({question.id: _best(candidates)}, ensure_ascii=False)[1:-1]
    return f", {item}" if number else item


def _best(candidates: Sequence["Candidate"]) -> str:
    return candidates[0].text if candidates else ""
