"""The kinds of plots that `nmt-jax plot` makes: each function reads the data, draws it and writes the file."""

import pathlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from nmt_jax.alignment.links import parse_alignment, parse_links
from nmt_jax.alignment.sentence_pairs import split_pair
from nmt_jax.data.lines import read_lines
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import open_metric
from nmt_jax.reporting.plots.style import FORMATS, check_output, drawing, save, save_page
from nmt_jax.reporting.sweep_table import collect
from nmt_jax.sweeps.runs import base_values, find_runs, main_measure
from nmt_jax.training.text_attention import Attention, open_encoder_attention, open_text_attention
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

DEFAULT_METRICS = {"similarity": "bertscore", "flow": "moverscore"}  # of the plots that compare two texts
ATTENTION_KINDS = ("cross", "encoder", "decoder")
NO_SENTENCE = 'nmt-jax plot --kind=attention needs a sentence: --sentence="…"'


def plot_curves(workdir: pathlib.Path, output: pathlib.Path | None = None) -> pathlib.Path:
    """Draws the learning curves of a run; returns the file, by default WORKDIR/curves.png."""
    from nmt_jax.reporting.plots.curves import draw_curves

    folder = Workdir(workdir)
    config = folder.config()
    output = check_output(output or folder.path / "curves.png")
    smoothing = config.loss.get("label_smoothing", 0.0) if "loss" in config else 0.0
    with drawing():
        save(draw_curves(folder.metrics(), config.train.early_stopping_metric, smoothing), output)
    return output


def plot_attention(
    workdir: pathlib.Path,
    sentence: str | None = None,
    target: str | None = None,
    kind: str = "cross",
    num_texts: int = 20,
    output: pathlib.Path | None = None,
    checkpoint: str | int | None = None,
) -> pathlib.Path:
    """Draws the attention of a model to a sentence; returns the file, by default WORKDIR/attention.png (or .html).

    A translator: the weights of `kind`, one of ATTENTION_KINDS, for `sentence` and its translation `target`, by default
    the model's own; "cross" to an image, which `sentence` names, as overlays. A classifier: coloured text, of
    `sentence` (its sentences separated by tabs) or, without one, of `num_texts` development texts, evenly spaced. Other
    models: the weights between the pieces of `sentence`. checkpoint: see `open_trained`. Raises UserError if the model
    has no weights of `kind`.
    """
    folder = Workdir(workdir)
    if (task := folder.config().get("task")) not in ("translate", "classify"):
        if target or kind != "cross":
            given = "--target" if target else f"--attention={kind}"
            raise UserError(f"{given}: has no effect for {folder.path}, whose model reads one text")
        output = check_output(output or folder.path / "attention.png")
        return _text_attention(open_text_attention(folder, checkpoint), sentence, output)
    if task == "classify":
        if kind != "cross":
            classifier = "is a classifier, which attends to words and sentences only; omit --attention"
            raise UserError(f"--attention={kind}: {folder.path} {classifier}")
        output = check_output(output or folder.path / "attention.html", (".html",))
        save_page(_coloured_page(folder, sentence, num_texts, checkpoint), output)
        return output
    from nmt_jax.reporting.plots.attention_maps import draw_attention
    from nmt_jax.reporting.plots.overlays import draw_overlays

    output = check_output(output or folder.path / "attention.png")
    if not sentence:
        raise UserError(NO_SENTENCE)
    weights = pair_attention(folder, sentence, target, checkpoint)
    available = [name for name in ATTENTION_KINDS if name in weights]
    if kind not in available:
        has = f"only --attention={' or '.join(available)}" if available else "no attention"
        raise UserError(f"--attention={kind}: the model in {folder.path} has {has}")
    overlays = kind == "cross" and weights.get("pictures")
    with drawing():
        save(draw_overlays(weights) if overlays else draw_attention(weights, kind), output)
    return output


def plot_encoder_attention(
    encoder: str, sentence: str | None, output: pathlib.Path, dtype: str = "float32", download: bool = False
) -> pathlib.Path:
    """Draws the attention of a pretrained encoder between the pieces of a sentence; returns the file.

    encoder, dtype, download: as for `nmt_jax.pretrained.load`.
    """
    check_output(output)
    return _text_attention(open_encoder_attention(encoder, dtype, download), sentence, output)


