"""`nmt-jax calibrate`: computes the baseline or the token frequencies of an embedding metric from a corpus."""

from collections.abc import Sequence
from typing import Any

from absl import flags

from nmt_jax.commands import streams
from nmt_jax.commands.shared_flags import define_metric_flags, metric_options
from nmt_jax.data.lines import read_lines
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import metric_error, open_metric
from nmt_jax.schema.number_flags import define_integer, define_seed
from nmt_jax.storage.paths import local_path_of

METHODS = {"baseline": "fit_baseline", "idf": "count"}  # of a metric, by the flag that names the output


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax calibrate`."""
    help_text = "Output file for the baseline: the mean score of unrelated lines, for every layer."
    flags.DEFINE_string("baseline", None, help_text, flag_values)
    help_text = "Output file for token frequencies: the number of lines that contain each token."
    flags.DEFINE_string("idf", None, help_text, flag_values)
    flags.DEFINE_string("metric", "bertscore", "Metric to calibrate, as in nmt-jax score --metrics.", flag_values)
    help_text = "Number of pairs of lines for the baseline."
    define_integer(flag_values, "num_pairs", 10_000, help_text, low=1)
    define_seed(flag_values, 0, "Random seed for drawing the pairs.")
    define_metric_flags(flag_values)
    streams.define_overwrite_flag(flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Write the baseline or the frequencies of a corpus."""
    outputs = {name: str(flag_values[name].value) for name in METHODS if flag_values[name].value}
    if not positional or len(outputs) != 1:
        raise UserError("nmt-jax calibrate needs a corpus and one of --baseline=FILE and --idf=FILE, the output file")
    ((name, output),) = outputs.items()
    streams.check_effect(flag_values, ("num_pairs", "seed"), name == "baseline", "without --baseline=FILE")
    streams.check_new(flag_values, output)
    options = {"num_pairs": flag_values.num_pairs, "seed": flag_values.seed} if name == "baseline" else {}
    run(positional, name, output, flag_values.metric, options, **metric_options(flag_values))
    return 0


def run(
    corpus: Sequence[str], name: str, output: str, spec: str, options: dict[str, int] | None = None, **encoder: Any
) -> None:
    """Compute the "baseline" or "idf" (`name`) of a metric from the non-blank lines of files, and write it to `output`.

    options: of `BERTScore.fit_baseline`. encoder: options of `open_metric`. Raises UserError if the metric cannot be
    calibrated, if a file cannot be read or written, and if the corpus is too small.
    """
    if not local_path_of(output).absolute().parent.is_dir():
        raise UserError(f"{output}: no such folder; create it first")
    metric = open_metric(spec, **encoder)
    if not hasattr(metric, METHODS[name]):
        raise UserError(f"--metric={spec} has no {name}: use --metric=bertscore")
    texts = [line for file in corpus for line in read_lines(file) if line.strip()]
    try:
        getattr(metric, METHODS[name])(texts, **(options or {})).save(output)
    except (ValueError, MemoryError) as error:
        raise metric_error(error, ", ".join(corpus)) from error
    except OSError as error:
        raise UserError(f"{output}: cannot write the file: {error.strerror or error}") from error
