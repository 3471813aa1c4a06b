"""Flags that several verbs share: overrides of a config, beam search and sampling, metrics."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from metrics_jax.registry import REGISTRY, SHORTHANDS
from nmt_jax import config as configs
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import DTYPES, ESTIMATORS
from nmt_jax.schema.number_flags import define_float, define_integer, define_seed

if TYPE_CHECKING:
    from nmt_jax.decoding.sampling import Sampling

SAMPLING = ("temperature", "top_k", "top_p", "epsilon", "seed")
SEARCH = (
    *("beam_size", "length_penalty", "normalization", "coverage_penalty", "stopping", "min_length"),
    *("no_repeat_ngram_size", "repetition_penalty", "num_groups", "diversity"),
)
ENCODER_FLAGS = ("encoder", "dtype", "download")
METRIC_FLAGS = (*ENCODER_FLAGS, "cache", "vectors", "bleurt", "ruse", *ESTIMATORS)


def values(flag_values: flags.FlagValues, *names: str) -> dict[str, Any]:
    """Return the values of some flags by name."""
    return {name: flag_values[name].value for name in names}


def define_override_flag(flag_values: flags.FlagValues) -> None:
    """Define `--override`; `nmt-jax` turns `--config.KEY=VALUE` into it."""
    help_text = "Override a key of the config: KEY=VALUE; --config.KEY=VALUE does the same."
    flags.DEFINE_multi_string("override", [], help_text, flag_values)


def overrides(flag_values: flags.FlagValues) -> dict[str, str]:
    """Return the overridden keys and their values, as text."""
    return dict(configs.split_override(text) for text in flag_values.override)


def define_sampling_flags(flag_values: flags.FlagValues) -> None:
    """Define `--temperature` … `--seed`, the options of `decoding.sampling.Sampling`."""
    help_text = "Softmax temperature: below 1 sharpens the distribution, above 1 flattens it, 0 is greedy."
    define_float(flag_values, "temperature", 1.0, help_text, low=0)
    define_integer(flag_values, "top_k", 0, "Sample only from the K most likely pieces; 0: from all.", low=0)
    help_text = "Nucleus sampling: sample only from the fewest pieces with this total probability; 1: from all."
    define_float(flag_values, "top_p", 1.0, help_text, above=0, high=1)
    help_text = "Sample only from pieces with at least this probability; 0: from all."
    define_float(flag_values, "epsilon", 0.0, help_text, low=0, below=1)
    define_seed(flag_values, 0)


def make_sampling(flag_values: flags.FlagValues, num_samples: int = 1, replacement: bool = True) -> "Sampling":
    """Return the sampling that the flags describe; raises UserError for a value out of range."""
    from nmt_jax.decoding.sampling import Sampling  # imports JAX, which takes seconds

    try:
        return Sampling(num_samples=num_samples, replacement=replacement, **values(flag_values, *SAMPLING))
    except ValueError as error:
        raise UserError(f"--{error}") from None


def define_search_flags(flag_values: flags.FlagValues) -> None:
    """Define `--beam_size` … `--diversity`, the options of `decoding.method.Search`.

    A flag left out means the value under `decode` in the workdir's config, or the default of `Search`.
    """
    define_integer(flag_values, "beam_size", None, "Beam size; 1 is greedy search. Default: decode.beam_size.", low=1)
    help_text = (
        "Exponent alpha of the length penalty (Wu et al., 2016, eq. 14); 0 ranks by probability. Default: "
        "decode.length_penalty."
    )
    define_float(flag_values, "length_penalty", None, help_text, low=0, high=10)
    help_text = (
        "Form of the length penalty: wu, or length, which divides by the length to the power of alpha. Default: wu."
    )
    flags.DEFINE_string("normalization", None, help_text, flag_values)
    help_text = "Weight beta of the coverage penalty (Wu et al., 2016, eq. 14)."
    define_float(flag_values, "coverage_penalty", None, help_text, low=0)
    help_text = (
        "When the search of a sentence stops: bound, if no hypothesis can still enter the n-best list; beam, if "
        "beam_size hypotheses have ended; limit, at the maximum length. Default: bound."
    )
    flags.DEFINE_string("stopping", None, help_text, flag_values)
    define_integer(flag_values, "min_length", None, "Minimum length in pieces.", low=0, high=10_000)
    define_integer(flag_values, "no_repeat_ngram_size", None, "Forbid repeated n-grams of this size.", low=0, high=1000)
    help_text = "Factor of at least 1 on the log-probabilities of pieces that have already been generated."
    define_float(flag_values, "repetition_penalty", None, help_text, low=1)
    define_integer(flag_values, "num_groups", None, "Number of groups of diverse beam search.", low=1)
    help_text = "Diverse beam search: penalty for a piece that an earlier group chose at the same step."
    define_float(flag_values, "diversity", None, help_text, low=0)


def search_options(flag_values: flags.FlagValues) -> dict[str, Any]:
    """Return the options of the search that were set by flags."""
    return {name: value for name, value in values(flag_values, *SEARCH).items() if value is not None}


def define_metrics_flag(flag_values: flags.FlagValues, default: Sequence[str]) -> None:
    """Define `--metrics`."""
    help_text = (
        f"Metrics, separated by commas: any of {', '.join([*REGISTRY, *SHORTHANDS])}; with options, such as "
        "'bleu|tokenize:zh', or a complete signature."
    )
    flags.DEFINE_list("metrics", list(default), help_text, flag_values)


def define_encoder_flags(flag_values: flags.FlagValues, help_text: str) -> None:
    """Define `--encoder`, `--dtype` and `--download`, the arguments of `pretrained.load`."""
    flags.DEFINE_string("encoder", None, help_text, flag_values)
    flags.DEFINE_enum("dtype", "float32", DTYPES, "Data type of the encoder's matrix products.", flag_values)
    flags.DEFINE_boolean("download", False, "Download the encoder of this name from the Hugging Face Hub.", flag_values)


def define_gold_flags(flag_values: flags.FlagValues, help_text: str) -> None:
    """Define `--gold` and `--gold_first`, arguments of `alignment.links.read_gold`."""
    flags.DEFINE_string("gold", None, help_text, flag_values)
    help_text = "Number of the first word of a sentence in that file, 0 or 1."
    define_integer(flag_values, "gold_first", 1, help_text, low=0, high=1)


def define_metric_flags(flag_values: flags.FlagValues) -> None:
    """Define `--encoder` … `--ruse` and others, options of `pretrained.metrics.open_metric`."""
    help_text = "Encoder of embedding metrics (bertscore, moverscore, yisi1 …): model folder or installed package."
    define_encoder_flags(flag_values, help_text)
    flags.DEFINE_string("cache", None, "Folder in which embeddings are kept between runs.", flag_values)
    help_text = "Word vectors of wmd and sms, or in place of an encoder: GloVe or word2vec file, text or binary."
    flags.DEFINE_string("vectors", None, help_text, flag_values)
    help_text = "Model of bleurt: workdir of configs/bleurt.py or folder of a published model."
    flags.DEFINE_string("bleurt", None, help_text, flag_values)
    flags.DEFINE_string("ruse", None, "Model of ruse: workdir of configs/ruse.py.", flag_values)
    define_estimator_flags(flag_values, tuple(ESTIMATORS))


def define_estimator_flags(flag_values: flags.FlagValues, names: Sequence[str]) -> None:
    """Define the flags of the models of these metrics, `--comet` and others of ESTIMATORS."""
    for name in names:
        flags.DEFINE_string(name, None, f"Model of {name}: {ESTIMATORS[name][2]}.", flag_values)


def metric_options(flag_values: flags.FlagValues) -> dict[str, Any]:
    """Return the values of these flags as options of `open_metric`."""
    return values(flag_values, *METRIC_FLAGS)
