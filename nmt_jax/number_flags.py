"""Flags that take a number within bounds, checked when the command line is parsed: before anything is loaded."""

import math
import operator
from typing import Any

from absl import flags

MOST_SEED = 2**63 - 1
BOUNDS = {
    "least": (operator.ge, "at least"),
    "above": (operator.gt, "above"),
    "most": (operator.le, "at most"),
    "below": (operator.lt, "below"),
}


class NumberParser(flags.ArgumentParser[Any]):
    """Parses a finite number within bounds, named as in BOUNDS; kind: int or float."""

    def __init__(self, kind: type[int] | type[float], **bounds: float) -> None:
        self.kind, self.bounds = kind, bounds
        self._parser: Any = flags.IntegerParser() if kind is int else flags.FloatParser()

    def parse(self, argument: Any) -> int | float:
        """Return the number. Raises ValueError if the argument is no number or is out of bounds."""
        try:
            value = self._parser.convert(argument)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"must be a {'whole ' * (self.kind is int)}number") from None
        if self.kind is float and not math.isfinite(value):
            raise ValueError("must be a finite number")
        for name, bound in self.bounds.items():
            holds, words = BOUNDS[name]
            if not holds(value, bound):
                raise ValueError(f"must be {words} {bound}")
        return self.kind(value)

    def flag_type(self) -> str:
        """Return the name of the type, as absl's own parsers do."""
        return self.kind.__name__


def define_integer(
    flag_values: flags.FlagValues, name: str, default: int | None, help_text: str, *, least: int, most: int = 2**31 - 1
) -> None:
    """Define a flag with a whole number."""
    parser = NumberParser(int, least=least, most=most)
    flags.DEFINE(parser, name, default, help_text, flag_values, flags.ArgumentSerializer())


def define_float(
    flag_values: flags.FlagValues, name: str, default: float | None, help_text: str, **bounds: float
) -> None:
    """Define a flag with a finite number, by default of at most a million; bounds: named as in BOUNDS."""
    parser = NumberParser(float, **bounds if bounds.keys() & {"most", "below"} else {**bounds, "most": 1_000_000})
    flags.DEFINE(parser, name, default, help_text, flag_values, flags.ArgumentSerializer())


def define_seed(flag_values: flags.FlagValues, default: int, help_text: str = "Random seed.") -> None:
    """Define `--seed`, with the same range for all verbs."""
    define_integer(flag_values, "seed", default, help_text, least=0, most=MOST_SEED)
