"""Training of a phrase-based model: alignment, phrase table, language model, and rounds of tuning."""

import math
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from ml_collections import ConfigDict

import metrics_jax
from metrics_jax.registry import needs
from nmt_jax import platforms
from nmt_jax.alignment.aligner import Aligner
from nmt_jax.alignment.links import Link
from nmt_jax.alignment.sampler import Sampler
from nmt_jax.data.lines import chunks
from nmt_jax.data.readers import sources
from nmt_jax.data.readers.parallel_text import open_text
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.ngram.binary import write_binary
from nmt_jax.ngram.counts import count
from nmt_jax.ngram.kneser_ney import estimate
from nmt_jax.phrases import tokens
from nmt_jax.phrases.building import build_table
from nmt_jax.phrases.features import initial_weights
from nmt_jax.phrases.model import Files, PhraseModel, write_weights, write_words
from nmt_jax.phrases.stack_decoder import Limits
from nmt_jax.phrases.tuning import NBestLists, interpolated
from nmt_jax.progress import track
from nmt_jax.training.lock import WorkdirLock
from nmt_jax.training.logbook import Logbook
from nmt_jax.training.record import best_step, has_ended, read_record
from nmt_jax.translation.pairwise_tuning import Sampling, fit, normalized, sample_pairs
from nmt_jax.workdir import Workdir

DISCOUNTS = (0.5, 1.0, 1.5)  # of n-grams in texts that are too small to estimate them
MOST_PATHS = 4  # that are looked at for each translation of an n-best list; more take longer than the search
CHUNK = 64  # dev lines translated between two updates of the progress display


def train_phrases(config: ConfigDict, folder: Workdir, lock: WorkdirLock) -> dict[str, float]:
    """Trains the model in a workdir, and returns the dev measures of the best round.

    A phrase table that is already there is kept, and weights of an earlier tuning until this one ends. Raises UserError
    if the text has no pairs, or several sources, and for a metric that does not exist.
    """
    if len(sources.languages(config.data.source)) > 1:
        raise UserError(f"config.data.source={config.data.source!r}: a phrase-based model reads one source")
    metric = tuning_metric(config.train.early_stopping_metric)
    files, began = Files(folder.phrases), time.monotonic()
    folder.phrases.mkdir(parents=True, exist_ok=True)
    if not files.table.is_file():
        build_files(config, files)
        note(f"phrase table and language model: {files.size / 1e6:.1f} MB, {time.monotonic() - began:.0f} s")
    lock.check()
    return tune(config, folder, files, metric)


def finished_measures(config: ConfigDict, folder: Workdir) -> dict[str, float] | None:
    """Returns the dev measures of a workdir whose tuning has ended with this config, and says so; otherwise None."""
    record = read_record(folder)
    if not folder.config_file.is_file() or folder.config() != config or not has_ended(config, record):
        return None
    name, rows = f"dev/{tuning_metric(config.train.early_stopping_metric).name}", folder.metrics()
    step = best_step(rows, name)
    note(f"{folder.path}: already tuned; to tune again, change train.steps or another setting of tuning")
    return next(({name: row[name]} for row in rows if row["step"] == step), None)


def tuning_metric(name: str) -> Any:
    """Returns the metric that tuning optimizes. Raises UserError if it is unknown or needs more than text."""
    try:
        if wanted := needs(name):
            found = ", ".join(wanted)
            raise UserError(f"config.train.early_stopping_metric={name}: needs {found}; use one that needs no model")
        metric = metrics_jax.load(name)
        if "sources" in metric.needs:
            raise UserError(
                f"config.train.early_stopping_metric={name}: reads sources, which tuning does not pass; use another one"
            )
        return metric
    except ValueError as error:
        raise UserError(f"config.train.early_stopping_metric: {error}") from None


