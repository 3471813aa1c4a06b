"""Filters of sentence pairs: what is wrong with one pair, whatever the rest of the corpus.

A text is compared as its characters without leading and trailing spaces. Filters see no pair with an empty side.
"""

from collections.abc import Callable, Sequence

import regex

from nmt_jax.schema.filters import Filter

_LETTERS = regex.compile(r"[\p{L}\p{M}]+")  # marks belong to the letters of many scripts, such as Devanagari

Texts = Sequence[str]  # of all sources and the target of a pair


def make_predicate(chosen: Filter) -> Callable[[Texts], bool]:
    """The function that is true of the texts that a filter drops; not for duplicates, which need the whole corpus."""
    return {
        "identical": identical,
        "length_ratio": lambda texts: length_ratio(texts) > chosen.threshold,
        "letters": lambda texts: share_of_letters(texts) < chosen.threshold,
    }[chosen.name]


def identical(texts: Texts) -> bool:
    """Whether the target equals a source: not translated, or the wrong language."""
    return texts[-1].strip() in {source.strip() for source in texts[:-1]}


def length_ratio(texts: Texts) -> float:
    """Number of characters of the longest text divided by that of the shortest."""
    lengths = [len(text.strip()) for text in texts]
    return max(lengths) / min(lengths)


def share_of_letters(texts: Texts) -> float:
    """The smallest share of letters and their marks among the characters of a text that are not spaces."""
    return min(
        sum(map(len, _LETTERS.findall(text))) / len(characters)
        for text, characters in ((text, "".join(text.split())) for text in texts)
    )


REASONS = {
    "duplicates": "repeated",
    "identical": "with identical source and target",
    "length_ratio": "with a length ratio above {:g}",
    "letters": "with a share of letters below {:g}",
}


def reason(chosen: Filter) -> str:
    """What is said of the pairs that a filter dropped."""
    return REASONS[chosen.name].format(chosen.threshold)
