"""Writes the report of a run or a sweep: one HTML page."""

import datetime
import pathlib

from nmt_jax import __version__
from nmt_jax import config as configs
from nmt_jax.reporting.html_page import code, report_page
from nmt_jax.reporting.plots.style import check_output, drawing, save_page
from nmt_jax.reporting.run_report import run_sections
from nmt_jax.reporting.sweep_report import sweep_sections
from nmt_jax.workdir import Workdir


def write_report(
    workdir: pathlib.Path | str,
    *,
    output: pathlib.Path | None = None,
    config_file: str | None = None,
    texts: tuple[str, str] | None = None,
    lines: int = 500,
    samples: int = 3,
    measure: str | None = None,
) -> pathlib.Path:
    """Writes the report of a run or a sweep and returns the file.

    output: by default WORKDIR/report.html. config_file: FILE.py[:ARGUMENT]; keys of the run that differ from it come
    first. texts: files with a source text and its reference, used instead of the dev set; at most `lines` of them are
    translated (0: all), and `samples` each of the best, median and worst are shown. measure: key of metrics.jsonl by
    which a sweep is judged. Raises UserError if the folder is neither a run nor a sweep, or if the texts do not match.
    """
    folder = Workdir(pathlib.Path(workdir))
    if not folder.path.is_dir():
        folder.config()  # raises UserError
    output = check_output(output or folder.path / "report.html", (".html",))
    default = configs.load(config_file) if config_file else None
    with drawing():
        if folder.config_file.is_file():
            sections = run_sections(folder, default, config_file or "", texts, lines, samples)
        else:
            sections = sweep_sections(folder.path, measure)
    now = datetime.datetime.now().astimezone().strftime("%Y-%m-%d %H:%M")
    save_page(report_page(folder.path.name, f"{code(str(workdir))}, nmt-jax {__version__}, {now}", sections), output)
    return output
