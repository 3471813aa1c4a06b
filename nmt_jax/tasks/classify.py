"""Text classification with word and sentence attention: labelled texts in, a label and attention weights out."""

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from nmt_jax.checkpoints.finite import check_outputs
from nmt_jax.data.batching.batches import Batches
from nmt_jax.data.batching.documents import DocumentCorpus, DocumentLayout, DocumentReader, document_batches, words_of
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.readers.labelled import Labelled, open_labelled
from nmt_jax.data.vocabulary.stand_in import StandIn
from nmt_jax.data.vocabulary.vocab import UNK, Vocab
from nmt_jax.errors import UserError
from nmt_jax.losses.step import Step
from nmt_jax.platforms import compiled
from nmt_jax.progress import track
from nmt_jax.tasks.objectives import dropout_options, label_loss
from nmt_jax.tasks.task import Task, in_order
from nmt_jax.tasks.vocab_files import load_or_collect_labels, load_or_train_vocab, load_vectors

BLANK = "\u2581"  # SentencePiece's mark of a blank, before the first piece of a word


class Prediction(NamedTuple):
    """A label, "" for a text without words, and the probability float32[C] of each label.

    words: the words of each sentence, as far as the text was read. word_weights: attention float32[W] to the words of
    each sentence, which sums to 1. sentence_weights: attention float32[N] to the sentences, which sums to 1.
    """

    label: str
    probabilities: np.ndarray
    words: list[list[str]]
    word_weights: list[np.ndarray]
    sentence_weights: np.ndarray


