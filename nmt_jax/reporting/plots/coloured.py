"""Text coloured by attention, as one HTML page that needs nothing else: words in blue, a bar a sentence in red.

After figure 5 of Yang et al. (2016).
"""

import collections
import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from nmt_jax.reporting.plots.html_table import html_page

SENTENCE, WORD = "209, 73, 91", "48, 99, 142"  # red, green, blue
TOP_WORDS = 20  # a label
OFTEN = 5  # texts of a label that a top word is in, at least

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
    f'The <span style="color: rgb({SENTENCE})">red bar</span> is the weight of a sentence in its text, full for the '
    f'heaviest; a word is the <span style="color: rgb({WORD})">bluer</span> the more it weighs: its weight in its '
    "sentence, times the root of the sentence’s. Weights appear where the pointer rests."
)


class Coloured(NamedTuple):
    """A text to show: words and weights of its sentences, what it was taken for, and what it is, if that is known."""

    words: Sequence[Sequence[str]]
    word_weights: Sequence[Sequence[float]]
    sentence_weights: Sequence[float]
    predicted: str
    probability: float
    truth: str | None


def page(title: str, texts: Iterable[Coloured], top: Mapping[str, Sequence[str]] | None = None) -> str:
    """The HTML of texts and, above them, of the top words of each label."""
    parts = [_table(top)] if top else []
    parts += [_article(number, text) for number, text in enumerate(texts, start=1)]
    return html_page(title, LEGEND, "\n".join(parts), STYLE)


def _table(top: Mapping[str, Sequence[str]]) -> str:
    rows = "".join(
        f'<tr><th><span class="label">{html.escape(label)}</span></th><td>{html.escape(", ".join(words))}</td></tr>'
        for label, words in top.items()
    )
    caption = "The words that weigh more in texts taken for a label than in others"
    return f"<table><caption>{caption}</caption>{rows}</table>"


def _article(number: int, text: Coloured) -> str:
    verdict = "" if text.truth is None else " right" if text.predicted == text.truth else " wrong"
    label = f'<span class="label{verdict}">{html.escape(text.predicted)}</span> {text.probability:.1%}'
    truth = "" if text.truth is None else f", in truth {html.escape(text.truth)}"
    heaviest = max(text.sentence_weights, default=0.0) or 1.0
    # The darkest word of a text is quite blue, however many words share the weight.
    weights = [
        [weight * sentence**0.5 for weight in words]
        for words, sentence in zip(text.word_weights, text.sentence_weights, strict=True)
    ]
    darkest = max((weight for row in weights for weight in row), default=0.0) or 1.0
    rows = "".join(
        f'<div class="sentence"><div class="bar" title="{weight:.3f}"><i style="width: {100 * weight / heaviest:.0f}%">'
        f'</i></div><div class="words" dir="auto">{_words(words, own, [value / darkest for value in shades])}</div>'
        "</div>\n"
        for words, own, shades, weight in zip(
            text.words, text.word_weights, weights, text.sentence_weights, strict=True
        )
    )
    return f"<article><h2>{number}. {label}{truth}</h2>\n{rows}</article>"


def _words(words: Sequence[str], weights: Sequence[float], shades: Sequence[float]) -> str:
    return " ".join(
        f'<span title="{weight:.3f}" style="background: rgba({WORD}, {0.75 * shade:.2f})">{html.escape(word)}</span>'
        for word, weight, shade in zip(words, weights, shades, strict=True)
    )


def top_words(texts: Iterable[Coloured]) -> dict[str, list[str]]:
    """For each predicted label, the words that weigh more in its texts than in the others, most telling first.

    A word's weight in a text: the most that it has in any of the sentences, times the number of words there (1 is an
    even share). Compared are the means over all texts, 0 for those that lack the word; a word must be in OFTEN texts.
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
        telling = {
            word: sums[label] / counts[label] - (sum(sums.values()) - sums[label]) / others
            for word, sums in totals.items()
            if often[label, word] >= OFTEN and any(character.isalpha() for character in word)
        }
        top[label] = sorted(telling, key=lambda word: (-telling[word], word))[:TOP_WORDS]
    return top