def _text_attention(attention: Attention, sentence: str | None, output: pathlib.Path) -> pathlib.Path:
    """Draws the attention between the pieces of a sentence; returns the file."""
    from nmt_jax.reporting.plots.attention_maps import draw_text_attention

    if not sentence:
        raise UserError(NO_SENTENCE)
    with drawing():
        save(draw_text_attention(*attention(sentence)), output)
    return output


def pair_attention(
    folder: Workdir, sentence: str, target: str | None = None, checkpoint: str | int | None = None
) -> dict[str, Any]:
    """Returns pieces and attention weights of `sentence` and `target`, by default the model's own translation."""
    task, params = open_trained(folder, "translate", checkpoint=checkpoint)
    if target is None:
        target = task.translate(params, [sentence], beam_size=task.config.decode.beam_size)[0][0].text
        print(target, file=sys.stderr)
    return task.attention(params, sentence, target)


def _coloured_page(folder: Workdir, sentence: str | None, count: int, checkpoint: str | int | None) -> str:
    """Returns the HTML of one text, or of `count` development texts with the words of most weight in all of them."""
    from nmt_jax.reporting.plots.coloured import Coloured, page, top_words

    task, params = open_trained(folder, "classify", checkpoint=checkpoint)
    if sentence:
        texts, truths = [sentence.split("\t")], [None]
    else:
        labelled = task.dev_texts()
        texts, truths = [item.sentences for item in labelled], [item.label for item in labelled]
    coloured = [
        Coloured(r.words, r.word_weights, r.sentence_weights, r.label, float(r.probabilities.max()), truth)
        for r, truth in zip(task.predict(params, texts), truths, strict=True)
        if r.label
    ]
    if not coloured:
        raise UserError("nmt-jax plot: no text contains a word")
    if sentence:
        return page(folder.path.name, coloured)
    # Spread over the whole file, because files are often sorted by label.
    chosen = sorted({round(number) for number in np.linspace(0, len(coloured) - 1, count)})
    return page(folder.path.name, [coloured[number] for number in chosen], top_words(coloured))


def plot_length(
    systems: Sequence[str], source: str, reference: str, num_buckets: int, output: pathlib.Path
) -> tuple[str, pathlib.Path]:
    """Draws BLEU by source length for the files `systems`, which hold translations; returns the numbers and the file.

    Raises UserError if the files differ in length, or if two systems have the same file name.
    """
    from metrics_jax import BLEU
    from nmt_jax.reporting.plots.systems import by_length, draw_by_length, length_table

    check_output(output)
    sources, references = (list(read_lines(file)) for file in (source, reference))
    translations = {pathlib.Path(file).name: list(read_lines(file)) for file in systems}
    if len(translations) < len(systems):
        raise UserError("nmt-jax plot: two systems have the same file name, which names them in the plot; rename one")
    for name, lines in {reference: references, **translations}.items():
        if len(lines) != len(sources):
            raise UserError(f"{name}: {len(lines)} lines, but {source} has {len(sources)}")
    with drawing():
        buckets = by_length(BLEU(), sources, references, translations, num_buckets)
        save(draw_by_length(buckets, "BLEU"), output)
    return length_table(buckets), output


def plot_layers(workdirs: Sequence[str], output: pathlib.Path) -> tuple[str, pathlib.Path]:
    """Draws the weights that runs learned for the layers of an encoder or of ELMo; returns the numbers and the file.

    Raises UserError if a run has no learned mixture of layers, or if two folders have the same name.
    """
    from nmt_jax.checkpoints.reading import load_params
    from nmt_jax.reporting.plots.systems import Mixture, draw_layers, layer_table

    check_output(output)
    mixtures = {}
    for workdir in workdirs:
        folder = Workdir(workdir)
        folder.trained_config(folder.config().get("task"))
        params = load_params(folder.path, "best")
        if "mixture_weights" not in params:
            raise UserError(
                f"{folder.path}: the run has no mixture of layers; set encoder.layers=mixture, or, for the task "
                "feature_tagger, data.elmo and model.layers=mixture"
            )
        if folder.path.name in mixtures:
            raise UserError(f"{folder.path}: another run has the same folder name; rename one")
        mixtures[folder.path.name] = Mixture.of(np.asarray(params["mixture_weights"]), float(params["mixture_scale"]))
    with drawing():
        save(draw_layers(mixtures), output)
    return layer_table(mixtures), output


