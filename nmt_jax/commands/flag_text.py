"""What the flags of a verb take and mean, as text for `nmt-jax VERB --help` and for the reference."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from absl import flags

from nmt_jax.schema.number_flags import NumberParser
from nmt_jax.schema.reference import values_in_words


class FlagText(NamedTuple):
    """A flag in words; default is empty if there is none, and choices if the values cannot be listed."""

    name: str
    default: str
    choices: tuple[str, ...]
    values: str
    help: str


def flag_texts(flag_values: flags.FlagValues) -> Iterator[FlagText]:
    """Yield the flags in the order of their names."""
    for name in flag_values:
        flag = flag_values[name]
        # absl adds the choices before the text, and a remark on repeated flags after it.
        help_text = re.sub(r"^<\S+>: |;\n.*", "", str(flag.help), flags=re.DOTALL)
        default = str(flag.default_as_str).strip("'") if flag.default not in (None, "", []) else ""
        choices = tuple(getattr(flag.parser, "enum_values", ()))
        yield FlagText(name, default, choices, _values(flag), help_text)


def _values(flag: "flags.Flag[object]") -> str:
    """The values of a flag: "an integer, at least 1"."""
    parser = flag.parser
    if isinstance(parser, NumberParser):
        return values_in_words(parser.key)
    if isinstance(parser, flags.EnumParser):
        return f"one of {', '.join(parser.enum_values)}"
    if isinstance(parser, flags.BooleanParser):
        return "true or false"
    if isinstance(parser, flags.ListParser):
        return "strings, separated by commas"
    return "a string, repeatable" if isinstance(flag, flags.MultiFlag) else "a string"
