"""`nmt-jax plot`: learning curves of a run, and all attention heads of a sentence in one picture."""

import contextlib
import functools
import pathlib
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from absl import flags

from nmt_jax.errors import UserError
from nmt_jax.trained import open_trained
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TRAIN, DEV, QUIET = "#8da9c4", "#d1495b", "#5c677d"
QUALITIES = {"dev/bleu": "BLEU", "dev/accuracy": "accuracy"}  # the first that a log has is drawn, else perplexity
FORMATS = (".png", ".svg", ".pdf")
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
TOKEN = 0.17  # inches that a token takes on an axis: readable at LABEL points
LABEL = 8.0
LARGEST = 16_000  # pixels on a side; a picture of very long sentences gets fewer dots an inch


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax plot`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("workdir", None, "The folder of a run.", **given)
    flags.DEFINE_enum("kind", None, ["curves", "attention"], "What to draw; attention if there is a sentence.", **given)
    flags.DEFINE_string("sentence", None, "The source sentence whose attention is drawn.", **given)
    flags.DEFINE_string("target", None, "Its translation; the model's own if not given.", **given)
    flags.DEFINE_enum("attention", "cross", ["cross", "encoder", "decoder"], "Which attention.", **given)
    flags.DEFINE_string("output", None, "FILE.png, .svg or .pdf; WORKDIR/KIND.png if not given.", **given)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, a picture out; its path on stdout."""
    if positional:
        raise UserError(f"nmt-jax plot takes no {positional[0]!r}: a run is --workdir=FOLDER")
    if not flag_values.workdir:
        raise UserError("nmt-jax plot needs --workdir=FOLDER of a run")
    output = run(
        pathlib.Path(flag_values.workdir),
        kind=flag_values.kind or ("attention" if flag_values.sentence else "curves"),
        sentence=flag_values.sentence,
        target=flag_values.target,
        attention=flag_values.attention,
        output=pathlib.Path(flag_values.output) if flag_values.output else None,
    )
    print(output)
    return 0


def run(
    workdir: pathlib.Path | str,
    *,
    kind: str = "curves",
    sentence: str | None = None,
    target: str | None = None,
    attention: str = "cross",
    output: pathlib.Path | None = None,
) -> pathlib.Path:
    """Draw the "curves" of a run or the "attention" of a sentence into `output` -> the file written."""
    folder = Workdir(pathlib.Path(workdir))
    config = folder.config()
    output = output or folder.path / f"{kind}.png"
    if output.suffix not in FORMATS:
        raise UserError(f"--output={output}: a picture ends in {', '.join(FORMATS)}")
    if not output.parent.is_dir():
        raise UserError(f"--output={output}: no such folder {output.parent}")
    with _drawing():
        if kind == "curves":
            figure = draw_curves(folder.metrics(), config.loss.label_smoothing)
        elif sentence:
            weights = attention_of(folder, sentence, target)
            figure = draw_attention(weights, attention)
        else:
            raise UserError('nmt-jax plot --kind=attention needs a sentence: --sentence="…"')
        dots = min(150.0, LARGEST / max(figure.get_size_inches()))
        figure.savefig(output, dpi=dots, facecolor="white")
    return output


def draw_curves(rows: Sequence[Mapping[str, float | None]], label_smoothing: float = 0.0) -> "Figure":
    """Loss and BLEU over the steps of a log, with the learning rate and the speed small below.

    The training loss includes `label_smoothing`, the dev loss never does, so the legend says so.
    """
    from matplotlib.figure import Figure

    def series(name: str) -> tuple[list[float], list[float]]:
        points = [(row["step"], row[name]) for row in rows if row.get(name) is not None]
        return [float(step) for step, _ in points if step is not None], [float(y) for _, y in points if y is not None]

    quality = next((name for name in QUALITIES if series(name)[0]), "dev/perplexity")
    higher_is_better = quality in QUALITIES
    figure = Figure(figsize=(10.0, 5.2), layout="constrained")
    (loss, bleu), (rate, speed) = figure.subplots(2, 2, sharex=True, height_ratios=(3.2, 1))
    for axes in (loss, bleu, rate, speed):
        axes.grid(visible=True)
    steps, losses = series("loss")
    if steps:
        loss.plot(steps, losses, color=TRAIN, linewidth=0.8, alpha=0.6)
        loss.plot(
            steps,
            _smooth(losses),
            color=TRAIN,
            linewidth=2,
            label=f"train (labels smoothed by {label_smoothing:g})" if label_smoothing else "train",
        )
    loss.plot(*series("dev/loss"), color=DEV, linewidth=1.6, marker="o", markersize=3.5, label="dev")
    loss.set_title("loss (nats)" if quality == "dev/accuracy" else "loss (nats a target piece)")
    loss.legend(frameon=False)
    _fit_after_the_fall(loss, losses + series("dev/loss")[1])
    steps, values = series(quality)
    bleu.plot(steps, values, color=DEV, linewidth=1.6, marker="o", markersize=3.5)
    bleu.set_title(f"{QUALITIES.get(quality, 'perplexity')} of the dev set")
    if values:
        best = int(np.argmax(values) if higher_is_better else np.argmin(values))
        bleu.plot(steps[best], values[best], "o", markersize=9, markerfacecolor="none", color=DEV)
        bleu.annotate(
            f"{values[best]:.1f}",
            (steps[best], values[best]),
            (0, -9 if higher_is_better else 9),
            textcoords="offset points",
            ha="center",
            va="top" if higher_is_better else "bottom",
            color=DEV,
            weight="bold",
        )
    rate.plot(*series("learning_rate"), color=QUIET, linewidth=1.2)
    rate.set_title("learning rate", fontsize=8)
    speed.plot(*series("tokens_per_second"), color=QUIET, linewidth=0.8)
    speed.set_title("target tokens a second", fontsize=8)
    for axes in (rate, speed):
        axes.set_xlabel("step")
        axes.set_ylim(bottom=0)
        axes.locator_params(axis="y", nbins=3)
        axes.tick_params(labelsize=7)
    return figure


def attention_of(folder: Workdir, sentence: str, target: str | None = None) -> dict[str, Any]:
    """Pieces and attention weights of `sentence` and `target` (the model's own translation by default)."""
    task, params = open_trained(folder, "translate")
    if target is None:
        target = task.translate(params, [sentence], beam_size=task.config.decode.beam_size)[0][0].text
        print(target, file=sys.stderr)
    return task.attention(params, sentence, target)


def draw_attention(weights: Mapping[str, Any], kind: str = "cross") -> "Figure":
    """All heads of all layers in one picture: a row a layer, a column a head, pieces on the outer axes.

    weights: `source_pieces`, `target_pieces`, and under `kind` float[L, H, queries, keys], the rows summing to 1.
    """
    from matplotlib.colors import PowerNorm
    from matplotlib.figure import Figure

    heads = np.asarray(weights[kind], np.float32)  # [L, H, queries, keys]
    queries = _readable(weights["source_pieces" if kind == "encoder" else "target_pieces"])
    # The decoder reads its own words one step late: while it predicts piece t it has seen those before.
    keys = ["<s>", *queries[:-1]] if kind == "decoder" else _readable(weights["source_pieces"])
    num_layers, num_heads = heads.shape[:2]
    across, down = max(TOKEN * len(keys), 0.9), max(TOKEN * len(queries), 0.9)
    left, top = (0.55 + 0.075 * max(map(len, queries)), 0.85 + 0.075 * max(map(len, keys)))
    gap, right, bottom = 0.14, 0.75, 0.2
    width = left + num_heads * (across + gap) + right
    height = top + num_layers * (down + gap) + bottom
    figure = Figure(figsize=(width, height))
    norm = PowerNorm(0.6, vmin=0.0, vmax=1.0)  # faint weights are half of the story
    image = None
    for layer in range(num_layers):
        for head in range(num_heads):
            x = left + head * (across + gap)
            y = height - top - (layer + 1) * down - layer * gap
            axes = figure.add_axes((x / width, y / height, across / width, down / height))
            image = axes.imshow(heads[layer, head], cmap="GnBu", norm=norm, aspect="auto", interpolation="nearest")
            _label_cell(axes, keys if layer == 0 else None, queries if head == 0 else None)
            if layer == 0:
                _text(figure, (x + across / 2) / width, 1 - 0.5 / height, f"head {head + 1}", ha="center")
            if head == 0:
                _text(figure, 0.16 / width, (y + down / 2) / height, f"layer {layer + 1}", va="center", rotation=90)
    assert image is not None
    bar_height = min(2.0, num_layers * (down + gap) - gap)
    bar = figure.add_axes(
        ((width - right + 0.12) / width, (height - top - bar_height) / height, 0.12 / width, bar_height / height)
    )
    figure.colorbar(image, cax=bar, ticks=[0, 0.1, 0.25, 0.5, 1]).outline.set_visible(False)
    bar.tick_params(labelsize=7, length=0)
    title = {"cross": "attention of target (rows) to source (columns)"}.get(kind, f"self-attention of the {kind}")
    _text(figure, 0.1 / width, 1 - 0.2 / height, title, va="center", weight="bold")
    return figure


def _label_cell(axes: "Axes", keys: list[str] | None, queries: list[str] | None) -> None:
    """Pieces above and to the left of a cell; None where an outer cell has them already."""
    rows, columns = axes.images[0].get_array().shape  # type: ignore[union-attr]
    axes.set_xticks(range(columns) if keys else [])
    axes.set_yticks(range(rows) if queries else [])
    style: dict[str, Any] = {"fontsize": LABEL, "color": "black", "parse_math": False, "fontfamily": _fonts_for([])}
    if keys:
        axes.set_xticklabels(keys, rotation=90, **{**style, "fontfamily": _fonts_for(keys)})
    if queries:
        axes.set_yticklabels(queries, **{**style, "fontfamily": _fonts_for(queries)})
    axes.tick_params(top=False, bottom=False, left=False, right=False, labeltop=True, labelbottom=False, pad=2)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=0.5, color="#ced4da")


def _text(figure: "Figure", x: float, y: float, text: str, **style: Any) -> None:
    figure.text(x, y, text, fontsize=LABEL + 1, color=QUIET, parse_math=False, **style)


def _readable(pieces: Sequence[str]) -> list[str]:
    """Pieces as labels: a word's first piece as it is, its others after a dot; long ones cut."""
    labels = []
    for number, piece in enumerate(pieces):
        if piece.startswith("\u2581"):  # SentencePiece's mark of a blank
            label = piece[1:] or "_"
        else:
            label = piece if number == 0 or piece.startswith("<") else "·" + piece
        labels.append(label if len(label) <= 24 else label[:23] + "…")
    return labels


def _smooth(values: Sequence[float]) -> np.ndarray:
    """The mean of each value and its neighbours, a fortieth of the run to both sides (fewer at the ends)."""
    reach = len(values) // 40
    reaches = [min(reach, n, len(values) - 1 - n) for n in range(len(values))]
    return np.array([np.mean(values[n - reach : n + reach + 1]) for n, reach in enumerate(reaches)])


def _fit_after_the_fall(axes: "Axes", values: Sequence[float]) -> None:
    """Do not let the first steps, far above all others, press the rest of the curve flat."""
    if len(values) < 20:
        return
    low, most, high = np.percentile(values, (0, 97, 100))
    if high > low + 1.4 * (most - low):
        axes.set_ylim(low - 0.05 * (most - low), low + 1.2 * (most - low))


def _fonts_for(labels: Iterable[str]) -> list[str]:
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


@contextlib.contextmanager
def _drawing() -> Iterator[None]:
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
