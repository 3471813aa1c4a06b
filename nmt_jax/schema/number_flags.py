"""Flags that take a number within bounds, checked when the command line is parsed: before anything is loaded."""

from typing import Any

from absl import flags

from nmt_jax.schema.key import LARGEST, Key


class NumberParser(flags.ArgumentParser[Any]):
    """Parses a number and checks it like a key of a config."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self._parser: Any = flags.IntegerParser() if key.type is int else flags.FloatParser()

    def parse(self, argument: Any) -> Any:
        """Return the number. Raises ValueError if the argument is no number or is out of bounds."""
        try:
            value = self._parser.convert(argument)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"must be {self.key.kind}") from None
        if problem := self.key.problem(value):
            raise ValueError(problem)
        return value

    def flag_type(self) -> str:
        """Return the name of the type, as absl's own parsers do."""
        return self.key.type.__name__


def define_integer(
    flag_values: flags.FlagValues, name: str, default: int | None, help_text: str, *, low: int, high: int = LARGEST
) -> None:
    """Define a flag with an integer from `low` to `high`."""
    _define(flag_values, name, default, Key(0, help_text, low=low, high=high))


def define_float(
    flag_values: flags.FlagValues,
    name: str,
    default: float | None,
    help_text: str,
    *,
    low: float | None = None,
    above: float | None = None,
    high: float | None = 1_000_000,
    below: float | None = None,
) -> None:
    """Define a flag with a finite number; the bounds are those of `Key`, and `below` replaces `high`."""
    high = high if below is None else None
    _define(flag_values, name, default, Key(0.0, help_text, low=low, above=above, high=high, below=below))


def define_seed(flag_values: flags.FlagValues, default: int, help_text: str = "Random seed.") -> None:
    """Define `--seed`, with the same range for all verbs."""
    define_integer(flag_values, "seed", default, help_text, low=0, high=2**63 - 1)


def _define(flag_values: flags.FlagValues, name: str, default: float | None, key: Key) -> None:
    flags.DEFINE(NumberParser(key), name, default, key.help, flag_values, flags.ArgumentSerializer())
