"""What the tasks with a pretrained encoder share: the encoder, its tokenizer, rows, batches and outputs.

A workdir holds all that is needed to use it: vocab/tokenizer.json and vocab/encoder.json (the kind of encoder, its
hyperparameters, and the length of the longest row it reads) are written at the first start; the weights are in the
checkpoints.
"""

import abc
import dataclasses
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from ml_collections import ConfigDict

from metrics_jax.embedding.lengths import bucket, pack_by_length
from nmt_jax import config as configs
from nmt_jax import pretrained
from nmt_jax.checkpoints.finite import check_outputs
from nmt_jax.data.batching.batches import Batches, Shape
from nmt_jax.data.batching.encoder_rows import Field, Item, RowCorpus, RowLayout, RowLimits, RowReader, num_pieces
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.errors import UserError
from nmt_jax.losses.step import Step
from nmt_jax.models import gpt
from nmt_jax.models.layers.bert_stack import Bert
from nmt_jax.models.registry import model_class
from nmt_jax.platforms import compiled
from nmt_jax.pretrained.causal_encoders import load_causal
from nmt_jax.pretrained.tokenizer import Tokenizer
from nmt_jax.tasks.objectives import dropout_options
from nmt_jax.tasks.task import Task
from nmt_jax.tasks.vocab_files import load_or_make, write_text

# Fields of an encoder that are set by a run, not by the weights.
RUN_FIELDS = ("dtype", "dropout", "attention_dropout", "pooler", "remat", "scan_layers", "parent", "name")
HEADS = {
    "sentences": ("sentence_head", "siamese_head", "estimator_head", "causal_head"),
    "tag": ("piece_head",),
    "span": ("piece_head",),
}
SIZES = ("num_layers", "d_model", "d_ff", "num_heads")  # of a randomly initialised encoder


def check_model(config: ConfigDict) -> None:
    """Raise UserError if the head or the settings of the encoder are invalid; called before any data is read."""
    settings = config.encoder
    if config.model_name not in HEADS[config.task]:
        heads = ", ".join(HEADS[config.task])
        raise UserError(f"config.model_name={config.model_name!r}: task={config.task!r} needs {heads}")
    fields = {} if settings.place else {name: settings[name] for name in (*SIZES, "vocab_size")}
    # The number of layers of a pretrained encoder is not known yet.
    known = {"num_layers": 10_000} if settings.place else fields
    sizes: dict[str, Any] = {"encoder": _encoder(config, known), "num_outputs": 1}
    sizes |= {"layers": settings.layers, "frozen": settings.frozen}
    configs.build_model(model_class(config.model_name), config.model, **sizes)
    if settings.get("keep_layers") and not settings.place:
        raise UserError(
            f"config.encoder.keep_layers={settings.keep_layers} is for pretrained encoders; name one in "
            "config.encoder.place, or set config.encoder.num_layers"
        )
    if settings.frozen and config.optimizer.weight_decay:
        raise UserError(
            f"config.encoder.frozen: optimizer.weight_decay={config.optimizer.weight_decay:g} would still shrink the "
            "weights of the encoder; set optimizer.weight_decay=0"
        )


def is_causal(config: ConfigDict) -> bool:
    """Whether the encoder is a GPT, not a BERT."""
    return bool(config.model_name == "causal_head")


def _encoder(config: ConfigDict, fields: Mapping[str, Any]) -> Bert | gpt.Model:
    settings = config.encoder
    run_fields = {"dtype": settings.dtype, "dropout": settings.dropout, "attention_dropout": settings.dropout}
    try:
        if is_causal(config):
            return gpt.Model(**{"vocab_size": 1, **fields, **run_fields})
        return Bert(**{**fields, **run_fields, "pooler": False})
    except (TypeError, ValueError) as error:
        raise UserError(f"config.encoder: {error}") from None


