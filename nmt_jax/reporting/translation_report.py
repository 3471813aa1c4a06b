"""Sections of a report about translations: scores with intervals, and the best and worst sentences with attention."""

import difflib
import html
import itertools
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from metrics_jax import BLEU, TER, ChrF
from metrics_jax.api import AdditiveMetric
from metrics_jax.significance import bootstrap
from nmt_jax.data.lines import chunks, read_lines
from nmt_jax.data.readers.parallel_text import open_text
from nmt_jax.errors import UserError
from nmt_jax.progress import track
from nmt_jax.reporting.html_page import Section, code, picture, table
from nmt_jax.reporting.plots.attention_maps import draw_attention
from nmt_jax.schema.phrase import NAME as PHRASE
from nmt_jax.training.phrase_model import open_phrases
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

METRICS: dict[str, AdditiveMetric] = {"BLEU": BLEU(), "chrF": ChrF(), "TER": TER()}
CHUNK = 128  # lines translated between two updates of the progress display


class Translated(NamedTuple):
    """Source lines, their references and translations; `origin` describes where they are from."""

    origin: str
    sources: Sequence[str]
    references: Sequence[str]
    translations: Sequence[str]


class System(NamedTuple):
    """A translator: of lines, with the attention weights of a line and its translation, and its search in words."""

    translate: Callable[[Sequence[str]], list[str]]
    attention: Callable[[str, str], dict[str, Any]]
    search: str


def is_translator(folder: Workdir) -> bool:
    """Returns whether the workdir has a trained translator."""
    task = folder.config().get("task")
    return (task == "translate" and folder.started) or (task == PHRASE and (folder.phrases / "weights.json").is_file())


def open_system(folder: Workdir) -> System:
    """Returns the translator of a workdir, with the search settings of its config."""
    decode = folder.config().decode
    if folder.config().task == PHRASE:
        model = open_phrases(folder)
        search = f"stacks of {decode.stack_size}, distortion limit {decode.distortion_limit}"
        return System(lambda lines: [one[0].text for one in model.translate(lines)], lambda *_: {}, search)
    task, params = open_trained(folder, "translate")
    return System(
        lambda lines: [hypotheses[0].text for hypotheses in task.translate(params, lines)],
        lambda source, target: dict(task.attention(params, source, target)),
        f"beam {decode.beam_size}, length penalty {decode.length_penalty:g}",
    )


def translation_sections(folder: Workdir, texts: tuple[str, str] | None, lines: int, samples: int) -> list[Section]:
    """Returns scores and samples; if the dev set no longer exists, the error takes their place."""
    try:
        origin, pairs = open_pairs(folder, texts, lines)
    except UserError as error:
        if texts:
            raise
        print(f"nmt-jax: no translations in the report: {error}", file=sys.stderr)
        return [Section("Scores", "scores", f"<p>Nothing was translated: {html.escape(str(error))}</p>")]
    system = open_system(folder)
    found = translate(system, origin, pairs)
    sections = [scores(found, system.search)]
    return [*sections, sample_translations(found, system, samples)] if samples else sections


def open_pairs(folder: Workdir, texts: tuple[str, str] | None, lines: int) -> tuple[str, list[tuple[str, str]]]:
    """Returns a description and at most `lines` pairs (0: all) of the dev set or, if given, of two files."""
    if texts:
        source, reference = (list(read_lines(name)) for name in texts)
        if len(source) != len(reference):
            raise UserError(
                f"{texts[0]} has {len(source)} lines but {texts[1]} has {len(reference)}; line N of one must be the "
                "translation of line N of the other"
            )
        origin, pairs = pathlib.Path(texts[0]).name, list(zip(source, reference, strict=True))
    else:
        origin = "the dev set"
        pairs = list(itertools.islice(open_text(folder.config().data, "dev"), lines + 1 if lines else None))
    if lines and len(pairs) > lines:
        return f"The first {lines:,} lines of {origin}", pairs[:lines]
    return f"All {len(pairs):,} lines of {origin}", pairs


def translate(system: System, origin: str, pairs: Sequence[tuple[str, str]]) -> Translated:
    """Translates the sources of `pairs`."""
    sources, references = ([pair[side] for pair in pairs] for side in (0, 1))
    groups = list(chunks(sources, CHUNK))
    tracked = track(groups, "translated", total=len(sources), each=CHUNK)
    translations = [text for group in tracked for text in system.translate(group)]
    return Translated(origin, sources, references, translations)


