"""The flags that say how text comes out of a model, shared by the verbs that take it out."""

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
    """`--temperature` … `--seed`: how samples are drawn."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_float("temperature", 1.0, "Below 1 likelier text, above 1 stranger; 0: the likeliest.", **given)
    flags.DEFINE_integer("top_k", 0, "Draw among the k likeliest pieces only; 0: all.", **given)
    flags.DEFINE_float("top_p", 1.0, "Draw among the fewest pieces of so much probability; 1: all.", **given)
    flags.DEFINE_float("epsilon", 0.0, "Draw among pieces of at least this probability only.", **given)
    flags.DEFINE_integer("seed", 0, "Another seed, other text.", **given)


def make_sampling(flag_values: flags.FlagValues, num_samples: int = 1, replacement: bool = True) -> "Sampling":
    """What the flags say; UserError for what cannot be."""
    from nmt_jax.decoding.sampling import Sampling  # late: it imports JAX

    given: dict[str, Any] = {name: flag_values[name].value for name in SAMPLING}
    try:
        return Sampling(num_samples=num_samples, replacement=replacement, **given)
    except ValueError as error:
        raise UserError(f"--{error}") from None


def define_search_flags(flag_values: flags.FlagValues) -> None:
    """`--beam_size` … `--diversity`: see `decoding.search`; what is not given is the config's, or off."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_integer("beam_size", None, "Hypotheses kept at each step; 1 is greedy.", lower_bound=1, **given)
    flags.DEFINE_float("length_penalty", None, "Alpha of Wu et al. (2016), eq. 14; 0 ranks by probability.", **given)
    flags.DEFINE_string("normalization", None, "wu, or length: divide by the length to the power of alpha.", **given)
    flags.DEFINE_float("coverage_penalty", None, "Beta of Wu et al. (2016), eq. 14.", **given)
    flags.DEFINE_string(
        "stopping", None, "bound: when nothing can get better; beam: when a beam has ended; limit.", **given
    )
    flags.DEFINE_integer("min_length", None, "At least so many pieces.", **given)
    flags.DEFINE_integer("no_repeat_ngram_size", None, "No so many pieces in a row twice.", **given)
    flags.DEFINE_float("repetition_penalty", None, "Above 1: pieces that were said cost more.", **given)
    flags.DEFINE_integer("num_groups", None, "Diverse beam search in so many groups.", **given)
    flags.DEFINE_float("diversity", None, "What a piece costs that another group chose.", **given)


def search_options(flag_values: flags.FlagValues) -> dict[str, Any]:
    """The options of a search that were given."""
    return {name: flag_values[name].value for name in SEARCH if flag_values[name].value is not None}


def given_flags(flag_values: flags.FlagValues) -> dict[str, Any]:
    """Name and value of every flag that was given."""
    return {name: flag_values[name].value for name in flag_values if flag_values[name].present}
