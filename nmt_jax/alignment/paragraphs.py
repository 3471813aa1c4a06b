"""Documents to be aligned sentence by sentence: one sentence per line, in paragraphs that correspond."""

from collections.abc import Iterator
from typing import NamedTuple

from nmt_jax.data.lines import read_lines
from nmt_jax.errors import UserError


class Sentence(NamedTuple):
    """A sentence without white space around it, and the number of its line, from 1."""

    text: str
    line: int


class Paragraph(NamedTuple):
    """The sentences between two boundaries, and the number of the line that it begins with."""

    sentences: list[Sentence]
    line: int


def read_paragraphs(path: str, boundary: str = "") -> list[Paragraph]:
    """Reads the paragraphs of a file; a gzip file is decompressed.

    boundary: the line that ends a paragraph; empty lines are ignored then. If it is "", one or more empty lines end a
    paragraph. Raises UserError, naming the line, if the file cannot be read, is not UTF-8 or has no sentences.
    """
    paragraphs = list(_split(path, boundary))
    if not any(paragraph.sentences for paragraph in paragraphs):
        raise UserError(f"{path}: the file has no sentences; write one on each line")
    return paragraphs


def read_documents(source: str, target: str, boundary: str = "") -> list[tuple[Paragraph, Paragraph]]:
    """Reads the paragraphs of a file and of its translation, as `read_paragraphs` does.

    Raises UserError if the numbers of paragraphs differ.
    """
    sides = read_paragraphs(source, boundary), read_paragraphs(target, boundary)
    fewer, more = sorted(zip((source, target), sides, strict=True), key=lambda side: len(side[1]))
    if len(fewer[1]) < len(more[1]):
        raise UserError(
            f"{more[0]}:{more[1][len(fewer[1])].line}: paragraph {len(fewer[1]) + 1} of {len(more[1])}, but "
            f"{fewer[0]} has only {len(fewer[1])}; both files need the same number of paragraphs, which "
            + (f"lines {boundary!r} end" if boundary else "empty lines end")
        )
    return list(zip(*sides, strict=True))


def _split(path: str, boundary: str) -> Iterator[Paragraph]:
    sentences: list[Sentence] = []
    first, number = 1, 0
    for number, line in enumerate(read_lines(path), start=1):
        text = line.strip()
        if text == boundary:
            if sentences or boundary:
                yield Paragraph(sentences, first)
            sentences, first = [], number + 1
        elif text:
            if not sentences and not boundary:
                first = number
            sentences.append(Sentence(text, number))
    if sentences:  # the last boundary may be missing
        yield Paragraph(sentences, first)