class FineTuning(Task):
    """A task whose model is a pretrained encoder with a head.

    fields: arrays of a batch besides the tokens. num_outputs: outputs of the head. num_texts: texts per row that are
    encoded separately.
    """

    unit = "texts"
    fields: Mapping[str, Field]
    num_outputs: int
    num_texts = 1

    # What each task defines

    @abc.abstractmethod
    def training_texts(self) -> Iterator[str]:
        """The training texts, to train the tokenizer of a randomly initialised encoder."""

    @abc.abstractmethod
    def train_corpus(self) -> RowCorpus:
        """The rows to train on."""

    @abc.abstractmethod
    def loss(self, outputs: jax.Array, batch: Mapping[str, jax.Array]) -> jax.Array:
        """Return the loss float32[B] of each row, from the outputs of the head, float32[B, …]."""

    # The encoder

    @functools.cached_property
    def _pretrained(self) -> pretrained.Pretrained:
        """The encoder that `config.encoder.place` names."""
        try:
            place = self.config.encoder.place
            found = load_causal(place) if is_causal(self.config) else pretrained.load(place, causal=True)
        except UserError as error:
            raise UserError(f"config.encoder.place: {error}") from None
        if not isinstance(found.model, Bert | gpt.Model):
            raise UserError(
                f"config.encoder.place={self.config.encoder.place}: a {found.kind} model is an encoder for metrics and "
                "cannot be trained; trainable are BERT and its relatives, among them RemBERT, ALBERT, ELECTRA and MPNet"
            )
        keep = self.config.encoder.get("keep_layers")  # workdirs of older versions have none
        try:
            return found.first_layers(keep) if keep else found
        except UserError as error:
            raise UserError(f"config.encoder.keep_layers={keep}: {error}") from None

    @functools.cached_property
    def description(self) -> dict[str, Any]:
        """The workdir's encoder: "kind", "fields" of its module, "max_length"; written at the first start."""

        def make() -> dict[str, Any]:
            if self.config.encoder.place:
                tokenizer = self._pretrained.tokenizer
            else:
                tokenizer = Tokenizer.train(self.training_texts(), size=self.config.encoder.vocab_size)
            write_text(self._tokenizer_file, tokenizer.model)  # first: if encoder.json exists, everything does
            return self._describe(len(tokenizer))

        return load_or_make(self.workdir / "vocab" / "encoder.json", make)

    def _describe(self, vocab_size: int) -> dict[str, Any]:
        """The description of the encoder; vocab_size: of a randomly initialised one."""
        if self.config.encoder.place:
            encoder = self._pretrained
            names = [field.name for field in dataclasses.fields(encoder.model) if field.name not in RUN_FIELDS]
            fields = {name: getattr(encoder.model, name) for name in names}
            return {"kind": encoder.kind, "fields": fields, "max_length": encoder.max_length}
        max_length = self.config.data.max_length
        fields = {name: self.config.encoder[name] for name in SIZES}
        fields |= {"vocab_size": vocab_size, "max_positions": max_length}
        return {"kind": "gpt" if is_causal(self.config) else "bert", "fields": fields, "max_length": max_length}

    def stand_in(self) -> None:
        """The encoder is the one that `encoder.place` names, if it names one."""
        description = self._describe(self.config.encoder.vocab_size)
        reader = RowLimits(self.config.data.max_length, self._has_segments(description["fields"]))
        self._assume(description=description, reader=reader)

    def _has_segments(self, fields: Mapping[str, Any]) -> bool:
        return not is_causal(self.config) and fields.get("num_segments", 2) > 1

    def row_lengths(self, share: float) -> tuple[int, ...]:
        length = math.ceil(share * self.config.data.max_length)
        return length, 1

    @property
    def _tokenizer_file(self) -> Path:
        return self.workdir / "vocab" / "tokenizer.json"

    @functools.cached_property
    def reader(self) -> RowReader:
        """Turns texts into rows of token ids."""
        fields, most = self.description["fields"], self.description["max_length"]
        if not 8 <= self.config.data.max_length <= most:
            raise UserError(
                f"config.data.max_length={self.config.data.max_length}: the encoder reads up to {most} tokens; use a "
                f"value between 8 and {most}"
            )
        tokenizer = Tokenizer.load(self._tokenizer_file.parent)
        return RowReader(tokenizer.model, self.config.data.max_length, self._has_segments(fields))

    def model_sizes(self) -> dict[str, Any]:
        layers = {name: self.config.encoder[name] for name in ("layers", "frozen")}
        return {"encoder": _encoder(self.config, self.description["fields"]), "num_outputs": self.num_outputs, **layers}

    def warm_start(self, params: Any) -> Any:
        """Put in the pretrained weights of the encoder, if there are any; those of a pooler are not used."""
        if not self.config.encoder.place:
            return params
        weights = {name: value for name, value in self._pretrained.params.items() if name != "pooler_dense"}
        shapes = [jax.tree.map(np.shape, tree) for tree in (weights, params["encoder"])]
        if shapes[0] != shapes[1]:
            raise UserError(
                f"config.encoder.place={self.config.encoder.place}: the weights do not fit the encoder described in "
                f"{self.workdir / 'vocab'}; use a new --workdir"
            )
        return {**params, "encoder": weights}

    def encoder_rows(self) -> list[tuple[str, str]]:
        """Return the rows of the start table about the encoder."""
        settings, kind, fields = self.config.encoder, self.description["kind"], self.description["fields"]
        place = settings.place or "randomly initialised"
        encoder = f"{place}: {kind}, {fields['num_layers']} layers of width {fields['d_model']}"
        layers = {"last": "the last layer", "mixture": "a mixture of all layers"}
        head_input = layers.get(settings.layers, f"the last {settings.layers} layers")
        if number := self.config.model.get("bilstm_layers"):
            head_input = f"a {number}-layer biLSTM on {head_input}"
        return [("encoder", encoder), ("head reads", head_input + ", frozen" * settings.frozen)]

    # Training

    def _layout(self, fields: Mapping[str, Field]) -> RowLayout:
        """The arrays of a batch of rows with these fields."""
        return RowLayout(fields, self.reader.segments, self.num_texts)

    def _inputs(self, batch: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arrays of a batch that the model reads."""
        return batch["ids"], batch["mask"], batch.get("segments")

    @functools.cached_property
    def layout(self) -> RowLayout:
        """The arrays of a training batch."""
        return self._layout(self.fields)

    def batches(self, steps: int) -> Batches:
        return self._train_batches(self.train_corpus(), steps, self.layout)

    def dummy_batch(self, shape: tuple[int, ...]) -> Batch:
        """A batch of shape (rows, S, 1)."""
        batch = self.layout.arrays([], Shape(*shape))
        batch = {name: np.zeros_like(array) for name, array in batch.items()}
        return {**batch, "mask": np.ones_like(batch["mask"])}

    def init(self, rng: jax.Array) -> Any:
        return self.model.init(rng, *self._inputs(self.dummy_batch((1, 1, 1))))["params"]

    def _apply(self, params: Any, batch: Mapping[str, jax.Array], **options: Any) -> Any:
        return self.model.apply({"params": params}, *self._inputs(batch), **options)

    def loss_fn(self, params: Any, batch: dict[str, jax.Array], step: Step | None) -> tuple[jax.Array, jax.Array]:
        """Return the summed loss and the number of rows that are not padding."""
        return self._total(self.loss(self._apply(params, batch, **dropout_options(step)), batch), batch)

    def _total(self, losses: jax.Array, batch: Mapping[str, jax.Array]) -> tuple[jax.Array, jax.Array]:
        """The sum of the losses float32[B] of rows that are not padding, and their number."""
        weights = batch["mask"].reshape(len(batch["mask"]), -1)[:, 0].astype(jnp.float32)
        return jnp.sum(losses * weights), jnp.sum(weights)

    # Prediction

    @compiled()
    def _outputs(self, params: Any, batch: dict[str, jax.Array]) -> jax.Array:
        return self._apply(params, batch)

    def _padded_length(self, length: int) -> int:
        """The length that a row of `length` tokens is padded to, so that few shapes are compiled."""
        return bucket(length, self.reader.max_length)

    def outputs(self, params: Any, items: Sequence[Item]) -> list[np.ndarray]:
        """Return the outputs of the head for each item, whatever the others: float32[C], or float32[S, C] of tokens."""
        outputs: list[Any] = [None] * len(items)
        layout, lengths = self._layout({}), [num_pieces(item) for item in items]
        tokens, multiple_of = self.config.eval.batch_tokens, self.evaluator.row_shards
        packs = pack_by_length(lengths, tokens, multiple_of, self._padded_length)
        for numbers, num_rows, length in packs:
            batch = layout.arrays([items[number] for number in numbers], Shape(num_rows, length, 1))
            rows = self.evaluator.run(self._outputs, params, batch)
            check_outputs(rows[: len(numbers)])
            for number, row in zip(numbers, rows, strict=False):
                outputs[number] = row[: lengths[number]] if row.ndim == 2 else row
        return outputs
