"""Tables in Markdown that compare decoding methods on a test set, with trained models.

    python -m benchmarks.decoding_table --table=beams WORKDIR --source=FILE --reference=FILE [--picture=FILE.png]
    python -m benchmarks.decoding_table --table=ways WORKDIR ... [--encoder=FOLDER] [--samples=64]
    python -m benchmarks.decoding_table --table=ensembles WORKDIR WORKDIR,WORKDIR ...

beams: beam sizes and length penalties. ways: greedy and beam search, samples, and minimum-Bayes-risk decoding over
n-best lists and samples, tested against beam 5 by paired approximate randomization (10,000 trials). ensembles: one row
per WORKDIR or comma-separated list of them, tested against the first row. Times are CPU-seconds of one thread without
compilation: a batch of every shape is translated before the clock starts.
"""

import argparse
import itertools
import pathlib
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks import measure
from benchmarks.corpora import minilm
from nmt_jax.reporting.score_table import PERCENT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from nmt_jax.decoding.method import Search
    from nmt_jax.decoding.minimum_bayes_risk import Choice
    from nmt_jax.decoding.sampling import Sampling
    from nmt_jax.translation.requests import Hypothesis
    from nmt_jax.translation.translator import Translator

BATCH_TOKENS = 8192  # hypotheses times source pieces
N_BEST = 16
UTILITIES = {"chrF": "chrf", "BLEU": "bleu|effective_order:true", "BERTScore": "bertscore|layer:4"}


