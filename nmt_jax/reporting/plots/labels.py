"""Pieces of text in a picture: as people read them, in fonts that have their characters, along a matrix."""

import contextlib
import functools
import unicodedata
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from nmt_jax.reporting.plots.style import QUIET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LABEL = 8.0  # points
LONGEST = 24  # characters of a label
_NARROW, _WIDE = 0.075, 0.125  # inches of a character at LABEL points


def readable(pieces: Sequence[str]) -> list[str]:
    """Pieces as labels: a word's first piece as it is, its others after a dot.

    SentencePiece writes the blank before a word as ▁, byte-level vocabularies as Ġ; WordPiece marks the others, by ##.
    """
    if any(piece.startswith("Ġ") for piece in pieces):
        pieces = [_decoded(piece) for piece in pieces]
    blanks = any(piece.startswith("▁") for piece in pieces)
    labels = []
    for number, piece in enumerate(pieces):
        if piece.startswith("▁"):
            labels.append(piece[1:] or "_")
        elif not blanks:
            labels.append("·" + piece[2:] if piece.startswith("##") and len(piece) > 2 else piece)
        else:
            labels.append(piece if number == 0 or piece.startswith("<") else "·" + piece)
    return labels


def cut(label: str) -> str:
    """A label that is not longer than LONGEST."""
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"


def inches(label: str) -> float:
    """How much room a label takes, rather more than less."""
    return sum(_WIDE if unicodedata.east_asian_width(one) in "WF" else _NARROW for one in label)


def label_sides(axes: "Axes", above: Sequence[str] | None, beside: Sequence[str] | None) -> None:
    """Pieces above the columns and left of the rows of a matrix; None where a neighbour has them already."""
    rows, columns = axes.images[0].get_array().shape  # type: ignore[union-attr]
    axes.tick_params(top=False, bottom=False, left=False, right=False, labeltop=True, labelbottom=False, pad=2)
    axes.set_xticks(range(columns) if above else [])
    axes.set_yticks(range(rows) if beside else [])
    style: dict[str, Any] = {"fontsize": LABEL, "color": "black", "parse_math": False}
    if above:
        axes.set_xticklabels(above, rotation=90, fontfamily=fonts_for(above), **style)
        for label, piece in zip(axes.get_xticklabels(), above, strict=True):
            label.set_rotation(0 if len(piece) == 1 else 90)  # letters of East Asia stand upright
    if beside:
        axes.set_yticklabels(beside, fontfamily=fonts_for(beside), **style)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=0.5, color="#ced4da")


def note(figure: "Figure", x: float, y: float, text: str, **style: Any) -> None:
    """A remark in a picture, so many inches from its left and its top."""
    width, height = figure.get_size_inches()
    look: dict[str, Any] = {"fontsize": LABEL + 1, "color": QUIET} | style
    figure.text(x / width, 1 - y / height, text, parse_math=False, **look)


def fonts_for(labels: Iterable[str]) -> list[str]:
    """Families that together have a glyph for every character of `labels`, as far as this machine has any."""
    from matplotlib import font_manager

    families = ["DejaVu Sans"]
    missing = {ord(character) for label in labels for character in label}
    missing -= _characters(font_manager.findfont("DejaVu Sans"))
    for entry in sorted(font_manager.fontManager.ttflist, key=lambda entry: entry.name) if missing else []:
        if (
            entry.style != "normal"
            or str(entry.weight) not in ("400", "normal", "regular")
            or entry.name.replace(" ", "").startswith((".", "LastResort"))  # boxes that name a script
        ):
            continue
        with contextlib.suppress(OSError, RuntimeError):  # a damaged font, or one of bitmaps
            found = missing & _characters(entry.fname)
            if found:
                families.append(entry.name)
                missing -= found
    return families


@functools.cache
def _characters(font: str) -> frozenset[int]:
    """The code points that a font file has glyphs for."""
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(font).get_charmap())


def _decoded(piece: str) -> str:
    """A piece of a byte-level vocabulary as text, ▁ for the blank before it; � where it ends amid a character."""
    if any(character not in _bytes() for character in piece):
        return piece  # <s> and its like hold only such characters as stand for themselves; others are none of these
    text = bytes(_bytes()[character] for character in piece).decode("utf-8", "replace")
    return "▁" + text[1:] if text.startswith(" ") else text


@functools.cache
def _bytes() -> dict[str, int]:
    """What byte each character of a byte-level vocabulary stands for.

    Printable ones of Latin-1 for themselves, the other bytes are in order U+0100, U+0101 … (Radford et al., 2019).
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + k): byte for k, byte in enumerate(others)}
