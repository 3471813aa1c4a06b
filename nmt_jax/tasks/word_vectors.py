"""Training of word vectors (word2vec): text in, a vector for each word out; with character n-grams, for any word."""

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from metrics_jax.embedding.vectors import Vectors
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.batching.row_slice import RowSlice
from nmt_jax.data.batching.word_contexts import Contexts, kept_share
from nmt_jax.data.prepared.streams import prepare_words, read_texts
from nmt_jax.data.vocabulary import stand_in
from nmt_jax.data.vocabulary.words import Words, buckets
from nmt_jax.errors import UserError
from nmt_jax.losses.sampled import Alias, negative_sampling
from nmt_jax.losses.step import Step
from nmt_jax.tasks.task import Task, in_order
from nmt_jax.tasks.vocab_files import load_or_count_words


class WordVectors(Task):
    """The word-vector task of one workdir."""

    measures = ("loss",)
    unit = "words"
    next_command = "nmt-jax neighbours --workdir={workdir}"

    @functools.cached_property
    def words(self) -> Words:
        """The vocabulary: counted on the training text at the first start, then read from the workdir."""
        path = self.workdir / "vocab" / "words.txt"
        return load_or_count_words(path, self.config.vocab, lambda: read_texts(self.config.data, "train"))

    def model_sizes(self) -> dict[str, Any]:
        return {"vocab_size": len(self.words)}

    @functools.cached_property
    def subwords(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Word number and bucket of every character n-gram of the vocabulary; None for a model without n-grams."""
        if not self.model.num_buckets:
            return None
        words, buckets = self._buckets(self.words.words)
        return words + 1, buckets

    def _buckets(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        model = self.model
        return buckets(words, min_n=model.min_n, max_n=model.max_n, num_buckets=model.num_buckets)

    # Training

    @functools.cached_property
    def train_ids(self) -> np.ndarray:
        """The training text as word numbers."""
        return prepare_words(self.config.data, "train", self.words)

    @functools.cached_property
    def dev_ids(self) -> np.ndarray:
        """The development text as word numbers."""
        return prepare_words(self.config.data, "dev", self.words)

    def summary(self) -> list[tuple[str, str]]:
        train, dev = (f"{np.count_nonzero(ids):,}" for ids in (self.train_ids, self.dev_ids))
        kept = int(self.words.frequencies @ self._keep_probabilities)
        rows = [
            ("training text", f"{train} words of the vocabulary; about {kept:,} per epoch after subsampling"),
            ("development text", f"{dev} words"),
            ("vocabulary", f"{len(self.words) - 1:,} words that occur {self.words.counts[-1]} times or more"),
        ]
        return rows + ([("n-grams", f"{len(self.subwords[0]):,}")] if self.subwords else [])

    @functools.cached_property
    def _keep_probabilities(self) -> np.ndarray:
        """The probability with which subsampling keeps each word."""
        return kept_share(self.words.frequencies, self.config.data.subsample)

    def _contexts(self, ids: np.ndarray, share: RowSlice, seed: int, steps: int | None) -> Contexts:
        config = self.config
        sizes = {"block_length": config.data.block_length, "batch_tokens": config.train.batch_tokens}
        sizes["window"] = self.model.window
        return Contexts(ids, self._keep_probabilities, share=share, seed=seed, steps=steps, **sizes)

    def batches(self, steps: int) -> Contexts:
        loss, data = self.config.loss, self.config.data
        if min(loss.negatives, loss.shared_negatives) < 1:
            raise UserError(
                f"config.loss.negatives={loss.negatives}, config.loss.shared_negatives={loss.shared_negatives}: "
                "each must be at least 1"
            )
        if data.subsample < 0:
            raise UserError(f"config.data.subsample={data.subsample}: use a threshold such as 1e-3, or 0 to disable")
        return self._contexts(self.train_ids, self._train_rows, self.config.seed, steps)

    def dummy_batch(self, shape: tuple[int, ...]) -> Batch:
        """A batch of shape (rows, T)."""
        rows, length = shape
        words = np.ones((rows, length + 2 * self.model.window), np.int32)
        return {"words": words, "weights": np.ones((rows, length), np.float32)}

    def stand_in(self) -> None:
        self._assume(words=stand_in.words(self.config.vocab.size))

    def row_lengths(self, share: float) -> tuple[int, ...]:
        return (self.config.data.block_length,)

    def init(self, rng: jax.Array) -> Any:
        row = jnp.ones((1, 1 + 2 * self.model.window), jnp.int32)
        return self.model.init(rng, row, jnp.ones((1, 1)), row[:, :1], self.subwords)["params"]

    @functools.cached_property
    def _noise(self) -> Alias:
        """The distribution of negative samples: word counts to the power of `config.loss.power`."""
        frequencies = self.words.frequencies
        return Alias.of(np.where(frequencies > 0, frequencies**self.config.loss.power, 0.0))

    def loss_fn(self, params: Any, batch: dict[str, jax.Array], step: Step | None) -> tuple[jax.Array, jax.Array]:
        """Negative sampling: (sum in nats, number of words). Words of a row share their negative samples."""
        settings, words, weights = self.config.loss, batch["words"], batch["weights"]
        rng = step.rng if step else jax.random.key(0)  # evaluation always draws the same samples
        negatives = self._noise.draw(rng, (len(words), settings.shared_negatives))
        scores, pairs = self.model.apply({"params": params}, words, weights, negatives, self.subwords)
        return negative_sampling(scores, pairs, settings.negatives), jnp.sum(weights)

    def evaluate(self, params: Any) -> dict[str, float]:
        """Return `dev/loss` in nats per word; subsampled as in training, with the same random draws every time."""
        contexts = self._contexts(self.dev_ids, self.evaluator.rows, seed=0, steps=None)
        loss, weight = self._totals(self._eval_loss, params, in_order(contexts))
        return {"dev/loss": loss / max(weight, 1.0)}

    # Using the vectors

    def vectors(self, params: Any) -> Vectors:
        """Return the vector of each word, the most frequent word first."""
        matrix = self.model.apply({"params": params}, self.subwords, method="vectors")
        return Vectors(self.words.words, np.asarray(matrix, np.float32)[1:])

    def compose(self, params: Any, word: str) -> np.ndarray | None:
        """Return a vector float32[D] for any word, the mean over its character n-grams; None if it has none."""
        if not self.model.num_buckets:
            return None
        _, buckets = self._buckets([word])
        return np.asarray(params["buckets"], np.float32)[buckets].mean(axis=0) if len(buckets) else None
