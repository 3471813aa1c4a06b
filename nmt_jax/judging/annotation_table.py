"""Output formats for scores of systems by annotations, and for the agreement of raters: rows and JSON."""

import collections
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from metrics_jax.judging.ratings import Ratings

Agreement = Mapping[str, Mapping[str, float]]  # coefficients by name, by column of ratings


def write_text(ratings: Mapping[str, Ratings], agreement: Agreement) -> str:
    """Tab-separated rows of systems with a heading, and below an empty line those of the agreement, if there is any."""
    lines = ["\t".join(["rank", "system", "texts", *ratings])]
    for row in _rows(ratings):
        cells = [str(row[name]) for name in ("rank", "system", "texts")]
        lines.append("\t".join([*cells, *map(_number, row["scores"].values())]))
    if agreement:
        lines += ["", "\t".join(["agreement", *agreement])]
        for name in next(iter(agreement.values())):
            lines.append("\t".join([name, *(_number(one[name]) for one in agreement.values())]))
    return "\n".join(lines)


def write_json(ratings: Mapping[str, Ratings], agreement: Agreement) -> str:
    """An object with `systems`, best first; the number of ratings of each of `raters`; `agreement`, null for NaN."""
    raters = next(iter(ratings.values())).by_rater
    found = {
        "systems": _rows(ratings),
        "raters": {rater: len(indices) for rater, indices in raters.items()},
        "agreement": {
            column: {name: None if math.isnan(value) else value for name, value in coefficients.items()}
            for column, coefficients in agreement.items()
        },
    }
    return json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False)


WRITERS: dict[str, Callable[[Mapping[str, Ratings], Agreement], str]] = {"text": write_text, "json": write_json}


def _rows(ratings: Mapping[str, Ratings]) -> list[dict[str, Any]]:
    """A row per system, best first by the first column of ratings; equal scores have equal ranks, 1 for the best."""
    scores = {name: one.system_scores() for name, one in ratings.items()}
    first, texts = next(iter(scores.values())), next(iter(ratings.values())).texts
    counts = collections.Counter(system for system, _ in texts)
    return [
        {
            "rank": 1 + sum(other > score for other in first.values()),
            "system": system,
            "texts": counts[system],
            "scores": {name: by_system[system] for name, by_system in scores.items()},
        }
        for system, score in first.items()
    ]


def _number(value: float) -> str:
    return f"{round(value, 4) + 0.0:.4f}"  # + 0.0: never -0.0000
