"""Pretraining of BERT: raw text in, an encoder out that masked tokens and next sentences have taught to read."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.batching.masking import Corruption, LeftToRight, Masking
from nmt_jax.data.batching.segment_pairs import NEXT, PairBatches, SegmentPairs
from nmt_jax.data.prepared import segments
from nmt_jax.data.prepared.segments import Segments
from nmt_jax.data.readers.monolingual import open_documents
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.files import whole_file
from nmt_jax.losses import cross_entropy as losses
from nmt_jax.losses.step import Step
from nmt_jax.models.layers.mimetic import mimetic
from nmt_jax.models.registry import model_class
from nmt_jax.pretrained.tokenizer import FIRST, Tokenizer
from nmt_jax.progress import track

INITIALIZATIONS = ("normal", "mimetic")


class Pretrain:
    """The pretraining task (`tasks.Task`) of one workdir; text is read only when training or evaluation asks.

    Every update lowers the cross-entropy of the tokens that are asked about, in nats a token, plus that of next
    sentences, in nats a row, weighted as if every row asked about as many tokens as a full one does.
    """

    measures = ("loss", "perplexity", "mlm_loss", "mlm_accuracy", "nsp_accuracy")
    unit = "tokens"  # those that are asked about
    next_command = "nmt-jax export --to=huggingface --workdir={workdir} --output=FOLDER"

    def __init__(self, config: ConfigDict, workdir: Path, mesh: Mesh) -> None:
        self.config = config
        self.workdir = Path(workdir)
        self.mesh, self.local_mesh = mesh, sharding.local(mesh)

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        """The workdir's, else the given one, else one trained on the training text and saved."""
        settings, folder = self.config.vocab, self.workdir / "vocab"
        path = folder / "tokenizer.json"
        if not path.exists():
            if settings.model:
                tokenizer = Tokenizer.load(Path(settings.model).expanduser())
            else:
                documents = open_documents(self.config.data, "train")
                tokenizer = Tokenizer.train(
                    itertools.chain.from_iterable(track(documents, "reading for the vocabulary")),
                    size=settings.size,
                    algorithm=settings.algorithm,
                    lower_case=settings.lower_case,
                )
            with whole_file(path) as file:
                file.write(tokenizer.model.encode())
        tokenizer = Tokenizer.load(folder)
        if missing := [piece for piece in FIRST if tokenizer.id(piece) is None]:
            raise UserError(f"{settings.model or path}: {', '.join(missing)} missing: not a tokenizer of BERT")
        if tokenizer.id("[PAD]"):
            raise UserError(f"{settings.model or path}: [PAD] is piece {tokenizer.id('[PAD]')}: BERT's is 0")
        return tokenizer

    @functools.cached_property
    def model(self) -> Any:
        """The linen module that `config.model_name` and `config.model` describe; its fields are the schema."""
        model = model_class(self.config.model_name)
        return configs.build_model(model, self.config.model, vocab_size=len(self.tokenizer))

    # Training

    def _special(self, piece: str) -> int:
        number = self.tokenizer.id(piece)
        assert number is not None  # `tokenizer` has looked
        return number

    def _text(self, split: str) -> Segments:
        special = [self._special(piece) for piece in FIRST]
        return segments.prepare(self.config.data, split, self.tokenizer, special, self._special("[UNK]"))

    @functools.cached_property
    def train_text(self) -> Segments:
        """The training text as segments."""
        return self._text("train")

    @functools.cached_property
    def dev_text(self) -> Segments:
        """The development text as segments."""
        return self._text("dev")

    def summary(self) -> list[tuple[str, str]]:
        """Rows for the start table: texts, vocabulary, what is asked."""
        corrupt = self.config.corrupt
        masking = (
            f"{corrupt.share:.0%} of the {'words' if corrupt.whole_words else 'tokens'}: {corrupt.mask:.0%} masked"
        )
        masking += f", {corrupt.random:.0%} random, {max(1 - corrupt.mask - corrupt.random, 0):.0%} kept"
        asked = "every next token" if self.model.causal else masking
        return [
            ("training text", self.train_text.report),
            ("development text", self.dev_text.report),
            ("vocabulary", f"{len(self.tokenizer)} ({self.config.vocab.algorithm})"),
            ("asked about", asked + "; next sentences" * self.model.next_sentence),
        ]

    def masking(self, **changes: Any) -> Masking:
        """`config.corrupt` for this vocabulary, some of it changed; UserError for shares that cannot be meant."""
        special = np.zeros(len(self.tokenizer), bool)
        special[[self._special(piece) for piece in FIRST]] = True
        settings = {**self.config.corrupt, **changes}
        try:
            return Masking(**settings, mask_id=self._special("[MASK]"), special=special, starts=self.tokenizer.starts())
        except ValueError as error:
            raise UserError(f"config.corrupt: {error}") from None

    def _batches(self, text: Segments, corruption: Corruption, batch_tokens: int, **options: Any) -> PairBatches:
        """Batches of at least 8 rows, so that 1, 2, 4, 8 devices see the same ones."""
        max_length, positions = self.config.data.max_length, self.model.max_positions
        if max_length > positions:
            raise UserError(f"config.data.max_length={max_length} is more than config.model.max_positions={positions}")
        pairs = SegmentPairs(
            text,
            next_sentence=self.model.next_sentence,
            cls=self._special("[CLS]"),
            sep=self._special("[SEP]"),
        )
        corruption = LeftToRight() if self.model.causal else corruption
        return PairBatches(pairs, corruption, max_length=max_length, batch_tokens=batch_tokens, **options)

    @functools.cached_property
    def _train_batches(self) -> Any:
        """The training batches, but for the number of steps."""
        config = self.config
        return functools.partial(
            self._batches,
            self.train_text,
            self.masking(),
            config.train.batch_tokens,
            share=sharding.share(self.mesh, config.train.accumulate),
            seed=config.seed,
        )

    def batches(self, steps: int) -> PairBatches:
        """The training batches of `steps` steps."""
        if self.config.initialization not in INITIALIZATIONS:
            raise UserError(
                f"config.initialization={self.config.initialization!r} is none of {', '.join(INITIALIZATIONS)}"
            )
        _ = self.dev_batches  # a mistake in the development text is told now, not at the first evaluation
        return self._train_batches(steps=steps)

    def dummy_batch(self, shape: tuple[int, ...]) -> Batch:
        """(rows, S) -> a full batch."""
        batch = self._train_batches(steps=1).empty(shape[0])
        filled = {"ids": self._special("[UNK]"), "weights": 1.0, "next_sentence": NEXT}
        return {name: np.full_like(array, filled.get(name, 0)) for name, array in batch.items()}

    def init(self, rng: jax.Array) -> Any:
        """-> parameters."""
        ids = jnp.zeros((1, 2), jnp.int32)
        params = self.model.init(rng, ids, ids == 0, ids, ids)["params"]
        if self.config.initialization == "mimetic":
            params = {**params, "encoder": mimetic(params["encoder"], self.model.num_heads)}
        return params

    def warm_start(self, params: Any) -> Any:
        """All of them are learned here."""
        return params

    def _apply(self, params: Any, batch: dict[str, jax.Array], **options: Any) -> tuple[jax.Array, dict[str, Any]]:
        ids = batch["ids"]
        return self.model.apply({"params": params}, ids, ids != 0, batch["segments"], batch["positions"], **options)

    def loss_fn(self, params: Any, batch: dict[str, jax.Array], step: Step | None) -> tuple[jax.Array, jax.Array]:
        """Cross-entropy of tokens and of next sentences, in nats -> (sum, weight: the tokens asked about)."""
        options: dict[str, Any] = {"train": True, "rngs": {"dropout": step.rng}} if step else {}
        _, out = self._apply(params, batch, **options)
        loss, weight = losses.cross_entropy(
            out["hidden"], out["output_kernel"], batch["labels"], batch["weights"], dtype=self.model.dtype
        )
        if "next_sentence" in out:
            # A weight that no batch changes: so one division serves both, in any number of parts and devices.
            loss += batch["labels"].shape[1] * self._pair_loss(out["next_sentence"], batch["next_sentence"])[0]
        return loss, weight

    def _pair_loss(self, logits: jax.Array, label: jax.Array) -> tuple[jax.Array, jax.Array]:
        weights = (label >= 0).astype(jnp.float32)
        loss = losses.smoothed_cross_entropy(logits, jnp.maximum(label, 0), 0.0)
        return jnp.sum(loss * weights), jnp.sum(weights)

    # Evaluating

    @functools.cached_property
    def dev_batches(self) -> PairBatches:
        """One epoch of the development text, asked about in one way whatever is trained and in whatever mixture.

        15 % of the tokens, all of them as [MASK]: what a model need not guess would only blur the figures.
        """
        masking = dataclasses.replace(self.masking(), share=0.15, mask=1.0, random=0.0, whole_words=False)
        share = sharding.share(self.local_mesh)
        return self._batches(self.dev_text, masking, self.config.eval.batch_tokens, share=share)

    @functools.cached_property
    def _measure(self) -> Any:
        def measure(params: Any, batch: dict[str, jax.Array]) -> tuple[jax.Array, ...]:
            logits, out = self._apply(params, batch)
            weights = batch["weights"]
            loss = losses.smoothed_cross_entropy(logits, batch["labels"], 0.0)
            right = jnp.argmax(logits, axis=-1) == batch["labels"]
            sums = (jnp.sum(loss * weights), jnp.sum(weights), jnp.sum(right * weights))
            if "next_sentence" not in out:
                return sums
            hits = jnp.sum(jnp.argmax(out["next_sentence"], axis=-1) == batch["next_sentence"])
            return *sums, *self._pair_loss(out["next_sentence"], batch["next_sentence"]), hits

        return jax.jit(measure)

    def evaluate(self, params: Any) -> dict[str, float]:
        """-> `dev/mlm_loss` (nats a token), `dev/perplexity` (its exponential), `dev/mlm_accuracy` (percent), and with
        next sentences `dev/nsp_accuracy` (percent); `dev/loss`: nats a token and nats a pair together.
        """
        sums = np.sum([[float(value) for value in self._measure(params, batch)] for batch in self._dev()], axis=0)
        loss = sums[0] / sums[1]
        measures = {"dev/mlm_loss": loss, "dev/perplexity": math.exp(loss), "dev/mlm_accuracy": 100 * sums[2] / sums[1]}
        if self.model.next_sentence:
            loss += sums[3] / sums[4]
            measures["dev/nsp_accuracy"] = 100 * sums[5] / sums[4]
        return {"dev/loss": loss, **measures}

    def _dev(self) -> Iterator[dict[str, jax.Array]]:
        batches = map(self.dev_batches.__getitem__, range(len(self.dev_batches)))
        return (sharding.shard_batch(batch, self.local_mesh) for batch in batches)
