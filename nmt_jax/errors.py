"""The exception for errors that the user can fix, and suggestions for misspelled words."""

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """An error caused by invalid input; shown as one line without a traceback.

    The message says where and what is wrong, and how to fix it: `FILE:LINE: what is wrong; what to do`.
    """


def did_you_mean(word: str, known: Iterable[str], prefix: str = "") -> str:
    """Returns `; did you mean …?` with the most similar of `known`, or "" if none is similar."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {prefix}{near[0]}?" if near else ""
