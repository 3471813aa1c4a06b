"""Word vectors: a text in, a vector for each word out, and with n-grams one for any word."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from metrics_jax.embedding.vectors import Vectors
from nmt_jax import config as configs
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.batching.row_slice import RowSlice
from nmt_jax.data.batching.word_contexts import Contexts, kept_share
from nmt_jax.data.prepared.word_stream import prepare, read_texts
from nmt_jax.data.vocabulary import character_ngrams
from nmt_jax.data.vocabulary.words import Words
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses.negative_sampling import Alias, negative_sampling
from nmt_jax.losses.step import Step
from nmt_jax.models.registry import model_class


class WordVectors:
    """The word vector task (`tasks.Task`) of one workdir."""

    measures = ("loss",)
    unit = "words"
    next_command = "nmt-jax neighbours --workdir={workdir}"

    def __init__(self, config: ConfigDict, workdir: Path, mesh: Mesh) -> None:
        self.config = config
        self.workdir = Path(workdir)
        self.mesh, self.local_mesh = mesh, sharding.local(mesh)

    @functools.cached_property
    def words(self) -> Words:
        """The workdir's words, else those of the text, counted and saved."""
        path = self.workdir / "vocab" / "words.txt"
        if not path.exists():
            settings = self.config.vocab
            texts = read_texts(self.config.data, "train")
            Words.count(texts, min_count=settings.min_count, size=settings.size).save(path)
        return Words.load(path)

    @functools.cached_property
    def model(self) -> Any:
        """The linen module that `config.model_name` and `config.model` describe; its fields are the schema."""
        return configs.build_model(model_class(self.config.model_name), self.config.model, vocab_size=len(self.words))

    @functools.cached_property
    def subwords(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The words and buckets of all n-grams, where the model has them."""
        model = self.model
        if not model.num_buckets:
            return None
        places, buckets = self._buckets(self.words.words)
        return places + 1, buckets

    def _buckets(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        model = self.model
        return character_ngrams.buckets(words, min_n=model.min_n, max_n=model.max_n, num_buckets=model.num_buckets)

    # Training

    @functools.cached_property
    def train_ids(self) -> np.ndarray:
        """The training text as word numbers."""
        return prepare(self.config.data, "train", self.words)

    @functools.cached_property
    def dev_ids(self) -> np.ndarray:
        """The development text as word numbers."""
        return prepare(self.config.data, "dev", self.words)

    def summary(self) -> list[tuple[str, str]]:
        """Rows for the start table: texts and vocabulary."""
        train, dev = (f"{np.count_nonzero(ids):,}" for ids in (self.train_ids, self.dev_ids))
        left = int(self.words.frequencies @ self._shares)
        rows = [
            ("training text", f"{train} words that have a vector; about {left:,} of them are read an epoch"),
            ("development text", f"{dev} words"),
            ("vocabulary", f"{len(self.words) - 1:,} words that come {self.words.counts[-1]} times or more"),
        ]
        return rows + ([("n-grams", f"{len(self.subwords[0]):,}")] if self.subwords else [])

    @functools.cached_property
    def _shares(self) -> np.ndarray:
        """How probably each word is read."""
        return kept_share(self.words.frequencies, self.config.data.subsample)

    def batches(self, steps: int) -> Contexts:
        """The training batches of `steps` steps."""
        self._check_settings()
        share = sharding.share(self.mesh, self.config.train.accumulate)
        return self._contexts(self.train_ids, share, self.config.seed, steps)

    def _contexts(self, ids: np.ndarray, share: RowSlice, seed: int, steps: int | None) -> Contexts:
        config = self.config
        return Contexts(
            ids,
            self._shares,
            window=self.model.window,
            block_length=config.data.block_length,
            batch_tokens=config.train.batch_tokens,
            share=share,
            seed=seed,
            steps=steps,
        )

    def _check_settings(self) -> None:
        loss, data = self.config.loss, self.config.data
        if min(loss.negatives, loss.shared_negatives) < 1:
            raise UserError(
                f"config.loss.negatives={loss.negatives}, config.loss.shared_negatives={loss.shared_negatives}: "
                "at least 1 each"
            )
        if data.subsample < 0:
            raise UserError(f"config.data.subsample={data.subsample}: a share of the text such as 1e-3, or 0 for off")

    def dummy_batch(self, shape: tuple[int, ...]) -> Batch:
        """(rows, T) -> a full batch."""
        rows, length = shape
        words = np.ones((rows, length + 2 * self.model.window), np.int32)
        return {"words": words, "weights": np.ones((rows, length), np.float32)}

    def init(self, rng: jax.Array) -> Any:
        """-> parameters."""
        row = jnp.ones((1, 1 + 2 * self.model.window), jnp.int32)
        return self.model.init(rng, row, jnp.ones((1, 1)), row[:, :1], self.subwords)["params"]

    def warm_start(self, params: Any) -> Any:
        """They start as they were drawn."""
        return params

    @functools.cached_property
    def _noise(self) -> Alias:
        """What negatives are drawn from: the counts to the power that `config.loss` gives."""
        frequencies = self.words.frequencies
        return Alias.of(np.where(frequencies > 0, frequencies**self.config.loss.power, 0.0))

    def loss_fn(self, params: Any, batch: dict[str, jax.Array], step: Step | None) -> tuple[jax.Array, jax.Array]:
        """Negative sampling -> (sum in nats, words); each row shares its negatives, when measuring always the same."""
        settings, words, weights = self.config.loss, batch["words"], batch["weights"]
        rng = step.rng if step else jax.random.key(0)
        negatives = self._noise.draw(rng, (len(words), settings.shared_negatives))
        scores, pairs = self.model.apply({"params": params}, words, weights, negatives, self.subwords)
        return negative_sampling(scores, pairs, settings.negatives), jnp.sum(weights)

    @functools.cached_property
    def _eval_loss(self) -> Any:
        return jax.jit(functools.partial(self.loss_fn, step=None))

    def evaluate(self, params: Any) -> dict[str, float]:
        """-> `dev/loss`, nats a word of the dev text, thinned out as in training; the same draws every time."""
        contexts = self._contexts(self.dev_ids, sharding.share(self.local_mesh), seed=0, steps=None)
        sums = [
            self._eval_loss(params, sharding.shard_batch(batch, self.local_mesh))
            for batch in map(contexts.__getitem__, range(len(contexts)))
        ]
        loss, weight = np.sum([[float(part) for part in pair] for pair in sums], axis=0)
        return {"dev/loss": loss / max(weight, 1.0)}

    # What was learned

    def vectors(self, params: Any) -> Vectors:
        """The vector of each word, the most frequent first."""
        matrix = self.model.apply({"params": params}, self.subwords, method="vectors")
        return Vectors(self.words.words, np.asarray(matrix, np.float32)[1:])

    def compose(self, params: Any, word: str) -> np.ndarray | None:
        """The vector float32[D] of a word that was never seen: the mean of its n-grams'; None without n-grams."""
        if not self.model.num_buckets:
            return None
        _, buckets = self._buckets([word])
        return np.asarray(params["buckets"], np.float32)[buckets].mean(axis=0) if len(buckets) else None
