"""Language modelling in both directions over words read as characters: the pretraining of ELMo."""

import functools
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.batching.text_blocks import Blocks
from nmt_jax.data.readers.monolingual import open_lines
from nmt_jax.data.vocabulary import word_types
from nmt_jax.data.vocabulary.stand_in import StandIn
from nmt_jax.data.vocabulary.vocab import EOS
from nmt_jax.data.vocabulary.word_types import WordTypes
from nmt_jax.data.vocabulary.words import Words
from nmt_jax.errors import UserError
from nmt_jax.losses import cross_entropy as losses
from nmt_jax.losses.sampled import log_uniform, log_uniform_probability, sampled_cross_entropy
from nmt_jax.losses.step import Step
from nmt_jax.progress import track
from nmt_jax.tasks.language_model import RunningText
from nmt_jax.tasks.objectives import dropout_options
from nmt_jax.tasks.vocab_files import load_or_count_words

END, UNKNOWN = 0, 1  # softmax classes: line end, any other word; then the words, the most frequent first


def to_characters(batch: Batch, characters: np.ndarray, classes: np.ndarray) -> Batch:
    """Add characters to a batch of word ids.

    Returns characters int16[B, T + 1, C], classes int32[B, T + 1], weights float32[B, T]. Weight t belongs to two
    predictions: of word t + 1 from the words up to t, and of word t from the words from t + 1 on.
    """
    tokens = batch["tokens"]
    return {"characters": characters[tokens], "classes": classes[tokens], "weights": batch["weights"]}


class CharacterBlocks:
    """Batches of `Blocks` with the characters of their words (a `BatchSource`)."""

    def __init__(self, blocks: Blocks, characters: np.ndarray, classes: np.ndarray):
        self.blocks, self.characters, self.classes = blocks, characters, classes
        self.shapes, self.padding = blocks.shapes, blocks.padding

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, index: int) -> Batch:
        return to_characters(self.blocks[index], self.characters, self.classes)


