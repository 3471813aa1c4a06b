"""`nmt-jax rerank`: reranks translation candidates with a channel model, a language model and tuned weights."""

import itertools
import json
import pathlib
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from absl import flags

from nmt_jax.commands import streams
from nmt_jax.commands.output import Output, define_output_flags, open_output
from nmt_jax.commands.shared_flags import METRIC_FLAGS, define_metric_flags, metric_options
from nmt_jax.data.lines import chunks, num_lines, read_lines
from nmt_jax.errors import UserError, did_you_mean
from nmt_jax.ngram.files import read_model
from nmt_jax.ngram.scoring import LN10, score_lines
from nmt_jax.pretrained.metrics import metric_error, open_metric
from nmt_jax.progress import track
from nmt_jax.schema.number_flags import define_seed
from nmt_jax.storage.paths import path_of
from nmt_jax.training.trained import open_trained, open_translator
from nmt_jax.translation.candidates import beside, read_candidates
from nmt_jax.translation.noisy_channel import (
    DIRECT,
    Item,
    Ranked,
    Scorer,
    add_features,
    available,
    rank,
    read_weights,
    tune,
)
from nmt_jax.translation.requests import Line
from nmt_jax.workdir import Workdir

CHUNK = 64  # lines whose candidates are scored together
MODELS = ("direct", "channel", "language_model")  # flags, and the features that these models add


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax rerank`."""
    streams.define_input_flag(flag_values, ": candidates as nmt-jax translate --nbest=N writes them, text or json")
    define_output_flags(flag_values)
    help_text = "Folder of the translator: compute log-probabilities instead of using the scores in the input."
    flags.DEFINE_list("direct", None, help_text, flag_values)
    help_text = "Folder of a translator back into the language of --source; several, separated by commas: an ensemble."
    flags.DEFINE_list("channel", None, help_text, flag_values)
    help_text = "With --direct or --channel: file whose line N was translated."
    flags.DEFINE_string("source", None, help_text, flag_values)
    help_text = "Language model of the candidates' language: workdir, or file of an n-gram model by nmt-jax ngram."
    flags.DEFINE_string("language_model", None, help_text, flag_values)
    flags.DEFINE_string("weights", None, "File of weights, as --tune writes it.", flag_values)
    help_text = "File of references: instead of reranking, write weights for which a metric prefers the result."
    flags.DEFINE_string("tune", None, help_text, flag_values)
    help_text = "With --tune: the metric, with options such as 'bleu|tokenize:zh'."
    flags.DEFINE_string("metric", "bleu", help_text, flag_values)
    define_seed(flag_values, 0, "With --tune: random seed for the pairs of candidates that are compared.")
    define_metric_flags(flag_values)
    help_text = "Output format; json writes all candidates of each line in their new order, with features."
    flags.DEFINE_enum("format", "text", ["text", "json"], help_text, flag_values)
    streams.define_chunk_flag(flag_values, CHUNK)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Write the best candidate of each line, or weights."""
    streams.check_no_arguments("rerank", positional)
    _check_request(flag_values)
    weights = read_weights(flag_values.weights) if flag_values.weights else DIRECT
    metric = open_metric(flag_values.metric, **metric_options(flag_values)) if flag_values.tune else None
    name, size = flag_values.input or "stdin", streams.chunk_size(flag_values)
    total = num_lines(flag_values.source) if flag_values.source else None
    folders = {way: streams.existing_folders(flag_values[way].value or []) for way in ("direct", "channel")}
    inputs = [flag_values.input, *filter(None, (flag_values.source, flag_values.weights, flag_values.tune))]
    workdirs = [*folders["direct"], *folders["channel"]]
    with open_output("rerank", flag_values, inputs, size, total, workdirs=workdirs) as output:
        items = _items(flag_values, name)
        first = next(items, None)
        if first is None:
            raise UserError(f"{name}: no candidates")
        added = [feature for feature in MODELS if flag_values[feature].value]
        if flag_values.weights:
            _check_weights(weights, available(first, added), flag_values.weights)
        models: dict[str, Scorer] = {}
        if folders["direct"]:
            models["direct"] = open_direct(folders["direct"], flag_values.source)
        if folders["channel"]:
            models["channel"] = open_channel(folders["channel"], flag_values.source)
        if flag_values.language_model:
            models["language_model"] = open_language_model(flag_values.language_model)
        items = itertools.chain([first], items)
        if metric:
            if output.shared and output.shared.num_shares > 1:
                raise UserError("--tune needs one process; several can compute the features first, by --format=json")
            _tune(output, list(items), models, metric, flag_values, name)
            return 0
        show = _as_json if flag_values.format == "json" else _as_text

        def answer(first: int, group: Sequence[Item]) -> Iterator[bytes]:
            found = add_features(group, models, name, first)
            ranked = (rank(own.texts, own.features, weights, name, line) for line, own in enumerate(found, first + 1))
            return streams.encoded(itertools.starmap(show, enumerate(ranked, first + 1)))

        output.write(items, answer, "reranked", total)
    return 0


def _check_request(flag_values: flags.FlagValues) -> None:
    """Raise UserError for flags that need each other, exclude each other, or have no effect."""
    tuned = bool(flag_values.tune)
    if (flag_values.direct or flag_values.channel) and not flag_values.source:
        raise UserError("--direct and --channel need --source=FILE, whose line N was translated")
    streams.check_effect(
        flag_values, ("source",), flag_values.direct or flag_values.channel, "without --direct or --channel"
    )
    streams.check_effect(flag_values, ("weights", "format"), not tuned, "with --tune")
    streams.check_effect(flag_values, ("metric", "seed", *METRIC_FLAGS), tuned, "without --tune")
    if not tuned and not flag_values.weights and flag_values.format == "text":
        raise UserError(
            "nmt-jax rerank needs --weights=FILE; --tune=REFERENCES writes one, and --format=json shows the features"
        )


def _check_weights(weights: dict[str, float], known: set[str], path: str) -> None:
    """Raise UserError for the weight of a feature that the candidates do not have."""
    for feature in weights.keys() - known:
        hint = f": name the model by --{feature}" if feature in MODELS else did_you_mean(feature, sorted(known))
        raise UserError(f"{path}: has a weight for {feature!r}, but the candidates have no such feature{hint}")


def _items(flag_values: flags.FlagValues, name: str) -> Iterator[Item]:
    """The candidates of each line with its source, which is empty if no model needs it."""
    candidates = read_candidates(streams.open_lines(flag_values.input), name)
    if not flag_values.source:
        return (("", own) for own in candidates)
    return beside(candidates, name, read_lines(flag_values.source), flag_values.source)


def _as_text(line: int, ranked: Sequence[Ranked]) -> str:
    return " ".join(ranked[0].text.split("\n"))


def _as_json(line: int, ranked: Sequence[Ranked]) -> str:
    hypotheses = [
        {
            "score": round(one.score, 6),
            "text": one.text,
            "features": {name: round(value, 6) for name, value in one.features.items()},
        }
        for one in ranked
    ]
    return streams.json_row(line=line, hypotheses=hypotheses)


# Models


def open_direct(folders: Sequence[pathlib.Path], source: str) -> Scorer:
    """Open the translator that made the candidates, or an ensemble; returns a function for log p(candidate | source).

    Raises UserError if it is no neural translator, or if the file `source` is named after the language of candidates.
    """
    _check_direction(folders[0], "direct", source)
    translator, params = open_translator([Workdir(folder) for folder in folders])

    def score(lines: Sequence[Line]) -> list[float]:
        swapped = [line._replace(text=line.translation, translation=line.text) for line in lines]
        return [found[0].score for found in translator.score_given(params, swapped)]

    return score


def open_channel(folders: Sequence[pathlib.Path], source: str) -> Scorer:
    """Open a channel model, or an ensemble; returns a function for log p(source | candidate).

    Raises UserError if it is no neural translator, reads several sources, or if the file `source` is named after the
    language that it reads.
    """
    _check_direction(folders[0], "channel", source)
    translator, params = open_translator([Workdir(folder) for folder in folders])
    if (count := translator.encoder.num_sources) > 1:
        raise UserError(f"{folders[0]}: reads {count} sources; a channel model reads one, a candidate")
    return lambda lines: [found[0].score for found in translator.score_given(params, lines)]


def _check_direction(folder: pathlib.Path, flag: str, source: str) -> None:
    """Raise UserError if the name of the file `source` ends in the language that the model has for candidates."""
    data = Workdir(folder).trained_config("translate").data
    candidates = data.source if flag == "channel" else data.target
    if source.removesuffix(".gz").endswith(f".{candidates}") and data.source != data.target:
        raise UserError(
            f"--{flag}={folder}: translates from {data.source} into {data.target}, so it fits no translations of "
            f"{source}; use a model of the other direction"
        )


def open_language_model(place: str) -> Scorer:
    """Open a language model, a workdir or a file of an n-gram model; returns a function for log p(candidate).

    Raises UserError if it is neither, or a workdir of another task.
    """
    path = path_of(place)
    if path.is_dir():
        task, params = open_trained(Workdir(path), "language_model")
        return lambda lines: task.log_probabilities(params, [line.text for line in lines])
    if not path.exists() and not path_of(f"{place}.gz").exists():
        raise UserError(f"--language_model={place}: neither a workdir nor a file of an n-gram model")
    model = read_model(place)
    return lambda lines: [LN10 * log_p.sum() for _, (log_p, _) in score_lines(model, [line.text for line in lines])]


# Tuning


def _tune(
    output: Output,
    items: Sequence[Item],
    models: dict[str, Scorer],
    metric: Any,
    flag_values: flags.FlagValues,
    name: str,
) -> None:
    """Write the weights, and on stderr the scores of the metric before and after reranking."""
    references = list(read_lines(flag_values.tune))
    if len(references) != len(items):
        raise UserError(f"{flag_values.tune}: {len(references)} lines, but {name} has candidates of {len(items)}")
    size = streams.chunk_size(flag_values)
    groups = track(chunks(items, size), "computing features", len(items), each=size)
    lists = [own for number, group in enumerate(groups) for own in add_features(group, models, name, number * size)]
    try:
        weights = tune(lists, references, metric, flag_values.seed, name)
        chosen = [rank(own.texts, own.features, weights, name, line)[0].text for line, own in enumerate(lists, 1)]
        score = metric(chosen, references)
        before = metric([own.texts[0] for own in lists], references).score
    except (ValueError, MemoryError) as error:
        raise metric_error(error, "--metric") from error
    content = {"weights": weights, "metric": score.signature, "score": score.score, "first": before}
    output.write_text(json.dumps(content, indent=2, ensure_ascii=False))
    print(
        f"nmt-jax: {len(lists)} lines: {metric.name} {score.score:.4g} (first candidates: {before:.4g})",
        file=sys.stderr,
    )
