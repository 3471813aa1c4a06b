"""Pretraining of BERT: an encoder learns from raw text to predict masked tokens and next sentences."""

import dataclasses
import functools
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nmt_jax.checkpoints.finite import check_outputs
from nmt_jax.data.batching.encoder_rows import RowReader
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.batching.masking import MAX_MASKS, Corruption, LeftToRight, Masked, Masking, choose_masked
from nmt_jax.data.batching.packed_examples import PackedExamples, fill_examples
from nmt_jax.data.batching.segment_pairs import NEXT, PairBatches, SegmentPairs, empty_rows
from nmt_jax.data.prepared import segments
from nmt_jax.data.prepared.segments import Segments
from nmt_jax.data.readers.monolingual import open_documents
from nmt_jax.data.vocabulary.stand_in import StandIn
from nmt_jax.errors import UserError
from nmt_jax.losses import cross_entropy as losses
from nmt_jax.losses.step import Step
from nmt_jax.models.layers.mimetic import mimetic
from nmt_jax.models.layers.text_attention import padded
from nmt_jax.platforms import compiled
from nmt_jax.pretrained.tokenizer import FIRST, Tokenizer
from nmt_jax.progress import track
from nmt_jax.tasks.objectives import dropout_options, label_loss
from nmt_jax.tasks.predictions import Filling
from nmt_jax.tasks.task import Task, in_order
from nmt_jax.tasks.vocab_files import write_text

INITIALIZATIONS = ("normal", "mimetic")
ROWS = 16  # sentences per batch in which masks are filled


