"""`nmt-jax corpus`: the parallel text of an experiment, whatever it comes from, as two plain files."""

import itertools
import pathlib
from collections.abc import Sequence
from typing import Any

from absl import flags
from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.data.readers.parallel_text import SPLITS, open_text
from nmt_jax.errors import UserError
from nmt_jax.workdir import Workdir


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax corpus`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("workdir", None, "The run whose corpus is wanted.", **given)
    flags.DEFINE_string("config", None, "Or the experiment: FILE.py or FILE.py:ARGUMENT.", **given)
    flags.DEFINE_enum("split", "test", list(SPLITS), "Which part of the corpus.", **given)
    flags.DEFINE_integer("lines", 0, "At most so many pairs; 0 for all.", lower_bound=0, **given)
    flags.DEFINE_string("output", None, "Writes OUTPUT.SOURCE and OUTPUT.TARGET, named by language.", **given)
    flags.DEFINE_multi_string("override", [], "KEY=VALUE; --config.KEY=VALUE is the same.", **given)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, two files out; their names on stdout."""
    if positional or not flag_values.output or bool(flag_values.workdir) == bool(flag_values.config):
        raise UserError("nmt-jax corpus needs --output=PREFIX and either --workdir=FOLDER or --config=FILE")
    overrides = dict(configs.split_override(text) for text in flag_values.override)
    if flag_values.workdir:
        config = configs.override(Workdir(pathlib.Path(flag_values.workdir)).config(), overrides)
    else:
        config = configs.load(flag_values.config, overrides)
    for path in run(config, flag_values.split, flag_values.output, flag_values.lines):
        print(path)
    return 0


def run(config: ConfigDict, split: str, output: str, lines: int = 0) -> tuple[str, str]:
    """Write the first `lines` pairs (0: all) of `split` to OUTPUT.SOURCE and OUTPUT.TARGET -> the two names."""
    if config.task != "translate":
        raise UserError(f"nmt-jax corpus writes parallel text, but config.task is {config.task!r}")
    paths = (f"{output}.{config.data.source}", f"{output}.{config.data.target}")
    pairs = itertools.islice(open_text(config.data, split), lines or None)
    try:
        with open(paths[0], "w", encoding="utf-8") as source, open(paths[1], "w", encoding="utf-8") as target:
            for pair in pairs:
                source.write(pair[0] + "\n")
                target.write(pair[1] + "\n")
    except OSError as error:
        raise UserError(f"{error.filename or output}: cannot be written: {error.strerror}") from error
    return paths
