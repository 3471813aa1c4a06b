"""Classification: labelled texts in, a label for every text out, with the words and sentences that it hangs on."""

import functools
import itertools
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from metrics_jax.embedding.vectors import Vectors
from nmt_jax import config as configs
from nmt_jax.data.batching.batches import Batches
from nmt_jax.data.batching.documents import DocumentCorpus, Documents, Reader, document_batches, words_of
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.readers.labelled import Labelled, open_labelled
from nmt_jax.data.vocabulary.vocab import UNK, Vocab
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses import cross_entropy as losses
from nmt_jax.losses.step import Step
from nmt_jax.models.registry import model_class
from nmt_jax.progress import track

BLANK = "\u2581"  # SentencePiece's mark of a blank, before the first piece of a word


class Prediction(NamedTuple):
    """What a text was taken for: its label, "" for a text without a word, and float32[C], the probability of each.

    words: those of each sentence, as far as the text was read; word_weights: theirs, float32[W], which sum to 1 in
    every sentence; sentence_weights: float32[N], which sum to 1.
    """

    label: str
    probabilities: np.ndarray
    words: list[list[str]]
    word_weights: list[np.ndarray]
    sentence_weights: np.ndarray


class Classify:
    """The classification task (`tasks.Task`) of one workdir; texts are read only when training or evaluation asks."""

    measures = ("loss", "accuracy")
    unit = "texts"
    next_command = "nmt-jax classify --workdir={workdir} < texts.txt > labels.txt"

    def __init__(self, config: ConfigDict, workdir: Path, mesh: Mesh) -> None:
        self.config = config
        self.workdir = Path(workdir)
        self.mesh, self.local_mesh = mesh, sharding.local(mesh)

    @functools.cached_property
    def vocabulary(self) -> Vocab:
        """The workdir's, else the given, else trained on the training texts and saved."""
        settings, data = self.config.vocab, self.config.data
        path = self.workdir / "vocab" / "words.model"
        if not path.exists():
            if settings.model:
                vocab = Vocab.load(settings.model)
            else:
                vocab = Vocab.train(
                    (
                        " ".join(words_of(sentence, data.tokenizer, data.lower_case))
                        for item in track(open_labelled(data, "train"), "reading for the vocabulary")
                        for sentence in item.sentences
                    ),
                    size=settings.size,
                    algorithm=settings.algorithm,
                    byte_fallback=settings.byte_fallback,
                )
            vocab.save(path)
        return Vocab.load(path)

    @functools.cached_property
    def labels(self) -> list[str]:
        """The workdir's, else those of the training texts, in order, saved; the place of a label is its number."""
        path = self.workdir / "vocab" / "labels.json"
        if not path.exists():
            found = {item.label for item in open_labelled(self.config.data, "train")}
            if len(found) < 2:
                raise UserError(f"config.data.label={self.config.data.label!r}: all training texts have one label")
            numeric = all(label.isdecimal() for label in found)
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_name(f".{path.name}.{os.getpid()}")  # processes may write it at the same time
            unfinished.write_text(json.dumps(sorted(found, key=int if numeric else None)) + "\n", encoding="utf-8")
            unfinished.replace(path)
        return json.loads(path.read_text(encoding="utf-8"))

    @functools.cached_property
    def reader(self) -> Reader:
        """Texts into sentences of pieces."""
        names = ("max_sentences", "max_words", "tokenizer", "lower_case", "join")
        return Reader(self.vocabulary, **{name: self.config.data[name] for name in names})

    @functools.cached_property
    def model(self) -> Any:
        """The linen module that `config.model_name` and `config.model` describe; its fields are the schema."""
        sizes = {"vocab_size": len(self.vocabulary), "num_classes": len(self.labels)}
        return configs.build_model(model_class(self.config.model_name), self.config.model, **sizes)

    # Training

    @functools.cached_property
    def train_corpus(self) -> DocumentCorpus:
        """The training texts as numbers."""
        return DocumentCorpus(open_labelled(self.config.data, "train"), self.reader, self.labels)

    @functools.cached_property
    def dev_corpus(self) -> DocumentCorpus:
        """The development texts as numbers."""
        return DocumentCorpus(open_labelled(self.config.data, "dev"), self.reader, self.labels)

    def summary(self) -> list[tuple[str, str]]:
        """Rows for the start table: corpora, labels, vocabulary."""
        names = ", ".join(self.labels[:8]) + ", …" * (len(self.labels) > 8)
        rows = [
            ("training texts", self.train_corpus.report),
            ("development texts", self.dev_corpus.report),
            ("labels", f"{len(self.labels)}: {names}"),
            ("vocabulary", f"{len(self.vocabulary)} ({self.config.vocab.algorithm})"),
        ]
        if self.config.data.vectors:
            rows.append(("word vectors", f"{len(self._vectors[0])} of the vocabulary, {self.config.data.vectors}"))
        return rows

    def batches(self, steps: int) -> Batches:
        """The training batches of `steps` steps."""
        config = self.config
        return Batches(
            self.train_corpus,
            batch_tokens=config.train.batch_tokens,
            num_buckets=config.data.num_buckets,
            share=sharding.share(self.mesh, config.train.accumulate),
            seed=config.seed,
            steps=steps,
            layout=Documents(),
        )

    def dummy_batch(self, shape: tuple[int, ...]) -> Batch:
        """(rows, N, W) -> a full batch."""
        return {"words": np.full(shape, UNK, np.int32), "label": np.zeros(shape[0], np.int32)}

    def init(self, rng: jax.Array) -> Any:
        """-> parameters."""
        return self.model.init(rng, jnp.full((1, 1, 1), UNK, jnp.int32))["params"]

    def warm_start(self, params: Any) -> Any:
        """The words of the file `data.vectors` start from their vectors there."""
        if not self.config.data.vectors:
            return params
        rows, vectors = self._vectors
        table = params["embedding"]["table"]
        if vectors.shape[1] != table.shape[1]:
            raise UserError(
                f"config.data.vectors: they have {vectors.shape[1]} numbers a word, but config.model.d_embedding="
                f"{table.shape[1]}: set it to {vectors.shape[1]}"
            )
        # The module `Embedding` multiplies what it looks up by the square root of its width.
        table = table.at[rows].set(vectors * vectors.shape[1] ** -0.5)
        return {**params, "embedding": {"table": table}}

    @functools.cached_property
    def _vectors(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers int[M] of the words that have a vector, and the vectors, float32[M, D]."""
        try:
            vectors = Vectors.load(self.config.data.vectors)
        except ValueError as error:
            raise UserError(f"config.data.vectors: {error}") from None
        pieces = self.vocabulary.pieces(range(len(self.vocabulary)))
        found = vectors.rows(piece.removeprefix(BLANK) if piece.startswith(BLANK) else "" for piece in pieces)
        if not (found >= 0).any():
            raise UserError(f"config.data.vectors: {self.config.data.vectors} has no word of the vocabulary")
        return np.flatnonzero(found >= 0), vectors.matrix[found[found >= 0]]

    def _apply(self, params: Any, words: jax.Array, **options: Any) -> tuple[jax.Array, dict[str, jax.Array]]:
        return self.model.apply({"params": params}, words, **options)

    def loss_fn(self, params: Any, batch: dict[str, jax.Array], step: Step | None) -> tuple[jax.Array, jax.Array]:
        """Cross-entropy of the labels, smoothed when training -> (sum, weight: the number of texts)."""
        options = {"train": True, "rngs": {"dropout": step.rng}} if step else {}
        logits, _ = self._apply(params, batch["words"], **options)
        return self._loss(logits, batch["label"], self.config.loss.label_smoothing if step else 0.0)

    def _loss(self, logits: jax.Array, label: jax.Array, smoothing: float) -> tuple[jax.Array, jax.Array]:
        weights = (label >= 0).astype(jnp.float32)  # rows without a text have no label
        loss = losses.smoothed_cross_entropy(logits, jnp.maximum(label, 0), smoothing)
        return jnp.sum(loss * weights), jnp.sum(weights)

    # Evaluating and predicting

    @functools.cached_property
    def dev_batches(self) -> Batches:
        """One epoch of the development texts."""
        return Batches(
            self.dev_corpus,
            batch_tokens=self.config.eval.batch_tokens,
            num_buckets=self.config.data.num_buckets,
            share=sharding.share(self.local_mesh),
            layout=Documents(),
        )

    @functools.cached_property
    def _measure(self) -> Any:
        def measure(params: Any, batch: dict[str, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
            logits, _ = self._apply(params, batch["words"])
            right = jnp.sum(jnp.argmax(logits, axis=-1) == batch["label"])
            return *self._loss(logits, batch["label"], 0.0), right

        return jax.jit(measure)

    def evaluate(self, params: Any) -> dict[str, float]:
        """-> `dev/loss` (nats a text, not smoothed), `dev/accuracy` (percent), over all development texts."""
        total = weight = right = 0.0
        for number in range(len(self.dev_batches)):
            sums = self._measure(params, sharding.shard_batch(self.dev_batches[number], self.local_mesh))
            loss, count, hits = map(float, sums)
            total, weight, right = total + loss, weight + count, right + hits
        return {"dev/loss": total / weight, "dev/accuracy": 100 * right / weight}

    def dev_texts(self) -> list[Labelled]:
        """The development texts, none left out."""
        return list(open_labelled(self.config.data, "dev"))

    @functools.cached_property
    def _predict(self) -> Any:
        """One compiled program a shape."""

        def predict(params: Any, words: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
            logits, out = self._apply(params, words)
            return jax.nn.softmax(logits.astype(jnp.float32)), out["word_weights"], out["sentence_weights"]

        return jax.jit(predict)

    def predict(self, params: Any, texts: Sequence[Sequence[str]]) -> list[Prediction]:
        """Texts, each a sequence of sentences, -> a prediction for each, in their order.

        A prediction never depends on the other texts. A text without a word has the label "" and probabilities 0.
        """
        documents = [self.reader(text)[0] for text in texts]
        nothing = Prediction("", np.zeros(len(self.labels), np.float32), [], [], np.zeros(0, np.float32))
        predictions = [nothing] * len(texts)
        filled = [number for number, sentences in enumerate(documents) if sentences]
        batches = document_batches(
            [documents[number] for number in filled],
            batch_tokens=self.config.eval.batch_tokens,
            multiple_of=self.local_mesh.shape["data"],
        )
        for rows, words in batches:
            outputs = map(np.asarray, self._predict(params, sharding.shard_batch(words, self.local_mesh)))
            for row, probabilities, word_weights, sentence_weights in zip(rows, *outputs, strict=False):
                sentences = documents[filled[row]]
                predictions[filled[row]] = Prediction(
                    self.labels[int(probabilities.argmax())],
                    probabilities,
                    [sentence.words for sentence in sentences],
                    # A word's weight is that of all its pieces.
                    [
                        np.add.reduceat(weights[: len(sentence.ids)], [0, *itertools.accumulate(sentence.sizes[:-1])])
                        for sentence, weights in zip(sentences, word_weights, strict=False)
                    ],
                    sentence_weights[: len(sentences)],
                )
        return predictions
