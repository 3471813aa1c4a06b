"""`nmt-jax judge`: how well metrics agree with people, on files of judged texts."""

import contextlib
import dataclasses
import pathlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from absl import flags

from metrics_jax.correlation import pearson
from metrics_jax.judging.agreement import LEVELS, agreement
from metrics_jax.judging.coefficient import NAMES, Coefficient
from metrics_jax.judging.comparison import clusters, intervals, p_values, williams
from metrics_jax.judging.judgements import GROUPINGS, Judgements
from metrics_jax.signature import ROOMS, SHORTHANDS, needs
from metrics_jax.significance import SEED
from nmt_jax.data.judgements import Columns, Judged, files, read_judged
from nmt_jax.errors import UserError
from nmt_jax.judging import table as judge_table
from nmt_jax.judging.scores import given_scores, judged_scores
from nmt_jax.judging.table import Column
from nmt_jax.metric import define_metric_flags, metric_options, open_metric

TESTS = ("permutation", "williams")
_LISTS = ("reference", "human")  # columns of which there may be several, joined by + after a file's name


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax judge`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_list(
        "metrics",
        ["bleu|effective_order:true", "chrf", "ter"],
        f"Any of {', '.join([*ROOMS, *SHORTHANDS])}; with options 'bleu|tokenize:zh', or a whole signature.",
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
    flags.DEFINE_boolean("confidence", False, "95 % intervals, by bootstrap.", **given)
    flags.DEFINE_enum("significance", None, list(TESTS), "Test every two metrics; a cluster a rank.", **given)
    flags.DEFINE_integer("trials", 1000, "Permutations, and bootstrap samples.", lower_bound=1, **given)
    flags.DEFINE_integer("seed", SEED, "Of both.", **given)
    flags.DEFINE_string("plots", None, "A folder for pictures: scores against judgements, and rankings.", **given)
    flags.DEFINE_enum(
        "format", "text", list(judge_table.WRITERS), "text: a table, and in a pipe rows without a heading.", **given
    )
    define_metric_flags(flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, a table out."""
    names = ("hypothesis", "system", "item", "outputs", "worse")
    given: dict[str, Any] = {name: flag_values[name].value for name in names}
    columns = Columns(**given, reference=tuple(flag_values.reference), human=tuple(flag_values.human))
    table = run(
        positional,
        columns,
        metrics=flag_values.metrics,
        scores=flag_values.scores,
        system_scores=flag_values.system_scores,
        correlation=flag_values.correlation,
        level=flag_values.level,
        grouping=flag_values.grouping,
        outliers=flag_values.outliers,
        confidence=flag_values.confidence,
        significance=flag_values.significance,
        trials=flag_values.trials,
        seed=flag_values.seed,
        plots=flag_values.plots,
        **metric_options(flag_values),
    )
    print(judge_table.WRITERS[flag_values.format](table))
    return 0


def run(
    places: Sequence[str],
    columns: Columns,
    *,
    metrics: Sequence[str] = (),
    scores: Sequence[str] = (),
    system_scores: str = "",
    correlation: Sequence[str] = ("pearson",),
    level: str = "segment",
    grouping: str = "none",
    outliers: bool = True,
    confidence: bool = False,
    significance: str | None = None,
    trials: int = 1000,
    seed: int = SEED,
    plots: str | None = None,
    **options: Any,
) -> list[Column]:
    """Judge metrics by people -> a column for each coefficient, file, and column of judgements.

    places: files, or folders of files; after a file's name it may have its own columns: `FILE|human:fluency+adequacy`.
    metrics: names or signatures; options: what some need, as of `open_metric`. scores: as of `given_scores`. The others
    as the flags. UserError for files that cannot be read, and for what does not exist or go together.
    """
    if not places:
        raise UserError("nmt-jax judge needs judged texts: nmt-jax judge FILE --human=COLUMN")
    if not metrics and not scores:
        raise UserError("nmt-jax judge needs metrics: --metrics=NAME, or --scores=COLUMN")
    if significance == "williams" and (set(correlation) != {"pearson"} or (level == "segment" and grouping != "none")):
        raise UserError("--significance=williams is a test of Pearson's r of all texts, or of systems: or permutation")
    given = tuple(one.removeprefix("-") for one in scores if "=" not in one)
    columns = dataclasses.replace(columns, scores=given)
    sets = [judged for place in places for judged in _read(place, columns, system_scores)]
    if repeated := [one.name for k, one in enumerate(sets) if one.name in [other.name for other in sets[:k]]]:
        raise UserError(f"two files are called {repeated[0]}: rename one, the table names them so")
    folder = _folder(plots)
    found: dict[str, list[Column]] = {name: [] for name in correlation}
    with _opened(metrics, options) as measures:
        for judged in sets:
            table = {name: judged_scores(name, one, judged, level == "system") for name, one in measures.items()}
            table |= dict(given_scores(one, judged, len(sets)) for one in scores)
            for human in judged.human:
                judgements, texts = _judgements(judged, human, level, outliers)
                kept = {name: values[texts] for name, values in table.items()}
                for name in correlation:
                    with _mistakes():
                        one = agreement(judgements, name, level, grouping)
                        found[name].append(
                            _column(one, judged, human, name, kept, confidence, significance, trials, seed)
                        )
                if folder:
                    _draw_scatter(folder / f"{judged.name}.{human}.png", judgements, kept, level)
    result = [column for several in found.values() for column in several]
    if folder:
        _draw_rankings(folder, result)
    return result


def _read(place: str, columns: Columns, system_scores: str) -> Iterator[Judged]:
    """The files of a place, read by its own columns."""
    path, *own = place.split("|")
    known = [field.name for field in dataclasses.fields(Columns) if field.name != "scores"]
    for option in own:
        key, colon, value = option.partition(":")
        if key == "system_scores" and colon:
            system_scores = value
        elif key in known and colon:
            new: dict[str, Any] = {key: tuple(value.split("+")) if key in _LISTS else value}
            columns = dataclasses.replace(columns, **new)
        else:
            raise UserError(
                f"{place}: after | stand column:name, of {', '.join([*known, 'system_scores'])}, not {option!r}"
            )
    found = files(path)
    if system_scores and len(found) > 1:
        raise UserError(f"--system_scores={system_scores} is of one file, but {path} has {len(found)}")
    for one in found:
        yield read_judged(one, columns, system_scores or None)


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


def _judgements(judged: Judged, human: str, level: str, outliers: bool) -> tuple[Judgements, np.ndarray]:
    """The judgements of a column, and which texts are among them."""
    with _mistakes(f"{judged.name}: "):
        judgements = Judgements(judged.human[human], judged.systems, judged.items, judged.system_human.get(human))
        if level == "system" and judged.systems is None:
            raise ValueError("there are no systems: --system=COLUMN")
        if outliers or level == "segment":
            return judgements, np.ones(len(judged.where), bool)
        return judgements.without_outliers()


def _column(
    one: Coefficient,
    judged: Judged,
    human: str,
    name: str,
    scores: Mapping[str, np.ndarray],
    confidence: bool,
    significance: str | None,
    trials: int,
    seed: int,
) -> Column:
    """A coefficient of all metrics with the judgements of a column."""
    table = np.stack(list(scores.values()))
    values = one.values(table)
    bounds = intervals(one, table, draws=trials, seed=seed) if confidence else None
    p = None
    if significance:
        p = (
            _williams(one, table, values)
            if significance == "williams"
            else p_values(one, table, trials=trials, seed=seed)
        )
    ranks = clusters(values, p) if p is not None else None
    return Column(judged.name, human, name, list(scores), values, bounds, p, ranks)


def _williams(one: Coefficient, table: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The p-values of Williams' test, float[M, M]."""
    judgements = one.judgements
    points = judgements.system_means(table) if one.of_systems else table
    p = np.full((len(table), len(table)), np.nan)
    for a in range(len(table)):
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


def _draw_scatter(output: pathlib.Path, judgements: Judgements, scores: Mapping[str, np.ndarray], level: str) -> None:
    """Scores against judgements, a panel a metric."""
    from nmt_jax.pictures.judged import draw_scatter
    from nmt_jax.pictures.style import drawing, save

    names: list[str] = []
    human, points = judgements.human, dict(scores)
    if level == "system":
        names, human = list(map(str, judgements.system_names)), judgements.system_scores()
        points = {name: judgements.system_means(values) for name, values in scores.items()}
    with drawing():
        save(draw_scatter(points, human, names, output.stem), output)


def _draw_rankings(folder: pathlib.Path, columns: Sequence[Column]) -> None:
    """The metrics from best to worst, a picture a column."""
    from nmt_jax.pictures.judged import draw_ranking
    from nmt_jax.pictures.style import drawing, save

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
