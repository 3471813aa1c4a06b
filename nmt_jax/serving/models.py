"""The models and metrics that a server was started with, and what it computes with them, as values for JSON."""

import functools
import itertools
import math
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from metrics_jax.api import AdditiveMetric
from nmt_jax.decoding.method import DecodingMethod
from nmt_jax.decoding.sampling import Sampling
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import open_metric
from nmt_jax.reporting.score_table import digits, plain_rows
from nmt_jax.reporting.system_scores import Inference, score_texts
from nmt_jax.training.trained import open_trained, open_translator
from nmt_jax.translation.output_format import between_words, word_numbers
from nmt_jax.translation.requests import Hypothesis, Line
from nmt_jax.workdir import Workdir


class Translate(NamedTuple):
    """Translation of lines with a model."""

    model: str
    method: DecodingMethod
    attention: bool


class Attention(NamedTuple):
    """All attention weights of pairs of a line and a translation, "" for that of the model."""

    model: str


class Score(NamedTuple):
    """Scores of systems by metrics; the items are pairs of systems and references."""

    metrics: tuple[str, ...]
    paired: bool


Call = Translate | Attention | Score


class Model:
    """A translator: one workdir, or several as an ensemble."""

    def __init__(self, folders: Sequence[pathlib.Path], checkpoint: str | int | None) -> None:
        self.folders, self.checkpoint = [Workdir(folder) for folder in folders], checkpoint
        self.name = "+".join(folder.path.name for folder in self.folders)
        self.translator, self.params = open_translator(self.folders, checkpoint=checkpoint)
        self.config = self.translator.config

    @functools.cached_property
    def task(self) -> tuple[Any, Any]:
        """The task of the first workdir and its parameters."""
        return open_trained(self.folders[0], "translate", checkpoint=self.checkpoint)

    @property
    def has_attention(self) -> bool:
        """Whether every model has attention."""
        return all(getattr(model, "attention", "") != "none" for model in self.translator.models)

    def describe(self) -> dict[str, Any]:
        """Return what a client needs to know of the model."""
        data, decode = self.config.data, self.config.decode
        return {
            "name": self.name,
            "source": data.source,
            "target": data.target,
            "attention": self.has_attention,
            "beam_size": decode.beam_size,
            "length_penalty": decode.length_penalty,
        }


