"""Alignments as text: links `i-j` of word i of the source and word j of the target, as in Pharaoh."""

import json
import math
import os
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nmt_jax.data.lines import read_lines
from nmt_jax.errors import UserError

Link = tuple[int, int]  # source position, target position, counted from 0
_LINK = re.compile(r"(\d+)([-p?])(\d+)")


class Alignment(NamedTuple):
    """The links of a sentence pair in ascending order, and the posterior probability or the weight of each, 0 to 1."""

    links: list[Link]
    posteriors: list[float]

    def score(self, lengths: tuple[int, int]) -> float:
        """Returns how well the words are aligned, 0 to 1: the mean of the best posterior of each word of both sides.

        lengths: number of words of the source and of the target. A word without a link counts 0, and so does a pair
        without words.
        """
        best: dict[tuple[int, int], float] = {}
        for link, posterior in zip(self.links, self.posteriors, strict=True):
            for word in enumerate(link):  # a side, and a position in it
                best[word] = max(best.get(word, 0.0), posterior)
        return math.fsum(best.values()) / max(sum(lengths), 1)


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
        _check(link, lengths, f"{where}: the link {word}", first)
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return Gold(frozenset(sure), frozenset(possible))


def parse_alignment(line: str, lengths: tuple[int, int], where: str) -> Alignment:
    """Parses a line that `nmt-jax align` wrote, as JSON or in the Pharaoh format, which has no posteriors.

    lengths, where: as for `parse_links`. Raises UserError for anything else, and for links of absent words.
    """
    if not line.startswith("{"):
        return Alignment(sorted(parse_links(line, lengths, where).possible), [])
    try:
        rows = sorted((int(i), int(j), float(p)) for i, j, p in json.loads(line)["links"])
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        form = "links [source, target, posterior], as of nmt-jax align --format=json"
        raise UserError(f'{where}: not {{"links": …}} with {form}; write the file again') from None
    for i, j, p in rows:
        _check((i, j), lengths, f"{where}: the link {i}-{j}")
        if not 0 <= p <= 1:
            raise UserError(f"{where}: the link {i}-{j} has the posterior {p}, which must be between 0 and 1")
    return Alignment([(i, j) for i, j, _ in rows], [p for _, _, p in rows])


def _check(link: Link, lengths: tuple[int, int], name: str, first: int = 0) -> None:
    """Raises UserError for a link of absent words; name: FILE:LINE and the link."""
    for position, length, side in zip(link, lengths, ("source", "target"), strict=True):
        if not 0 <= position < length:
            counted = f"counted from {first}, the {side} has {length} words"
            raise UserError(f"{name} names a word that is not there: {counted}")