def scores(found: Translated, search: str) -> Section:
    """Returns BLEU, chrF and TER with 95 % bootstrap intervals and signatures."""
    rows, signatures = [], []
    for name, metric in METRICS.items():
        statistics = metric.statistics(found.translations, found.references)
        result, interval = metric.result(statistics, [1] * len(found.references)), bootstrap(metric, statistics)
        arrow, better = ("↑", "higher") if metric.higher_is_better else ("↓", "lower")
        title = f'{name} <span title="{better} is better">{arrow}</span>'
        bounds = f"{interval.lower:.2f} – {interval.upper:.2f}"
        rows.append([title, f"{result.score:.2f}", bounds])
        signatures.append(f"<li>{code(result.signature)}</li>")
    body = f"<p>{html.escape(found.origin)}; {search}; 95 % bootstrap intervals.</p>"
    body += table("Scores", ["metric", "score", "interval"], rows, numbers=2)
    return Section("Scores", "scores", f'{body}<ul class="signatures">{"".join(signatures)}</ul>')


def sample_translations(found: Translated, system: System, count: int) -> Section:
    """Returns the `count` best, median and worst translations by sentence chrF, each with its attention weights."""
    chrf = METRICS["chrF"]
    values = chrf([*found.translations], [*found.references]).segments
    parts = [
        "<p>By sentence chrF. Marked are <ins>words that are not in the reference</ins> and <del>words that are not in "
        "the translation</del>; in sentences without spaces, characters.</p>"
    ]
    for title, lines in _chosen(found, values, count).items():
        parts.append(f"<h3>{title}</h3>")
        parts += [_sample(found, line, float(values[line]), system) for line in lines]
    return Section("Translations", "translations", "\n".join(parts))


def _chosen(found: Translated, values: np.ndarray, count: int) -> dict[str, list[int]]:
    """Returns lines with the best, middle and worst values, each at most once; longer sentences first if equal."""
    order = sorted(
        (line for line, source in enumerate(found.sources) if source.strip()),
        key=lambda line: (-values[line], -len(found.references[line]), line),
    )
    best, rest = order[:count], order[count:]
    worst, middle = rest[::-1][:count], rest[: max(len(rest) - count, 0)]
    start = min(max((len(order) - count) // 2 - len(best), 0), max(len(middle) - count, 0))
    groups = {"Best": best, "Median": middle[start : start + count], "Worst": worst}
    return {title: lines for title, lines in groups.items() if lines}


def _sample(found: Translated, line: int, value: float, system: System) -> str:
    source, reference, translation = (texts[line] for texts in (found.sources, found.references, found.translations))
    marked, marked_reference = differences(translation, reference)
    shown = {"source": html.escape(source), "reference": marked_reference, "translation": marked or "<em>empty</em>"}
    terms = "".join(f'<dt>{name}</dt><dd dir="auto">{text}</dd>' for name, text in shown.items())
    weights = system.attention(source, translation) if translation else {}
    attention = ""
    if "cross" in weights:
        alt = f"Attention from the pieces of the translation of line {line + 1} to those of its source"
        image = picture(draw_attention(weights), f"{alt}, by layer and head", wide=True)
        # Elements with the same name: opening one closes the others.
        attention = f'<details name="attention"><summary>attention</summary>{image}</details>'
    return f"<article><h4>line {line + 1}, chrF {value:.1f}</h4><dl>{terms}</dl>{attention}</article>"


def differences(translation: str, reference: str) -> tuple[str, str]:
    """Returns both as HTML: <ins> marks words that are only in the translation, <del> those only in the reference."""
    glue = " " if any(len(text.split()) > 1 for text in (translation, reference)) else ""
    words, reference_words = (text.split() if glue else list(text) for text in (translation, reference))
    marked: list[str] = []
    marked_reference: list[str] = []
    for change, a, b, c, d in difflib.SequenceMatcher(None, words, reference_words, autojunk=False).get_opcodes():
        for part, tag, out in ((words[a:b], "ins", marked), (reference_words[c:d], "del", marked_reference)):
            if part:
                text = html.escape(glue.join(part))
                out.append(text if change == "equal" else f"<{tag}>{text}</{tag}>")
    return glue.join(marked), glue.join(marked_reference)
