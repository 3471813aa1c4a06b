"""Alignments as text: links `i-j` of word i of the source and word j of the target, as in Pharaoh."""

import os
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nmt_jax.data.lines import read_lines
from nmt_jax.errors import UserError

Link = tuple[int, int]  # source position, target position, counted from 0
_LINK = re.compile(r"(\d+)([-p?])(\d+)")


class Gold(NamedTuple):
    """The links of a sentence pair made by people: those that are sure, and all, which are possible."""

    sure: frozenset[Link]
    possible: frozenset[Link]


def format_links(links: Iterable[Link]) -> str:
    """Returns the links as `0-0 1-2`, in ascending order."""
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def read_gold(path: str | os.PathLike[str], lengths: Sequence[tuple[int, int]], first: int = 1) -> list[Gold]:
    """Reads a file with a line for each sentence pair: links `i-j` that are sure and `ipj` or `i?j` that are possible.

    lengths: number of words of the source and of the target of each line. first: the number of the first word of a
    sentence, 0 or 1. Raises UserError for another number of lines, anything but links, and links of absent words.
    """
    gold = []
    for number, line in enumerate(read_lines(path), start=1):
        if number > len(lengths):
            raise UserError(f"{path}:{number}: more lines than the input, which has {len(lengths)}; use the same lines")
        gold.append(parse_links(line, lengths[number - 1], f"{path}:{number}", first))
    if len(gold) < len(lengths):
        raise UserError(f"{path}: {len(gold)} lines, but the input has {len(lengths)}; use the same lines")
    return gold


def parse_links(line: str, lengths: tuple[int, int], where: str, first: int = 0) -> Gold:
    """Parses the links of a sentence pair: `i-j` is sure, `ipj` or `i?j` is possible.

    lengths: number of words of the source and of the target. where: FILE:LINE, for errors. first: the number of the
    first word. Raises UserError for anything but links, and for links of absent words.
    """
    sure, possible = set(), set()
    for word in line.split():
        if not (match := _LINK.fullmatch(word)):
            raise UserError(f"{where}: {word[:40]!r} is not a link; write i-j if it is sure, ipj if possible")
        link = (int(match[1]) - first, int(match[3]) - first)
        for position, length, side in zip(link, lengths, ("source", "target"), strict=True):
            if not 0 <= position < length:
                counted = f"counted from {first}, the {side} has {length} words"
                raise UserError(f"{where}: the link {word} names a word that is not there: {counted}")
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return Gold(frozenset(sure), frozenset(possible))
