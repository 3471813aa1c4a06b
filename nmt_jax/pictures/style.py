"""What all pictures share: colours, matplotlib settings, fonts for any script, and the writing of the file."""

import contextlib
import functools
import pathlib
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from nmt_jax.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRAIN, DEV, QUIET = "#8da9c4", "#d1495b", "#5c677d"
SYSTEMS = ("#d1495b", "#00798c", "#edae49", "#30638e", "#66a182", "#5c677d")  # lines of one picture
FORMATS = (".png", ".svg", ".pdf")
LARGEST = 16_000  # pixels on a side; a larger picture gets fewer dots an inch
STYLE: dict[Any, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.edgecolor": QUIET,
    "axes.axisbelow": True,
    "grid.color": "#e9ecef",
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titlelocation": "left",
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "axes.formatter.useoffset": False,
}


@contextlib.contextmanager
def drawing() -> Iterator[None]:
    """Our style, for the time of one picture; UserError where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        raise UserError("pictures need matplotlib: pip install 'nmt-jax[plot]'") from None
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing"
        )  # no font here has it: a box says so in the picture
        yield


def check_output(output: pathlib.Path, formats: Sequence[str] = FORMATS) -> None:
    """UserError where a picture cannot be written to `output`."""
    if output.suffix not in formats:
        raise UserError(f"--output={output}: this picture ends in {', '.join(formats)}")
    if not output.parent.is_dir():
        raise UserError(f"--output={output}: no such folder {output.parent}")


def save(figure: "Figure", output: pathlib.Path) -> None:
    """Write `figure` in the format that the name of `output` ends in."""
    dots = min(150.0, LARGEST / max(figure.get_size_inches()))
    figure.savefig(output, dpi=dots, facecolor="white")


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
            or "LastResort" in entry.name
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
