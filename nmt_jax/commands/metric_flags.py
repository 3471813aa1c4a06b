"""Flags that select metrics, and the models and files which some metrics need."""

from collections.abc import Sequence
from typing import Any

from absl import flags

from metrics_jax.registry import REGISTRY, SHORTHANDS
from nmt_jax.pretrained.metrics import DTYPES

METRIC_FLAGS = ("encoder", "dtype", "download", "cache", "vectors", "bleurt", "ruse")


def define_metrics_flag(flag_values: flags.FlagValues, default: Sequence[str]) -> None:
    """Define `--metrics`."""
    help_text = (
        f"Metrics, separated by commas: any of {', '.join([*REGISTRY, *SHORTHANDS])}; with options, such as "
        "'bleu|tokenize:zh', or a complete signature."
    )
    flags.DEFINE_list("metrics", list(default), help_text, flag_values=flag_values)


def define_metric_flags(flag_values: flags.FlagValues) -> None:
    """Define `--encoder` … `--ruse`, options of `pretrained.metrics.open_metric`."""
    define: dict[str, Any] = {"flag_values": flag_values}
    help_text = "Encoder of embedding metrics (bertscore, moverscore, yisi1 …): model folder or installed package."
    flags.DEFINE_string("encoder", None, help_text, **define)
    flags.DEFINE_enum("dtype", "float32", DTYPES, "Data type of the encoder's matrix products.", **define)
    help_text = "Download the encoder of this name from the Hugging Face Hub."
    flags.DEFINE_boolean("download", False, help_text, **define)
    flags.DEFINE_string("cache", None, "Folder in which embeddings are kept between runs.", **define)
    help_text = "Word vectors of wmd and sms, or in place of an encoder: GloVe or word2vec file, text or binary."
    flags.DEFINE_string("vectors", None, help_text, **define)
    help_text = "Model of bleurt: workdir of configs/bleurt.py or folder of a published model."
    flags.DEFINE_string("bleurt", None, help_text, **define)
    flags.DEFINE_string("ruse", None, "Model of ruse: workdir of configs/ruse.py.", **define)


def metric_options(flag_values: flags.FlagValues) -> dict[str, Any]:
    """Return the values of these flags as options of `open_metric`."""
    return {name: flag_values[name].value for name in METRIC_FLAGS}