def build_files(config: ConfigDict, files: Files) -> None:
    """Writes the phrase table, the words and the language model of the training text."""
    settings = config.model
    pairs = [
        (source, target)
        for texts in track(open_text(config.data, "train"), "reading")
        for source, target in [[tokens.split(text, settings.lowercase) for text in texts]]
        if 0 < len(source) <= config.data.max_length and 0 < len(target) <= config.data.max_length
    ]
    if not pairs:
        raise UserError("config.data: the training text has no pair of sentences of data.max_length tokens or less")
    source, target = ([pair[side] for pair in pairs] for side in (0, 1))
    links = align(source, target, settings.aligner, settings.iterations, config.seed)
    if not any(links):
        raise UserError("config.data: no word of the training text could be aligned; use more text")
    counts = count(map(" ".join, target), settings.ngram_order, name="training text", total=len(target))
    model = estimate(counts, DISCOUNTS)[0]
    words = sorted({word for sentence in source for word in sentence})
    numbers = {word: number for number, word in enumerate(words)}
    table = build_table(
        [np.array([numbers[word] for word in sentence]) for sentence in source],
        [np.array([model.vocabulary.numbers[word] for word in sentence]) for sentence in target],
        links,
        num_words=len(words),
        longest=settings.max_phrase_length,
        most=settings.max_translations,
    )
    note(f"{len(pairs):,} pairs of sentences, {len(table):,} pairs of phrases")
    write_words(files.words, words)
    write_binary(model, files.language_model)
    table.save(files.table)  # last: it stands for all three


def align(
    source: Sequence[Sequence[str]], target: Sequence[Sequence[str]], model: str, iterations: int, seed: int
) -> list[list[Link]]:
    """Returns the links of each pair of sentences, by both directions combined; seed: of the model fertility."""
    platforms.configure_compilation()

    def progress(batches: Iterable[Any], total: int) -> Iterable[Any]:
        return track(batches, "aligning", total)

    mesh = sharding.make_mesh()
    aligner: Aligner | Sampler
    if model == "fertility":
        aligner = Sampler(source, target, mesh, seed=seed, progress=progress)
    else:
        aligner = Aligner(source, target, mesh, model=model, iterations=iterations, progress=progress)
    return [alignment.links for alignment in aligner.align_lines(0, len(source))]


def tune(config: ConfigDict, folder: Workdir, files: Files, metric: Any) -> dict[str, float]:
    """Writes the weights of the round with the best dev score; logs each round."""
    settings, name = config.tuning, f"dev/{metric.name}"
    pairs = [pair for pair, _ in zip(open_text(config.data, "dev"), range(settings.max_segments), strict=False)]
    texts, references = ([pair[side] for pair in pairs] for side in (0, 1))
    if config.model.lowercase:
        references = [text.lower() for text in references]
    weights, rng = normalized(initial_weights()), np.random.default_rng(config.seed)
    model = PhraseModel.load(files, Limits(**config.decode), config.model.lowercase, weights)
    lists = NBestLists(references, metric)
    best, kept, chosen, stale, began = -math.inf, weights, {name: math.nan}, 0, time.monotonic()
    is_first = not files.weights.is_file()
    with Logbook(folder.path) as logbook:
        for step in range(1, config.train.steps + 1):
            model.weights = weights
            groups = track(chunks(texts, CHUNK), f"round {step}", len(texts), each=CHUNK)
            found = [one for group in groups for one in model.translate(group, settings.n_best, MOST_PATHS)]
            score = metric([one[0].text for one in found], references).score
            seconds = time.monotonic() - began
            logbook.write(step, {name: score, "seconds": seconds})
            better = (score if metric.higher_is_better else -score) > best
            note(f"round {step}/{config.train.steps}  {name} {score:.4g}{'  (best so far)' * better}")
            stale = 0 if better else stale + 1
            if better:
                best, kept, chosen = (score if metric.higher_is_better else -score), weights, {name: score}
            out_of_time = bool(config.train.minutes) and seconds >= 60 * config.train.minutes
            ends = out_of_time or 0 < config.train.patience <= stale or step == config.train.steps
            if is_first or ends:
                about = {"rounds": step, "stale": stale, "seconds": seconds, "phrases": len(model.table)}
                write_weights(files.weights, kept, **about)
            if ends:
                break
            lists.add(found)
            differences = sample_pairs(lists.features, lists.scores, Sampling(), rng)
            if len(differences):
                weights = interpolated(weights, fit(differences, weights), settings.interpolation)
    return chosen


def note(text: str) -> None:
    """Prints a line to stderr."""
    print(text, file=sys.stderr, flush=True)
