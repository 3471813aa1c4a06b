"""Figures of an evaluation by human judgements: scores against judgements, and rankings of the metrics."""

import pathlib

from nmt_jax.judging.evaluation import Evaluation
from nmt_jax.reporting.plots.judged import draw_ranking, draw_scatter
from nmt_jax.reporting.plots.style import drawing, save


def save_figures(evaluation: Evaluation, folder: pathlib.Path) -> None:
    """Write FILE.HUMAN.png with a scatter plot per metric, and FILE.HUMAN.COEFFICIENT.png with the ranking."""
    for part in evaluation.parts:
        systems: list[str] = []
        human, points = part.judgements.human, part.scores
        if part.level == "system":
            systems = list(map(str, part.judgements.system_names))
            human, points = part.judgements.system_scores(), part.judgements.system_means(points)
        title = f"{part.name}.{part.human}"
        with drawing():
            figure = draw_scatter(dict(zip(evaluation.metrics, points, strict=True)), human, systems, title)
            save(figure, folder / f"{title}.png")
    for column in evaluation.columns:
        with drawing():
            bounds = [(one.lower, one.upper) for one in column.intervals] if column.intervals else None
            figure = draw_ranking(column.metrics, column.values, bounds, column.clusters, column.title)
            save(figure, folder / f"{column.name}.{column.human}.{column.coefficient}.png")
