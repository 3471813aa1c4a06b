"""What all pictures share: colours, matplotlib settings, and the writing of the file."""

import contextlib
import pathlib
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from nmt_jax.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRAIN, DEV, QUIET = "#8da9c4", "#d1495b", "#5c677d"
SYSTEMS = ("#d1495b", "#00798c", "#edae49", "#30638e", "#66a182", "#5c677d")  # lines of one picture
NEAR = ("#f7fbf4", "#c5e7d8", "#7cc8d0", "#4a9cc7")  # light to dark; black can be read on all of it
FAR = ("#f2c14e", "#d1495b", "#41224a")  # light to dark
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
    """Write `figure` in the format that the name of `output` ends in; UserError where that cannot be."""
    dots = min(150.0, LARGEST / max(figure.get_size_inches()))
    with writing(output):
        figure.savefig(output, dpi=dots, facecolor="white")


@contextlib.contextmanager
def writing(output: pathlib.Path) -> Iterator[None]:
    """UserError where `output` cannot be written."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{output}: cannot be written: {error.strerror}") from None


def shade(ramp: Sequence[str], value: float) -> str:
    """The colour #rrggbb at `value`, 0 to 1, between evenly spaced ones."""
    place = min(max(value, 0.0), 1.0) * (len(ramp) - 1)
    first = min(int(place), len(ramp) - 2)
    low, high = (bytes.fromhex(color[1:]) for color in ramp[first : first + 2])
    return "#" + bytes(round(a + (place - first) * (b - a)) for a, b in zip(low, high, strict=True)).hex()
