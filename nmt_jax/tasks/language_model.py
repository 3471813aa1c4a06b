"""Language modelling: a text in one language in, the probability of every next piece and new text out."""

import functools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from nmt_jax import config as configs
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.batching.text_blocks import Blocks, rows_per_batch, windows
from nmt_jax.data.prepared import token_stream
from nmt_jax.data.readers.monolingual import open_lines
from nmt_jax.data.vocabulary.vocab import BOS, EOS, PAD, Vocab
from nmt_jax.decoding.next_logits import NextLogits, predict
from nmt_jax.decoding.sampling import Sampling, sample
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses import cross_entropy as losses
from nmt_jax.losses.step import Step
from nmt_jax.models.registry import model_class
from nmt_jax.progress import track

ROWS = 32  # samples drawn together, always as many, so that one program serves all


class LanguageModel:
    """The language-modelling task (`tasks.Task`) of one workdir, for any model that reads from left to right.

    The model has three methods: `__call__(tokens int[B, T], train)` -> logits float[B, T, V] of what follows each token
    and named intermediates (`hidden` and `output_kernel` where the logits are their product), `init_cache(batch_size,
    max_length)` and `decode_step(tokens int[B], cache)` -> logits float[B, V], cache.
    """

    measures = ("loss", "perplexity")
    unit = "tokens"
    next_command = "nmt-jax generate --workdir={workdir}"

    def __init__(self, config: ConfigDict, workdir: Path, mesh: Mesh) -> None:
        self.config = config
        self.workdir = Path(workdir)
        self.mesh, self.local_mesh = mesh, sharding.local(mesh)

    @functools.cached_property
    def vocab(self) -> Vocab:
        """The workdir's vocabulary, else the given one, else one trained on the text and saved."""
        settings = self.config.vocab
        path = self.workdir / "vocab" / "text.model"
        if not path.exists():
            if settings.model:
                vocab = Vocab.load(settings.model)
            else:
                vocab = Vocab.train(
                    track(open_lines(self.config.data, "train"), "reading for the vocabulary"),
                    size=settings.size,
                    algorithm=settings.algorithm,
                    byte_fallback=settings.byte_fallback,
                )
            vocab.save(path)
        return Vocab.load(path)

    @functools.cached_property
    def model(self) -> Any:
        """The linen module that `config.model_name` and `config.model` describe; its fields are the schema."""
        return configs.build_model(model_class(self.config.model_name), self.config.model, vocab_size=len(self.vocab))

    # Training

    @functools.cached_property
    def train_text(self) -> token_stream.Stream:
        """The training text as piece numbers."""
        return token_stream.prepare(self.config.data, "train", self.vocab)

    @functools.cached_property
    def dev_text(self) -> token_stream.Stream:
        """The development text as piece numbers."""
        return token_stream.prepare(self.config.data, "dev", self.vocab)

    def summary(self) -> list[tuple[str, str]]:
        """Rows for the start table: texts and vocabulary."""
        return [
            ("training text", self.train_text.report),
            ("development text", self.dev_text.report),
            ("vocabulary", f"{len(self.vocab)} ({self.config.vocab.algorithm})"),
        ]

    def batches(self, steps: int) -> Blocks:
        """The training batches of `steps` steps."""
        config = self.config
        self._check_positions(config.data.block_length, "config.data.block_length")
        self._windows(self.dev_text.ids)  # a mistake in its settings is told now, not at the first evaluation
        return Blocks(
            self.train_text.ids,
            block_length=config.data.block_length,
            batch_tokens=config.train.batch_tokens,
            share=sharding.share(self.mesh, config.train.accumulate),
            seed=config.seed,
            steps=steps,
        )

    def dummy_batch(self, shape: tuple[int, ...]) -> Batch:
        """(rows, T) -> a full batch."""
        rows, length = shape
        return {"tokens": np.full((rows, length + 1), EOS, np.int32), "weights": np.ones((rows, length), np.float32)}

    def init(self, rng: jax.Array) -> Any:
        """-> parameters."""
        return self.model.init(rng, jnp.full((1, 2), EOS, jnp.int32))["params"]

    def warm_start(self, params: Any) -> Any:
        """All of them are learned here."""
        return params

    def loss_fn(self, params: Any, batch: dict[str, jax.Array], step: Step | None) -> tuple[jax.Array, jax.Array]:
        """Cross-entropy of every next piece, in nats, label-smoothed when training -> (sum, weight)."""
        options: dict[str, Any] = {"train": True, "rngs": {"dropout": step.rng}} if step else {}
        labels, weights = batch["tokens"][:, 1:], batch["weights"]
        smoothing = self.config.loss.label_smoothing if step else 0.0
        logits, out = self.model.apply({"params": params}, batch["tokens"][:, :-1], **options)
        if "output_kernel" not in out:
            loss = losses.smoothed_cross_entropy(logits, labels, smoothing)
            return jnp.sum(loss * weights), jnp.sum(weights)
        # The same loss without ever holding all logits, which jit then does not compute.
        return losses.cross_entropy(out["hidden"], out["output_kernel"], labels, weights, smoothing, self.model.dtype)

    def _check_positions(self, length: int, what: str) -> None:
        """UserError for more tokens than a model with a table of positions can read."""
        most = getattr(self.model, "max_positions", length)
        if length > most:
            raise UserError(f"{what}: {length} are more than config.model.max_positions={most}")

    @functools.cached_property
    def _eval_loss(self) -> Any:
        return jax.jit(functools.partial(self.loss_fn, step=None))

    def evaluate(self, params: Any) -> dict[str, float]:
        """-> `dev/loss` (nats a piece, ends of lines included), `dev/perplexity`."""
        nats, tokens = self.surprise(params, self.dev_text.ids)
        return {"dev/loss": nats / tokens, "dev/perplexity": float(np.exp(nats / tokens))}

    # Measuring and writing text

    def encode(self, lines: Iterable[str]) -> np.ndarray:
        """The pieces int32[N] of lines that follow each other, EOS after each: see `token_stream.encode`."""
        return np.array([piece for ids in token_stream.encode(lines, self.vocab) for piece in ids], np.int32)

    def surprise(self, params: Any, ids: np.ndarray) -> tuple[float, float]:
        """The negative log-probability of a text int[N] that ends in EOS, in nats, and its number of tokens.

        Every token is predicted once, from at least `eval.context` tokens before it where there are as many.
        """
        total = weight = 0.0
        for batch in self._windows(ids):
            loss, count = self._eval_loss(params, sharding.shard_batch(batch, self.local_mesh))
            total, weight = total + float(loss), weight + float(count)
        return total, weight

    def _windows(self, ids: np.ndarray) -> Iterator[Batch]:
        settings, length = self.config.eval, self.config.data.block_length
        rows = rows_per_batch(settings.batch_tokens, length, self.local_mesh.shape["data"], "config.eval.batch_tokens")
        return windows(ids, block_length=length, context=settings.context, rows=rows)

    @functools.cached_property
    def _sample(self) -> Any:
        """One compiled program a length and way of drawing."""

        def draw(params: Any, given: jax.Array, limits: jax.Array, keys: jax.Array, sampling: Sampling) -> jax.Array:
            def step(tokens: jax.Array, cache: Any) -> tuple[NextLogits, Any]:
                logits, cache = self.model.apply({"params": params}, tokens, cache, method="decode_step")
                return predict(logits, (PAD, BOS)), cache

            cache = self.model.apply({"params": params}, *given.shape, method="init_cache")
            # A text begins as a line does: after the end of another.
            return sample(step, cache, given, limits, keys, sampling, start=EOS, eos=EOS)[0]

        return jax.jit(draw, static_argnames="sampling")

    def sample(
        self, params: Any, prompts: Sequence[str], keys: jax.Array, sampling: Sampling, *, length: int = 100
    ) -> list[str]:
        """For each prompt the line that it and at most `length` pieces after it make.

        keys [N], one a prompt: a line is a pure function of its prompt, its key and the settings, whatever stands
        beside it. How it is drawn: see `decoding.sample`; the number of samples and the seed are those of the keys.
        """
        ids = [self.encode([prompt])[:-1] for prompt in prompts]
        texts = []
        for first in range(0, len(ids), ROWS):
            group = ids[first : first + ROWS]
            longest = max(map(len, group))
            room = (1 << (longest - 1).bit_length() if longest else 0) + length  # few lengths to compile for
            self._check_positions(
                room, "the pieces of a prompt, rounded up to a power of two, and those drawn (--length)"
            )
            given = np.full((ROWS, room), PAD, np.int32)
            limits = np.zeros(ROWS, np.int32)
            for row, prompt in enumerate(group):
                given[row, : len(prompt)] = prompt
                limits[row] = len(prompt) + length
            rows = keys[jnp.minimum(first + jnp.arange(ROWS), len(keys) - 1)]
            drawn = self._sample(params, given, limits, rows, sampling=sampling)
            lines = [self.vocab.decode(row) for row in np.asarray(drawn)[: len(group)]]
            texts += [" ".join(filter(None, line.split(" "))) for line in lines]  # UNK comes with blanks of its own
        return texts
