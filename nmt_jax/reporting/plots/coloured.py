"""Text coloured by attention as HTML: words in blue, one red bar per sentence (Yang et al., 2016, figure 5)."""

import collections
import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from nmt_jax.reporting.html_page import html_page

SENTENCE, WORD = "209, 73, 91", "48, 99, 142"  # red, green, blue
TOP_WORDS = 20  # per label
OFTEN = 5  # least number of texts of a label that contain a top word

STYLE = f"""\
h2 {{ font-size: 1rem; margin: 0 0 .5rem; font-weight: 600; }}
table {{ border-collapse: collapse; margin-bottom: 2rem; }}
th, td {{ text-align: left; vertical-align: top; padding: .15rem 1rem .15rem 0; }}
article {{ border-top: 1px solid #dee2e6; padding: 1rem 0; }}
.sentence {{ display: flex; gap: .6rem; }}
.bar {{ flex: 0 0 4rem; margin: .45em 0 .55em; background: #f1f3f5; height: .6em; }}
.bar i {{ display: block; height: 100%; background: rgb({SENTENCE}); }}
.words span {{ border-radius: 3px; padding: 1px 2px; }}
.label {{ border-radius: 3px; padding: 1px 7px; color: #fff; background: #5c677d; }}
.right {{ background: #2b8a3e; }}
.wrong {{ background: #c92a2a; }}
"""
LEGEND = (
    f'The <span style="color: rgb({SENTENCE})">red bar</span> is the weight of a sentence, relative to the largest of '
    f'its text; the <span style="color: rgb({WORD})">blue</span> of a word is its weight in the sentence, times the '
    "square root of the sentence’s weight. Hover over a word or bar to see its weight."
)


class Coloured(NamedTuple):
    """A text: words and weights of its sentences, predicted label and its probability, true label or None."""

    words: Sequence[Sequence[str]]
    word_weights: Sequence[Sequence[float]]
    sentence_weights: Sequence[float]
    predicted: str
    probability: float
    truth: str | None


def page(title: str, texts: Iterable[Coloured], top: Mapping[str, Sequence[str]] | None = None) -> str:
    """Returns the HTML of texts and, above them, of the top words of each label."""
    parts = [_table(top)] if top else []
    parts += [_article(number, text) for number, text in enumerate(texts, start=1)]
    return html_page(title, LEGEND, "\n".join(parts), STYLE)


def _table(top: Mapping[str, Sequence[str]]) -> str:
    rows = "".join(
        f'<tr><th><span class="label">{html.escape(label)}</span></th><td>{html.escape(", ".join(words))}</td></tr>'
        for label, words in top.items()
    )
    caption = "Words with more weight in texts of a predicted label than in others"
    return f"<table><caption>{caption}</caption>{rows}</table>"


def _article(number: int, text: Coloured) -> str:
    verdict = "" if text.truth is None else " right" if text.predicted == text.truth else " wrong"
    label = f'<span class="label{verdict}">{html.escape(text.predicted)}</span> {text.probability:.1%}'
    truth = "" if text.truth is None else f", true label {html.escape(text.truth)}"
    heaviest = max(text.sentence_weights, default=0.0) or 1.0
    # Relative to the largest, so that long texts are coloured as strongly as short ones.
    pairs = zip(text.word_weights, text.sentence_weights, strict=True)
    weights = [[weight * sentence**0.5 for weight in words] for words, sentence in pairs]
    darkest = max((weight for row in weights for weight in row), default=0.0) or 1.0
    rows = ""
    for *sentence, weight in zip(text.words, text.word_weights, weights, text.sentence_weights, strict=True):
        spans = (
            f'<span title="{value:.3f}" style="background: rgba({WORD}, {0.75 * (shade / darkest):.2f})">'
            f"{html.escape(word)}</span>"
            for word, value, shade in zip(*sentence, strict=True)
        )
        bar = f'<div class="bar" title="{weight:.3f}"><i style="width: {100 * weight / heaviest:.0f}%"></i></div>'
        rows += f'<div class="sentence">{bar}<div class="words" dir="auto">{" ".join(spans)}</div></div>\n'
    return f"<article><h2>{number}. {label}{truth}</h2>\n{rows}</article>"


def top_words(texts: Iterable[Coloured]) -> dict[str, list[str]]:
    """Returns, for each predicted label, the words with more weight in its texts than in others, best first.

    The weight of a word in a text is its largest weight in any sentence, times the number of words of that sentence (1
    is the average), and 0 if the text does not contain it. Compared are means over texts; words must be in OFTEN texts.
    """
    totals: dict[str, dict[str, float]] = collections.defaultdict(lambda: collections.defaultdict(float))
    counts: dict[str, int] = collections.Counter()
    often: Any = collections.Counter()
    for text in texts:
        counts[text.predicted] += 1
        best: dict[str, float] = {}
        for words, weights in zip(text.words, text.word_weights, strict=True):
            for word, weight in zip(words, weights, strict=True):
                best[word] = max(best.get(word, 0.0), weight * len(words))
        for word, weight in best.items():
            totals[word][text.predicted] += weight
            often[text.predicted, word] += 1
    top = {}
    for label in sorted(counts):
        others = sum(counts.values()) - counts[label] or 1
        differences = {
            word: sums[label] / counts[label] - (sum(sums.values()) - sums[label]) / others
            for word, sums in totals.items()
            if often[label, word] >= OFTEN and any(character.isalpha() for character in word)
        }
        top[label] = sorted(differences, key=lambda word: (-differences[word], word))[:TOP_WORDS]
    return top
