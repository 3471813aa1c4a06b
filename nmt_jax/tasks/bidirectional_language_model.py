"""Language modelling in both directions, over words that are read by their characters: ELMo's pretraining."""

import functools
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
from nmt_jax.data.batching.text_blocks import Blocks, rows_per_batch, windows
from nmt_jax.data.readers.monolingual import open_lines
from nmt_jax.data.vocabulary import word_types
from nmt_jax.data.vocabulary.vocab import EOS
from nmt_jax.data.vocabulary.word_types import WordTypes
from nmt_jax.data.vocabulary.words import Words
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses import cross_entropy as losses
from nmt_jax.losses.sampled_softmax import log_uniform, log_uniform_probability, sampled_cross_entropy
from nmt_jax.losses.step import Step
from nmt_jax.models.registry import model_class
from nmt_jax.progress import track

END, UNKNOWN = 0, 1  # classes of the softmax: an end of line, any other word; then the words, most frequent first


def spell(batch: Batch, characters: np.ndarray, classes: np.ndarray) -> Batch:
    """A batch of blocks or windows -> characters int16[B, T + 1, C], classes int32[B, T + 1], weights float32[B, T].

    Weight t belongs to two predictions: of word t + 1 from those up to t, and of word t from those from t + 1 on.
    """
    tokens = batch["tokens"]
    return {"characters": characters[tokens], "classes": classes[tokens], "weights": batch["weights"]}


class SpeltBlocks:
    """The batches of `Blocks`, spelt (`tasks.BatchSource`)."""

    def __init__(self, blocks: Blocks, characters: np.ndarray, classes: np.ndarray):
        self.blocks, self.characters, self.classes = blocks, characters, classes
        self.shapes = blocks.shapes

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, index: int) -> Batch:
        return spell(self.blocks[index], self.characters, self.classes)


