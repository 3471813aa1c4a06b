"""`nmt-jax calibrate`: what a metric of contextual vectors takes from a corpus: its zero, or how rare tokens are."""

import pathlib
from collections.abc import Sequence
from typing import Any

from absl import flags

from nmt_jax.data.lines import read_lines
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import define_metric_flags, metric_options, open_metric

OUTPUTS = {"baseline": "fit_baseline", "idf": "count"}  # and the method of a metric that computes it


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax calibrate`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("baseline", None, "Write what unrelated lines of the corpus score, for every layer.", **given)
    flags.DEFINE_string("idf", None, "Write in how many lines of the corpus each token occurs.", **given)
    flags.DEFINE_string("metric", "bertscore", "Whose, with its options.", **given)
    flags.DEFINE_integer("num_pairs", 10_000, "Pairs of lines that a baseline is the mean of.", lower_bound=1, **given)
    flags.DEFINE_integer("seed", 0, "Of the draw of pairs.", **given)
    define_metric_flags(flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, a file out."""
    outputs = {name: str(flag_values[name].value) for name in OUTPUTS if flag_values[name].value}
    if not positional or len(outputs) != 1:
        raise UserError(
            "nmt-jax calibrate needs a corpus and one of --baseline=FILE and --idf=FILE, the file to be written"
        )
    ((name, output),) = outputs.items()
    options = {"num_pairs": flag_values.num_pairs, "seed": flag_values.seed} if name == "baseline" else {}
    run(positional, name, output, flag_values.metric, options, **metric_options(flag_values))
    return 0


def run(
    corpus: Sequence[str], name: str, output: str, spec: str, options: dict[str, int] | None = None, **encoder: Any
) -> None:
    """Computes the "baseline" or "idf" of a metric in files of text, blank lines left out, and writes it to `output`.

    options: of `BERTScore.fit_baseline`. encoder: as of `open_metric`. UserError for a metric that has none, for files
    that cannot be read or written, and for a corpus that is too small.
    """
    if not pathlib.Path(output).absolute().parent.is_dir():
        raise UserError(f"{output}: no such folder: make it first")
    metric = open_metric(spec, **encoder)
    if not hasattr(metric, OUTPUTS[name]):
        raise UserError(f"--metric={spec} takes no {name}: --metric=bertscore does")
    texts = [line for file in corpus for line in read_lines(file) if line.strip()]
    try:
        found = getattr(metric, OUTPUTS[name])(texts, **(options or {}))
        found.save(output)
    except (ValueError, MemoryError) as error:
        raise UserError(f"{', '.join(corpus)}: {error}") from error
    except OSError as error:
        raise UserError(f"{output}: cannot write it: {error.strerror or error}") from error
