"""Tercom's tokenizer (Snover et al., 2006) as sacreBLEU 2.6 has it: every option, every quirk, any text."""

import re

from metrics_jax.surface.tokenizers import split_dashes, split_marks, split_points, unescape

# Blocks of CJK ideographs, radicals, strokes and compatibility forms; the marks of Japanese and full-width ASCII.
_IDEOGRAPHS = "\u2e80-\u2eff\u31c0-\u31ef\u3200-\u4dbf\u4e00-\u9fff\uf900-\ufaff\ufe30-\ufe4f"
_MARKS = (
    "\u3001\u3002\u3008-\u3011\u3014-\u301f\u30fb\uff01\uff02\uff08\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff61-\uff65"
)

_DROPPED = str.maketrans("", "", '.,?:;!"()')
_ASIAN = re.compile(f"([{_IDEOGRAPHS}{_MARKS}])")  # kana stay together: sacreBLEU's rules for them never apply
_ASIAN_DROPPED = re.compile(f"[{_MARKS}]")


def tokenize(
    text: str,
    normalized: bool = False,
    no_punct: bool = False,
    asian_support: bool = False,
    case_sensitive: bool = False,
) -> list[str]:
    """A text's words: at white space, after what the options ask for.

    normalized: XML entities become characters and punctuation stands alone, save points between digits. no_punct: drop
    .,?:;!"(). asian_support: split at ideographs (if normalized) and treat Asian punctuation as the other is treated.
    """
    text = text.rstrip()
    if not case_sensitive:
        text = text.lower()
    if normalized:
        text = _normalize(text)
        if asian_support:
            text = _ASIAN.sub(r" \1 ", text)
    if no_punct:
        text = text.translate(_DROPPED)
        if asian_support:
            text = _ASIAN_DROPPED.sub("", text)
    return text.split()


def _normalize(text: str) -> str:
    """The rules of mteval (NIST, 2002), as Tercom took them over, and one for the English possessive."""
    text = text.replace("\n-", "").replace("\n", " ")  # meant to join hyphenated lines; the order is Tercom's
    text = split_marks(f" {unescape(text)} ").replace("'s ", " 's ")
    return split_dashes(split_points(text))