class Classify(Task):
    """The classification task of one workdir."""

    measures = ("loss", "accuracy")
    unit = "texts"
    next_command = "nmt-jax classify --workdir={workdir} < texts.txt > labels.txt"

    @functools.cached_property
    def vocabulary(self) -> Vocab:
        """From `config.vocab.model`, or trained on the training texts; then read from the workdir."""
        path, settings = self.workdir / "vocab" / "words.model", self.config.vocab
        return load_or_train_vocab(path, settings.model, settings, self._training_sentences)

    def _training_sentences(self) -> Iterator[str]:
        data = self.config.data
        for item in track(open_labelled(data, "train"), "reading for the vocabulary"):
            for sentence in item.sentences:
                yield " ".join(words_of(sentence, data.tokenizer, data.lower_case))

    @functools.cached_property
    def labels(self) -> list[str]:
        """The labels of the training texts, in order; the position of a label is its number."""
        return load_or_collect_labels(self.workdir / "vocab" / "labels.json", self.config.data)

    @functools.cached_property
    def reader(self) -> DocumentReader:
        """Splits texts into sentences of vocabulary ids."""
        names = ("max_sentences", "max_words", "tokenizer", "lower_case", "join")
        return DocumentReader(self.vocabulary, **{name: self.config.data[name] for name in names})

    def model_sizes(self) -> dict[str, Any]:
        return {"vocab_size": len(self.vocabulary), "num_classes": len(self.labels)}

    # Training

    @functools.lru_cache(maxsize=2)  # noqa: B019  a task lives as long as the program
    def _corpus(self, split: str) -> DocumentCorpus:
        """The texts of a split as ids."""
        return DocumentCorpus(open_labelled(self.config.data, split), self.reader, self.labels)

    def summary(self) -> list[tuple[str, str]]:
        names = ", ".join(self.labels[:8]) + ", …" * (len(self.labels) > 8)
        rows = [
            ("training texts", self._corpus("train").report),
            ("development texts", self._corpus("dev").report),
            ("labels", f"{len(self.labels)}: {names}"),
            ("vocabulary", f"{len(self.vocabulary)} ({self.config.vocab.algorithm})"),
        ]
        if self.config.data.vectors:
            rows.append(("word vectors", f"for {len(self._vectors[0])} of the vocabulary, {self.config.data.vectors}"))
        return rows

    def batches(self, steps: int) -> Batches:
        return self._train_batches(self._corpus("train"), steps, DocumentLayout())

    def dummy_batch(self, shape: tuple[int, ...]) -> Batch:
        """A batch of shape (rows, N, W)."""
        return {"words": np.full(shape, UNK, np.int32), "label": np.zeros(shape[0], np.int32)}

    def stand_in(self) -> None:
        self._assume(vocabulary=StandIn(self.config.vocab.size), labels=["0", "1"])

    def row_lengths(self, share: float) -> tuple[int, ...]:
        data = self.config.data
        sentences = 1 if data.join else math.ceil(share * data.max_sentences)
        return sentences, math.ceil(share * data.max_words)

    def init(self, rng: jax.Array) -> Any:
        return self.model.init(rng, jnp.full((1, 1, 1), UNK, jnp.int32))["params"]

    def warm_start(self, params: Any) -> Any:
        """Put the word vectors of the file `data.vectors` into the embedding."""
        if not self.config.data.vectors:
            return params
        rows, vectors = self._vectors
        table = params["embedding"]["table"]
        if vectors.shape[1] != table.shape[1]:
            raise UserError(
                f"config.data.vectors: vectors of width {vectors.shape[1]}, but config.model.d_embedding="
                f"{table.shape[1]}: set it to {vectors.shape[1]}"
            )
        # The module `Embedding` multiplies its output by the square root of its width.
        table = table.at[rows].set(vectors * vectors.shape[1] ** -0.5)
        return {**params, "embedding": {"table": table}}

    @functools.cached_property
    def _vectors(self) -> tuple[np.ndarray, np.ndarray]:
        """Ids int[M] of the words that have a vector, and the vectors float32[M, D]."""
        vectors = load_vectors(self.config.data)
        pieces = self.vocabulary.pieces(range(len(self.vocabulary)))
        found = vectors.rows(piece.removeprefix(BLANK) if piece.startswith(BLANK) else "" for piece in pieces)
        if not (found >= 0).any():
            raise UserError(f"config.data.vectors: {self.config.data.vectors} has no word of the vocabulary")
        return np.flatnonzero(found >= 0), vectors.matrix[found[found >= 0]]

    def _apply(self, params: Any, words: jax.Array, **options: Any) -> tuple[jax.Array, dict[str, jax.Array]]:
        return self.model.apply({"params": params}, words, **options)

    def loss_fn(self, params: Any, batch: dict[str, jax.Array], step: Step | None) -> tuple[jax.Array, jax.Array]:
        """Cross-entropy of the labels, with label smoothing in training: (sum, number of texts)."""
        logits, _ = self._apply(params, batch["words"], **dropout_options(step))
        return label_loss(logits, batch["label"], self.config.loss.label_smoothing if step else 0.0)

    # Evaluation and prediction

    @compiled()
    def _measure(self, params: Any, batch: dict[str, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Sums of the loss, its weight and the correct labels."""
        logits, _ = self._apply(params, batch["words"])
        correct = jnp.sum(jnp.argmax(logits, axis=-1) == batch["label"])
        return *label_loss(logits, batch["label"], 0.0), correct

    def evaluate(self, params: Any) -> dict[str, float]:
        """Return `dev/loss` (nats per text, without smoothing) and `dev/accuracy` (percent)."""
        batches = in_order(self._dev_batches(self._corpus("dev"), DocumentLayout()))
        loss, weight, correct = self._totals(self._measure, params, batches, count=3)
        return {"dev/loss": loss / weight, "dev/accuracy": 100 * correct / weight}

    def dev_texts(self) -> list[Labelled]:
        """Return all development texts."""
        return list(open_labelled(self.config.data, "dev"))

    @compiled()
    def _predict(self, params: Any, words: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        logits, out = self._apply(params, words)
        return jax.nn.softmax(logits.astype(jnp.float32)), out["word_weights"], out["sentence_weights"]

    def predict(self, params: Any, texts: Sequence[Sequence[str]]) -> list[Prediction]:
        """Return a prediction for each text, a sequence of sentences, in the order of the texts.

        A prediction does not depend on the other texts. A text without words has the label "" and probabilities 0.
        """
        documents = [self.reader(text)[0] for text in texts]
        empty = Prediction("", np.zeros(len(self.labels), np.float32), [], [], np.zeros(0, np.float32))
        predictions = [empty] * len(texts)
        filled = [number for number, sentences in enumerate(documents) if sentences]
        batches = document_batches(
            [documents[number] for number in filled],
            batch_tokens=self.config.eval.batch_tokens,
            multiple_of=self.evaluator.row_shards,
        )
        for rows, words in batches:
            outputs = self.evaluator.run(self._predict, params, words)
            for row, probabilities, word_weights, sentence_weights in zip(rows, *outputs, strict=False):
                check_outputs(probabilities)
                sentences = documents[filled[row]]
                predictions[filled[row]] = Prediction(
                    self.labels[int(probabilities.argmax())],
                    probabilities,
                    [sentence.words for sentence in sentences],
                    # The weight of a word is the sum over its pieces.
                    [
                        np.add.reduceat(weights[: len(sentence.ids)], [0, *itertools.accumulate(sentence.sizes[:-1])])
                        for sentence, weights in zip(sentences, word_weights, strict=False)
                    ],
                    sentence_weights[: len(sentences)],
                )
        return predictions
