"""`nmt-jax plot`: curves, attention, shares of layers, BLEU by source length, what an embedding metric compares."""

import pathlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from absl import flags

from nmt_jax.commands.metric_flags import define_metric_flags, metric_options
from nmt_jax.data.lines import read_lines
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import open_metric
from nmt_jax.reporting.plots.style import FORMATS, check_output, drawing, save, writing
from nmt_jax.reporting.sweep_table import collect, main_measure
from nmt_jax.sweeps.runs import base_values, find_runs
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

COMPARED = {"similarity": "bertscore", "flow": "moverscore"}  # of two texts, and by which metric if none is named
KINDS = ("curves", "attention", "layers", "length", "sweep", *COMPARED)


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax plot`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("workdir", None, "The folder of a run, or of a sweep.", **given)
    flags.DEFINE_enum("kind", None, KINDS, "What to draw; attention if there is a sentence.", **given)
    flags.DEFINE_string("sentence", None, "The source sentence whose attention is drawn.", **given)
    flags.DEFINE_string("target", None, "Its translation; the model's own if not given.", **given)
    flags.DEFINE_enum("attention", "cross", ["cross", "encoder", "decoder"], "Which attention.", **given)
    flags.DEFINE_integer(
        "texts", 20, "Attention of a classifier: how many development texts are coloured.", lower_bound=0, **given
    )
    flags.DEFINE_string("source", None, "length: the source text; the arguments are systems' translations.", **given)
    flags.DEFINE_string("reference", None, "length: the reference translation.", **given)
    flags.DEFINE_string(
        "measure", None, "sweep: dev/bleu or another key of metrics.jsonl, parameters, minutes.", **given
    )
    flags.DEFINE_integer("buckets", 6, "length: groups of about equally many sentences.", lower_bound=2, **given)
    flags.DEFINE_string(
        "metric",
        None,
        "similarity: bertscore or yisi1; flow: moverscore, or wmd, which it is if there are --vectors alone.",
        **given,
    )
    define_metric_flags(flag_values)
    flags.DEFINE_string(
        "output",
        None,
        "FILE.png, .svg, .pdf; coloured text, similarity, flow: .html. WORKDIR/KIND… or KIND.png if not given.",
        **given,
    )


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, a picture out; its path on stdout."""
    kind = flag_values.kind or ("attention" if flag_values.sentence else "curves")
    output = pathlib.Path(flag_values.output) if flag_values.output else None
    if kind == "length":
        if not (positional and flag_values.source and flag_values.reference):
            raise UserError(
                "nmt-jax plot --kind=length needs translations and their texts: "
                "HYPOTHESIS [HYPOTHESIS …] --source=FILE --reference=FILE"
            )
        output = output or pathlib.Path("length.png")
        print(plot_length(positional, flag_values.source, flag_values.reference, flag_values.buckets, output))
    elif kind == "layers":
        folders = [*([flag_values.workdir] if flag_values.workdir else []), *positional]
        if not folders:
            raise UserError("nmt-jax plot --kind=layers needs workdirs of runs: --workdir=FOLDER, or FOLDER [FOLDER …]")
        output = output or pathlib.Path("layers.png" if positional else f"{folders[0]}/layers.png")
        print(plot_layers(folders, output))
    elif kind == "sweep":
        if positional or not flag_values.workdir:
            raise UserError("nmt-jax plot --kind=sweep needs the folder of a sweep: --workdir=FOLDER")
        output = plot_sweep(pathlib.Path(flag_values.workdir), flag_values.measure, output)
    elif kind in COMPARED:
        options = metric_options(flag_values)
        output = compare(positional, kind=kind, metric=flag_values.metric, output=output, **options)
    else:
        if positional:
            raise UserError(f"nmt-jax plot takes no {positional[0]!r}: a run is --workdir=FOLDER")
        if not flag_values.workdir:
            raise UserError("nmt-jax plot needs --workdir=FOLDER of a run")
        output = run(
            pathlib.Path(flag_values.workdir),
            kind=kind,
            sentence=flag_values.sentence,
            target=flag_values.target,
            attention=flag_values.attention,
            texts=flag_values.texts,
            output=output,
        )
    print(output)
    return 0


def run(
    workdir: pathlib.Path | str,
    *,
    kind: str = "curves",
    sentence: str | None = None,
    target: str | None = None,
    attention: str = "cross",
    texts: int = 20,
    output: pathlib.Path | None = None,
) -> pathlib.Path:
    """Draw the "curves" of a run or the "attention" of a sentence into `output` -> the file written.

    The attention of a classifier is coloured text: the `sentence` (its sentences between tabs), or `texts` of the
    development texts, evenly spaced.
    """
    folder = Workdir(pathlib.Path(workdir))
    config = folder.config()
    if kind == "attention" and config.get("task") == "classify":
        output = output or folder.path / "attention.html"
        check_output(output, (".html",))
        page = colour(folder, sentence, texts)
        with writing(output):
            output.write_text(page, encoding="utf-8")
        return output
    output = output or folder.path / f"{kind}.png"
    check_output(output)
    with drawing():
        if kind == "curves":
            from nmt_jax.reporting.plots.curves import draw_curves

            smoothing = config.loss.get("label_smoothing", 0.0) if "loss" in config else 0.0
            figure = draw_curves(folder.metrics(), config.train.early_stopping_metric, smoothing)
        elif sentence:
            from nmt_jax.reporting.plots.attention import draw_attention

            figure = draw_attention(attention_of(folder, sentence, target), attention)
        else:
            raise UserError('nmt-jax plot --kind=attention needs a sentence: --sentence="…"')
        save(figure, output)
    return output


def colour(folder: Workdir, sentence: str | None, count: int) -> str:
    """The HTML of a text, or of `count` of the development texts and, of all of them, the words that weigh most."""
    from nmt_jax.reporting.plots.coloured import Coloured, page, top_words

    task, params = open_trained(folder, "classify")
    if sentence:
        texts, truths = [sentence.split("\t")], [None]
    else:
        labelled = task.dev_texts()
        texts, truths = [item.sentences for item in labelled], [item.label for item in labelled]
    coloured = [
        Coloured(
            result.words,
            result.word_weights,
            result.sentence_weights,
            result.label,
            float(result.probabilities.max()),
            truth,
        )
        for result, truth in zip(task.predict(params, texts), truths, strict=True)
        if result.label
    ]
    if not coloured:
        raise UserError("nmt-jax plot: there is no word to colour")
    if sentence:
        return page(folder.path.name, coloured)
    # From the first to the last, as files are often sorted by label.
    chosen = sorted({round(place) for place in np.linspace(0, len(coloured) - 1, count)})
    return page(folder.path.name, [coloured[place] for place in chosen], top_words(coloured))


def plot_length(systems: Sequence[str], source: str, reference: str, num_buckets: int, output: pathlib.Path) -> str:
    """Draw BLEU by source length of the translations in the files `systems` into `output` -> the numbers drawn."""
    from metrics_jax import BLEU
    from nmt_jax.reporting.plots.length import by_length, draw_by_length, table

    check_output(output)
    sources, references = (list(read_lines(file)) for file in (source, reference))
    translations = {pathlib.Path(file).name: list(read_lines(file)) for file in systems}
    if len(translations) < len(systems):
        raise UserError("nmt-jax plot: two systems have the same file name; rename one, the picture names them so")
    for name, lines in {reference: references, **translations}.items():
        if len(lines) != len(sources):
            raise UserError(f"{name}: {len(lines)} lines, but {source} has {len(sources)}")
    with drawing():
        buckets = by_length(BLEU(), sources, references, translations, num_buckets)
        save(draw_by_length(buckets, "BLEU"), output)
    return table(buckets)


def plot_layers(workdirs: Sequence[str], output: pathlib.Path) -> str:
    """Draw what each run reads of the layers of its encoder, or of ELMo, into `output` -> the numbers drawn.

    UserError for a run that has no learned mixture of layers, and for two folders of one name.
    """
    from nmt_jax.checkpoints.reading import load_params
    from nmt_jax.reporting.plots.layers import Mixture, draw_layers, table

    check_output(output)
    mixtures = {}
    for workdir in workdirs:
        folder = Workdir(pathlib.Path(workdir))
        folder.trained_config(folder.config().get("task"))
        params = load_params(folder.path, "best")
        if "mixture_weights" not in params:
            raise UserError(
                f"{folder.path}: it reads no mixture of layers: that is encoder.layers=mixture, or, for task "
                "feature_tagger, data.elmo and model.layers=mixture"
            )
        if folder.path.name in mixtures:
            raise UserError(f"{folder.path}: another run is called {folder.path.name}, too: rename a folder")
        mixtures[folder.path.name] = Mixture.of(np.asarray(params["mixture_weights"]), float(params["mixture_scale"]))
    with drawing():
        save(draw_layers(mixtures), output)
    return table(mixtures)


def plot_sweep(folder: pathlib.Path, measure: str | None = None, output: pathlib.Path | None = None) -> pathlib.Path:
    """Draw a measure of the runs of a sweep against each key that they change into `output` -> the file written.

    measure: as of `sweeps.table.collect`; by default the one that the best checkpoints are chosen by.
    """
    from nmt_jax.reporting.plots.sweep import draw_sweep

    runs = find_runs(folder)
    measure = measure or main_measure(runs)
    output = output or folder / "sweep.png"
    check_output(output)
    with drawing():
        save(draw_sweep(collect(runs, [measure]), base_values(runs), measure), output)
    return output


def compare(
    texts: Sequence[str],
    *,
    kind: str = "similarity",
    metric: str | None = None,
    output: pathlib.Path | None = None,
    **options: Any,
) -> pathlib.Path:
    """Draw what a metric compares of two texts, a hypothesis and a reference, into `output` -> the file written.

    kind: "similarity" of their tokens, or "flow", what is moved where. metric: a name or signature; options: what it
    reads text with, as of `open_metric`. UserError for what is not given or cannot be drawn.
    """
    if len(texts) != 2 or not all(text.strip() for text in texts):
        given = "one of them is empty" if len(texts) == 2 else f"{len(texts)} are given"
        raise UserError(f'nmt-jax plot --kind={kind} needs two texts, "HYPOTHESIS" "REFERENCE"; {given}')
    encoder, vectors = options.get("encoder"), options.get("vectors")
    if not (encoder or vectors):
        raise UserError(f"nmt-jax plot --kind={kind} needs --encoder=PLACE, a pretrained model, or --vectors=FILE")
    output = output or pathlib.Path(f"{kind}.png")
    check_output(output, (*FORMATS, ".html"))
    measure = open_metric(metric or ("wmd" if kind == "flow" and not encoder else COMPARED[kind]), **options)
    from nmt_jax.reporting.plots import compared, flow, similarity

    find: Any = compared.similarities if kind == "similarity" else compared.plan
    draw: Any = similarity.draw_similarity if kind == "similarity" else flow.draw_flow
    page: Any = similarity.similarity_page if kind == "similarity" else flow.flow_page
    try:
        found = find(measure, *texts)
    except ValueError as error:  # a text too long for the encoder, or damaged weights
        raise UserError(f"nmt-jax plot: {error}") from error
    if output.suffix == ".html":
        with writing(output):
            output.write_text(page(found), encoding="utf-8")
    else:
        with drawing():
            save(draw(found), output)
    return output


def attention_of(folder: Workdir, sentence: str, target: str | None = None) -> dict[str, Any]:
    """Pieces and attention weights of `sentence` and `target` (the model's own translation by default)."""
    task, params = open_trained(folder, "translate")
    if target is None:
        target = task.translate(params, [sentence], beam_size=task.config.decode.beam_size)[0][0].text
        print(target, file=sys.stderr)
    return task.attention(params, sentence, target)