class Models(NamedTuple):
    """A model or an ensemble, and a test set."""

    translator: "Translator"
    params: tuple[Any, ...]
    sources: list[str]
    references: list[str]

    @classmethod
    def open(cls, workdirs: str, sources: list[str], references: list[str]) -> "Models":
        """Open one workdir or several, separated by commas."""
        from nmt_jax.training.trained import open_translator
        from nmt_jax.workdir import Workdir

        opened = open_translator([Workdir(pathlib.Path(folder)) for folder in workdirs.split(",")])
        return cls(*opened, sources, references)

    def translate(self, how: "Search | Sampling") -> tuple[list[list["Hypothesis"]], float]:
        """Return the hypotheses of each line, and the CPU-seconds without compilation."""
        from nmt_jax.data.batching.prediction import decoding_batches

        vocab = self.translator.vocabularies[0]
        width = getattr(how, "beam_size", 0) or getattr(how, "num_samples", 0)
        budget = max(BATCH_TOKENS // width, 1)
        batches = decoding_batches([vocab.encode(line) for line in self.sources], batch_tokens=budget)
        for numbers in {batch["source"].shape: numbers for numbers, batch in batches}.values():
            own = [self.sources[number] for number in numbers]
            self.translator.translate(self.params, own, how, batch_tokens=budget)
        start = time.process_time()
        found = self.translator.translate(self.params, self.sources, how, batch_tokens=budget)
        return found, time.process_time() - start


class Row(NamedTuple):
    """A decoding method: its name, translations and CPU-seconds."""

    name: str
    texts: list[str]
    seconds: float


def first(found: Sequence[Sequence["Hypothesis"]]) -> list[str]:
    """Return the first text of each line."""
    return [hypotheses[0].text for hypotheses in found]


def length(texts: Sequence[str], references: Sequence[str]) -> float:
    """Return the number of tokens (as BLEU counts them) divided by that of the references."""
    from metrics_jax import BLEU

    parts = BLEU()(texts, references).parts
    return float(parts["sys_len"] / parts["ref_len"])


def print_row(cells: Sequence[str]) -> None:
    print("|", " | ".join(cells), "|", flush=True)


def print_heading(cells: Sequence[str]) -> None:
    print_row(cells)
    print("|" + "---|" * len(cells), flush=True)


# Beam sizes


class Point(NamedTuple):
    """A beam search of `size` under one length penalty."""

    penalty: str
    size: int
    bleu: float
    length: float  # words of the translations divided by words of the references


def beams(models: Models, sizes: Sequence[int], penalties: Sequence[float], normalization: str) -> list[Point]:
    """Print the table of beam sizes and length penalties."""
    from metrics_jax import parse

    metrics = [parse(name) for name in ("bleu", "chrf", "ter")]
    print_heading(["penalty", "beam", "BLEU", "chrF", "TER", "length", "empty", "CPU-seconds"])
    points = []
    for alpha in penalties:
        for size in sizes:
            search = models.translator.search(beam_size=size, length_penalty=alpha, normalization=normalization)
            found, seconds = models.translate(search)
            texts = first(found)
            scores = [metric(texts, models.references).score for metric in metrics]
            name = f"α = {alpha:g}"
            points.append(Point(name, size, scores[0], length(texts, models.references)))
            empty = sum(not text.strip() for text in texts)
            figures = [*(f"{score:.2f}" for score in scores), f"{points[-1].length:.3f}", str(empty), f"{seconds:.1f}"]
            print_row([name, str(size), *figures])
    return points


def draw_beams(points: Sequence[Point]) -> "Figure":
    """Draw BLEU and length of translations by beam size, one line per length penalty."""
    from matplotlib.figure import Figure

    from nmt_jax.reporting.plots.style import QUIET, SYSTEMS

    figure = Figure(figsize=(7.6, 3.6), layout="constrained")
    panels = figure.subplots(1, 2)
    for number, penalty in enumerate(dict.fromkeys(point.penalty for point in points)):
        own = [point for point in points if point.penalty == penalty]
        sizes = [point.size for point in own]
        line = {"color": SYSTEMS[number], "linewidth": 1.8, "marker": "o", "markersize": 4, "label": penalty}
        panels[0].plot(sizes, [point.bleu for point in own], **line)
        panels[1].plot(sizes, [point.length for point in own], **line)
    for axes, title in zip(panels, ("BLEU", "length relative to the references"), strict=True):
        sizes = sorted({point.size for point in points})
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.minorticks_off()
        axes.set_xlabel("beam size")
        axes.set_title(title)
    panels[0].legend(frameon=False, loc="lower left", title="length penalty", alignment="left")
    panels[1].axhline(1, color=QUIET, linewidth=1, linestyle=":")
    return figure


# Decoding methods


def choose(lists: Sequence[list["Hypothesis"]], spec: str, weights: str, encoder: str) -> tuple[list["Choice"], float]:
    """Return the choice of minimum-Bayes-risk decoding for each list, and CPU-seconds without compilation."""
    from nmt_jax.decoding.minimum_bayes_risk import MinimumBayesRisk, Utility
    from nmt_jax.pretrained.metrics import open_metric
    from nmt_jax.translation.candidates import Candidates
    from nmt_jax.translation.reranking import CHUNK, Pair, choose_texts

    other = "chrf" if spec.startswith("bleu") else "bleu|effective_order:true"
    utility = Utility(open_metric(spec, encoder=encoder))
    decide = MinimumBayesRisk((utility,), open_metric(other), weights=weights)
    pairs = [Pair(Candidates([one.text for one in own], [one.score for one in own]), None) for own in lists]
    list(choose_texts(decide, pairs[: 2 * CHUNK]))
    start = time.process_time()
    choices = [choice for _, choice in choose_texts(decide, pairs)]
    return choices, time.process_time() - start


def decisions(name: str, lists: Sequence[list["Hypothesis"]], seconds: float, encoder: str) -> Iterator[Row]:
    """Yield the choices of each utility, and of the mean of chrF and BERTScore; `seconds` is the time of sampling."""
    expected, times = {}, {}
    for kind, spec in UTILITIES.items():
        choices, times[kind] = choose(lists, spec, "uniform", encoder)
        expected[kind] = [choice.utilities for choice in choices]
        picked = [own[choice.index].text for own, choice in zip(lists, choices, strict=True)]
        yield Row(f"MBR, {name}, {kind}", picked, seconds + times[kind])
    # The utility of a mix is the mean of its metrics' utilities.
    mixed = [int((a + b).argmax()) for a, b in zip(expected["chrF"], expected["BERTScore"], strict=True)]
    texts = [own[index].text for own, index in zip(lists, mixed, strict=True)]
    yield Row(f"MBR, {name}, chrF and BERTScore", texts, seconds + times["chrF"] + times["BERTScore"])


def ways(models: Models, num_samples: int, encoder: str) -> Iterator[Row]:
    """Yield the results of all methods, the baseline first."""
    from nmt_jax.decoding.sampling import Sampling

    search = models.translator.search
    singles: dict[str, Search | Sampling] = {
        "beam 5": search(beam_size=5),
        "greedy": search(beam_size=1),
        "one sample": Sampling(),
        "one sample, top-p 0.9": Sampling(top_p=0.9),
        "one sample, epsilon 0.02": Sampling(epsilon=0.02),
    }
    for name, how in singles.items():
        found, seconds = models.translate(how)
        yield Row(name, first(found), seconds)
    found, seconds = models.translate(search(beam_size=N_BEST, n_best=N_BEST, length_penalty=0.0))
    choices, more = choose(found, "chrf", "probability", encoder)
    texts = [own[choice.index].text for own, choice in zip(found, choices, strict=True)]
    yield Row(f"MBR, {N_BEST} best, chrF", texts, seconds + more)
    for epsilon in (0.0, 0.02):
        found, seconds = models.translate(Sampling(num_samples, epsilon=epsilon))
        name = f"{num_samples} samples" + (f", epsilon {epsilon:g}" if epsilon else "")
        print(f"{name}: {seconds:.1f} CPU-seconds", file=sys.stderr)
        yield from decisions(name, found, seconds, encoder)


def tested(rows: Iterable[Row], references: Sequence[str], specs: Sequence[str], encoder: str) -> None:
    """Print the metrics of each row, with * if the difference from the first row has p < 0.05."""
    from metrics_jax.significance import paired_randomisation
    from nmt_jax.pretrained.metrics import open_metric

    metrics = {spec.partition("|")[0]: open_metric(spec, encoder=encoder) for spec in specs}
    print_heading(["", *metrics, "length", "CPU-seconds"])
    baseline: dict[str, Any] = {}
    for row in rows:
        cells = []
        for name, metric in metrics.items():
            own = metric.statistics(row.texts, references)
            baseline.setdefault(name, own)
            compared = paired_randomisation(metric, {"baseline": baseline[name], "row": own})[1]
            score = compared.interval.score
            text = f"{score:.2f}" if name in PERCENT else f"{score:.4f}"
            cells.append(text + ("*" if compared.significant else ""))
        print_row([row.name, *cells, f"{length(row.texts, references):.3f}", f"{row.seconds:.1f}"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("workdirs", nargs="+", metavar="WORKDIR")
    parser.add_argument("--table", required=True, choices=("beams", "ways", "ensembles"))
    parser.add_argument("--source", required=True, help="File of source sentences.")
    parser.add_argument("--reference", required=True, help="File of reference translations.")
    parser.add_argument("--lines", type=int, help="Use only the first lines.")
    parser.add_argument("--picture", type=pathlib.Path, help="Picture file for --table=beams.")
    parser.add_argument("--sizes", default="1,2,4,5,8,16,32", help="Beam sizes for --table=beams.")
    parser.add_argument("--penalties", default="0,0.6,1", help="Values of the length penalty.")
    parser.add_argument("--normalization", default="wu", choices=("wu", "length"))
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--encoder", help="Folder of the model for BERTScore.")
    parser.add_argument("--language", default="de", help="Language of the translations, for METEOR.")
    options = parser.parse_args()
    measure.one_thread()

    from nmt_jax.data.lines import read_lines

    sources, references = (
        list(itertools.islice(read_lines(file), options.lines)) for file in (options.source, options.reference)
    )
    specs = ["bleu", "chrf", "ter"]
    if options.table == "ensembles":

        def ensembles() -> Iterator[Row]:
            for workdirs in options.workdirs:
                models = Models.open(workdirs, sources, references)
                found, seconds = models.translate(models.translator.search(beam_size=5))
                yield Row(", ".join(pathlib.Path(folder).name for folder in workdirs.split(",")), first(found), seconds)

        return tested(ensembles(), references, specs, "")
    models = Models.open(options.workdirs[0], sources, references)
    if options.table == "ways":
        encoder = options.encoder or minilm()
        specs += [f"meteor15|language:{options.language}|modules:exact+stem", UTILITIES["BERTScore"]]
        return tested(ways(models, options.samples, encoder), references, specs, encoder)
    sizes, penalties = map(int, options.sizes.split(",")), map(float, options.penalties.split(","))
    points = beams(models, list(sizes), list(penalties), options.normalization)
    if options.picture:
        from nmt_jax.reporting.plots.style import drawing, save

        with drawing():
            save(draw_beams(points), options.picture)


if __name__ == "__main__":
    main()
