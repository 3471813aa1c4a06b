"""What a report says of translations: scores with intervals, the best and the worst sentences, attention."""

import difflib
import html
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from metrics_jax import BLEU, TER, ChrF
from metrics_jax.api import AdditiveMetric
from metrics_jax.significance import bootstrap
from nmt_jax.data.lines import chunks
from nmt_jax.progress import track
from nmt_jax.reporting.html_page import Section, code, picture, table
from nmt_jax.reporting.plots.attention import draw_attention

METRICS: dict[str, AdditiveMetric] = {"BLEU": BLEU(), "chrF": ChrF(), "TER": TER()}
TOGETHER = 128  # lines translated at once: a batch or a few, and the count goes on


class Translated(NamedTuple):
    """Lines, their references, and what a model made of them; `origin` is where they are from."""

    origin: str
    sources: Sequence[str]
    references: Sequence[str]
    translations: Sequence[str]


def translate(task: Any, params: Any, origin: str, pairs: Sequence[tuple[str, str]]) -> Translated:
    """Translate the sources of `pairs` by the search of `config.decode`, counted on a terminal."""
    sources, references = ([pair[side] for pair in pairs] for side in (0, 1))
    groups = list(chunks(sources, TOGETHER))
    translations = [
        best[0].text
        for group in track(groups, "translated", total=len(sources), each=TOGETHER)
        for best in task.translate(params, group)
    ]
    return Translated(origin, sources, references, translations)


def scores(found: Translated, config: Any) -> Section:
    """BLEU, chrF and TER of the whole, with 95 % bootstrap intervals and signatures."""
    rows, signatures = [], []
    for name, metric in METRICS.items():
        statistics = metric.statistics(found.translations, found.references)
        result, interval = metric.result(statistics, [1] * len(found.references)), bootstrap(metric, statistics)
        arrow, better = ("↑", "higher") if metric.higher_is_better else ("↓", "lower")
        title = f'{name} <span title="{better} is better">{arrow}</span>'
        bounds = f"{interval.lower:.2f} – {interval.upper:.2f}"
        rows.append([title, f"{result.score:.2f}", bounds])
        signatures.append(f"<li>{code(result.signature)}</li>")
    decode = config.decode
    search = f"beam {decode.beam_size}, length penalty {decode.length_penalty:g}"
    body = f"<p>{html.escape(found.origin)}; {search}; intervals of 95 % by bootstrap.</p>"
    body += table("Scores", ["metric", "score", "interval"], rows, numbers=2)
    return Section("Scores", "scores", f'{body}<ul class="signatures">{"".join(signatures)}</ul>')


def samples(found: Translated, task: Any, params: Any, count: int) -> Section:
    """The best, the median and the worst `count` translations by chrF of the sentence, with a map of attention each."""
    chrf = METRICS["chrF"]
    values = chrf([*found.translations], [*found.references]).segments
    parts = [
        "<p>By chrF of the sentence. In a translation <ins>words that its reference lacks</ins>, in a reference "
        "<del>words that the translation lacks</del>; of sentences without blanks, characters.</p>"
    ]
    for title, lines in _chosen(found, values, count).items():
        parts.append(f"<h3>{title}</h3>")
        parts += [_sample(found, line, float(values[line]), task, params) for line in lines]
    return Section("Translations", "translations", "\n".join(parts))


def _chosen(found: Translated, values: np.ndarray, count: int) -> dict[str, list[int]]:
    """Lines of the best, the middle and the worst values, none twice; of equal ones the longer sentences."""
    order = sorted(
        (line for line, source in enumerate(found.sources) if source.strip()),
        key=lambda line: (-values[line], -len(found.references[line]), line),
    )
    best, rest = order[:count], order[count:]
    worst, middle = rest[::-1][:count], rest[: max(len(rest) - count, 0)]
    start = min(max((len(order) - count) // 2 - len(best), 0), max(len(middle) - count, 0))
    groups = {"Best": best, "Median": middle[start : start + count], "Worst": worst}
    return {title: lines for title, lines in groups.items() if lines}


def _sample(found: Translated, line: int, value: float, task: Any, params: Any) -> str:
    source, reference, translation = (texts[line] for texts in (found.sources, found.references, found.translations))
    said, wanted = differences(translation, reference)
    shown = [("source", html.escape(source)), ("reference", wanted), ("translation", said or "<em>empty</em>")]
    terms = "".join(f'<dt>{name}</dt><dd dir="auto">{text}</dd>' for name, text in shown)
    weights = task.attention(params, source, translation) if translation else {}
    attention = ""
    if "cross" in weights:
        alt = f"Attention of the translation of line {line + 1}, piece by piece, to its source, by layer and head"
        # One name: opening one closes the one that was open.
        attention = (
            f'<details name="attention"><summary>attention</summary>{picture(draw_attention(weights), alt, wide=True)}'
            "</details>"
        )
    return f"<article><h4>line {line + 1}, chrF {value:.1f}</h4><dl>{terms}</dl>{attention}</article>"


def differences(translation: str, reference: str) -> tuple[str, str]:
    """Both as HTML: <ins> around what the reference lacks, <del> around what the translation lacks."""
    glue = " " if any(len(text.split()) > 1 for text in (translation, reference)) else ""
    ours, theirs = (text.split() if glue else list(text) for text in (translation, reference))
    said: list[str] = []
    wanted: list[str] = []
    for change, a, b, c, d in difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        for words, tag, out in ((ours[a:b], "ins", said), (theirs[c:d], "del", wanted)):
            if words:
                text = html.escape(glue.join(words))
                out.append(text if change == "equal" else f"<{tag}>{text}</{tag}>")
    return glue.join(said), glue.join(wanted)
