"""`nmt-jax plot`: learning curves, attention, layer weights, BLEU by source length, sweeps, comparisons of texts."""

import pathlib
from collections.abc import Sequence
from typing import Any

from absl import flags

from nmt_jax.commands.metric_flags import define_metric_flags, metric_options
from nmt_jax.errors import UserError
from nmt_jax.reporting import plot_kinds

KINDS = ("curves", "attention", "layers", "length", "sweep", *plot_kinds.DEFAULT_METRICS)


def define_flags(flag_values: flags.FlagValues) -> None:
    """Defines the flags of `nmt-jax plot`."""
    options: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("workdir", None, "Folder of a run, or of a sweep for --kind=sweep.", **options)
    flags.DEFINE_enum("kind", None, KINDS, "What to draw; default: curves, or attention with --sentence.", **options)
    flags.DEFINE_string("sentence", None, "attention: the source sentence.", **options)
    flags.DEFINE_string("target", None, "attention: its translation; default: the model's own.", **options)
    flags.DEFINE_enum(
        "attention", "cross", list(plot_kinds.ATTENTION_KINDS), "attention: which weights to draw.", **options
    )
    flags.DEFINE_integer(
        "texts", 20, "attention of a classifier: number of development texts.", lower_bound=0, **options
    )
    flags.DEFINE_string(
        "source", None, "length: file with the source text; the arguments are files with translations.", **options
    )
    flags.DEFINE_string("reference", None, "length: file with the reference translation.", **options)
    flags.DEFINE_string(
        "measure", None, "sweep: dev/bleu, another key of metrics.jsonl, parameters or minutes.", **options
    )
    flags.DEFINE_integer("buckets", 6, "length: number of groups of sentences.", lower_bound=2, **options)
    flags.DEFINE_string(
        "metric",
        None,
        "similarity: bertscore (default) or yisi1. flow: moverscore (default) or wmd (default with only --vectors).",
        **options,
    )
    define_metric_flags(flag_values)
    flags.DEFINE_string(
        "output",
        None,
        "File to write: .png, .svg or .pdf; .html for classifiers, similarity and flow. Default: in --workdir, else "
        "KIND.png.",
        **options,
    )


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Draws a plot and prints its path; for length and layers the numbers, too."""
    kind = flag_values.kind or ("attention" if flag_values.sentence else "curves")
    output = pathlib.Path(flag_values.output) if flag_values.output else None
    workdir = pathlib.Path(flag_values.workdir) if flag_values.workdir else None
    if kind == "length":
        if not (positional and flag_values.source and flag_values.reference):
            raise UserError(
                "nmt-jax plot --kind=length needs translations and their texts: "
                "HYPOTHESIS [HYPOTHESIS …] --source=FILE --reference=FILE"
            )
        texts = (flag_values.source, flag_values.reference)
        print(
            *plot_kinds.plot_length(positional, *texts, flag_values.buckets, output or pathlib.Path("length.png")),
            sep="\n",
        )
    elif kind == "layers":
        folders = [*([flag_values.workdir] if workdir else []), *positional]
        if not folders:
            raise UserError("nmt-jax plot --kind=layers needs workdirs of runs: --workdir=FOLDER, or FOLDER [FOLDER …]")
        output = output or pathlib.Path("layers.png" if positional else f"{folders[0]}/layers.png")
        print(*plot_kinds.plot_layers(folders, output), sep="\n")
    elif kind in plot_kinds.DEFAULT_METRICS:
        options = metric_options(flag_values)
        print(plot_kinds.plot_comparison(positional, kind, flag_values.metric, output, **options))
    elif positional:
        raise UserError(f"nmt-jax plot --kind={kind}: unexpected argument {positional[0]!r}; use --workdir=FOLDER")
    elif not workdir:
        raise UserError(
            f"nmt-jax plot --kind={kind} needs --workdir=FOLDER of a {'sweep' if kind == 'sweep' else 'run'}"
        )
    elif kind == "sweep":
        print(plot_kinds.plot_sweep(workdir, flag_values.measure, output))
    elif kind == "curves":
        print(plot_kinds.plot_curves(workdir, output))
    else:
        of = (flag_values.sentence, flag_values.target, flag_values.attention, flag_values.texts)
        print(plot_kinds.plot_attention(workdir, *of, output))
    return 0
