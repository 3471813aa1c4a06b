"""`nmt-jax plot`: learning curves, attention, layer weights, BLEU by source length, sweeps, comparisons, alignments."""

import pathlib
from collections.abc import Sequence

from absl import flags

from nmt_jax.commands import streams
from nmt_jax.commands.shared_flags import (
    ENCODER_FLAGS,
    METRIC_FLAGS,
    define_gold_flags,
    define_metric_flags,
    metric_options,
)
from nmt_jax.errors import UserError
from nmt_jax.reporting import plot_kinds
from nmt_jax.schema.number_flags import define_integer
from nmt_jax.storage.paths import local_path_of

KINDS = ("curves", "attention", "layers", "length", "sweep", "alignment", *plot_kinds.DEFAULT_METRICS)
USED_BY = {  # flags that not every kind uses
    ("attention",): ("sentence", "target", "attention", "texts", "checkpoint", "average"),
    ("length",): ("source", "reference", "buckets"),
    ("sweep",): ("measure",),
    ("alignment",): ("pairs", "line", "gold", "gold_first"),
    ("attention", *plot_kinds.DEFAULT_METRICS): ENCODER_FLAGS,
    tuple(plot_kinds.DEFAULT_METRICS): ("metric", *(name for name in METRIC_FLAGS if name not in ENCODER_FLAGS)),
}


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax plot`."""
    flags.DEFINE_string("workdir", None, "Folder of a run, or of a sweep for --kind=sweep.", flag_values)
    flags.DEFINE_enum("kind", None, KINDS, "What to draw; default: curves, or attention with --sentence.", flag_values)
    flags.DEFINE_string("sentence", None, "attention: the sentence, of a translator the source.", flag_values)
    flags.DEFINE_string("target", None, "attention: its translation; default: the model's own.", flag_values)
    help_text = "attention: which weights to draw."
    flags.DEFINE_enum("attention", "cross", list(plot_kinds.ATTENTION_KINDS), help_text, flag_values)
    help_text = "attention of a classifier: number of development texts."
    define_integer(flag_values, "texts", 20, help_text, low=0, high=100_000)
    streams.define_checkpoint_flags(flag_values)
    help_text = "length: file with the source text; the arguments are files with translations."
    flags.DEFINE_string("source", None, help_text, flag_values)
    flags.DEFINE_string("reference", None, "length: file with the reference translation.", flag_values)
    help_text = "sweep: dev/bleu, another key of metrics.jsonl, parameters or minutes."
    flags.DEFINE_string("measure", None, help_text, flag_values)
    define_integer(flag_values, "buckets", 6, "length: number of groups of sentences.", low=2, high=100)
    help_text = "alignment: file of sentence pairs, SOURCE ||| TARGET or with a tab; the argument is a file of links."
    flags.DEFINE_string("pairs", None, help_text, flag_values)
    define_integer(flag_values, "line", 1, "alignment: number of the sentence pair.", low=1)
    define_gold_flags(flag_values, "alignment: file of alignments made by people, whose links are marked.")
    help_text = (
        "similarity: bertscore (default) or yisi1. flow: moverscore (default) or wmd (default with only --vectors)."
    )
    flags.DEFINE_string("metric", None, help_text, flag_values)
    define_metric_flags(flag_values)
    help_text = (
        "File to write: .png, .svg or .pdf; .html for classifiers, similarity and flow. Default: in --workdir, else "
        "KIND.png."
    )
    flags.DEFINE_string("output", None, help_text, flag_values)
    streams.define_overwrite_flag(flag_values, "The default file in --workdir")


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Draw a plot and print its path; for length and layers the numbers, too."""
    kind = flag_values.kind or ("attention" if flag_values.sentence else "curves")
    for kinds, names in USED_BY.items():
        streams.check_effect(flag_values, names, kind in kinds, f"without --kind={'|'.join(kinds)}")
    output = _output(flag_values, kind, positional)
    workdir = pathlib.Path(flag_values.workdir) if flag_values.workdir else None
    if kind == "length":
        if not (positional and flag_values.source and flag_values.reference):
            raise UserError(
                "nmt-jax plot --kind=length needs translations and their texts: "
                "HYPOTHESIS [HYPOTHESIS …] --source=FILE --reference=FILE"
            )
        texts = (flag_values.source, flag_values.reference)
        assert output
        print(*plot_kinds.plot_length(positional, *texts, flag_values.buckets, output), sep="\n")
    elif kind == "alignment":
        streams.check_effect(flag_values, ["gold_first"], bool(flag_values.gold), "without --gold=FILE")
        streams.check_effect(flag_values, ["workdir"], False, "with --kind=alignment")
        if len(positional) != 1 or not flag_values.pairs:
            needs = "one file of links and its text: LINKS --pairs=FILE [--line=N] [--gold=FILE]"
            raise UserError(f"nmt-jax plot --kind=alignment needs {needs}")
        assert output
        chosen = flag_values.pairs, flag_values.line, output, flag_values.gold, flag_values.gold_first
        print(plot_kinds.plot_alignment(positional[0], *chosen))
    elif kind == "layers":
        folders = [*([flag_values.workdir] if workdir else []), *positional]
        if not folders:
            raise UserError("nmt-jax plot --kind=layers needs workdirs of runs: --workdir=FOLDER, or FOLDER [FOLDER …]")
        output = output or local_path_of(folders[0]) / "layers.png"
        print(*plot_kinds.plot_layers(folders, output), sep="\n")
    elif kind in plot_kinds.DEFAULT_METRICS:
        print(plot_kinds.plot_comparison(positional, kind, flag_values.metric, output, **metric_options(flag_values)))
    elif kind == "attention" and flag_values.encoder is not None:
        streams.check_effect(
            flag_values, ("workdir", "target", "attention", "texts", "checkpoint", "average"), False, "with --encoder"
        )
        if positional:
            raise UserError(f'nmt-jax plot: unexpected argument {positional[0]!r}; use --sentence="…"')
        assert output
        given = (flag_values.encoder, flag_values.sentence, output, flag_values.dtype, flag_values.download)
        print(plot_kinds.plot_encoder_attention(*given))
    elif positional:
        raise UserError(f"nmt-jax plot --kind={kind}: unexpected argument {positional[0]!r}; use --workdir=FOLDER")
    elif not workdir:
        contents = {"sweep": "sweep", "attention": "run, or --encoder=PLACE"}.get(kind, "run")
        raise UserError(f"nmt-jax plot --kind={kind} needs --workdir=FOLDER of a {contents}")
    elif kind == "sweep":
        print(plot_kinds.plot_sweep(workdir, flag_values.measure, output))
    elif kind == "curves":
        print(plot_kinds.plot_curves(workdir, output))
    else:
        arguments = (flag_values.sentence, flag_values.target, flag_values.attention, flag_values.texts)
        checkpoint = streams.chosen_checkpoint(flag_values)
        print(plot_kinds.plot_attention(workdir, *arguments, output, checkpoint=checkpoint))
    return 0


def _output(flag_values: flags.FlagValues, kind: str, positional: Sequence[str]) -> pathlib.Path | None:
    """Return the file to write, or None for the default file in `--workdir`.

    Raises UserError if the file exists and `--overwrite` is not set.
    """
    path = flag_values.output
    elsewhere = {"layers": bool(positional), "attention": flag_values.encoder is not None}  # not in a workdir
    if not path and (kind in ("length", "alignment", *plot_kinds.DEFAULT_METRICS) or elsewhere.get(kind)):
        path = f"{kind}.png"
    if not path:
        return None
    streams.check_new(flag_values, path)
    return local_path_of(path)
