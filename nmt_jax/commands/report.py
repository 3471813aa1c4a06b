"""`nmt-jax report`: a run, or a sweep, as one HTML page that needs nothing else."""

import datetime
import html
import itertools
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from absl import flags

from nmt_jax import __version__
from nmt_jax import config as configs
from nmt_jax.data.lines import read_lines
from nmt_jax.errors import UserError
from nmt_jax.reporting.html_page import Section, code, report_page
from nmt_jax.reporting.plots.style import check_output, drawing, writing
from nmt_jax.reporting.sweep_table import collect, main_measure
from nmt_jax.sweeps.runs import base_values, find_runs
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax report`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("workdir", None, "The folder of a run, or of a sweep.", **given)
    flags.DEFINE_string("output", None, "The page; WORKDIR/report.html if not given.", **given)
    flags.DEFINE_string(
        "config", None, "The experiment, FILE.py[:ARGUMENT]: keys that differ from it come first.", **given
    )
    flags.DEFINE_string("source", None, "Translate this text instead of the dev set.", **given)
    flags.DEFINE_string("reference", None, "Its reference translation.", **given)
    flags.DEFINE_integer("lines", 500, "At most so many lines are translated; 0: all.", lower_bound=0, **given)
    flags.DEFINE_integer(
        "samples", 3, "So many of the best, the median, the worst translations.", lower_bound=0, **given
    )
    flags.DEFINE_string("measure", None, "Of a sweep: dev/bleu or another key of metrics.jsonl.", **given)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, a page out; its path on stdout."""
    if positional:
        raise UserError(f"nmt-jax report takes no {positional[0]!r}: a run or a sweep is --workdir=FOLDER")
    if not flag_values.workdir:
        raise UserError("nmt-jax report needs --workdir=FOLDER of a run or a sweep")
    if bool(flag_values.source) != bool(flag_values.reference):
        raise UserError("--source and --reference go together: a text and its translation, line by line")
    output = run(
        pathlib.Path(flag_values.workdir),
        output=pathlib.Path(flag_values.output) if flag_values.output else None,
        page=flag_values.config,
        texts=(flag_values.source, flag_values.reference) if flag_values.source else None,
        lines=flag_values.lines,
        samples=flag_values.samples,
        measure=flag_values.measure,
    )
    print(output)
    return 0


def run(
    workdir: pathlib.Path | str,
    *,
    output: pathlib.Path | None = None,
    page: str | None = None,
    texts: tuple[str, str] | None = None,
    lines: int = 500,
    samples: int = 3,
    measure: str | None = None,
) -> pathlib.Path:
    """Write the report of a run or a sweep to `output`, WORKDIR/report.html if None -> the file written.

    page: the experiment whose config the run's is compared with. texts: the files of a source and its reference, in
    place of the dev set; at most `lines` of them are translated (0: all), and `samples` shown of the best, median and
    worst. measure: what a sweep is judged by. UserError for a folder that is neither, and for texts that do not fit.
    """
    folder = Workdir(pathlib.Path(workdir))
    output = output or folder.path / "report.html"
    if not folder.path.is_dir():
        folder.config()  # it says what is missing
    check_output(output, (".html",))
    default = configs.load(page) if page else None
    with drawing():
        if folder.config_file.is_file():
            sections = run_sections(folder, default, page or "", texts, lines, samples)
        else:
            sections = sweep_sections(folder.path, measure)
    now = datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M")
    text = report_page(folder.path.name, f"{code(str(workdir))}, nmt-jax {__version__}, {now}", sections)
    with writing(output):
        output.write_text(text, encoding="utf-8")
    return output


def run_sections(
    folder: Workdir, default: Any, page: str, texts: tuple[str, str] | None, lines: int, samples: int
) -> list[Section]:
    """The sections of the report of a run."""
    from nmt_jax.reporting import run_report as parts

    config, rows = folder.config(), folder.metrics() if folder.metrics_file.is_file() else []
    sections = [parts.summary(folder, rows)]
    if config.get("task") == "translate" and folder.started:
        sections += translation_sections(folder, texts, lines, samples)
    elif texts:
        raise UserError(
            f"{folder.path}: no trained translator, so --source and --reference have nothing to be used for"
        )
    return [
        *sections,
        parts.curves(config, rows),
        parts.failures(folder, rows),
        parts.settings(config, default, page),
        parts.environment(folder),
    ]


def translation_sections(folder: Workdir, texts: tuple[str, str] | None, lines: int, samples: int) -> list[Section]:
    """Scores and samples; where the dev set is not there any more, the line that says so."""
    from nmt_jax.reporting import translation_report as parts

    try:
        origin, pairs = open_pairs(folder, texts, lines)
    except UserError as error:
        if texts:
            raise
        print(f"nmt-jax: no translations in the report: {error}", file=sys.stderr)
        return [Section("Scores", "scores", f"<p>Nothing was translated: {html.escape(str(error))}</p>")]
    task, params = open_trained(folder, "translate")
    found = parts.translate(task, params, origin, pairs)
    sections = [parts.scores(found, task.config)]
    return [*sections, parts.samples(found, task, params, samples)] if samples else sections


def open_pairs(folder: Workdir, texts: tuple[str, str] | None, lines: int) -> tuple[str, list[tuple[str, str]]]:
    """-> what the pairs are called, and at most `lines` (0: all) of the dev set or of the two files."""
    if texts:
        source, reference = (list(read_lines(name)) for name in texts)
        if len(source) != len(reference):
            raise UserError(
                f"{texts[0]} has {len(source)} lines but {texts[1]} has {len(reference)}: line N is of line N"
            )
        origin, pairs = pathlib.Path(texts[0]).name, list(zip(source, reference, strict=True))
    else:
        from nmt_jax.data.readers.parallel_text import open_text

        origin = "the dev set"
        pairs = list(itertools.islice(open_text(folder.config().data, "dev"), lines + 1 if lines else None))
    if lines and len(pairs) > lines:
        return f"The first {lines:,} lines of {origin}", pairs[:lines]
    return f"All {len(pairs):,} lines of {origin}", pairs


def sweep_sections(folder: pathlib.Path, measure: str | None) -> list[Section]:
    """The sections of the report of a sweep."""
    from nmt_jax.reporting import sweep_report as parts
    from nmt_jax.reporting.run_report import environment

    runs = find_runs(folder)
    usual = main_measure(runs)
    found = collect(runs)
    if measure:
        found = collect(runs, list(dict.fromkeys([measure, *found.measures])))
    chosen = measure or usual
    return [
        parts.summary(found, runs, chosen),
        parts.results(found, chosen, usual),
        parts.drawn(found, base_values(runs), chosen),
        parts.failures(runs),
        parts.every_run(found),
        parts.settings(found, runs),
        environment(runs[0].workdir),
    ]