class BidirectionalLanguageModel(RunningText):
    """The task of one workdir: predict each word from the words before it, and from the words after it.

    All words that the vocabulary lacks are one class of the softmax; the model reads them by their characters, like
    all other words.
    """

    next_command = "nmt-jax train --config=configs/elmo_tagger.py --config.data.elmo={workdir} --workdir=FOLDER"

    @functools.cached_property
    def words(self) -> Words:
        """The vocabulary of the softmax: counted on the training text, then read from the workdir."""
        path = self.workdir / "vocab" / "words.txt"
        return load_or_count_words(path, self.config.vocab, lambda: self._lines("train"))

    @property
    def num_classes(self) -> int:
        """Number of softmax classes."""
        return UNKNOWN + len(self.words)

    def model_sizes(self) -> dict[str, Any]:
        return {"vocab_size": self.num_classes}

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
        """The softmax class of each distinct word of a text, int32[FIRST + n]."""
        known = [UNKNOWN + self.words.encode([word])[0] for word in text.words]  # a word without a number has 0
        specials = np.full(word_types.FIRST, END)
        return np.concatenate([specials, known]).astype(np.int32)

    def summary(self) -> list[tuple[str, str]]:
        rows = []
        for label, split in (("training text", "train"), ("development text", "dev")):
            text, name = self._text(split), open_lines(self.config.data, split).name
            unknown = float(np.mean(self._classes(text)[text.ids] == UNKNOWN))
            counts = f"{len(text.ids):,} words and line ends, {len(text.words):,} distinct words"
            rows.append((label, f"{name}: {counts}; {unknown:.1%} unknown"))
        least = self.words.counts[-1]
        return [*rows, ("vocabulary", f"{len(self.words) - 1:,} words that occur {least:,} times or more")]

    def batches(self, steps: int) -> CharacterBlocks:
        text, num_sampled = self._text("train"), self.config.loss.num_sampled
        if num_sampled < 0:
            raise UserError(f"config.loss.num_sampled={num_sampled}: the number of sampled words, or 0 for all words")
        self._windows(self._text("dev").ids)  # invalid settings are reported now, not at the first evaluation
        blocks = self._blocks(text.ids, steps)
        return CharacterBlocks(blocks, text.characters(self.model.max_characters), self._classes(text))

    def dummy_batch(self, shape: tuple[int, ...]) -> Batch:
        """A batch of shape (rows, T)."""
        rows, length = shape
        characters = np.full((rows, length + 1, self.model.max_characters), word_types.WORD_BEGIN, np.int16)
        classes = np.full((rows, length + 1), UNKNOWN, np.int32)
        return {"characters": characters, "classes": classes, "weights": np.ones((rows, length), np.float32)}

    def stand_in(self) -> None:
        self._assume(words=StandIn(1 + self.config.vocab.size))

    # Training and evaluation

    def init(self, rng: jax.Array) -> Any:
        return self.model.init(rng, self.dummy_batch((1, 1))["characters"])["params"]

    def loss_fn(self, params: Any, batch: dict[str, jax.Array], step: Step | None) -> tuple[jax.Array, jax.Array]:
        """Cross-entropy in nats, the mean of both directions: (sum, weight).

        In training with `loss.num_sampled` > 0, the softmax is over a sample of the classes.
        """
        forward, backward = self._losses(params, batch, step)
        return (forward + backward) / 2, jnp.sum(batch["weights"])

    def _losses(self, params: Any, batch: dict[str, jax.Array], step: Step | None) -> list[jax.Array]:
        """The summed loss of each direction."""
        characters, classes, weights = batch["characters"].astype(jnp.int32), batch["classes"], batch["weights"]
        forward, backward = self.model.apply({"params": params}, characters, **dropout_options(step))
        kernel = self.model.apply({"params": params}, method="output_kernel")
        size, num_sampled, dtype = self.num_classes, self.config.loss.num_sampled, self.model.dtype
        directions = ((forward[:, :-1], classes[:, 1:]), (backward[:, 1:], classes[:, :-1]))
        sums = []
        for number, (hidden, labels) in enumerate(directions):
            if step and num_sampled:
                samples = log_uniform(jax.random.fold_in(step.rng, number), num_sampled, size)
                proposal = (log_uniform_probability(labels, size), log_uniform_probability(samples, size))
                loss, _ = sampled_cross_entropy(hidden, kernel, labels, weights, samples, proposal, dtype)
            else:
                loss, _ = losses.cross_entropy(hidden, kernel, labels, weights, dtype=dtype, shards=self._row_shards)
            sums.append(loss)
        return sums

    def evaluate(self, params: Any) -> dict[str, float]:
        """Return `dev/loss` and the perplexities of both directions and their mean.

        The loss is in nats per word, line ends included: the mean of both directions.
        """
        forward, backward = self.surprise(params, self._text("dev"))
        loss = (forward + backward) / 2
        named = {"perplexity": loss, "forward_perplexity": forward, "backward_perplexity": backward}
        return {"dev/loss": loss, **{f"dev/{name}": float(np.exp(nats)) for name, nats in named.items()}}

    @functools.cached_property
    def _eval_losses(self) -> list[Any]:
        """A program for each direction, which does not compute the other direction."""
        return [jax.jit(lambda params, batch, i=i: self._losses(params, batch, None)[i]) for i in (0, 1)]

    def surprise(self, params: Any, text: WordTypes) -> tuple[float, float]:
        """Return the mean negative log-probability per word in nats, forward and backward.

        Every word and line end is predicted once in each direction, after at least `eval.context` words read in that
        direction, or after all words read so far if there are fewer.
        """
        characters, classes = text.characters(self.model.max_characters), self._classes(text)
        # In either direction, a line end stands before the text.
        reversed_ids = np.append(text.ids[-2::-1], np.int32(EOS))
        means = []
        for number, ids in enumerate((text.ids, reversed_ids)):
            nats = 0.0
            for batch in self._windows(ids):
                turned = {name: array[:, ::-1] for name, array in batch.items()} if number else batch
                batch = to_characters(turned, characters, classes)
                nats += float(self.evaluator.run(self._eval_losses[number], params, batch))
            means.append(nats / len(ids))
        return means[0], means[1]
