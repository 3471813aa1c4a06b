"""`nmt-jax translate`: source lines on stdin, translations on stdout, line N for line N."""

import json
import pathlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from nmt_jax.counting import counted
from nmt_jax.data import sources
from nmt_jax.data.lines import chunks, decode_lines, num_lines, read_lines
from nmt_jax.errors import UserError
from nmt_jax.trained import open_trained
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.tasks.translate import Hypothesis

CHUNK = 512  # lines sorted by length together: enough for full batches, few enough to see output soon


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax translate`; what is left out is what the workdir's config says under `decode`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("workdir", None, "The folder of a trained model.", **given)
    flags.DEFINE_string("input", None, "Read this file instead of stdin; .gz is unpacked.", **given)
    flags.DEFINE_integer("beam_size", None, "Hypotheses kept at each step; 1 is greedy.", lower_bound=1, **given)
    flags.DEFINE_float("length_penalty", None, "Alpha of Wu et al. (2016), eq. 14; 0 ranks by probability.", **given)
    flags.DEFINE_float("max_length_ratio", None, "Longest translation, in pieces per source piece.", **given)
    flags.DEFINE_integer("average", None, "Translate with the mean of the last n checkpoints.", lower_bound=1, **given)
    flags.DEFINE_enum("checkpoint", None, ["best", "last"], "Translate with one checkpoint.", **given)
    flags.DEFINE_integer(
        "nbest", 1, "Results a line; more than one: rows of LINE, SCORE, TEXT, tab-separated.", lower_bound=1, **given
    )
    flags.DEFINE_enum("format", "text", ["text", "json"], "json: one object a line, with scores.", **given)
    flags.DEFINE_integer(
        "chunk", CHUNK, "Lines translated together; on a terminal each at once.", lower_bound=1, **given
    )


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, lines through."""
    if positional:
        raise UserError(f"nmt-jax translate reads stdin: … < {positional[0]}, or --input={positional[0]}")
    if not flag_values.workdir:
        raise UserError("nmt-jax translate needs --workdir=FOLDER of a trained model")
    if flag_values.checkpoint and flag_values.average:
        raise UserError("--checkpoint and --average exclude each other: one checkpoint, or the mean of several")
    interactive = not flag_values.input and sys.stdin.isatty()
    lines = read_lines(flag_values.input) if flag_values.input else decode_lines(sys.stdin.buffer, "stdin")
    results = run(
        pathlib.Path(flag_values.workdir),
        lines,
        name=flag_values.input or "stdin",
        beam_size=flag_values.beam_size,
        length_penalty=flag_values.length_penalty,
        max_length_ratio=flag_values.max_length_ratio,
        checkpoint=flag_values.checkpoint or flag_values.average,
        n_best=flag_values.nbest,
        chunk=1 if interactive else flag_values.chunk,
    )
    if not sys.stdout.isatty():  # on a terminal the translations themselves show how far it is
        results = counted(results, "translated", total=num_lines(flag_values.input))
    write(results, flag_values.nbest, flag_values.format)
    return 0


def run(
    workdir: pathlib.Path | str,
    lines: Iterable[str],
    *,
    name: str = "stdin",
    beam_size: int | None = None,
    length_penalty: float | None = None,
    max_length_ratio: float | None = None,
    checkpoint: str | int | None = None,
    n_best: int = 1,
    chunk: int = CHUNK,
) -> Iterator[list["Hypothesis"]]:
    """Translate `lines` with the model of `workdir` -> the `n_best` hypotheses of each, in order, while lines come in.

    checkpoint: "best", "last", or n for the mean of the last n; None is what `decode.average` says, and "best" where
    that is 1. A line of more than `data.max_length` pieces is translated in parts. A model of several sources reads
    lines of as many texts, parted by tabs. UserError for a workdir with nothing to translate with, before any line is
    read, and for a line of `name` with another number of sources.
    """
    folder = Workdir(pathlib.Path(workdir))
    config = folder.trained_config("translate")
    width = config.decode.beam_size if beam_size is None else beam_size
    if n_best > width:
        raise UserError(f"--nbest={n_best} results need a beam as wide: --beam_size={n_best} (it is {width})")
    task, params = open_trained(folder, "translate", checkpoint=checkpoint)

    def results() -> Iterator[list["Hypothesis"]]:
        for group in chunks(sources.checked(lines, task.num_sources, name), chunk):
            yield from task.translate(
                params,
                group,
                beam_size=width,
                length_penalty=length_penalty,
                max_length_ratio=max_length_ratio,
                n_best=n_best,
            )

    return results()


def write(results: Iterable[list["Hypothesis"]], n_best: int, form: str) -> None:
    """One line (or `n_best` rows) a result on stdout, as UTF-8."""
    for number, hypotheses in enumerate(results, start=1):
        # A byte-fallback model can spell a line break; line N of the output must stay line N of the input.
        texts = [(round(best.score, 6), " ".join(best.text.split("\n"))) for best in hypotheses]
        if form == "json":
            row = {"line": number, "hypotheses": [{"score": score, "text": text} for score, text in texts]}
            rows = [json.dumps(row, ensure_ascii=False)]
        elif n_best > 1:
            rows = [f"{number}\t{score:.6f}\t{text}" for score, text in texts]
        else:
            rows = [texts[0][1]]
        sys.stdout.buffer.write("".join(row + "\n" for row in rows).encode())
        sys.stdout.buffer.flush()
