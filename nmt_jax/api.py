"""Trained models in Python: `nmt_jax.load(workdir)` returns an object with methods for what its model can do."""

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nmt_jax.errors import UserError
from nmt_jax.schema.phrase import NAME as PHRASE
from nmt_jax.training.phrase_model import open_phrases
from nmt_jax.training.text_attention import open_text_attention
from nmt_jax.training.trained import is_published, open_trained, open_translator
from nmt_jax.translation.requests import Hypothesis, Line, Scored
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.models.layers.text_attention import TextAttention
    from nmt_jax.phrases.model import Translation as PhraseHypothesis
    from nmt_jax.tasks.predictions import Candidate, Filling


class TrainedModel:
    """The model of a workdir; `load` returns the subclass for its task."""

    tasks: ClassVar[tuple[str, ...]] = ()

    def __init__(self, workdir: Workdir, checkpoint: str | int | None) -> None:
        self.workdir, self.checkpoint = workdir.path, checkpoint

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.workdir)!r}) with {', '.join(self._names())}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"{self.workdir}: a {type(self).__name__} has no {name!r}; it has {', '.join(self._names())}"
        )

    def _names(self) -> list[str]:
        """The names of the methods that only this kind of model has."""
        return [name for name in vars(type(self)) if not name.startswith("_") and name != "tasks"]


class Translation(TrainedModel):
    """A model that translates lines of text, of `config.task=translate`."""

    tasks = ("translate",)

    @functools.cached_property
    def _opened(self) -> tuple[Any, Any]:
        return open_translator([Workdir(self.workdir)], checkpoint=self.checkpoint)

    def translate(self, lines: Sequence[str], **options: Any) -> list[str]:
        """Return the translation of each of N lines; options as for `n_best`."""
        return [found[0].text for found in self.n_best(lines, **options)]

    def n_best(self, lines: Sequence[str], n_best: int = 1, **options: Any) -> list[list[Hypothesis]]:
        """Return the hypotheses of each of N lines, best first.

        options: those of `SearchOptions`, such as beam_size; by default those of the config. Raises
        UserError if an option is invalid, and TypeError if the lines are not a sequence of strings.
        """
        translator, params = self._opened
        return translator.translate(params, _texts(lines), translator.search(n_best=n_best, **options))

    def score(self, lines: Sequence[str], translations: Sequence[str]) -> np.ndarray:
        """Return the log-probability of each given translation in nats, float64[N]."""
        translator, params = self._opened
        pairs = zip(_texts(lines), _texts(translations), strict=True)
        requests = [Line(line, translation=translation) for line, translation in pairs]
        return np.array([found[0].score for found in translator.score_given(params, requests)], np.float64)

    def attention(self, line: str, translation: str | None = None) -> Scored:
        """Return the pieces of a line and its translation, and the attention weights float32[T, S] between them.

        translation: by default that of the model. Raises UserError if the model has no attention.
        """
        translator, params = self._opened
        if translation is None:
            (translation,) = self.translate([line])
        request = Line(line, translation=translation)
        scored = translator.score_given(params, [request], with_attention=True)[0][0].scored
        assert scored is not None
        return scored


class PhraseTranslation(TrainedModel):
    """A phrase-based model that translates lines of text, of `config.task=phrase`."""

    tasks = (PHRASE,)

    @functools.cached_property
    def _model(self) -> Any:
        return open_phrases(Workdir(self.workdir))

    def translate(self, lines: Sequence[str]) -> list[str]:
        """Return the translation of each of N lines."""
        return [found[0].text for found in self.n_best(lines)]

    def n_best(self, lines: Sequence[str], n_best: int = 1) -> list[list["PhraseHypothesis"]]:
        """Return at most n_best translations of each of N lines, best first, with `text`, `score` and `tokens`."""
        return list(self._model.translate(_texts(lines), n_best))


class LanguageModel(TrainedModel):
    """A model of the probability of text, of `config.task=language_model`."""

    tasks = ("language_model",)

    @functools.cached_property
    def _opened(self) -> tuple[Any, Any]:
        return open_trained(Workdir(self.workdir), *self.tasks, checkpoint=self.checkpoint)

    def score(self, texts: Sequence[str]) -> np.ndarray:
        """Return the log-probability of each of N texts in nats, end of line included, float64[N]."""
        task, params = self._opened
        return task.log_probabilities(params, _texts(texts))

    def perplexity(self, lines: Sequence[str]) -> float:
        """Return the perplexity per token of consecutive lines, ends of lines included."""
        task, params = self._opened
        nats, tokens = task.surprise(params, task.encode(_texts(lines)))
        return float(np.exp(nats / tokens))

    def generate(self, prompts: Sequence[str], length: int = 100, seed: int = 0, **sampling: Any) -> list[str]:
        """Return each of N prompts with a continuation of at most `length` pieces, as `nmt-jax generate` does.

        sampling: fields of `nmt_jax.decoding.sampling.Sampling`: temperature, top_k, top_p, epsilon. Raises UserError
        if an option is invalid.
        """
        from nmt_jax.decoding.sampling import Sampling, sample_keys

        task, params = self._opened
        try:
            method = Sampling(seed=seed, **sampling)
        except ValueError as error:
            raise UserError(str(error)) from None
        if length < 1 or method.num_samples > 1:
            raise UserError("length must be at least 1; for several samples give a prompt several times")
        texts = _texts(prompts)
        keys = sample_keys(seed, np.arange(len(texts)), np.zeros(len(texts), int))
        return list(task.sample(params, texts, keys, method, length=length))

    def next_pieces(self, text: str, n: int = 10) -> list["Candidate"]:
        """Return the n most probable pieces after a text, best first, with `piece` and `probability`."""
        task, params = self._opened
        (text,) = _texts([text])
        return list(task.next_pieces(params, text, n))

    def attention(self, text: str) -> "TextAttention":
        """Return `pieces` and `weights` float32[L, H, T, T]; row t is what piece t looks at.

        Raises UserError if the model has no attention.
        """
        task, params = self._opened
        (text,) = _texts([text])
        found: TextAttention = task.attention(params, text)
        return found


