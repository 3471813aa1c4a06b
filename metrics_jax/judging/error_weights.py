"""Weights of annotated translation errors: MQM as in WMT (Freitag et al., 2021), and error spans of ESA."""

from collections.abc import Mapping

# Of Freitag et al. (2021). A key is a severity, or a severity and the beginning of a category.
WEIGHTS: Mapping[str, float] = {
    "neutral": 0.0,
    "minor": 1.0,
    "minor/fluency/punctuation": 0.1,
    "major": 5.0,
    "major/non-translation": 25.0,
}


def key_parts(key: str) -> list[str]:
    """The parts of a key, in lower case, without the white space around them and the mark of "Non-translation!"."""
    return [part.strip().rstrip("!").lower() for part in key.split("/")]


def error_weight(severity: str, category: str = "", weights: Mapping[str, float] = WEIGHTS) -> float:
    """The weight of an error, 0 or more: that of the longest key that its severity and category begin with.

    A key names whole parts: "minor/fluency" holds for "Minor" and "Fluency/Grammar", not for "Fluently". Parts are
    compared as `key_parts` returns them, so keys must be written like that. Raises ValueError for a severity without a
    weight.
    """
    parts = key_parts(f"{severity}/{category}")
    for length in range(len(parts), 0, -1):
        if (key := "/".join(parts[:length])) in weights:
            return weights[key]
    known = ", ".join(dict.fromkeys(key.partition("/")[0] for key in weights))
    raise ValueError(f"severity {severity!r} has no weight; those with a weight are {known}")
