"""Tercom's tokenizer (Snover et al., 2006) as in sacreBLEU 2.6, with every option and quirk."""

import re

from metrics_jax.surface.tokenizers import split_dashes, split_marks, split_points, unescape

# CJK ideographs, radicals, strokes and compatibility forms; Japanese and full-width ASCII punctuation.
_IDEOGRAPHS = "\u2e80-\u2eff\u31c0-\u31ef\u3200-\u4dbf\u4e00-\u9fff\uf900-\ufaff\ufe30-\ufe4f"
_MARKS = (
    "\u3001\u3002\u3008-\u3011\u3014-\u301f\u30fb\uff01\uff02\uff08\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff61-\uff65"
)

_DROPPED = str.maketrans("", "", '.,?:;!"()')
_ASIAN = re.compile(f"([{_IDEOGRAPHS}{_MARKS}])")  # kana are not split: sacreBLEU's rules for them never apply
_ASIAN_DROPPED = re.compile(f"[{_MARKS}]")


def tokenize(
    text: str,
    normalized: bool = False,
    no_punct: bool = False,
    asian_support: bool = False,
    case_sensitive: bool = False,
) -> list[str]:
    """Split a text into words at white space, after the changes that the options select.

    normalized: replace XML entities, and separate punctuation except for periods and commas between digits. no_punct:
    remove .,?:;!"(). asian_support: split at ideographs (if normalized), and treat Asian punctuation like other
    punctuation.
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
    """The rules of mteval (NIST, 2002) that Tercom adopted, and one for the English possessive."""
    text = text.replace("\n-", "").replace("\n", " ")  # intended to join hyphenated lines; the order is Tercom's
    text = split_marks(f" {unescape(text)} ").replace("'s ", " 's ")
    return split_dashes(split_points(text))