class BidirectionalLanguageModel:
    """The task (`tasks.Task`) of one workdir: each word from those before it, and from those after it.

    Words that the vocabulary lacks are one class to predict, but are read by their own characters like all others.
    """

    measures = ("loss", "perplexity")
    unit = "tokens"
    next_command = "nmt-jax train --config=configs/elmo_tagger.py --config.data.elmo={workdir} --workdir=FOLDER"

    def __init__(self, config: ConfigDict, workdir: Path, mesh: Mesh) -> None:
        self.config = config
        self.workdir = Path(workdir)
        self.mesh, self.local_mesh = mesh, sharding.local(mesh)

    @functools.cached_property
    def words(self) -> Words:
        """The workdir's words, else those of the training text, counted and saved."""
        path = self.workdir / "vocab" / "words.txt"
        if not path.exists():
            settings = self.config.vocab
            Words.count(self._lines("train"), min_count=settings.min_count, size=settings.size).save(path)
        return Words.load(path)

    @property
    def num_classes(self) -> int:
        """Of the softmax."""
        return UNKNOWN + len(self.words)

    @functools.cached_property
    def model(self) -> Any:
        """The linen module that `config.model_name` and `config.model` describe; its fields are the schema."""
        return configs.build_model(model_class(self.config.model_name), self.config.model, vocab_size=self.num_classes)

    # Text

    def _lines(self, split: str) -> Iterator[list[str]]:
        lines = open_lines(self.config.data, split)
        return map(word_types.split, track(lines, f"reading {lines.name}"))

    @functools.lru_cache(maxsize=2)  # noqa: B019  a task lives as long as the program
    def _text(self, split: str) -> WordTypes:
        text = WordTypes.read(self._lines(split))
        if not text.words:
            raise UserError(f"{open_lines(self.config.data, split).name}: no text, only empty lines")
        return text

    def _classes(self, text: WordTypes) -> np.ndarray:
        """int32[FIRST + n]: the class of each of a text's words."""
        known = [UNKNOWN + self.words.encode([word])[0] for word in text.words]  # a word that has no number has 0
        specials = np.full(word_types.FIRST, END)
        return np.concatenate([specials, known]).astype(np.int32)

    def summary(self) -> list[tuple[str, str]]:
        """Rows for the start table: texts and vocabulary."""
        rows = []
        for name, split in (("training text", "train"), ("development text", "dev")):
            text = self._text(split)
            unknown = float(np.mean(self._classes(text)[text.ids] == UNKNOWN))
            said = f"{len(text.ids):,} words with the ends of lines, {len(text.words):,} different ones"
            rows.append((name, f"{open_lines(self.config.data, split).name}: {said}; {unknown:.1%} unknown"))
        least = self.words.counts[-1]
        return [*rows, ("vocabulary", f"{len(self.words) - 1:,} words that come {least:,} times or more")]

    def batches(self, steps: int) -> SpeltBlocks:
        """The training batches of `steps` steps."""
        config, text = self.config, self._text("train")
        if config.loss.num_sampled < 0:
            raise UserError(f"config.loss.num_sampled={config.loss.num_sampled}: words to sample, or 0 for all")
        self._windows(self._text("dev").ids)  # a mistake in its settings is told now, not at the first evaluation
        blocks = Blocks(
            text.ids,
            block_length=config.data.block_length,
            batch_tokens=config.train.batch_tokens,
            share=sharding.share(self.mesh, config.train.accumulate),
            seed=config.seed,
            steps=steps,
        )
        return SpeltBlocks(blocks, text.characters(self.model.max_characters), self._classes(text))

    def dummy_batch(self, shape: tuple[int, ...]) -> Batch:
        """(rows, T) -> a full batch."""
        rows, length = shape
        characters = np.full((rows, length + 1, self.model.max_characters), word_types.WORD_BEGIN, np.int16)
        classes = np.full((rows, length + 1), UNKNOWN, np.int32)
        return {"characters": characters, "classes": classes, "weights": np.ones((rows, length), np.float32)}

    # Learning and measuring

    def init(self, rng: jax.Array) -> Any:
        """-> parameters."""
        return self.model.init(rng, self.dummy_batch((1, 1))["characters"])["params"]

    def warm_start(self, params: Any) -> Any:
        """All of them are learned here."""
        return params

    def loss_fn(self, params: Any, batch: dict[str, jax.Array], step: Step | None) -> tuple[jax.Array, jax.Array]:
        """Cross-entropy in nats, the mean of both directions -> (sum, weight); in training perhaps of a sample."""
        forward, backward = self._losses(params, batch, step)
        return (forward + backward) / 2, jnp.sum(batch["weights"])

    def _losses(self, params: Any, batch: dict[str, jax.Array], step: Step | None) -> list[jax.Array]:
        """The sum of each direction."""
        options: dict[str, Any] = {"train": True, "rngs": {"dropout": step.rng}} if step else {}
        characters, classes, weights = batch["characters"].astype(jnp.int32), batch["classes"], batch["weights"]
        forward, backward = self.model.apply({"params": params}, characters, **options)
        kernel = self.model.apply({"params": params}, method="output_kernel")
        size, num_sampled, dtype = self.num_classes, self.config.loss.num_sampled, self.model.dtype
        found = []
        for number, (hidden, labels) in enumerate(
            ((forward[:, :-1], classes[:, 1:]), (backward[:, 1:], classes[:, :-1]))
        ):
            if step and num_sampled:
                samples = log_uniform(jax.random.fold_in(step.rng, number), num_sampled, size)
                proposal = (log_uniform_probability(labels, size), log_uniform_probability(samples, size))
                loss, _ = sampled_cross_entropy(hidden, kernel, labels, weights, samples, proposal, dtype)
            else:
                loss, _ = losses.cross_entropy(hidden, kernel, labels, weights, dtype=dtype)
            found.append(loss)
        return found

    def evaluate(self, params: Any) -> dict[str, float]:
        """-> `dev/loss` (nats a word, ends of lines included, the mean of both directions) and perplexities."""
        forward, backward = self.surprise(params, self._text("dev"))
        loss = (forward + backward) / 2
        named = {"perplexity": loss, "forward_perplexity": forward, "backward_perplexity": backward}
        return {"dev/loss": loss, **{f"dev/{name}": math.exp(nats) for name, nats in named.items()}}

    @functools.cached_property
    def _eval_losses(self) -> list[Any]:
        """A program for each direction: what only the other needs is not computed."""
        return [
            jax.jit(lambda params, batch, number=number: self._losses(params, batch, None)[number]) for number in (0, 1)
        ]

    def surprise(self, params: Any, text: WordTypes) -> tuple[float, float]:
        """The mean negative log-probability of the words of a text, in nats, forward and backward.

        Every word, ends of lines included, is predicted once in each direction, after at least `eval.context` words
        that this direction has read where there are as many.
        """
        characters, classes = text.characters(self.model.max_characters), self._classes(text)
        # An end of line stands before a text, whichever way it is read.
        reversed_ids = np.append(text.ids[-2::-1], np.int32(EOS))
        means = []
        for number, ids in enumerate((text.ids, reversed_ids)):
            nats = 0.0
            for batch in self._windows(ids):
                turned = {name: array[:, ::-1] for name, array in batch.items()} if number else batch
                placed = sharding.shard_batch(spell(turned, characters, classes), self.local_mesh)
                nats += float(self._eval_losses[number](params, placed))
            means.append(nats / len(ids))
        return means[0], means[1]

    def _windows(self, ids: np.ndarray) -> Iterator[Batch]:
        settings, length = self.config.eval, self.config.data.block_length
        rows = rows_per_batch(settings.batch_tokens, length, self.local_mesh.shape["data"], "config.eval.batch_tokens")
        return windows(ids, block_length=length, context=settings.context, rows=rows)
