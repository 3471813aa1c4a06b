"""What launchers write into scripts and manifests: names are checked, so that nothing in them has to be quoted."""

import itertools
import re
from collections.abc import Iterable, Sequence

from nmt_jax.errors import UserError

NAME = r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?"
LABEL = r"[a-z]([a-z0-9-]*[a-z0-9])?"  # of Kubernetes and Google Cloud: part of a host name
CLAIM = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?"
IMAGE = r"[A-Za-z0-9][A-Za-z0-9._:/@-]*"
RESOURCE = r"[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?"
QUANTITY = r"[0-9]+(\.[0-9]+)?(m|[kMGTPE]i?)?"
OPTION = r"[a-z][a-z0-9-]*"
EXPECTED = {
    NAME: "letters, digits and ._-, beginning and ending with a letter or digit",
    LABEL: "lower-case letters, digits and hyphens, beginning with a letter and ending with a letter or digit",
    CLAIM: "lower-case letters, digits, dots and hyphens, beginning and ending with a letter or digit",
    IMAGE: "letters, digits and ._:/@-, beginning with a letter or digit",
    RESOURCE: "letters, digits and ._/-, beginning and ending with a letter or digit",
    QUANTITY: "a quantity such as 8, 500m or 16Gi",
    OPTION: "an option of sbatch: lower-case letters, digits and hyphens, beginning with a letter",
}


def checked(flag: str, text: str, pattern: str, longest: int = 253) -> str:
    """Return the value of a flag, or a part of it. Raises UserError if it does not match `pattern` or is too long."""
    if not re.fullmatch(pattern, text):
        raise UserError(f"--{flag}: {text!r} must be {EXPECTED[pattern]}")
    if len(text) > longest:
        raise UserError(f"--{flag}: {text!r} has {len(text)} characters; at most {longest} are possible")
    return text


def value_of(flag: str, command: Sequence[str]) -> str | None:
    """Return the last value of a flag in a command, `--FLAG=VALUE` or `--FLAG VALUE`; None if it is not there."""
    found = None
    for argument, following in itertools.zip_longest(command, command[1:]):
        name, equals, value = argument.lstrip("-").partition("=")
        if argument.startswith("-") and name == flag and (equals or following):
            found = str(value if equals else following)
    return found


def check_one_line(texts: Iterable[str]) -> None:
    """Raise UserError for a text with a line break or another control character, for which scripts have no room."""
    for text in texts:
        if re.search(r"[\x00-\x1f\x7f]", text):
            raise UserError(f"nmt-jax launch: {text!r} contains a control character, such as a line break; remove it")
