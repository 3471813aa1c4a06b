"""Colours, matplotlib settings and file writing shared by all plots."""

import contextlib
import pathlib
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

from nmt_jax.errors import UserError
from nmt_jax.storage.files import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
else:  # matplotlib is optional, and imported only for drawing
    Axes = Figure = Any

TRAIN, DEV, QUIET = "#8da9c4", "#d1495b", "#5c677d"
SYSTEMS = ("#d1495b", "#00798c", "#edae49", "#30638e", "#66a182", "#5c677d")  # lines of one plot
NEAR = ("#f7fbf4", "#c5e7d8", "#7cc8d0", "#4a9cc7")  # light to dark; black text is readable on all of them
FAR = ("#f2c14e", "#d1495b", "#41224a")  # light to dark
FORMATS = (".png", ".svg", ".pdf")
LARGEST = 16_000  # pixels per side; larger plots get a lower resolution
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
    """Context with our matplotlib settings. Raises UserError if matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        raise UserError("plots need matplotlib: pip install 'nmt-jax[plot]'") from None
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        # A character that no installed font has is drawn as a box.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        yield


def new_figure(width: float, height: float, **options: Any) -> Figure:
    """Returns an empty figure of a size in inches."""
    import matplotlib.figure

    return matplotlib.figure.Figure(figsize=(width, height), **options)


def check_output(output: pathlib.Path, formats: Sequence[str] = FORMATS) -> pathlib.Path:
    """Returns `output`. Raises UserError if its folder does not exist or its suffix is none of `formats`."""
    if output.suffix not in formats:
        raise UserError(f"--output={output}: the file name must end in {', '.join(formats)}")
    if not output.parent.is_dir():
        raise UserError(f"--output={output}: no such folder {output.parent}")
    return output


def save(figure: Figure, output: pathlib.Path) -> None:
    """Writes `figure` in the format that the suffix of `output` names. Raises UserError if that fails."""
    dots = min(150.0, LARGEST / max(figure.get_size_inches()))
    with _writing(output) as file:
        figure.savefig(file, format=output.suffix[1:], dpi=dots, facecolor="white")


def save_page(text: str, output: pathlib.Path) -> None:
    """Writes a page of HTML to `output`. Raises UserError if that fails."""
    with _writing(output) as file:
        file.write(text.encode())


@contextlib.contextmanager
def _writing(output: pathlib.Path) -> Iterator[BinaryIO]:
    try:
        with whole_file(output) as file:
            yield file
    except OSError as error:
        raise UserError(f"{output}: cannot be written: {error.strerror}") from None


def shade(ramp: Sequence[str], value: float) -> str:
    """Returns the colour #rrggbb at `value`, 0 to 1, on a ramp of evenly spaced colours."""
    position = min(max(value, 0.0), 1.0) * (len(ramp) - 1)
    first = min(int(position), len(ramp) - 2)
    low, high = (bytes.fromhex(color[1:]) for color in ramp[first : first + 2])
    return "#" + bytes(round(a + (position - first) * (b - a)) for a, b in zip(low, high, strict=True)).hex()
