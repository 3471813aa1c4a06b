"""One or two sentences in, a label or a number out, by a pretrained encoder: is it grammatical, does it follow."""

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
from nmt_jax.data.readers.labelled import Labelled, open_labelled
from nmt_jax.data.readers.score_scaler import ScoreScaler
from nmt_jax.errors import UserError
from nmt_jax.losses import cross_entropy as losses
from nmt_jax.progress import track
from nmt_jax.tasks.fine_tuning import FineTuning, saved


class Prediction(NamedTuple):
    """What a row was taken for: a label, or a number as text, "" for no word; and float32[C], the probabilities.

    Several numbers have tabs between.
    """

    label: str
    probabilities: np.ndarray


class Sentences(FineTuning):
    """The task (`tasks.Task`) of one workdir: labels, or numbers where `config.data.scores` says so.

    Two columns of text are a pair: in one row, or with `siamese_head` each in its own. Numbers are learned in units of
    their standard deviation, each column's its own; the cosine of `siamese_head` is 0 for the least of them and 1 for
    the greatest. Several columns of numbers are learned together, one output each.
    """

    next_command = "nmt-jax classify --workdir={workdir} < texts.tsv > labels.txt"

    def __init__(self, config: ConfigDict, workdir: Path, mesh: Mesh) -> None:
        super().__init__(config, workdir, mesh)
        self.scores = config.data.scores
        self.measures = ("loss", "pearson", "spearman") if self.scores else ("loss", "accuracy", "f1", "matthews")
        self.labelled_by = config.data.label.split(",") if self.scores else [config.data.label]
        self.targets = ["target", *(f"target_{number}" for number in range(1, len(self.labelled_by)))]
        self.fields = {name: Field(np.float32 if self.scores else np.int32) for name in self.targets}
        if not 1 <= len(config.data.texts) <= 2:
            raise UserError(f"config.data.texts={list(config.data.texts)}: name one column of text, or two for pairs")
        self.apart = config.model_name == "siamese_head"
        if self.apart and not (self.scores and len(config.data.texts) == 2):
            raise UserError("config.model_name=siamese_head: for pairs (two config.data.texts) and config.data.scores")
        if len(self.labelled_by) > 1 and self.apart:
            raise UserError(f"config.data.label={config.data.label!r}: siamese_head learns one column of scores")
        self.num_texts = 2 if self.apart else 1

    @property
    def columns(self) -> int:
        """Texts of a row: 1 or 2."""
        return len(self.config.data.texts)

    @functools.cached_property
    def labels(self) -> list[str]:
        """The workdir's, else those of the training texts, in order, saved; [] where numbers are learned."""

        def make() -> list[str]:
            found = {item.label for item in open_labelled(self.config.data, "train")}
            if len(found) < 2:
                raise UserError(f"config.data.label={self.config.data.label!r}: all training texts have one label")
            return sorted(found, key=int if all(label.isdecimal() for label in found) else None)

        return [] if self.scores else saved(self.workdir / "vocab" / "labels.json", make)

    @functools.cached_property
    def scales(self) -> ScoreScaler:
        """The workdir's origin and unit of each column of scores."""

        def make() -> dict[str, Sequence[float]]:
            return dict(ScoreScaler.fit(open_labelled(self.config.data, "train"), by_range=self.apart).columns)

        return ScoreScaler(saved(self.workdir / "vocab" / "scales.json", make))

    @property
    def num_outputs(self) -> int:  # type: ignore[override]
        """One a label, or one a column of scores."""
        return len(self.labels) or len(self.targets)

    # Texts

    def training_texts(self) -> Iterator[str]:
        """The training texts."""
        for item in track(open_labelled(self.config.data, "train"), "reading for the tokenizer"):
            yield from item.sentences

    @functools.lru_cache(maxsize=2)  # noqa: B019  a task lives as long as the program
    def _corpus(self, split: str) -> tuple[RowCorpus, str]:
        """The rows of a split, and what is said of them."""
        texts = open_labelled(self.config.data, split)
        found = list(track(texts, f"reading {texts.name}"))
        targets = [self._target(item) for item in found]
        items, cut = self._items([self._texts(item) for item in found])
        filled = [number for number, item in enumerate(items) if item]
        corpus = RowCorpus(
            texts.name,
            [items[number] | dict(zip(self.targets, targets[number], strict=True)) for number in filled],
            self.reader.max_length,
        )
        report = f"{texts.name}: {len(filled):,} of {len(found):,} rows"
        report += f"; left out: {len(found) - len(filled):,} without a word" * (len(filled) < len(found))
        return corpus, report + f"; {cut:,} cut to {self.reader.max_length} pieces" * bool(cut)

    def _texts(self, item: Labelled) -> list[str]:
        """The one or two texts of a row; all sentences of the embedded grammar are one text."""
        if self.columns == 1 or (self.config.data.corpus == "grammar" and not self.scores):
            return [" ".join(item.sentences)]
        if len(item.sentences) != self.columns:
            raise UserError(f"{item.location}: {len(item.sentences)} texts; {self.columns} are read, each a string")
        return item.sentences

    def _target(self, item: Labelled) -> list[float]:
        """The number of the label, or each score in the unit of its column."""
        if self.scores:
            return self.scales.scaled(item)
        if item.label not in self._numbers:
            known = ", ".join(self.labels[:10]) + ", …" * (len(self.labels) > 10)
            raise UserError(f"{item.location}: the training texts have no label {item.label!r}; they have {known}")
        return [self._numbers[item.label]]

    @functools.cached_property
    def _numbers(self) -> dict[str, int]:
        return {label: number for number, label in enumerate(self.labels)}

    def _items(self, rows: Sequence[Sequence[str]]) -> tuple[list[Item], int]:
        """Rows of texts -> the pieces of each, {} where there is none, and how many of them had to be cut."""
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
            if self.apart:
                first, second = (self.reader.row(text)[0] for text in fitting)
                items.append({name: (first[name], second[name]) for name in first})
            else:
                items.append(self.reader.row(*fitting)[0])
        return items, cut

    def train_corpus(self) -> RowCorpus:
        """The training rows."""
        return self._corpus("train")[0]

    def summary(self) -> list[tuple[str, str]]:
        """Rows for the start table: encoder, corpora, labels."""
        rows = [*self.encoder_rows(), ("training texts", self._corpus("train")[1])]
        rows.append(("development texts", self._corpus("dev")[1]))
        if self.scores:
            return [*rows, ("scores", f"{self.scales}, y learned")]
        return [
            *rows,
            ("labels", f"{len(self.labels)}: " + ", ".join(self.labels[:8]) + ", …" * (len(self.labels) > 8)),
        ]

    # Learning and predicting

    def warm_start(self, params: Any) -> Any:
        """As every fine-tuning; where the head reads the first piece, its hidden product begins as the pooler."""
        warm = super().warm_start(params)
        if not (self.config.encoder.place and self.config.model.pooling == "first" and "hidden" in params):
            return warm
        pooler = self._pretrained.params.get("pooler_dense")
        fits = pooler is not None and jax.tree.map(np.shape, pooler) == jax.tree.map(np.shape, params["hidden"])
        return {**warm, "hidden": pooler} if fits else warm

    def loss(self, outputs: jax.Array, batch: Mapping[str, jax.Array]) -> jax.Array:
        """Cross-entropy, smoothed; of scores the squared error in units of their variance, the mean over columns."""
        if self.scores:
            targets = jnp.stack([batch[name] for name in self.targets], axis=-1)
            return jnp.mean(jnp.square(outputs - targets), axis=-1)
        return losses.smoothed_cross_entropy(outputs, batch[self.targets[0]], self.config.loss.label_smoothing)

    def evaluate(self, params: Any) -> dict[str, float]:
        """-> `dev/loss` (nats, or squared errors in units of the variance), and in percent: accuracy, F1, Matthews.

        F1 is that of the last label where there are two, else the mean over labels. Of scores: both correlations, of
        several columns their mean.
        """
        items = self._corpus("dev")[0].items
        outputs = np.stack(self.outputs(params, items))
        if self.scores:
            wanted = np.array([[item[name] for name in self.targets] for item in items])
            measures = {"dev/loss": float(np.mean((outputs - wanted) ** 2))}
            for name, correlation in (("pearson", pearson), ("spearman", spearman)):
                columns = zip(outputs.T, wanted.T, strict=True)
                measures[f"dev/{name}"] = 100 * float(
                    np.mean([correlation(*column, undefined=0.0) for column in columns])
                )
            return measures
        targets = np.array([item[self.targets[0]] for item in items])
        logs = np.asarray(jax.nn.log_softmax(outputs))
        found, binary = outputs.argmax(axis=-1), len(self.labels) == 2
        f1 = precision_recall_f1(found, targets, "binary" if binary else "macro").f1
        return {
            "dev/loss": float(-logs[np.arange(len(logs)), targets].mean()),
            "dev/accuracy": 100 * accuracy(found, targets),
            "dev/f1": 100 * f1,
            "dev/matthews": 100 * matthews(found, targets),
        }

    def predict(self, params: Any, rows: Sequence[Sequence[str]]) -> list[Prediction]:
        """Rows of as many texts as there are `columns` -> a prediction for each, in their order.

        A prediction never depends on the other rows. A row without a word has the label "".
        """
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
