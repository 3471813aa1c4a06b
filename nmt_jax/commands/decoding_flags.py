"""Flags that control beam search and sampling."""

from typing import TYPE_CHECKING, Any

from absl import flags

from nmt_jax.errors import UserError

if TYPE_CHECKING:
    from nmt_jax.decoding.sampling import Sampling

SAMPLING = ("temperature", "top_k", "top_p", "epsilon", "seed")
SEARCH = (
    *("beam_size", "length_penalty", "normalization", "coverage_penalty", "stopping", "min_length"),
    *("no_repeat_ngram_size", "repetition_penalty", "num_groups", "diversity"),
)


def define_sampling_flags(flag_values: flags.FlagValues) -> None:
    """Define `--temperature` … `--seed`, the options of `decoding.sampling.Sampling`."""
    define: dict[str, Any] = {"flag_values": flag_values}
    help_text = "Softmax temperature: below 1 sharpens the distribution, above 1 flattens it, 0 is greedy."
    flags.DEFINE_float("temperature", 1.0, help_text, **define)
    flags.DEFINE_integer("top_k", 0, "Sample only from the K most likely pieces; 0: from all.", **define)
    help_text = "Nucleus sampling: sample only from the fewest pieces with this total probability; 1: from all."
    flags.DEFINE_float("top_p", 1.0, help_text, **define)
    flags.DEFINE_float("epsilon", 0.0, "Sample only from pieces with at least this probability; 0: from all.", **define)
    flags.DEFINE_integer("seed", 0, "Random seed.", **define)


def make_sampling(flag_values: flags.FlagValues, num_samples: int = 1, replacement: bool = True) -> "Sampling":
    """Return the sampling that the flags describe; raises UserError for a value out of range."""
    from nmt_jax.decoding.sampling import Sampling  # imports JAX, which takes seconds

    options: dict[str, Any] = {name: flag_values[name].value for name in SAMPLING}
    try:
        return Sampling(num_samples=num_samples, replacement=replacement, **options)
    except ValueError as error:
        raise UserError(f"--{error}") from None


def define_search_flags(flag_values: flags.FlagValues) -> None:
    """Define `--beam_size` … `--diversity`, the options of `decoding.method.Search`.

    A flag left out means the value under `decode` in the workdir's config, or the default of `Search`.
    """
    define: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_integer("beam_size", None, "Beam size; 1 is greedy search.", lower_bound=1, **define)
    help_text = "Exponent alpha of the length penalty (Wu et al., 2016, eq. 14); 0 ranks by probability."
    flags.DEFINE_float("length_penalty", None, help_text, **define)
    help_text = "Form of the length penalty: wu, or length, which divides by the length to the power of alpha."
    flags.DEFINE_string("normalization", None, help_text, **define)
    help_text = "Weight beta of the coverage penalty (Wu et al., 2016, eq. 14)."
    flags.DEFINE_float("coverage_penalty", None, help_text, **define)
    help_text = (
        "When the search of a sentence stops: bound, if no hypothesis can still enter the n-best list; beam, if "
        "beam_size hypotheses have ended; limit, at the maximum length."
    )
    flags.DEFINE_string("stopping", None, help_text, **define)
    flags.DEFINE_integer("min_length", None, "Minimum length in pieces.", **define)
    flags.DEFINE_integer("no_repeat_ngram_size", None, "Forbid repeated n-grams of this size.", **define)
    help_text = "Factor of at least 1 on the log-probabilities of pieces that have already been generated."
    flags.DEFINE_float("repetition_penalty", None, help_text, **define)
    flags.DEFINE_integer("num_groups", None, "Number of groups of diverse beam search.", **define)
    help_text = "Diverse beam search: penalty for a piece that an earlier group chose at the same step."
    flags.DEFINE_float("diversity", None, help_text, **define)


def search_options(flag_values: flags.FlagValues) -> dict[str, Any]:
    """Return the options of the search that were set by flags."""
    return {name: flag_values[name].value for name in SEARCH if flag_values[name].value is not None}