class Pretrain(Task):
    """The pretraining task of one workdir.

    The loss is the cross-entropy of the predicted tokens, in nats per token, plus that of next sentences, in nats per
    row, weighted as if every row predicted the largest possible number of tokens.
    """

    measures = ("loss", "perplexity", "mlm_loss", "mlm_accuracy", "nsp_accuracy")
    unit = "tokens"  # predicted ones
    mask = "[MASK]"  # how a mask is written in a text
    next_command = "nmt-jax export --to=huggingface --workdir={workdir} --output=FOLDER"

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        """From `config.vocab.model`, or trained on the training text; then read from the workdir."""
        settings, folder = self.config.vocab, self.workdir / "vocab"
        path = folder / "tokenizer.json"
        if not path.exists():
            if settings.model:
                tokenizer = Tokenizer.load(Path(settings.model).expanduser())
            else:
                documents = track(open_documents(self.config.data, "train"), "reading for the vocabulary")
                options = {name: settings[name] for name in ("size", "algorithm", "lower_case")}
                tokenizer = Tokenizer.train(itertools.chain.from_iterable(documents), **options)
            write_text(path, tokenizer.model)
        tokenizer = Tokenizer.load(folder)
        if missing := [piece for piece in FIRST if tokenizer.id(piece) is None]:
            raise UserError(f"{settings.model or path}: not a tokenizer of BERT: it lacks {', '.join(missing)}")
        if tokenizer.id("[PAD]"):
            raise UserError(f"{settings.model or path}: [PAD] has the id {tokenizer.id('[PAD]')}; in BERT it is 0")
        return tokenizer

    def model_sizes(self) -> dict[str, Any]:
        return {"vocab_size": len(self.tokenizer)}

    # Training

    def _special(self, piece: str) -> int:
        number = self.tokenizer.id(piece)
        assert number is not None  # checked by `tokenizer`
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
        corrupt = self.config.corrupt
        objective = (
            f"{corrupt.share:.0%} of the {'words' if corrupt.whole_words else 'tokens'}: {corrupt.mask:.0%} masked"
            f", {corrupt.random:.0%} random, {max(1 - corrupt.mask - corrupt.random, 0):.0%} kept"
        )
        if self.model.causal:
            objective = "every next token"
        return [
            ("training text", self.train_text.report),
            ("development text", self.dev_text.report),
            ("vocabulary", f"{len(self.tokenizer)} ({self.config.vocab.algorithm})"),
            ("predicted", objective + "; next sentences" * self.model.next_sentence),
        ]

    def masking(self, **changes: Any) -> Masking:
        """Return the masking of `config.corrupt`, with some settings changed; raises UserError for invalid shares."""
        special = np.zeros(len(self.tokenizer), bool)
        special[[self._special(piece) for piece in FIRST]] = True
        settings = {**self.config.corrupt, **changes}
        try:
            return Masking(**settings, mask_id=self._special("[MASK]"), special=special, starts=self.tokenizer.starts())
        except ValueError as error:
            raise UserError(f"config.corrupt: {error}") from None

    def _row_batches(
        self, kind: type[PairBatches | PackedExamples], text: Segments, masking: Masking, **options: Any
    ) -> Any:
        """Batches of at least 8 rows, so that 1, 2, 4 and 8 devices see the same ones."""
        max_length, positions = self.config.data.max_length, self.model.max_positions
        if max_length > positions:
            raise UserError(f"config.data.max_length={max_length} exceeds config.model.max_positions={positions}")
        pairs = SegmentPairs(
            text, next_sentence=self.model.next_sentence, cls=self._special("[CLS]"), sep=self._special("[SEP]")
        )
        return kind(pairs, self._corruption(masking), max_length=max_length, **options)

    def _corruption(self, masking: Masking) -> Corruption:
        """The masking, or that of left-to-right language modelling: none."""
        return LeftToRight() if self.model.causal else masking

    @functools.cached_property
    def _make_train_batches(self) -> Any:
        """Function that returns the training batches of `steps` steps."""
        options = {"batch_tokens": self.config.train.batch_tokens, "share": self._train_rows, "seed": self.config.seed}
        kind = PackedExamples if self.packing else PairBatches
        return functools.partial(self._row_batches, kind, self.train_text, self.masking(), **options)

    def batches(self, steps: int) -> PairBatches | PackedExamples:
        if (name := self.config.initialization) not in INITIALIZATIONS:
            raise UserError(f"config.initialization={name!r}: use one of {', '.join(INITIALIZATIONS)}")
        _ = self.dev_batches  # errors in the development text are reported now, not at the first evaluation
        return self._make_train_batches(steps=steps)

    def dummy_batch(self, shape: tuple[int, ...]) -> Batch:
        """A batch of shape (rows, S), or with packing (rows, S, P)."""
        if self.packing:
            batch = fill_examples([], [], [], shape)
        else:
            rows, length = shape
            batch = empty_rows(rows, length, self._corruption(self.masking()), self.model.next_sentence)
        filled = {"ids": self._special("[UNK]"), "packing": 1, "weights": 1.0, "next_sentence": NEXT}
        return {name: np.full_like(array, filled.get(name, 0)) for name, array in batch.items()}

    def stand_in(self) -> None:
        self._assume(tokenizer=StandIn(self.config.vocab.size))

    def row_lengths(self, share: float) -> tuple[int, ...]:
        length = self.config.data.max_length
        return (length, self._corruption(self.masking()).max_positions(length)) if self.packing else (length,)

    def num_tokens(self, shape: tuple[int, ...]) -> int:
        """All tokens."""
        return shape[0] * shape[1]

    def init(self, rng: jax.Array) -> Any:
        ids = jnp.zeros((1, 2), jnp.int32)
        params = self.model.init(rng, ids, ids == 0, ids, ids)["params"]
        if self.config.initialization == "mimetic":
            params = {**params, "encoder": mimetic(params["encoder"], self.model.num_heads)}
        return params

    def _apply(self, params: Any, batch: dict[str, jax.Array], **options: Any) -> tuple[jax.Array, dict[str, Any]]:
        ids, inputs = batch["ids"], (batch["segments"], batch["positions"])
        return self.model.apply({"params": params}, ids, ids != 0, *inputs, packing=batch.get("packing"), **options)

    def loss_fn(self, params: Any, batch: dict[str, jax.Array], step: Step | None) -> tuple[jax.Array, jax.Array]:
        """Cross-entropy of tokens and of next sentences in nats: (sum, number of predicted tokens)."""
        _, out = self._apply(params, batch, **dropout_options(step))
        options: dict[str, Any] = {"dtype": self.model.dtype, "shards": self._row_shards}
        loss, weight = losses.cross_entropy(
            out["hidden"], out["output_kernel"], batch["labels"], batch["weights"], **options
        )
        if "next_sentence" in out:
            # The factor is the same for all batches, so one division by the number of tokens serves both losses,
            # however the batch is cut into parts and spread over devices.
            loss += batch["labels"].shape[1] * label_loss(out["next_sentence"], batch["next_sentence"], 0.0)[0]
        return loss, weight

    # Evaluation

    @functools.cached_property
    def dev_batches(self) -> PairBatches:
        """One epoch of the development text, masked in the same way for every training objective.

        15 % of the tokens are predicted, all of them shown as [MASK]: tokens that the model can see would blur the
        figures.
        """
        masking = dataclasses.replace(self.masking(), share=0.15, mask=1.0, random=0.0, whole_words=False)
        options = {"batch_tokens": self.config.eval.batch_tokens, "share": self.evaluator.rows}
        return self._row_batches(PairBatches, self.dev_text, masking, **options)

    @compiled()
    def _measure(self, params: Any, batch: dict[str, jax.Array]) -> tuple[jax.Array, ...]:
        """Sums of losses, weights and correct predictions."""
        logits, out = self._apply(params, batch)
        weights = batch["weights"]
        loss = losses.smoothed_cross_entropy(logits, batch["labels"], 0.0)
        correct = jnp.argmax(logits, axis=-1) == batch["labels"]
        sums = (jnp.sum(loss * weights), jnp.sum(weights), jnp.sum(correct * weights))
        if "next_sentence" not in out:
            return sums
        correct_pairs = jnp.sum(jnp.argmax(out["next_sentence"], axis=-1) == batch["next_sentence"])
        return *sums, *label_loss(out["next_sentence"], batch["next_sentence"], 0.0), correct_pairs

    def evaluate(self, params: Any) -> dict[str, float]:
        """Return the measures of the development text.

        `dev/mlm_loss` is in nats per token, `dev/perplexity` its exponential, `dev/mlm_accuracy` and, with next
        sentences, `dev/nsp_accuracy` are percentages. `dev/loss` is nats per token plus nats per pair.
        """
        count = 6 if self.model.next_sentence else 3
        sums = self._totals(self._measure, params, in_order(self.dev_batches), count)
        loss = sums[0] / sums[1]
        measures = {
            "dev/mlm_loss": loss,
            "dev/perplexity": float(np.exp(loss)),
            "dev/mlm_accuracy": 100 * sums[2] / sums[1],
        }
        if self.model.next_sentence:
            loss += sums[3] / sums[4]
            measures["dev/nsp_accuracy"] = 100 * sums[5] / sums[4]
        return {"dev/loss": loss, **measures}

    # Filling in masks

    def fill_masks(self, params: Any, sentences: Sequence[str], random: Sequence[np.random.Generator]) -> list[str]:
        """Return the sentences with some of their pieces masked and sampled anew, all masks of a sentence at once.

        random: a generator per sentence, so that the result does not depend on other sentences. The end of a sentence
        that is too long for the model is not masked.
        """
        reader = RowReader(self.tokenizer.model, self.config.data.max_length, segments=True)
        masked = []
        for sentence, pieces, generator in zip(sentences, reader.pieces(sentences), random, strict=True):
            length = min(len(pieces.ids), reader.capacity(1))
            masked.append(Masked(sentence, pieces, choose_masked(length, generator) if length else np.zeros(0, int)))
        texts = []
        for first in range(0, len(masked), ROWS):
            batch = masked[first : first + ROWS]
            logits = self._mask_logits(params, reader, batch)
            for one, scores, generator in zip(batch, logits, random[first : first + ROWS], strict=True):
                sampled = (scores + generator.gumbel(size=scores.shape)).argmax(axis=-1)[: len(one.positions)]
                texts.append(one.filled(self.tokenizer.pieces(sampled)))
        return texts

    def fill(self, params: Any, text: str, count: int) -> list[list[Filling]]:
        """Return for each [MASK] of a text the `count` most probable pieces, best first, each mask on its own.

        Probabilities are among all pieces that are not special. Raises UserError if the text has no mask or too many
        pieces, or if the model reads from left to right.
        """
        if self.model.causal:
            raise UserError(f"{self.workdir}: a left-to-right model (model.causal=true) does not fill masks")
        reader = RowReader(self.tokenizer.model, self.config.data.max_length, segments=True)
        (pieces,) = reader.pieces([text])
        masking = self.masking()
        places = np.flatnonzero(pieces.ids == masking.mask_id)
        if not len(places):
            raise UserError(f"the text has no {self.mask}; write {self.mask} for each word that the model should find")
        if len(pieces.ids) > (most := reader.capacity(1)):
            raise UserError(f"the text has {len(pieces.ids)} pieces, but the model reads at most {most}")
        item, (begin,) = reader.row(pieces.ids)
        ids = padded(item["ids"], self.config.data.max_length, 0)
        positions = padded(begin + places, ids.shape[1], 0)
        logits = self.evaluator.fetch(self._logits(params, ids, positions))[0, : len(places)].astype(np.float64)
        check_outputs(logits)
        logits[:, masking.special] = -np.inf
        probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        found = []
        for place, row in zip(places, probabilities, strict=True):
            best = np.argsort(-row, kind="stable")[: min(count, np.count_nonzero(~masking.special))]
            one = Masked(text, pieces, np.array([place]))
            named = zip(self.tokenizer.pieces(best.tolist()), row[best].tolist(), strict=True)
            found.append([Filling(piece, p, one.filled([piece])) for piece, p in named])
        return found

    def _mask_logits(self, params: Any, reader: RowReader, batch: Sequence[Masked]) -> np.ndarray:
        """The logits of the masks, float64[B, P, V]; those of special pieces are -inf."""
        shape = (ROWS, self.config.data.max_length)  # always the same, so that samples do not depend on other sentences
        ids, positions = np.zeros(shape, np.int32), np.zeros((ROWS, MAX_MASKS), np.int32)
        masking = self.masking()
        for row, one in enumerate(batch):
            item, (begin,) = reader.row(*reader.fit([one.pieces.ids]))
            ids[row, : len(item["ids"])] = item["ids"]
            positions[row, : len(one.positions)] = begin + one.positions
            ids[row, begin + one.positions] = masking.mask_id
        logits = np.array(self._logits(params, ids, positions), np.float64)
        logits[:, :, masking.special] = -np.inf
        return logits[: len(batch)]

    @compiled()
    def _logits(self, params: Any, ids: jax.Array, positions: jax.Array) -> jax.Array:
        return self.model.apply({"params": params}, ids, ids != 0, jnp.zeros_like(ids), positions)[0]