class Models:
    """All models and metrics of a server. `compute` is called by one thread."""

    def __init__(self, models: Sequence[Model], metrics: Mapping[str, AdditiveMetric]) -> None:
        self.models = {model.name: model for model in models}
        self.metrics = dict(metrics)

    @classmethod
    def open(
        cls,
        workdirs: Sequence[Sequence[pathlib.Path]],
        metrics: Sequence[str],
        checkpoint: str | int | None = None,
        **options: Any,
    ) -> "Models":
        """Open the models of workdirs (several workdirs of one model are an ensemble) and metrics with their options.

        Raises UserError if a workdir has no trained translator, if two models have the same name, or as `open_metric`.
        """
        opened = [Model(folders, checkpoint) for folders in workdirs]
        for first, second in itertools.combinations(opened, 2):
            if first.name == second.name:
                raise UserError(f"--workdir: two models are called {first.name!r}; rename a folder")
        return cls(opened, {name: open_metric(name, **options) for name in metrics})

    def describe(self) -> dict[str, Any]:
        """Return the names of all models and metrics, and what clients need to know of them."""
        metrics = [
            {"name": name, "higher_is_better": metric.higher_is_better, "digits": digits(metric)}
            for name, metric in self.metrics.items()
        ]
        return {"models": [model.describe() for model in self.models.values()], "metrics": metrics}

    def warm_up(self) -> None:
        """Load or compile the programs of the most common request, so that the first user does not wait for them."""
        for model in self.models.values():
            line = "\t".join(["."] * model.translator.num_sources)
            method = model.translator.search(n_best=min(5, model.config.decode.beam_size))
            self.compute(Translate(model.name, method, model.has_attention), [Line(line)])

    # Requests

    def model(self, name: str | None) -> Model:
        """Return the model of a name, by default the first. Raises UserError if there is none."""
        if not self.models:
            raise UserError("the server has no model; start it with --workdir=FOLDER")
        if not name:
            return next(iter(self.models.values()))
        if name not in self.models:
            raise UserError(f"model: {name!r:.80} is not one of {', '.join(self.models)}")
        return self.models[name]

    def translate_call(self, body: Mapping[str, Any]) -> tuple[Translate, list[Line]]:
        """Return the call and the lines of a request for translations. Raises UserError if it is invalid."""
        model = self.model(body["model"])
        lines = body["lines"]
        for name in ("prefixes", "constraints"):
            if body[name] is not None and len(body[name]) != len(lines):
                raise UserError(f"{name}: {len(body[name])} lines, but 'lines' has {len(lines)}")
        sampling = ("temperature", "top_k", "top_p", "seed")
        search = ("n_best", "beam_size", "length_penalty", "num_groups", "diversity")
        method: DecodingMethod
        try:
            if body["num_samples"]:
                _check_absent(body, search, "with num_samples")
                given = {name: body[name] for name in ("num_samples", *sampling) if body[name] is not None}
                method = Sampling(**given)
            else:
                _check_absent(body, sampling, "without num_samples")
                options = {name: body[name] for name in search}
                n_best, beam_size = options["n_best"] or 1, options["beam_size"] or model.config.decode.beam_size
                method = model.translator.search(**options | {"beam_size": max(beam_size, n_best)})
        except ValueError as error:
            raise UserError(str(error)) from None
        if body["attention"] and not model.has_attention:
            raise UserError(f"attention: the model {model.name} has none")
        prefixes, constraints = (body[name] or [""] * len(lines) for name in ("prefixes", "constraints"))
        items = []
        for number, (line, prefix, phrases) in enumerate(zip(lines, prefixes, constraints, strict=True), start=1):
            if line.count("\t") != model.translator.num_sources - 1:
                raise UserError(
                    f"lines, line {number}: needs {model.translator.num_sources} sources, separated by tabs"
                )
            items.append(Line(line, prefix, tuple(filter(None, phrases.split("\t"))), f"line {number}: "))
        return Translate(model.name, method, bool(body["attention"])), items

    def attention_call(self, body: Mapping[str, Any]) -> tuple[Attention, list[tuple[str, str]]]:
        """Return the call and the pair of a request for attention weights. Raises UserError if it is invalid."""
        model = self.model(body["model"])
        if not model.has_attention:
            raise UserError(f"model: {model.name} has no attention")
        if body["line"].count("\t") != model.translator.num_sources - 1:
            raise UserError(f"line: needs {model.translator.num_sources} sources, separated by tabs")
        return Attention(model.name), [(body["line"], body["translation"] or "")]

    def score_call(self, body: Mapping[str, Any]) -> tuple[Score, list[tuple[dict[str, list[str]], list[str]]]]:
        """Return the call and the texts of a request for scores. Raises UserError if it is invalid."""
        systems, references = body["systems"], body["references"]
        if not references:
            raise UserError("references: must contain at least one line")
        for name, lines in systems.items():
            if len(lines) != len(references):
                raise UserError(f"systems: {name!r:.80} has {len(lines)} lines, but references has {len(references)}")
        for name in body["metrics"] or ():
            if name not in self.metrics:
                raise UserError(f"metrics: {name!r:.80} is not one of {', '.join(self.metrics)}")
        metrics = tuple(dict.fromkeys(body["metrics"] or self.metrics))
        return Score(metrics, bool(body["paired"]) and len(systems) > 1), [(systems, references)]

    # Answers

    def compute(self, call: Call, items: Sequence[Any]) -> list[Any]:
        """Return the answer to each item of a call. Raises UserError if an item cannot be computed."""
        if isinstance(call, Translate):
            return self._translate(call, items)
        if isinstance(call, Attention):
            return [self._attention(self.models[call.model], *pair) for pair in items]
        return [self._scores(call, *texts) for texts in items]

    def _translate(self, call: Translate, lines: Sequence[Line]) -> list[Any]:
        model = self.models[call.model]
        found = model.translator.translate(model.params, lines, call.method)
        if call.attention:
            found = model.translator.add_attention(model.params, lines, found)
        return [[_hypothesis(one, call.attention) for one in group] for group in found]

    def _attention(self, model: Model, line: str, translation: str) -> dict[str, Any]:
        """Return pieces, and attention weights by kind as lists [L][H][T][S]."""
        limit = model.config.data.max_length
        task, params = model.task
        if not translation:
            method = model.translator.search()
            translation = model.translator.translate(model.params, [line], method)[0][0].text
        for name, text, vocab in zip(("line", "translation"), (line, translation), task.vocabularies, strict=True):
            if len(vocab.encode(text)) >= limit:
                raise UserError(f"{name}: too long for its attention; at most {limit} pieces are possible")
        weights = task.attention(params, line, translation)
        shown = {name: _rounded(value) if isinstance(value, np.ndarray) else value for name, value in weights.items()}
        return {"translation": translation, **shown}

    def _scores(self, call: Score, systems: dict[str, list[str]], references: list[str]) -> list[dict[str, Any]]:
        metrics = {name: self.metrics[name] for name in call.metrics}
        inference = Inference(confidence=True, paired="bootstrap" if call.paired else None)
        scores = score_texts(systems, {"references": references}, metrics, inference=inference)
        assert scores is not None
        return _finite(plain_rows(scores))


def _finite(value: Any) -> Any:
    """Return a value for JSON with None for numbers that JSON cannot express."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _check_absent(body: Mapping[str, Any], names: Sequence[str], because: str) -> None:
    """Raise UserError if a field is set that has no effect."""
    for name in names:
        if body[name] is not None:
            raise UserError(f"{name}: has no effect {because}")


def _hypothesis(found: Hypothesis, attention: bool) -> dict[str, Any]:
    """Return a hypothesis for JSON: text, score, and with attention also words and the weights between them [T][S]."""
    text = " ".join(found.text.split("\n"))  # as on the command line; models of bytes can write a line break
    entry: dict[str, Any] = {"text": text, "score": round(found.score, 6)}
    if attention and found.scored:
        scored = found.scored
        weights = between_words(scored.attention, scored.source_pieces, scored.pieces)
        entry |= {
            "source_words": _words(scored.source_pieces),
            "words": _words(scored.pieces),
            "attention": _rounded(weights),
            "log_probs": [round(value, 4) for value in scored.log_probs],
            "pieces": scored.pieces,
        }
    return entry


def _words(pieces: Sequence[str]) -> list[str]:
    """Return the words that pieces form, as `word_numbers` counts them."""
    numbers = word_numbers(pieces)
    words = [""] * (numbers.max(initial=-1) + 1)
    for number, piece in zip(numbers.tolist(), pieces, strict=True):
        if number >= 0:
            words[number] += piece.strip("▁")
    return words


def _rounded(weights: np.ndarray) -> Any:
    return np.round(np.asarray(weights, np.float64), 4).tolist()