def plot_alignment(
    links: str, pairs: str, line: int, output: pathlib.Path, gold: str | None = None, gold_first: int = 1
) -> pathlib.Path:
    """Draws the links between the words of a sentence pair; returns the file.

    links: a file that `nmt-jax align` wrote; with `--format=json`, links are shaded by their posteriors. pairs: a file
    of lines SOURCE ||| TARGET, or separated by a tab. line: the number of the pair, from 1. gold, gold_first: see
    `read_gold`; its links are marked. Raises UserError if a file has no such line, or a sentence has no words.
    """
    from nmt_jax.reporting.plots.alignment_matrix import draw_alignment

    check_output(output)
    source, target = (side.split() for side in split_pair(_line(pairs, line), f"{pairs}:{line}"))
    if not (source and target):
        raise UserError(f"{pairs}:{line}: a side has no words; choose another --line")
    lengths = len(source), len(target)
    alignment = parse_alignment(_line(links, line), lengths, f"{links}:{line}")
    people = parse_links(_line(gold, line), lengths, f"{gold}:{line}", gold_first) if gold else None
    with drawing():
        save(draw_alignment(source, target, alignment, people), output)
    return output


def _line(path: str, number: int) -> str:
    """Returns a line of a file, counted from 1."""
    count = 0
    for count, line in enumerate(read_lines(path), start=1):
        if count == number:
            return line
    raise UserError(f"{path}:{number}: no such line; the file has {count:,}")


def plot_sweep(folder: pathlib.Path, measure: str | None = None, output: pathlib.Path | None = None) -> pathlib.Path:
    """Draws a measure of a sweep against each key that its runs change; returns the file, by default FOLDER/sweep.png.

    measure: see `sweep_table.collect`; by default the metric by which the best checkpoints are chosen.
    """
    from nmt_jax.reporting.plots.sweep_panels import draw_sweep

    runs = find_runs(folder)
    measure = measure or main_measure(runs)
    output = check_output(output or folder / "sweep.png")
    with drawing():
        save(draw_sweep(collect(runs, [measure]), base_values(runs), measure), output)
    return output


def plot_comparison(
    texts: Sequence[str], kind: str, metric: str | None = None, output: pathlib.Path | None = None, **options: Any
) -> pathlib.Path:
    """Draws how a metric compares two texts, a hypothesis and a reference; returns the file, by default KIND.png.

    kind: "similarity" of their tokens, or "flow", the transport plan. metric: a name or signature. options: for
    `open_metric`. Raises UserError if texts or encoder are missing, or if the metric has no such plot.
    """
    from nmt_jax.reporting.plots import compared, flow, similarity

    if len(texts) != 2 or not all(text.strip() for text in texts):
        got = "one of them is empty" if len(texts) == 2 else f"got {len(texts)}"
        raise UserError(f'nmt-jax plot --kind={kind} needs two texts, "HYPOTHESIS" "REFERENCE"; {got}')
    encoder, vectors = options.get("encoder"), options.get("vectors")
    if not (encoder or vectors):
        raise UserError(f"nmt-jax plot --kind={kind} needs --encoder=PLACE, a pretrained model, or --vectors=FILE")
    output = check_output(output or pathlib.Path(f"{kind}.png"), (*FORMATS, ".html"))
    measure = open_metric(metric or ("wmd" if kind == "flow" and not encoder else DEFAULT_METRICS[kind]), **options)
    functions: dict[str, Any] = {
        "similarity": (compared.similarities, similarity.draw_similarity, similarity.similarity_page),
        "flow": (compared.plan, flow.draw_flow, flow.flow_page),
    }
    compare, draw, page = functions[kind]
    try:
        comparison = compare(measure, *texts)
    except ValueError as error:  # a text is too long for the encoder, or the weights are damaged
        raise UserError(f"nmt-jax plot: {error}") from error
    if output.suffix == ".html":
        save_page(page(comparison), output)
    else:
        with drawing():
            save(draw(comparison), output)
    return output
