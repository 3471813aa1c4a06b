"""Lines to translate, combined with files that constrain their translations."""

import itertools
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from nmt_jax.data.lines import read_lines
from nmt_jax.errors import UserError

if TYPE_CHECKING:
    from nmt_jax.translation.translator import Line


def read_requests(
    lines: Iterable[str],
    name: str,
    prefixes: str | None = None,
    constraints: str | None = None,
    given: str | None = None,
) -> Iterator["Line"]:
    """Yield each line of the input `name` with line N of the other files.

    prefixes: beginnings of the translations. constraints: phrases that the translations must contain, separated by
    tabs. given: complete translations, to be scored. Raises UserError if a file has fewer or more lines than the input.
    """
    from nmt_jax.translation.translator import Line  # imports JAX, which takes seconds

    paths = (prefixes, constraints, given)
    files = [(path, read_lines(path) if path else itertools.repeat("")) for path in paths]
    names = " and ".join(path for path in paths if path)
    for number, line in enumerate(lines, start=1):
        texts = []
        for path, rows in files:
            text = next(iter(rows), None)
            if text is None:
                raise UserError(f"{path}:{number}: no such line, but {name} has more")
            texts.append(text)
        prefix, phrases, translation = texts
        origin = f"{names}:{number}: " if names else ""
        yield Line(line, prefix, tuple(filter(None, phrases.split("\t"))), origin, translation)
    for path, rows in files:
        if path and next(iter(rows), None) is not None:
            raise UserError(f"{path}: has more lines than {name}")
