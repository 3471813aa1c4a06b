"""The tokenizers of BLEU, applied to a whole corpus at once, and of TER; equal to those of sacreBLEU (Post, 2018)."""

import functools
import importlib
import os
import pathlib
import re
from collections.abc import Callable, Sequence

MECAB = {"ja-mecab": ("TokenizerJaMecab", "ja"), "ko-mecab": ("TokenizerKoMecab", "ko")}  # class and extra of sacrebleu
SENTENCEPIECE = {  # tokenizer: sacreBLEU's name of the model file
    "flores101": "sacrebleu_tokenizer_spm.model",
    "flores200": "flores200sacrebleuspm",
    "spBLEU-1K": "spbleu-1k_tokenizer_spm.model",
}
TOKENIZERS = ("13a", "intl", "char", "zh", "none", *MECAB, *SENTENCEPIECE)

# Chinese code points as in sacreBLEU, which writes the range 20000-2A6D6 with four digits, so that it is 2001-2A6D.
_CHINESE = re.compile(
    "([\u2001-\u2a6d\u2e80-\u2fdf\u2ff0-\u2fff\u3000-\u303f\u3100-\u312f\u31a0-\u31ef\u3200-\u4db5\u4e00-\u9fbb"
    "\uf900-\ufa2d\ufa30-\ufa6a\ufa70-\ufad9\ufe10-\ufe1f\ufe30-\ufe4f\uff00-\uffef])"
)
# mteval (NIST, 2002) separates these, periods and commas unless between digits, and dashes after a digit.
_PUNCTUATION = '!"#$%&()*+/:;<=>?@[\\]^_`{|}~'
_ENTITIES = (("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))  # in this order, so that &amp;lt; becomes <
_POINTS = re.compile(r"[.,]+")
_AFTER_NON_DIGIT = re.compile(r"([^0-9])([.,])")
_BEFORE_NON_DIGIT = re.compile(r"([.,])([^0-9])")
_DASH = re.compile(r"([0-9])-")
# CJK ideographs, radicals, strokes and compatibility forms; Japanese and full-width ASCII punctuation.
_IDEOGRAPHS = "\u2e80-\u2eff\u31c0-\u31ef\u3200-\u4dbf\u4e00-\u9fff\uf900-\ufaff\ufe30-\ufe4f"
_MARKS = (
    "\u3001\u3002\u3008-\u3011\u3014-\u301f\u30fb\uff01\uff02\uff08\uff09\uff0c\uff0e\uff1a\uff1b\uff1f\uff61-\uff65"
)
_DROPPED = str.maketrans("", "", '.,?:;!"()')
_ASIAN = re.compile(f"([{_IDEOGRAPHS}{_MARKS}])")  # kana are not split: sacreBLEU's rules for them never apply
_ASIAN_DROPPED = re.compile(f"[{_MARKS}]")


def check_tokenizer(name: str) -> None:
    """Raise ValueError for an unknown tokenizer."""
    if name not in TOKENIZERS:
        raise ValueError(f"tokenize={name!r}: choose one of {', '.join(TOKENIZERS)}")


def tokenize(texts: Sequence[str], tokenizer: str, lowercase: bool = False) -> list[list[str]]:
    """Tokenize texts, after removing trailing white space and, with `lowercase`, lower-casing them.

    Raises ValueError for an unknown tokenizer, and if its package or model is not installed.
    """
    check_tokenizer(tokenizer)
    distinct = dict.fromkeys(texts)  # texts repeat: systems share references, and often translations
    if len(distinct) < len(texts):
        tokens = dict(zip(distinct, tokenize(list(distinct), tokenizer, lowercase), strict=True))
        return [tokens[text] for text in texts]
    texts = [text.rstrip() for text in texts]
    if lowercase:
        texts = [text.lower() for text in texts]
    if tokenizer == "none":
        return [text.split() for text in texts]
    if tokenizer == "char":
        return [list("".join(text.split())) for text in texts]
    rules = {"13a": _13a, "zh": _zh, "intl": _intl}
    if tokenizer in rules:
        return [line.split() for line in rules[tokenizer](texts).split("\n")][: len(texts)]
    split = _mecab(tokenizer) if tokenizer in MECAB else _sentencepiece(tokenizer)
    return [split(text).split() for text in texts]


def _13a(texts: Sequence[str]) -> str:
    """mteval-v13a: entities are replaced, then punctuation is separated."""
    lines = [text.replace("<skipped>", "").replace("-\n", "").replace("\n", " ") for text in texts]
    joined = _unescape(" \n ".join(lines))
    return _split_punctuation(f" {joined} ")


def _zh(texts: Sequence[str]) -> str:
    """Every Chinese character is a token; the rest follows the rules of 13a."""
    return _split_punctuation(_CHINESE.sub(r" \1 ", _joined([text.strip() for text in texts])))


def _unescape(text: str) -> str:
    """Replace mteval's four entities by their characters."""
    if "&" in text:
        for entity, character in _ENTITIES:
            text = text.replace(entity, character)
    return text


def _split_marks(text: str) -> str:
    """Separate mteval's punctuation, except for periods, commas and dashes, which depend on their context."""
    for mark in _PUNCTUATION:
        text = text.replace(mark, f" {mark} ")
    return text


def _split_points(text: str) -> str:
    """Separate periods and commas, unless they are between digits.

    The rules are applied in turn, and each consumes a character once: of three points in a row, one may be missed.
    """
    return _BEFORE_NON_DIGIT.sub(r" \1 \2", _AFTER_NON_DIGIT.sub(r"\1 \2 ", text))


def _split_punctuation(lines: str) -> str:
    """The punctuation rules of 13a; line breaks separate segments and match no rule."""
    return _DASH.sub(r"\1 - ", _POINTS.sub(_split_run, _split_marks(lines)))


def _split_run(match: re.Match[str]) -> str:
    """Separate a run of periods and commas as `_split_points` does."""
    points, text = match[0], match.string
    before, after = text[match.start() - 1 : match.start()].strip("\n"), text[match.end() : match.end() + 1].strip("\n")
    if len(points) == 1:
        return f" {points} " if (before + after).strip("0123456789") else points
    spaced = _split_points(before + points + after)
    return spaced[len(before) : len(spaced) - len(after)]


def _intl(texts: Sequence[str]) -> str:
    """mteval-v14: separate punctuation that is not next to a number, and every symbol, of any script."""
    lines = _joined(texts)
    for pattern, replacement in _intl_rules():
        lines = pattern.sub(replacement, lines)
    return lines


def _joined(texts: Sequence[str]) -> str:
    return "\n".join(text.replace("\n", " ") for text in texts)


@functools.cache
def _intl_rules() -> tuple[tuple[re.Pattern[str], str], ...]:
    import regex  # supports Unicode categories

    return (
        (regex.compile(r"([^\p{N}\n])(\p{P})"), r"\1 \2 "),
        (regex.compile(r"(\p{P})([^\p{N}\n])"), r" \1 \2"),
        (regex.compile(r"(\p{S})"), r" \1 "),
    )


def tercom_words(
    text: str,
    normalized: bool = False,
    no_punct: bool = False,
    asian_support: bool = False,
    case_sensitive: bool = False,
) -> list[str]:
    """Split a text into words with Tercom's tokenizer (Snover et al., 2006) as in sacreBLEU 2.6, with every quirk.

    normalized: replace XML entities, and separate punctuation except for periods and commas between digits. no_punct:
    remove .,?:;!"(). asian_support: also treat Asian punctuation so, and split at ideographs (if normalized).
    """
    text = text.rstrip()
    if not case_sensitive:
        text = text.lower()
    if normalized:
        # The rules of mteval (NIST, 2002) that Tercom adopted, and one for the English possessive.
        text = text.replace("\n-", "").replace("\n", " ")  # intended to join hyphenated lines; the order is Tercom's
        text = _split_marks(f" {_unescape(text)} ").replace("'s ", " 's ")
        text = _DASH.sub(r"\1 - ", _split_points(text))
        if asian_support:
            text = _ASIAN.sub(r" \1 ", text)
    if no_punct:
        text = text.translate(_DROPPED)
        if asian_support:
            text = _ASIAN_DROPPED.sub("", text)
    return text.split()


@functools.cache
def _mecab(tokenizer: str) -> Callable[[str], str]:
    """sacreBLEU's Japanese or Korean tokenizer."""
    kind, extra = MECAB[tokenizer]
    try:
        module = importlib.import_module(f"sacrebleu.tokenizers.tokenizer_{tokenizer.replace('-', '_')}")
        return getattr(module, kind)()
    except (ImportError, RuntimeError) as error:
        raise ValueError(f"tokenize={tokenizer!r} needs MeCab: pip install 'sacrebleu[{extra}]'") from error


@functools.cache
def _sentencepiece(tokenizer: str) -> Callable[[str], str]:
    """The SentencePiece model of a tokenizer in sacreBLEU's cache directory; nothing is downloaded."""
    folder = os.environ.get("SACREBLEU", pathlib.Path.home() / ".sacrebleu")
    path = pathlib.Path(folder) / "models" / SENTENCEPIECE[tokenizer]
    if not path.exists():
        raise ValueError(
            f"tokenize={tokenizer!r} needs the model {path}: download it with `sacrebleu --tokenize {tokenizer}`"
        )
    from sentencepiece import SentencePieceProcessor

    model = SentencePieceProcessor(model_file=str(path))
    return lambda text: " ".join(model.encode_as_pieces(text))
