"""One or two sentences in, a label or a number out, by a pretrained encoder: is it grammatical, does it follow."""

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from metrics_jax.classification import accuracy, matthews, precision_recall_f1
from metrics_jax.regression import pearson, spearman
from nmt_jax import losses
from nmt_jax.counting import counted
from nmt_jax.data.labelled import Labelled, open_labelled
from nmt_jax.data.rows import Field, Item, RowCorpus
from nmt_jax.errors import UserError
from nmt_jax.tasks.fine_tuning import FineTuning, saved


class Prediction(NamedTuple):
    """What a row was taken for: a label, or a number as text, "" for no word; and float32[C], the probabilities."""

    label: str
    probabilities: np.ndarray


class Sentences(FineTuning):
    """The task (`tasks.Task`) of one workdir: labels, or numbers where `config.data.scores` says so.

    Two columns of text are a pair: in one row, or with `siamese_head` each in its own. Numbers are learned in units of
    their standard deviation; the cosine of `siamese_head` is 0 for the least of them and 1 for the greatest.
    """

    next_command = "nmt-jax classify --workdir={workdir} < texts.tsv > labels.txt"

    def __init__(self, config: ConfigDict, workdir: Path, mesh: Mesh) -> None:
        super().__init__(config, workdir, mesh)
        self.scores = config.data.scores
        self.measures = ("loss", "pearson", "spearman") if self.scores else ("loss", "accuracy", "f1", "matthews")
        self.fields = {"target": Field(np.float32 if self.scores else np.int32)}
        if not 1 <= len(config.data.texts) <= 2:
            raise UserError(f"config.data.texts={list(config.data.texts)}: name one column of text, or two for pairs")
        self.apart = config.model_name == "siamese_head"
        if self.apart and not (self.scores and len(config.data.texts) == 2):
            raise UserError("config.model_name=siamese_head: for pairs (two config.data.texts) and config.data.scores")
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
    def unit_of_scores(self) -> tuple[float, float]:
        """The workdir's origin and unit of scores: the mean and standard deviation, or the least and the range."""

        def make() -> dict[str, float]:
            found = np.array([_number(item) for item in open_labelled(self.config.data, "train")])
            if not found.std():
                raise UserError(f"config.data.label={self.config.data.label!r}: all training texts have one score")
            if self.apart:
                return {"origin": float(found.min()), "unit": float(np.ptp(found))}
            return {"origin": float(found.mean()), "unit": float(found.std())}

        scale = saved(self.workdir / "vocab" / "scores.json", make)
        return scale["origin"], scale["unit"]

    @property
    def num_outputs(self) -> int:  # type: ignore[override]
        """One a label, or one."""
        return len(self.labels) or 1

    # Texts

    def training_texts(self) -> Iterator[str]:
        """The training texts."""
        for item in counted(open_labelled(self.config.data, "train"), "reading for the tokenizer"):
            yield from item.sentences

    @functools.lru_cache(maxsize=2)  # noqa: B019  a task lives as long as the program
    def _corpus(self, split: str) -> tuple[RowCorpus, str]:
        """The rows of a split, and what is said of them."""
        texts = open_labelled(self.config.data, split)
        found = list(counted(texts, f"reading {texts.name}"))
        targets = [self._target(item) for item in found]
        items, cut = self._items([self._texts(item) for item in found])
        filled = [number for number, item in enumerate(items) if item]
        corpus = RowCorpus(
            texts.name,
            [{**items[number], "target": targets[number]} for number in filled],
            self.reader.max_length,
        )
        report = f"{texts.name}: {len(filled):,} of {len(found):,} rows"
        report += f"; left out: {len(found) - len(filled):,} without a word" * (len(filled) < len(found))
        return corpus, report + f"; {cut:,} cut to {self.reader.max_length} pieces" * bool(cut)

    def _texts(self, item: Labelled) -> list[str]:
        """The one or two texts of a row; all sentences of the embedded grammar are one text."""
        if self.config.data.corpus == "grammar" or self.columns == 1:
            return [" ".join(item.sentences)]
        if len(item.sentences) != self.columns:
            raise UserError(f"{item.where}: {len(item.sentences)} texts; {self.columns} are read, each a string")
        return item.sentences

    def _target(self, item: Labelled) -> float:
        """The number of the label, or the score in its units."""
        if self.scores:
            origin, unit = self.unit_of_scores
            return (_number(item) - origin) / unit
        if item.label not in self._numbers:
            known = ", ".join(self.labels[:10]) + ", …" * (len(self.labels) > 10)
            raise UserError(f"{item.where}: the training texts have no label {item.label!r}; they have {known}")
        return self._numbers[item.label]

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
            origin, unit = self.unit_of_scores
            return [*rows, ("scores", f"{origin:.3g} + {unit:.3g} y, y learned")]
        return [
            *rows,
            ("labels", f"{len(self.labels)}: " + ", ".join(self.labels[:8]) + ", …" * (len(self.labels) > 8)),
        ]

    # Learning and predicting

    def loss(self, outputs: jax.Array, batch: Mapping[str, jax.Array]) -> jax.Array:
        """Cross-entropy, smoothed; of scores the squared error in units of their variance."""
        if self.scores:
            return jnp.square(outputs[:, 0] - batch["target"])
        return losses.smoothed_cross_entropy(outputs, batch["target"], self.config.loss.label_smoothing)

    def evaluate(self, params: Any) -> dict[str, float]:
        """-> `dev/loss` (nats, or squared errors in units of the variance), and in percent: accuracy, F1, Matthews.

        F1 is that of the last label where there are two, else the mean over labels. Of scores: both correlations.
        """
        items = self._corpus("dev")[0].items
        targets = np.array([item["target"] for item in items])
        outputs = np.stack(self.outputs(params, items))
        if self.scores:
            found = outputs[:, 0]
            correlations = {
                "dev/pearson": 100 * pearson(found, targets),
                "dev/spearman": 100 * spearman(found, targets),
            }
            return {"dev/loss": float(np.mean((found - targets) ** 2)), **correlations}
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
                origin, unit = self.unit_of_scores
                predictions[number] = Prediction(f"{origin + unit * float(outputs[0]):.4f}", np.zeros(0, np.float32))
            else:
                probabilities = np.asarray(jax.nn.softmax(outputs))
                predictions[number] = Prediction(self.labels[int(probabilities.argmax())], probabilities)
        return predictions


def _number(item: Labelled) -> float:
    """The score of a text; UserError where it is no number."""
    try:
        score = float(item.label)
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        raise UserError(f"{item.where}: the score {item.label!r} is no number; for labels set config.data.scores=false")
    return score