class Classifier(TrainedModel):
    """A model that predicts a label or a score, of `config.task=classify` or `sentences`."""

    tasks = ("classify", "sentences")

    @functools.cached_property
    def _opened(self) -> tuple[Any, Any]:
        return open_trained(Workdir(self.workdir), *self.tasks, checkpoint=self.checkpoint)

    @property
    def labels(self) -> list[str]:
        """The labels; empty if the model predicts scores."""
        return list(self._opened[0].labels)

    def _predictions(self, texts: Sequence[str]) -> list[Any]:
        task, params = self._opened
        return list(task.predict(params, [text.split("\t") for text in _texts(texts)]))

    def classify(self, texts: Sequence[str]) -> list[str]:
        """Return the label of each of N texts, or its score as text; several columns are separated by tabs."""
        return [prediction.label for prediction in self._predictions(texts)]

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """Return the probability of each label for each of N texts, float32[N, C]."""
        return np.array([prediction.probabilities for prediction in self._predictions(texts)], np.float32)


class TextEncoder(TrainedModel):
    """A pretrained encoder such as BERT, of `config.task=pretrain`."""

    tasks = ("pretrain",)

    @functools.cached_property
    def _opened(self) -> tuple[Any, Any]:
        return open_trained(Workdir(self.workdir), *self.tasks, checkpoint=self.checkpoint)

    @functools.cached_property
    def _attention(self) -> Any:
        return open_text_attention(Workdir(self.workdir), self.checkpoint)

    @functools.cached_property
    def encoder(self) -> Any:
        """The encoder for metrics: `metrics_jax.load("bertscore", encoder=model.encoder)`."""
        from nmt_jax.pretrained import make_encoder
        from nmt_jax.pretrained.loading import load_workdir

        return make_encoder(load_workdir(self.workdir, checkpoint=self.checkpoint))

    def embed(self, texts: Sequence[str], layer: int = -1) -> np.ndarray:
        """Return the mean of the token vectors of a layer for each of N texts, float32[N, D]; layer 0: embeddings."""
        from metrics_jax.embedding.encoder import encode

        found = encode(self.encoder, _texts(texts), (layer,), normalize=False, long="truncate")
        return np.array([found[number][0].mean(axis=0) for number in range(len(found))], np.float32)

    def fill(self, text: str, n: int = 10) -> list[list["Filling"]]:
        """Return the n most probable pieces for each [MASK] of a text, with `piece`, `probability` and `text`.

        `text` is the text with the piece in place of the mask. Raises UserError if there is no mask.
        """
        task, params = self._opened
        (text,) = _texts([text])
        found: list[list[Filling]] = task.fill(params, text, n)
        return found

    def attention(self, text: str) -> "TextAttention":
        """Return `pieces` and `weights` float32[L, H, T, T]; row t is what piece t looks at."""
        (text,) = _texts([text])
        found: TextAttention = self._attention(text)
        return found


KINDS: tuple[type[TrainedModel], ...] = (Translation, PhraseTranslation, LanguageModel, Classifier, TextEncoder)


def load(workdir: str | os.PathLike[str], checkpoint: str | int | None = None) -> TrainedModel:
    """Return the trained model of a workdir, or a GPT-2 in Hugging Face's format.

    Its parameters are read and its programs compiled on first use.

    checkpoint: "best", "last", or n for the mean of the last n; by default as for `nmt-jax translate`. Raises UserError
    if there is no trained model, or if models of its task have no interface in Python.
    """
    folder = Workdir(Path(workdir))
    if is_published(folder):
        return LanguageModel(folder, checkpoint)
    kinds = {task: kind for kind in KINDS for task in kind.tasks}
    task = folder.config().task
    if task not in kinds:
        raise UserError(f"{workdir}: models of config.task={task} cannot be loaded here, only {', '.join(kinds)}")
    if task != PHRASE:
        folder.trained_config(task)
    return kinds[task](folder, checkpoint)


def _texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list; a single string would be read as a sequence of characters."""
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise TypeError("give a sequence of strings, such as [text]")
    return list(texts)
