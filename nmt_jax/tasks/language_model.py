"""Language modelling: text in, the probability of every next token and new text out."""

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from metrics_jax.embedding.lengths import bucket, pack_by_length
from nmt_jax.checkpoints.finite import check_outputs
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.batching.packed_lines import PackedLines
from nmt_jax.data.batching.text_blocks import Blocks, ContinuedBlocks, rows_per_batch, windows
from nmt_jax.data.prepared import streams
from nmt_jax.data.readers.monolingual import open_lines
from nmt_jax.data.vocabulary.stand_in import StandIn
from nmt_jax.data.vocabulary.vocab import EOS, PAD, Vocab
from nmt_jax.decoding.next_logits import NextLogits, predict
from nmt_jax.decoding.sampling import Sampling, sample
from nmt_jax.errors import UserError
from nmt_jax.losses.activations import activation_penalty, temporal_penalty
from nmt_jax.losses.step import Step
from nmt_jax.models.layers.text_attention import TextAttention, padded
from nmt_jax.platforms import compiled
from nmt_jax.progress import track
from nmt_jax.tasks.objectives import dropout_options, row_log_probs, token_loss
from nmt_jax.tasks.predictions import Candidate, Prediction
from nmt_jax.tasks.task import BatchSource, Task, in_order
from nmt_jax.tasks.vocab_files import load_or_train_vocab

ROWS = 32  # samples drawn together; the number is fixed, so that one program serves all
MOST_PIECES, MOST_LOGITS = 4096, 1 << 28  # of a text that a model without max_positions reads at once


class RunningText(Task):
    """A task that reads a corpus as one long text, in blocks to train on and overlapping windows to evaluate on."""

    measures = ("loss", "perplexity")
    unit = "tokens"

    @property
    def text_start(self) -> int:
        """The token before the first one of a text."""
        return EOS

    def row_lengths(self, share: float) -> tuple[int, ...]:
        return (self.config.data.block_length,)

    def _blocks(self, ids: np.ndarray, steps: int) -> Blocks:
        """The training batches of a text int[N]."""
        options = {"batch_tokens": self.config.train.batch_tokens, "seed": self.config.seed, "steps": steps}
        return Blocks(ids, block_length=self.config.data.block_length, share=self._train_rows, **options)

    def _windows(self, ids: np.ndarray) -> Iterator[Batch]:
        """Batches in which every token of a text int[N] is predicted once, after at least `eval.context` others.

        Raises UserError at once, not at the first batch, if the settings are invalid.
        """
        settings, length = self.config.eval, self.config.data.block_length
        rows = rows_per_batch(settings.batch_tokens, length, self.evaluator.row_shards, "config.eval.batch_tokens")
        return windows(ids, block_length=length, context=settings.context, rows=rows, start=self.text_start)


