"""`nmt-jax answer`: questions and the texts to answer them from on stdin, the answers on stdout."""

import json
import pathlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from nmt_jax.data.lines import chunks, decode_lines, find, read_lines
from nmt_jax.data.readers.questions import Question, SquadFile, read_asked
from nmt_jax.errors import UserError
from nmt_jax.progress import track
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.tasks.span import Candidate

CHUNK = 64  # questions answered together


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax answer`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("workdir", None, "The folder of a trained model.", **given)
    help_text = "Read this file instead of stdin: questions as on stdin, or .json of SQuAD 1.1; .gz is unpacked."
    flags.DEFINE_string("input", None, help_text, **given)
    flags.DEFINE_integer("average", None, "Answer with the mean of the last n checkpoints.", lower_bound=1, **given)
    flags.DEFINE_enum("checkpoint", None, ["best", "last"], "Answer with one checkpoint; best if not given.", **given)
    help_text = "text: an answer a line; json: an object a question, with the n best; squad: {ID: ANSWER, …}."
    flags.DEFINE_enum("format", "text", ["text", "json", "squad"], help_text, **given)
    flags.DEFINE_integer("chunk", CHUNK, "Questions answered together.", lower_bound=1, **given)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, answers out."""
    if positional:
        raise UserError(f"nmt-jax answer reads stdin: … < {positional[0]}, or --input={positional[0]}")
    if not flag_values.workdir:
        raise UserError("nmt-jax answer needs --workdir=FOLDER of a trained model")
    if flag_values.checkpoint and flag_values.average:
        raise UserError("--checkpoint and --average exclude each other: one checkpoint, or the mean of several")
    interactive = not flag_values.input and sys.stdin.isatty()
    results = run(
        pathlib.Path(flag_values.workdir),
        read(flag_values.input),
        checkpoint=flag_values.checkpoint or flag_values.average,
        chunk=1 if interactive else flag_values.chunk,
    )
    write(results if sys.stdout.isatty() else track(results, "answered"), flag_values.format)
    return 0


def read(name: str | None) -> Iterator[Question]:
    """The questions of a file, or of stdin for None: JSONL, or a .json file of SQuAD 1.1."""
    if name is None:
        return read_asked(decode_lines(sys.stdin.buffer, "stdin"), "stdin")
    if pathlib.Path(name.removesuffix(".gz")).suffix == ".json":
        return iter(SquadFile(find(name), answered=False))
    return read_asked(read_lines(name), name)


def run(
    workdir: pathlib.Path | str,
    questions: Iterable[Question],
    *,
    checkpoint: str | int | None = None,
    chunk: int = CHUNK,
) -> Iterator[tuple[Question, list["Candidate"]]]:
    """Answer `questions` with the model of `workdir` -> each with its n best answers, while questions come in.

    checkpoint: "best", "last", or n for the mean of the last n. UserError for a workdir that answers nothing, before
    any question is read.
    """
    task, params = open_trained(Workdir(pathlib.Path(workdir)), "span", checkpoint=checkpoint)
    groups = chunks(questions, chunk)
    return (both for group in groups for both in zip(group, task.predict(params, group), strict=True))


def write(results: Iterable[tuple[Question, list["Candidate"]]], form: str) -> None:
    """Answers on stdout, as UTF-8; a context without a word gives an empty line."""
    answers = {}
    for question, found in results:
        best = found[0].text if found else ""
        answers[question.id] = best
        if form == "squad":
            continue
        row = " ".join(best.split())  # an answer may reach over a line break of its context
        if form == "json":
            n_best = [{**one._asdict(), "probability": round(one.probability, 6)} for one in found]
            row = json.dumps({"id": question.id, "answer": best, "n_best": n_best}, ensure_ascii=False)
        sys.stdout.buffer.write(f"{row}\n".encode())
        sys.stdout.buffer.flush()
    if form == "squad":
        sys.stdout.buffer.write(f"{json.dumps(answers, ensure_ascii=False)}\n".encode())
