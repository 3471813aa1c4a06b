"""`nmt-jax corpus`: writes the parallel text of an experiment to two plain files; speech also as WAV files."""

import itertools
from collections.abc import Iterable, Sequence

from absl import flags
from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.commands import streams
from nmt_jax.commands.shared_flags import define_override_flag, overrides
from nmt_jax.data.readers.audio import SPEECH, write_recordings
from nmt_jax.data.readers.parallel_text import open_text
from nmt_jax.data.readers.splits import SPLITS
from nmt_jax.errors import UserError
from nmt_jax.schema.number_flags import define_integer
from nmt_jax.storage.files import whole_file
from nmt_jax.storage.paths import path_of
from nmt_jax.workdir import Workdir


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax corpus`."""
    flags.DEFINE_string("workdir", None, "Workdir of a run that uses the corpus.", flag_values)
    help_text = "Config file that describes the corpus: FILE.py or FILE.py:ARGUMENT."
    flags.DEFINE_string("config", None, help_text, flag_values)
    flags.DEFINE_enum("split", "test", list(SPLITS), "Part of the corpus to write.", flag_values)
    help_text = "Maximum number of sentence pairs; 0: all."
    define_integer(flag_values, "lines", 0, help_text, low=0)
    help_text = "Prefix of the two output files, which end in the names of the languages: PREFIX.en, PREFIX.de."
    flags.DEFINE_string("output", None, help_text, flag_values)
    streams.define_overwrite_flag(flag_values)
    define_override_flag(flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Write the two files and print their names."""
    if positional or not flag_values.output or bool(flag_values.workdir) == bool(flag_values.config):
        raise UserError("nmt-jax corpus needs --output=PREFIX and either --workdir=FOLDER or --config=FILE")
    if flag_values.workdir:
        config = configs.override(Workdir(flag_values.workdir).config(), overrides(flag_values))
    else:
        config = configs.load(flag_values.config, overrides(flag_values))
    if config.task not in ("translate", "retrieval", "phrase"):
        raise UserError(f"nmt-jax corpus writes parallel text, but config.task is {config.task!r}")
    streams.check_new(flag_values, *output_files(config, flag_values.output))
    recordings = path_of(f"{flag_values.output}-wav")
    if config.data.corpus == SPEECH and recordings.exists() and not flag_values.overwrite:
        raise UserError(f"{recordings}: already exists; name another prefix, or replace its files with --overwrite")
    for path in run(config, flag_values.split, flag_values.output, flag_values.lines):
        print(path)
    return 0


def output_files(config: ConfigDict, output: str) -> tuple[str, str]:
    """Return the names of the two files: OUTPUT.SOURCE and OUTPUT.TARGET, with the languages of the config."""
    return f"{output}.{config.data.source}", f"{output}.{config.data.target}"


def run(config: ConfigDict, split: str, output: str, lines: int = 0) -> tuple[str, str]:
    """Write the first `lines` pairs (0: all) of `split` to the `output_files`; returns their names.

    The embedded speech is written to the folder OUTPUT-wav, and its source file has the paths of the recordings.
    """
    paths = output_files(config, output)
    pairs: Iterable[tuple[str, str]] = itertools.islice(open_text(config.data, split), lines or None)
    if config.data.corpus == SPEECH:
        pairs = write_recordings(pairs, f"{output}-wav")
    with whole_file(path_of(paths[0])) as source, whole_file(path_of(paths[1])) as target:
        for pair in pairs:
            source.write(f"{pair[0]}\n".encode())
            target.write(f"{pair[1]}\n".encode())
    return paths