class LanguageModel(RunningText):
    """The language-modelling task of one workdir, for any model that reads from left to right.

    The model has three methods. `__call__(tokens int[B, T], train)` returns logits float[B, T, V] of the token after
    each token, and named intermediates (`hidden` and `output_kernel` if the logits are their product).
    `init_cache(batch_size, max_length)` returns a cache. `decode_step(tokens int[B], cache)` returns logits float[B, V]
    and the new cache.
    """

    next_command = "nmt-jax generate --workdir={workdir}"

    @functools.cached_property
    def vocab(self) -> Vocab:
        """The vocabulary: from `config.vocab.model`, or trained on the text; then read from the workdir."""
        path, settings = self.workdir / "vocab" / "text.model", self.config.vocab
        lines = functools.partial(open_lines, self.config.data, "train")
        return load_or_train_vocab(path, settings.model, settings, lambda: track(lines(), "reading for the vocabulary"))

    @property
    def text_start(self) -> int:
        return self.vocab.start

    def model_sizes(self) -> dict[str, Any]:
        return {"vocab_size": len(self.vocab)}

    @property
    def carries_state(self) -> bool:
        """Whether the state is carried from block to block; False in workdirs of older versions."""
        return bool(self.config.data.get("carry_state"))

    # Training

    @functools.lru_cache(maxsize=2)  # noqa: B019  a task lives as long as the program
    def _text(self, split: str) -> streams.Stream:
        """The text of a split as token ids."""
        return streams.prepare_tokens(self.config.data, split, self.vocab)

    def summary(self) -> list[tuple[str, str]]:
        return [
            ("training text", self._text("train").report),
            ("development text", self._text("dev").report),
            ("vocabulary", f"{len(self.vocab)} ({self.config.vocab.algorithm})"),
        ]

    def batches(self, steps: int) -> BatchSource:
        self._check_positions(self.config.data.block_length, "config.data.block_length")
        self._scored(self._text("dev").ids)  # invalid settings are reported now, not at the first evaluation
        ids = self._text("train").ids
        options = {"batch_tokens": self.config.train.batch_tokens, "seed": self.config.seed, "steps": steps}
        options |= {"block_length": self.config.data.block_length, "share": self._train_rows}
        if self.carries_state:
            return ContinuedBlocks(ids, **options)
        if not self.packing:
            return self._blocks(ids, steps)
        lines = PackedLines(ids, **options)
        return self._with_curriculum(lines, lines.difficulty)

    def dummy_batch(self, shape: tuple[int, ...]) -> Batch:
        """A batch of shape (rows, T)."""
        rows, length = shape
        if self.packing:
            tokens, ones = np.full(shape, EOS, np.int32), np.ones(shape, np.int32)
            return {"inputs": tokens, "labels": tokens, "packing": ones, "weights": ones.astype(np.float32)}
        return {"tokens": np.full((rows, length + 1), EOS, np.int32), "weights": np.ones((rows, length), np.float32)}

    def stand_in(self) -> None:
        self._assume(vocab=StandIn(self.config.vocab.size))

    def init(self, rng: jax.Array) -> Any:
        return self.model.init(rng, jnp.full((1, 2), EOS, jnp.int32))["params"]

    def init_carry(self, rows: int) -> Any:
        """The decoding cache of an empty text."""
        if not self.carries_state:
            return ()
        length = max(self.config.data.block_length, getattr(self.model, "pointer_window", 0))
        return self.model.init_with_output(jax.random.key(0), rows, length, method="init_cache")[0]

    def loss_fn(self, params: Any, batch: dict[str, jax.Array], step: Step | None) -> tuple[Any, ...]:
        """Cross-entropy of every next token in nats, in training with label smoothing and penalties: (sum, weight).

        With `data.carry_state`, the cache after the block is returned, too, in training.
        """
        return self._loss(params, batch, step, step.carry if step else ())

    def _loss(self, params: Any, batch: dict[str, jax.Array], step: Step | None, cache: Any) -> tuple[Any, ...]:
        """`loss_fn` of blocks that follow a cache, if it is not ()."""
        options = dropout_options(step)
        if cache:
            options["cache"] = cache
        if "packing" in batch:
            inputs, labels, options["packing"] = batch["inputs"], batch["labels"], batch["packing"]
        else:
            inputs, labels = batch["tokens"][:, :-1], batch["tokens"][:, 1:]
        smoothing = self.config.loss.label_smoothing if step else 0.0
        logits, out = self.model.apply({"params": params}, inputs, **options)
        weights, shards = batch["weights"], self._row_shards
        loss, weight = token_loss(logits, out, labels, weights, smoothing, self.model.dtype, shards)
        settings = self.config.loss
        if step and settings.get("activation_penalty"):  # workdirs of older versions have none
            loss += settings.activation_penalty * activation_penalty(out["dropped"], weights)
        if step and settings.get("temporal_penalty"):
            loss += settings.temporal_penalty * temporal_penalty(out["outputs"], weights)
        return (loss, weight, out["cache"]) if cache else (loss, weight)

    def _check_positions(self, length: int, what: str) -> None:
        """Raise UserError if the model has a table of positions with fewer than `length` entries."""
        most = getattr(self.model, "max_positions", length)
        if length > most:
            raise UserError(f"{what}: {length} exceeds config.model.max_positions={most}")

    def evaluate(self, params: Any) -> dict[str, float]:
        """Return `dev/loss` (nats per token, line ends included) and `dev/perplexity`."""
        nats, tokens = self.surprise(params, self._text("dev").ids)
        return {"dev/loss": nats / tokens, "dev/perplexity": float(np.exp(nats / tokens))}

    # Scoring and generating text

    def encode(self, lines: Iterable[str]) -> np.ndarray:
        """Return consecutive lines as token ids int32[N], with the end of a line after each."""
        return np.array([token for ids in streams.encode(lines, self.vocab) for token in ids], np.int32)

    def _scored(self, ids: np.ndarray) -> Iterator[Batch]:
        """Batches in which every token of a text int[N] is predicted once: as `_windows`, or each line on its own."""
        if not self.packing:
            return self._windows(ids)
        settings, length = self.config.eval, self.config.data.block_length
        options = {
            "batch_tokens": settings.batch_tokens,
            "context": settings.context,
            "key": "config.eval.batch_tokens",
        }
        return in_order(PackedLines(ids, block_length=length, share=self.evaluator.rows, **options))

    def surprise(self, params: Any, ids: np.ndarray) -> tuple[float, float]:
        """Return the negative log-probability in nats of a text int[N] that ends in EOS, and its number of tokens.

        Every token is predicted once, after at least `eval.context` tokens if there are that many; with `data.packing`,
        only tokens of the same line count. With `data.carry_state`, it is predicted after all tokens before it.
        """
        if self.carries_state:
            nats, tokens = self._surprise_of_stream(params, ids)
        else:
            nats, tokens = self._totals(self._eval_loss, params, self._scored(ids))
        check_outputs(nats)
        return nats, tokens

    @compiled()
    def _carried_loss(self, params: Any, batch: dict[str, jax.Array], cache: Any) -> Any:
        """The loss of blocks that follow a cache, and the cache after them."""
        return self._loss(params, batch, None, cache)

    def _surprise_of_stream(self, params: Any, ids: np.ndarray) -> tuple[float, float]:
        """`surprise` of a text that is read in one go, block after block."""
        rows, length = self.evaluator.row_shards, self.config.data.block_length
        cache = self.evaluator.fetch(jax.jit(self.init_carry, static_argnums=0)(rows))
        nats = tokens = 0.0
        for block in windows(ids, block_length=length, context=0, rows=1, start=self.text_start):
            # One row is the text; the other devices have nothing to do.
            batch = {name: np.pad(array, ((0, rows - 1), (0, 0))) for name, array in block.items()}
            more, weight, cache = self.evaluator.run(self._carried_loss, params, batch, cache)
            nats, tokens = nats + float(more), tokens + float(weight)
        return nats, tokens

    @compiled()
    def _row_log_probs(self, params: Any, batch: dict[str, jax.Array]) -> jax.Array:
        logits, out = self.model.apply({"params": params}, batch["tokens"][:, :-1])
        return row_log_probs(logits, out, batch["tokens"][:, 1:], batch["weights"], self.model.dtype)

    def log_probabilities(self, params: Any, lines: Sequence[str]) -> np.ndarray:
        """Return the log-probability in nats of each of N lines, its end included, float64[N].

        Each line follows the end of a line and depends on no other. One of more than `data.block_length` tokens is read
        in windows, as in `surprise`.
        """
        settings, length = self.config.eval, self.config.data.block_length
        options = {"block_length": length, "context": settings.context, "rows": 1, "start": self.text_start}
        rows = [(number, row) for number, line in enumerate(lines) for row in windows(self.encode([line]), **options)]
        sizes = [int(np.flatnonzero(row["weights"][0])[-1]) + 1 for _, row in rows]
        totals = np.zeros(len(lines))
        padded = functools.partial(bucket, max_length=length, steps=2)
        for chosen, count, width in pack_by_length(sizes, settings.batch_tokens, self.evaluator.row_shards, padded):
            tokens, weights = np.full((count, width + 1), PAD, np.int32), np.zeros((count, width), np.float32)
            for place, item in enumerate(chosen):
                tokens[place], weights[place] = (
                    rows[item][1]["tokens"][0, : width + 1],
                    rows[item][1]["weights"][0, :width],
                )
            found = self.evaluator.run(self._row_log_probs, params, {"tokens": tokens, "weights": weights})
            check_outputs(found[: len(chosen)])
            np.add.at(totals, [rows[item][0] for item in chosen], found[: len(chosen)])
        return totals

    @compiled(static_argnames="sampling")
    def _sample(
        self, params: Any, prefix: jax.Array, limits: jax.Array, seeds: jax.Array, sampling: Sampling
    ) -> tuple[jax.Array, jax.Array]:
        def step(tokens: jax.Array, cache: Any) -> tuple[NextLogits, Any]:
            logits, cache = self.model.apply({"params": params}, tokens, cache, method="decode_step")
            return predict(logits, self.vocab.suppressed), cache

        cache = self.model.apply({"params": params}, *prefix.shape, method="init_cache")
        # In training a line follows the end of the line before it.
        keys = jax.random.wrap_key_data(seeds)
        return sample(step, cache, prefix, limits, keys, sampling, start=self.text_start, eos=self.vocab.end)

    def draw(
        self, params: Any, prompts: Sequence[str], keys: jax.Array, sampling: Sampling, *, length: int = 100
    ) -> list[np.ndarray]:
        """Return for each prompt the tokens int32[T] of a line: those of the prompt and at most `length` after it.

        keys [N]: a random key per prompt. A line is a pure function of its prompt, its key and the settings; it does
        not depend on the other prompts. `num_samples` and `seed` of `sampling` are not used.
        """
        ids = [self.encode([prompt])[:-1] for prompt in prompts]
        seeds = np.asarray(jax.random.key_data(keys))
        num_rows = math.lcm(ROWS, self.evaluator.row_shards)
        rows: list[np.ndarray] = []
        for first in range(0, len(ids), num_rows):
            group = ids[first : first + num_rows]
            longest = max(map(len, group))
            rounded = 1 << (longest - 1).bit_length() if longest else 0  # few lengths to compile for
            max_length = rounded + length
            what = "the length of a prompt, rounded up to a power of two, plus the tokens drawn (--length)"
            self._check_positions(max_length, what)
            prefix = np.full((num_rows, max_length), PAD, np.int32)
            limits = np.zeros(num_rows, np.int32)
            for row, prompt in enumerate(group):
                prefix[row, : len(prompt)] = prompt
                limits[row] = len(prompt) + length
            batch = (prefix, limits, seeds[np.minimum(first + np.arange(num_rows), len(seeds) - 1)])
            drawn, log_probs = self.evaluator.run(self._sample, params, *batch, sampling=sampling)
            check_outputs(log_probs[: len(group)])
            rows += [np.trim_zeros(row, "b") for row in drawn[: len(group)]]
        return rows

    def text_of(self, ids: np.ndarray) -> str:
        """Return the line of tokens int[T]."""
        return " ".join(filter(None, self.vocab.decode(ids).split(" ")))  # UNK is decoded with extra blanks

    def sample(
        self, params: Any, prompts: Sequence[str], keys: jax.Array, sampling: Sampling, *, length: int = 100
    ) -> list[str]:
        """Return for each prompt a line: the prompt and at most `length` tokens after it; arguments as for `draw`."""
        return [self.text_of(ids) for ids in self.draw(params, prompts, keys, sampling, length=length)]

    # What the model predicts and attends to

    @compiled(static_argnames="count")
    def _best(
        self, params: Any, tokens: jax.Array, following: jax.Array, count: int
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Log-probabilities after each token int[1, S]: of the following ones float32[S], and the best [S, count]."""
        logits = self.model.apply({"params": params}, tokens)[0][0]
        log_probs = predict(logits, self.vocab.suppressed).log_probs
        own = jnp.take_along_axis(log_probs, following[0, :, None], axis=1)[:, 0]
        return own, *jax.lax.top_k(log_probs, count)

    def predictions(self, params: Any, ids: np.ndarray, count: int) -> tuple[list[Prediction], list[Candidate]]:
        """Return the T pieces of a text int[T] with their probabilities, and what may come after them.

        count: number of the most probable pieces at each place. Raises UserError if the text is too long.
        """
        count = min(count, len(self.vocab) - len(self.vocab.suppressed))
        batch = self._after_line_end(ids)
        following = np.append(batch[:, 1:], np.full((1, 1), self.vocab.end, np.int32), axis=1)
        own, values, best = self.evaluator.fetch(self._best(params, batch, following, count=count))
        check_outputs(own[: len(ids)])
        pieces = self.vocab.pieces(ids.tolist())
        candidates = [
            [Candidate(piece, float(p)) for piece, p in zip(self.vocab.pieces(row), np.exp(logs), strict=True)]
            for row, logs in zip(best[: len(ids) + 1], values, strict=False)
        ]
        shown = [Prediction(*one) for one in zip(pieces, np.exp(own).tolist(), candidates, strict=False)]
        return shown, candidates[-1]

    def next_pieces(self, params: Any, text: str, count: int) -> list[Candidate]:
        """Return the most probable pieces after the beginning of a line, best first."""
        return self.predictions(params, self.encode([text])[:-1], count)[1]

    def _after_line_end(self, ids: np.ndarray) -> np.ndarray:
        """A text int[T] as the model reads it, after the end of a line: int32[1, S]. Raises UserError if too long."""
        most = getattr(self.model, "max_positions", min(MOST_PIECES, MOST_LOGITS // len(self.vocab)))
        if len(ids) + 1 > most:
            raise UserError(f"the text has {len(ids)} pieces, but the model reads at most {most - 1}")
        return padded(np.append(np.int32(self.text_start), ids), most, PAD)

    @property
    def has_attention(self) -> bool:
        """Whether the model has layers of attention."""
        return hasattr(self.model, "num_heads") or getattr(self.model, "cell", "") == "lstmn"

    def check_attention(self) -> None:
        """Raise UserError if the model has no attention."""
        if self.has_attention:
            return
        state = "has no attention: it reads piece by piece into a state"
        pointer = getattr(self.model, "pointer_window", 0)
        aside = "; its pointer selects earlier words, but only to predict" if pointer else ""
        raise UserError(f"{self.workdir}: a recurrent language model {state}{aside}")

    @compiled()
    def _attention_weights(self, params: Any, tokens: jax.Array) -> Any:
        """The compiler removes all computation that the weights do not need."""
        return self.model.apply({"params": params}, tokens)[1]["attention"]

    def attention(self, params: Any, text: str) -> TextAttention:
        """Return the pieces of a line, after the </s> of the line before it, and the weights between them.

        Raises UserError if the model has no attention, or if the text is too long.
        """
        self.check_attention()
        ids = self.encode([text])[:-1]
        layers = self.evaluator.fetch(self._attention_weights(params, self._after_line_end(ids)))
        length = len(ids) + 1
        return TextAttention(self.vocab.pieces([self.text_start, *ids]), np.concatenate(layers)[..., :length, :length])
