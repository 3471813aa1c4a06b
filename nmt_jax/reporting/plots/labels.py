"""Labels of pieces and words: readable text, fonts that have its characters, and placement along a matrix."""

import contextlib
import functools
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from nmt_jax.reporting.plots.style import QUIET, Axes, Figure

LABEL = 8.0  # points
LONGEST = 24  # characters per label
_NARROW, _WIDE = 0.075, 0.125  # inches per character at LABEL points


def readable(pieces: Sequence[str]) -> list[str]:
    """Returns pieces as labels: the first piece of a word as it is, its other pieces with a dot before them.

    SentencePiece marks the first piece of a word with ▁, byte-level vocabularies with Ġ; WordPiece marks the other
    pieces with ##.
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
    """Returns a label truncated to LONGEST characters."""
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"


def inches(label: str) -> float:
    """Returns the width of a label, rounded up."""
    return sum(_WIDE if unicodedata.east_asian_width(one) in "WF" else _NARROW for one in label)


def label_sides(axes: Axes, above: Sequence[str] | None, beside: Sequence[str] | None) -> None:
    """Writes labels above the columns and beside the rows of a matrix; None if a neighbouring matrix has them."""
    rows, columns = axes.images[0].get_array().shape  # type: ignore[union-attr]
    axes.tick_params(top=False, bottom=False, left=False, right=False, labeltop=True, labelbottom=False, pad=2)
    axes.set_xticks(range(columns) if above else [])
    axes.set_yticks(range(rows) if beside else [])
    style: dict[str, Any] = {"fontsize": LABEL, "color": "black", "parse_math": False}
    if above:
        axes.set_xticklabels(above, rotation=90, fontfamily=fonts_for(above), **style)
        for label, piece in zip(axes.get_xticklabels(), above, strict=True):
            label.set_rotation(0 if len(piece) == 1 else 90)  # single characters of East Asian scripts stay upright
    if beside:
        axes.set_yticklabels(beside, fontfamily=fonts_for(beside), **style)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=0.5, color="#ced4da")


def note(figure: Figure, x: float, y: float, text: str, **style: Any) -> None:
    """Writes text at a position in inches from the left and the top of a figure."""
    width, height = figure.get_size_inches()
    look: dict[str, Any] = {"fontsize": LABEL + 1, "color": QUIET} | style
    figure.text(x / width, 1 - y / height, text, parse_math=False, **look)


def headline(figure: Figure, text: str) -> None:
    """Writes the title of a figure at its top left."""
    note(figure, 0.1, 0.2, text, va="center", weight="bold")


def axes_at(figure: Figure, x: float, y: float, width: float, height: float, **options: Any) -> Axes:
    """Adds axes at a position in inches from the left and the top of a figure."""
    across, down = figure.get_size_inches()
    return figure.add_axes((x / across, 1 - (y + height) / down, width / across, height / down), **options)


def color_bar(figure: Figure, image: Any, x: float, y: float, width: float, height: float, **options: Any) -> Axes:
    """Adds the colour scale of an image at a position in inches from the left and the top of a figure."""
    bar = axes_at(figure, x, y, width, height)
    figure.colorbar(image, cax=bar, **options).outline.set_visible(False)
    bar.tick_params(labelsize=7, length=0)
    return bar


def fonts_for(labels: Iterable[str]) -> list[str]:
    """Returns font families that together have a glyph for every character of `labels`, if installed here."""
    from matplotlib import font_manager

    families = ["DejaVu Sans"]
    missing = {ord(character) for label in labels for character in label}
    missing -= _characters(font_manager.findfont("DejaVu Sans"))
    for entry in sorted(font_manager.fontManager.ttflist, key=lambda entry: entry.name) if missing else []:
        placeholders = entry.name.replace(" ", "").startswith((".", "LastResort"))
        if entry.style != "normal" or str(entry.weight) not in ("400", "normal", "regular") or placeholders:
            continue
        with contextlib.suppress(OSError, RuntimeError):  # damaged and bitmap fonts
            if covered := missing & _characters(entry.fname):
                families.append(entry.name)
                missing -= covered
    return families


@functools.cache
def _characters(font: str) -> frozenset[int]:
    """Returns the code points for which a font file has glyphs."""
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(font).get_charmap())


def _decoded(piece: str) -> str:
    """Returns a byte-level piece as text, with ▁ for a space before it and � for an incomplete character."""
    if any(character not in _bytes() for character in piece):
        return piece  # not of this vocabulary
    text = bytes(_bytes()[character] for character in piece).decode("utf-8", "replace")
    return "▁" + text[1:] if text.startswith(" ") else text


@functools.cache
def _bytes() -> dict[str, int]:
    """Returns the byte for each character of a byte-level vocabulary (Radford et al., 2019).

    Printable Latin-1 characters represent themselves; the other bytes are U+0100, U+0101 … in order.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + k): byte for k, byte in enumerate(others)}
