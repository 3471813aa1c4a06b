"""Classification and regression of one to three texts with a pretrained encoder, such as the tasks of GLUE."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from metrics_jax.prediction.classification import accuracy, matthews, precision_recall_f1
from metrics_jax.prediction.correlation import pearson, spearman
from nmt_jax.data.batching.encoder_rows import Field, Item, RowCorpus
from nmt_jax.data.readers.labelled import Labelled, ScoreScaler, open_labelled
from nmt_jax.errors import UserError
from nmt_jax.losses import cross_entropy as losses
from nmt_jax.losses.step import Step
from nmt_jax.progress import track
from nmt_jax.tasks.fine_tuning import FineTuning
from nmt_jax.tasks.objectives import dropout_options, row_log_probs
from nmt_jax.tasks.vocab_files import load_or_collect_labels, load_or_make


class Prediction(NamedTuple):
    """A label, or a score as text, and the probabilities of the labels, float32[C].

    Several scores are separated by tabs. The label of a row without words is "".
    """

    label: str
    probabilities: np.ndarray


class Sentences(FineTuning):
    """The task of one workdir: predict labels, or scores if `config.data.scores` is set.

    Two columns of text are a pair, in one row, or with `siamese_head` and `estimator_head` in a row each; the latter
    reads a third column too. Scores are learned in units of the standard deviation of their column; the cosine of
    `siamese_head` is 0 for the lowest and 1 for the highest score. Several columns of scores are learned together, with
    one output each.
    """

    next_command = "nmt-jax classify --workdir={workdir} < texts.tsv > labels.txt"

    def __init__(self, config: ConfigDict, workdir: Path, mesh: Mesh) -> None:
        super().__init__(config, workdir, mesh)
        data, self.scores = config.data, config.data.scores
        self.measures = ("loss", "pearson", "spearman") if self.scores else ("loss", "accuracy", "f1", "matthews")
        num_labels = len(data.label.split(",")) if self.scores else 1
        self.targets = ["target", *(f"target_{number}" for number in range(1, num_labels))]
        self.fields = {name: Field(np.float32 if self.scores else np.int32) for name in self.targets}
        self.siamese, estimator = (config.model_name == name for name in ("siamese_head", "estimator_head"))
        if estimator and not (self.scores and 2 <= len(data.texts) <= 3):
            raise UserError(
                "config.model_name=estimator_head needs scores of translations: set config.data.scores, and name the "
                "columns of the translation and its reference, its source, or both in config.data.texts"
            )
        if not estimator and not 1 <= len(data.texts) <= 2:
            raise UserError(f"config.data.texts={list(data.texts)}: name one column of text, or two for pairs")
        if self.siamese and not (self.scores and len(data.texts) == 2):
            raise UserError(
                "config.model_name=siamese_head needs pairs with scores: two config.data.texts and config.data.scores"
            )
        if num_labels > 1 and self.siamese:
            raise UserError(f"config.data.label={data.label!r}: siamese_head learns one column of scores")
        self.apart = self.siamese or estimator
        self.both_orders = bool(config.model.get("both_orders"))
        if self.both_orders and len(data.texts) != 2:
            raise UserError(f"config.model.both_orders=True: config.data.texts={list(data.texts)} is not a pair")
        self.num_texts = len(data.texts) if self.apart or self.both_orders else 1

    @property
    def columns(self) -> int:
        """Texts per row: 1, 2 or 3."""
        return len(self.config.data.texts)

    @functools.cached_property
    def labels(self) -> list[str]:
        """The labels of the training texts, in order, saved in the workdir; [] if scores are learned."""
        if self.scores:
            return []
        return load_or_collect_labels(self.workdir / "vocab" / "labels.json", self.config.data)

    @functools.cached_property
    def scales(self) -> ScoreScaler:
        """The origin and unit of each column of scores, saved in the workdir."""
        train, path = (
            functools.partial(open_labelled, self.config.data, "train"),
            self.workdir / "vocab" / "scales.json",
        )
        return ScoreScaler(load_or_make(path, lambda: dict(ScoreScaler.fit(train(), by_range=self.siamese).columns)))

    @property
    def num_outputs(self) -> int:  # type: ignore[override]
        """One output per label, or per column of scores."""
        return len(self.labels) or len(self.targets)

    def stand_in(self) -> None:
        super().stand_in()
        self._assume(labels=[] if self.scores else ["0", "1"])

    # Texts

    def training_texts(self) -> Iterator[str]:
        for item in track(open_labelled(self.config.data, "train"), "reading for the tokenizer"):
            yield from item.sentences

    @functools.lru_cache(maxsize=2)  # noqa: B019  a task lives as long as the program
    def _corpus(self, split: str) -> tuple[RowCorpus, str]:
        """The rows of a split, and a report of them."""
        texts = open_labelled(self.config.data, split)
        found = list(track(texts, f"reading {texts.name}"))
        targets = [self._target(item) for item in found]
        items, cut = self._items([self._texts(item) for item in found])
        filled = [number for number, item in enumerate(items) if item]
        rows = [items[number] | dict(zip(self.targets, targets[number], strict=True)) for number in filled]
        corpus = RowCorpus(texts.name, rows, self.reader.max_length)
        report = f"{texts.name}: {len(filled):,} of {len(found):,} rows"
        report += f"; {len(found) - len(filled):,} without a word left out" * (len(filled) < len(found))
        return corpus, report + f"; {cut:,} cut to {self.reader.max_length} tokens" * bool(cut)

    def _texts(self, item: Labelled) -> list[str]:
        """The texts of a row; all sentences of a text of the embedded grammar are one text."""
        if self.columns == 1 or (self.config.data.corpus == "grammar" and not self.scores):
            return [" ".join(item.sentences)]
        if len(item.sentences) != self.columns:
            raise UserError(f"{item.location}: expected {self.columns} texts, each a string, not {len(item.sentences)}")
        return item.sentences

    def _target(self, item: Labelled) -> list[float]:
        """The number of the label, or each score in the unit of its column."""
        if self.scores:
            return self.scales.scaled(item)
        if item.label not in self.labels:
            known = ", ".join(self.labels[:10]) + ", …" * (len(self.labels) > 10)
            raise UserError(f"{item.location}: the training texts have no label {item.label!r}; they have {known}")
        return [self.labels.index(item.label)]

    def _items(self, rows: Sequence[Sequence[str]]) -> tuple[list[Item], int]:
        """The tokens of each row of texts, {} for a row without tokens, and the number of rows that were cut."""
        columns = [self.reader.pieces(column) for column in zip(*rows, strict=True)]
        items: list[Item] = []
        cut = 0
        for row in zip(*columns, strict=True):
            ids = [pieces.ids for pieces in row]
            if not any(map(len, ids)):
                items.append({})
                continue
            fitting = [self.reader.fit([text])[0] for text in ids] if self.apart else self.reader.fit(ids)
            cut += sum(map(len, fitting)) < sum(map(len, ids))
            rows_of_texts = [[text] for text in fitting] if self.apart else [fitting]
            if self.both_orders:
                rows_of_texts.append(fitting[::-1])
            read = [self.reader.row(*texts)[0] for texts in rows_of_texts]
            items.append({name: tuple(one[name] for one in read) for name in read[0]} if len(read) > 1 else read[0])
        return items, cut

    def train_corpus(self) -> RowCorpus:
        return self._corpus("train")[0]

    def summary(self) -> list[tuple[str, str]]:
        labels = ("labels", f"{len(self.labels)}: " + ", ".join(self.labels[:8]) + ", …" * (len(self.labels) > 8))
        return [
            *self.encoder_rows(),
            ("training texts", self._corpus("train")[1]),
            ("development texts", self._corpus("dev")[1]),
            ("scores", f"{self.scales}, y learned") if self.scores else labels,
        ]

    # Training and prediction

    def warm_start(self, params: Any) -> Any:
        """Put in the pretrained weights; the pooler becomes the hidden layer of a head that reads the first token."""
        warm = super().warm_start(params)
        if not (self.config.encoder.place and self.config.model.get("pooling") == "first" and "hidden" in params):
            return warm
        pooler = self._pretrained.params.get("pooler_dense")
        fits = pooler is not None and jax.tree.map(np.shape, pooler) == jax.tree.map(np.shape, params["hidden"])
        return {**warm, "hidden": pooler} if fits else warm

    def loss_fn(self, params: Any, batch: dict[str, jax.Array], step: Step | None) -> tuple[jax.Array, jax.Array]:
        """As for all tasks; in training with the auxiliary loss of next tokens, the mean over each text of a row."""
        share = self.config.loss.get("language_model")  # workdirs of older versions have none
        if not (step and share):
            return super().loss_fn(params, batch, step)
        outputs, hidden = self._apply(params, batch, method="with_language_model", **dropout_options(step))
        ids, mask = (batch[name].reshape(-1, batch[name].shape[-1]) for name in ("ids", "mask"))
        out = {"hidden": hidden[:, :-1], "output_kernel": params["encoder"]["embedding"]["table"].T}
        weights = mask[:, 1:].astype(jnp.float32)
        log_probs = row_log_probs(hidden, out, ids[:, 1:], weights, self.config.encoder.dtype)
        nats = -log_probs / jnp.maximum(jnp.sum(weights, axis=1), 1.0)
        auxiliary = jnp.mean(nats.reshape(len(outputs), -1), axis=1)
        return self._total(self.loss(outputs, batch) + share * auxiliary, batch)

    def loss(self, outputs: jax.Array, batch: Mapping[str, jax.Array]) -> jax.Array:
        """Cross-entropy with label smoothing; for scores, squared errors over the variance, the mean over columns."""
        if self.scores:
            targets = jnp.stack([batch[name] for name in self.targets], axis=-1)
            return jnp.mean(jnp.square(outputs - targets), axis=-1)
        return losses.smoothed_cross_entropy(outputs, batch[self.targets[0]], self.config.loss.label_smoothing)

    def evaluate(self, params: Any) -> dict[str, float]:
        """Return `dev/loss` (nats, or squared errors over the variance) and percentages.

        For labels: accuracy, F1 (of the last of two labels, else the mean over labels) and Matthews correlation. For
        scores: Pearson and Spearman correlation, the mean over columns.
        """
        items = self._corpus("dev")[0].items
        outputs = np.stack(self.outputs(params, items))
        if self.scores:
            targets = np.array([[item[name] for name in self.targets] for item in items])
            measures = {"dev/loss": float(np.mean((outputs - targets) ** 2))}
            for name, correlation in (("pearson", pearson), ("spearman", spearman)):
                columns = zip(outputs.T, targets.T, strict=True)
                values = [correlation(*column, undefined=0.0) for column in columns]
                measures[f"dev/{name}"] = 100 * float(np.mean(values))
            return measures
        targets = np.array([item[self.targets[0]] for item in items])
        log_probabilities = np.asarray(jax.nn.log_softmax(outputs))
        predicted = outputs.argmax(axis=-1)
        average = "binary" if len(self.labels) == 2 else "macro"
        return {
            "dev/loss": float(-log_probabilities[np.arange(len(items)), targets].mean()),
            "dev/accuracy": 100 * accuracy(predicted, targets),
            "dev/f1": 100 * precision_recall_f1(predicted, targets, average).f1,
            "dev/matthews": 100 * matthews(predicted, targets),
        }

    def predict(self, params: Any, rows: Sequence[Sequence[str]]) -> list[Prediction]:
        """Return a prediction for each row of `columns` texts; it does not depend on the other rows."""
        items = self._items(rows)[0] if rows else []
        filled = [number for number, item in enumerate(items) if item]
        predictions = [Prediction("", np.zeros(len(self.labels), np.float32))] * len(rows)
        for number, outputs in zip(filled, self.outputs(params, [items[n] for n in filled]), strict=True):
            if self.scores:
                written = self.scales.format(self.config.data.label, outputs.tolist())
                predictions[number] = Prediction(written, np.zeros(0, np.float32))
            else:
                probabilities = np.asarray(jax.nn.softmax(outputs))
                predictions[number] = Prediction(self.labels[int(probabilities.argmax())], probabilities)
        return predictions
