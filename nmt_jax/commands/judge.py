"""`nmt-jax judge`: how well metrics agree with people, on files of judged texts."""

import contextlib
import dataclasses
import pathlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from absl import flags

from metrics_jax.judging.agreement import LEVELS, agreement
from metrics_jax.judging.coefficient import NAMES, Coefficient
from metrics_jax.judging.comparison import clusters, intervals, p_values, williams
from metrics_jax.judging.judgements import GROUPINGS, Judgements
from metrics_jax.judging.mean_agreement import MeanAgreement
from metrics_jax.prediction.correlation import pearson
from metrics_jax.registry import REGISTRY, SHORTHANDS, needs
from metrics_jax.significance import SEED
from nmt_jax.commands.metric_flags import define_metric_flags, metric_options
from nmt_jax.data.readers.judgements import Columns, Judged
from nmt_jax.errors import UserError
from nmt_jax.judging import agreement_table
from nmt_jax.judging.agreement_table import Column
from nmt_jax.judging.judgement_files import Protocol, read_judged_files
from nmt_jax.judging.metric_scores import given_scores, judged_scores
from nmt_jax.pretrained.metrics import open_metric

TESTS = ("permutation", "williams")


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax judge`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_list(
        "metrics",
        ["bleu|effective_order:true", "chrf", "ter"],
        f"Any of {', '.join([*REGISTRY, *SHORTHANDS])}; with options 'bleu|tokenize:zh', or a whole signature.",
        **given,
    )
    flags.DEFINE_multi_string(
        "scores", [], "Scores made elsewhere: COLUMN, or NAME=FILE, a line a text; -COLUMN if less is better.", **given
    )
    flags.DEFINE_list("human", [], "Columns of people's judgements, each judged by itself.", **given)
    flags.DEFINE_string("hypothesis", "hypothesis", "The column of the text that was judged.", **given)
    flags.DEFINE_list("reference", ["reference"], "Columns of references, texts or (JSONL) lists of texts.", **given)
    flags.DEFINE_string("system", "", "The column that says which system wrote the text.", **given)
    flags.DEFINE_string("item", "", "The column of the segment, document or topic that it was made from.", **given)
    flags.DEFINE_string("outputs", "", "JSONL: the field with a list of judged texts, each an object.", **given)
    flags.DEFINE_string("worse", "", "Pairs ranked by people: the column of a text worse than --hypothesis.", **given)
    flags.DEFINE_string(
        "system_scores", "", "What people said of whole systems; NAME.sys.tsv of NAME.seg.tsv.", **given
    )
    flags.DEFINE_list("correlation", ["pearson", "kendall"], f"Any of {', '.join(NAMES)}.", **given)
    flags.DEFINE_enum("level", "segment", list(LEVELS), "What is compared: texts, or systems.", **given)
    flags.DEFINE_enum(
        "grouping", "none", list(GROUPINGS), "Compare all texts, those of an item, or those of a system.", **given
    )
    flags.DEFINE_boolean("outliers", True, "Keep systems far from the median; WMT drops them at level system.", **given)
    flags.DEFINE_boolean("average", False, "One column for all files of a folder: the mean of theirs.", **given)
    flags.DEFINE_boolean("confidence", False, "95 % intervals, by bootstrap.", **given)
    flags.DEFINE_enum("significance", None, list(TESTS), "Test every two metrics; a cluster a rank.", **given)
    flags.DEFINE_integer("trials", 1000, "Permutations, and bootstrap samples.", lower_bound=1, **given)
    flags.DEFINE_integer("seed", SEED, "Of both.", **given)
    flags.DEFINE_string("plots", None, "A folder for pictures: scores against judgements, and rankings.", **given)
    flags.DEFINE_enum(
        "format", "text", list(agreement_table.WRITERS), "text: a table, and in a pipe rows without a heading.", **given
    )
    define_metric_flags(flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, a table out."""

    def given(*names: str) -> dict[str, Any]:
        return {name: flag_values[name].value for name in names}

    columns = Columns(
        **given("hypothesis", "system", "item", "outputs", "worse"),
        reference=tuple(flag_values.reference),
        human=tuple(flag_values.human),
    )
    table = run(
        positional,
        columns,
        Protocol(tuple(flag_values.correlation), **given("level", "grouping", "outliers")),
        metrics=flag_values.metrics,
        scores=flag_values.scores,
        system_scores=flag_values.system_scores,
        average=flag_values.average,
        confidence=flag_values.confidence,
        significance=flag_values.significance,
        trials=flag_values.trials,
        seed=flag_values.seed,
        plots=flag_values.plots,
        **metric_options(flag_values),
    )
    print(agreement_table.WRITERS[flag_values.format](table))
    return 0


@dataclasses.dataclass(frozen=True)
class _Part:
    """The judgements of a column of a file, and what M metrics say of their texts, float[M, N]."""

    name: str
    human: str
    judgements: Judgements
    scores: np.ndarray

    @classmethod
    def of(cls, protocol: Protocol, judged: Judged, human: str, scores: np.ndarray) -> "_Part":
        """The texts that the protocol keeps, of scores of all."""
        judgements, texts = protocol.judgements(judged, human)
        return cls(judged.name, human, judgements, scores[:, texts])


def run(
    places: Sequence[str],
    columns: Columns,
    protocol: Protocol,
    *,
    metrics: Sequence[str] = (),
    scores: Sequence[str] = (),
    system_scores: str = "",
    average: bool = False,
    confidence: bool = False,
    significance: str | None = None,
    trials: int = 1000,
    seed: int = SEED,
    plots: str | None = None,
    **options: Any,
) -> list[Column]:
    """Judge metrics by people -> a column for each coefficient, file, and column of judgements.

    places: see `read_judged_files`. average: one for all files of a place, the mean of their coefficients. metrics:
    names or signatures; options: what some need, as of `open_metric`. scores: as of `given_scores`. The others as the
    flags. UserError for files that cannot be read, and for what does not exist or go together.
    """
    if not places:
        raise UserError("nmt-jax judge needs judged texts: nmt-jax judge FILE --human=COLUMN")
    if not metrics and not scores:
        raise UserError("nmt-jax judge needs metrics: --metrics=NAME, or --scores=COLUMN")
    given = tuple(one.removeprefix("-") for one in scores if "=" not in one)
    found = read_judged_files(places, dataclasses.replace(columns, scores=given), protocol, system_scores)
    if significance == "williams":
        _check_williams([place.protocol for place in found], average)
    folder = _folder(plots)
    num_files = sum(len(place.files) for place in found)
    result = []
    with _opened(metrics, options) as measures:
        made = {one.removeprefix("-").partition("=")[0]: one for one in scores}
        names = [*measures, *made]
        for place in found:
            parts = []
            for judged in place.files:
                of_systems = place.protocol.level == "system"
                rows = [judged_scores(name, one, judged, of_systems) for name, one in measures.items()]
                rows += [given_scores(one, judged, num_files) for one in made.values()]
                with _mistakes():
                    parts += [_Part.of(place.protocol, judged, human, np.stack(rows)) for human in judged.human]
            if folder:
                for part in parts:
                    _draw_scatter(folder, part, names, place.protocol.level)
            several = dict.fromkeys((place.name if average else part.name, part.human) for part in parts)
            for name, human in several:
                some = [part for part in parts if part.human == human and (average or part.name == name)]
                for coefficient in place.protocol.correlation:
                    with _mistakes():
                        one, table = _agreement(some, coefficient, place.protocol)
                        values = one.values(table)
                        bounds = intervals(one, table, draws=trials, seed=seed) if confidence else None
                        p = _tests(significance, one, table, trials, seed, some[0].judgements)
                    ranks = clusters(values, p) if p is not None else None
                    result.append(Column(name, human, coefficient, names, values, bounds, p, ranks, len(some)))
    if folder:
        _draw_rankings(folder, result)
    return result


def _agreement(parts: Sequence[_Part], name: str, protocol: Protocol) -> tuple[Coefficient, np.ndarray]:
    """The coefficient of one part, or the mean of several, and the scores that it is of."""
    each = [agreement(part.judgements, name, protocol.level, protocol.grouping) for part in parts]
    if len(each) == 1:
        return each[0], parts[0].scores
    scores = np.concatenate([part.scores for part in parts], axis=1)
    return MeanAgreement(each, [part.scores.shape[1] for part in parts]), scores


def _check_williams(protocols: Sequence[Protocol], average: bool) -> None:
    """UserError for what Williams' test is not of."""
    for one in protocols:
        if average or set(one.correlation) != {"pearson"} or (one.level == "segment" and one.grouping != "none"):
            raise UserError(
                "--significance=williams is a test of Pearson's r of all texts, or systems, of a file: or permutation"
            )


@contextlib.contextmanager
def _opened(metrics: Sequence[str], options: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The metrics by name; what several encode alike is encoded once, even if nobody wants to keep it."""
    with contextlib.ExitStack() as stack:
        given = dict(options)
        with _mistakes("--metrics: "):
            encoding = [spec for spec in metrics if "encoder" in needs(spec)]
        if len(encoding) > 1 and not given.get("cache"):
            given["cache"] = stack.enter_context(tempfile.TemporaryDirectory())
        yield {spec: open_metric(spec, **given) for spec in metrics}


def _tests(
    significance: str | None, one: Coefficient, scores: np.ndarray, trials: int, seed: int, judgements: Judgements
) -> np.ndarray | None:
    """The p-values of every two metrics, float[M, M], if wanted; Williams' test needs the judgements themselves."""
    if significance != "williams":
        return p_values(one, scores, trials=trials, seed=seed) if significance else None
    values, points = one.values(scores), judgements.system_means(scores) if one.of_systems else scores
    p = np.full((len(points), len(points)), np.nan)
    for a in range(len(points)):
        for b in range(a):
            between = float(pearson(points[a], points[b]))
            p[a, b] = p[b, a] = williams(values[a], values[b], between, points.shape[1]).p_value
    return p


def _folder(plots: str | None) -> pathlib.Path | None:
    """The folder of the pictures, made."""
    if plots is None:
        return None
    try:
        pathlib.Path(plots).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--plots={plots}: no such folder can be made: {error.strerror}") from None
    return pathlib.Path(plots)


def _draw_scatter(folder: pathlib.Path, part: _Part, names: Sequence[str], level: str) -> None:
    """Scores against judgements, a panel a metric."""
    from nmt_jax.reporting.plots.judged import draw_scatter
    from nmt_jax.reporting.plots.style import drawing, save

    systems: list[str] = []
    human, points = part.judgements.human, part.scores
    if level == "system":
        systems, human = list(map(str, part.judgements.system_names)), part.judgements.system_scores()
        points = part.judgements.system_means(points)
    title = f"{part.name}.{part.human}"
    with drawing():
        save(draw_scatter(dict(zip(names, points, strict=True)), human, systems, title), folder / f"{title}.png")


def _draw_rankings(folder: pathlib.Path, columns: Sequence[Column]) -> None:
    """The metrics from best to worst, a picture a column."""
    from nmt_jax.reporting.plots.judged import draw_ranking
    from nmt_jax.reporting.plots.style import drawing, save

    for column in columns:
        with drawing():
            bounds = [(one.lower, one.upper) for one in column.intervals] if column.intervals else None
            figure = draw_ranking(column.metrics, column.values, bounds, column.clusters, column.title)
            save(figure, folder / f"{column.name}.{column.human}.{column.coefficient}.png")


@contextlib.contextmanager
def _mistakes(before: str = "") -> Iterator[None]:
    """A ValueError is the user's to mend."""
    try:
        yield
    except ValueError as error:
        raise UserError(f"{before or 'nmt-jax judge: '}{error}") from error
