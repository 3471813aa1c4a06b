"""What the tasks with a pretrained encoder share: the encoder itself, its tokenizer, rows, batches and outputs.

A workdir holds all that it is used with: vocab/tokenizer.json and vocab/encoder.json (what kind of encoder, its
hyperparameters, the longest row it reads) are written at the first start, the weights are in the checkpoints.
"""

import dataclasses
import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from metrics_jax.embedding.forward import bucket
from nmt_jax import config as configs
from nmt_jax import pretrained
from nmt_jax.data.batching.batches import Batches, Shape
from nmt_jax.data.batching.encoder_rows import Field, Item, RowCorpus, RowReader, Rows, num_pieces
from nmt_jax.data.batching.epochs import Batch
from nmt_jax.data.batching.prediction import pack_by_length
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.files import whole_file
from nmt_jax.losses.step import Step
from nmt_jax.models.layers.bert_stack import Bert
from nmt_jax.models.registry import model_class
from nmt_jax.pretrained.tokenizer import Tokenizer

OWN_FIELDS = ("dtype", "dropout", "attention_dropout", "pooler", "remat")  # of Bert: a run's choice, not the weights'
HEADS = {"sentences": ("sentence_head", "siamese_head"), "tag": ("piece_head",), "span": ("piece_head",)}
SIZES = ("num_layers", "d_model", "d_ff", "num_heads")  # of an encoder that begins at random


def check_model(config: ConfigDict) -> None:
    """UserError for a head or an encoder's settings that cannot be meant, before anything is read."""
    settings = config.encoder
    if config.model_name not in HEADS[config.task]:
        raise UserError(f"config.model_name={config.model_name!r}: {config.task} has {' or '.join(HEADS[config.task])}")
    fields = {} if settings.place else {name: settings[name] for name in (*SIZES, "vocab_size")}
    # How many layers a pretrained encoder has is not known yet.
    known = {"num_layers": 10_000} if settings.place else fields
    layers = {"layers": settings.layers, "frozen": settings.frozen}
    _build(config, _bert(config, known), 1, layers)
    if settings.frozen and config.optimizer.weight_decay:
        raise UserError(
            f"config.encoder.frozen: optimizer.weight_decay={config.optimizer.weight_decay:g} would shrink its "
            "weights all the same: set optimizer.weight_decay=0"
        )


def _bert(config: ConfigDict, fields: Mapping[str, Any]) -> Bert:
    settings = config.encoder
    chosen = {"dtype": settings.dtype, "dropout": settings.dropout, "attention_dropout": settings.dropout}
    try:
        return Bert(**{**fields, **chosen, "pooler": False})
    except (TypeError, ValueError) as error:
        raise UserError(f"config.encoder: {error}") from None


def _build(config: ConfigDict, encoder: Bert, num_outputs: int, layers: Mapping[str, Any]) -> Any:
    given: dict[str, Any] = {"encoder": encoder, "num_outputs": num_outputs, **layers}
    return configs.build_model(model_class(config.model_name), config.model, **given)


def saved(path: Path, make: Callable[[], Any]) -> Any:
    """What the JSON file `path` holds; where it is not there yet, it is written with what `make` returns."""
    if not path.exists():
        write_whole(path, json.dumps(make(), ensure_ascii=False) + "\n")
    return json.loads(path.read_text(encoding="utf-8"))


def write_whole(path: Path, text: str) -> None:
    """Writes a file, whole or not at all; processes may write it at the same time."""
    with whole_file(path) as file:
        file.write(text.encode())


class FineTuning:
    """The part of a `tasks.Task` that does not hang on what is learned.

    fields: the arrays of a batch beside the pieces.
    """

    unit = "texts"
    fields: Mapping[str, Field]
    num_outputs: int  # of the head
    num_texts = 1  # that are read apart

    def __init__(self, config: ConfigDict, workdir: Path, mesh: Mesh) -> None:
        self.config = config
        self.workdir = Path(workdir)
        self.mesh, self.local_mesh = mesh, sharding.local(mesh)

    # What a task tells of itself

    def training_texts(self) -> Iterator[str]:
        """The training texts, for the tokenizer of an encoder that begins at random."""
        raise NotImplementedError

    def train_corpus(self) -> RowCorpus:
        """The rows that are trained on."""
        raise NotImplementedError

    def loss(self, outputs: jax.Array, batch: Mapping[str, jax.Array]) -> jax.Array:
        """Outputs of the head, float32[B, …], and the batch -> the loss of each row, float32[B]."""
        raise NotImplementedError

    # The encoder

    @functools.cached_property
    def _pretrained(self) -> pretrained.Pretrained:
        """The weights that `config.encoder.place` names."""
        try:
            return pretrained.load(self.config.encoder.place)
        except UserError as error:
            raise UserError(f"config.encoder.place: {error}") from None

    @functools.cached_property
    def description(self) -> dict[str, Any]:
        """The workdir's encoder: "kind", "fields" of Bert, "max_length"; written at the first start."""
        path = self.workdir / "vocab" / "encoder.json"

        def make() -> dict[str, Any]:
            if self.config.encoder.place:
                found = self._pretrained
                tokenizer, kind, longest = found.tokenizer.model, found.kind, found.max_length
                fields = {field.name: getattr(found.model, field.name) for field in dataclasses.fields(Bert)}
                fields = {name: fields[name] for name in fields if name not in (*OWN_FIELDS, "parent", "name")}
            else:
                settings = self.config.encoder
                kind, longest = "bert", self.config.data.max_length
                trained = Tokenizer.train(self.training_texts(), size=settings.vocab_size)
                tokenizer = trained.model
                fields = {name: settings[name] for name in SIZES}
                fields |= {"vocab_size": len(trained), "max_positions": longest}
            write_whole(self._tokenizer_file, tokenizer)  # first: where encoder.json is, everything is
            return {"kind": kind, "fields": fields, "max_length": longest}

        return saved(path, make)

    @property
    def _tokenizer_file(self) -> Path:
        return self.workdir / "vocab" / "tokenizer.json"

    @functools.cached_property
    def reader(self) -> RowReader:
        """Texts into rows."""
        fields, most = self.description["fields"], self.description["max_length"]
        if not 8 <= self.config.data.max_length <= most:
            raise UserError(
                f"config.data.max_length={self.config.data.max_length}: the encoder reads up to {most} pieces: set it "
                f"between 8 and {most}"
            )
        segments = fields.get("num_segments", 2) > 1
        return RowReader(self._tokenizer_file.read_text(encoding="utf-8"), self.config.data.max_length, segments)

    @functools.cached_property
    def model(self) -> Any:
        """The encoder with the head that `config.model_name` and `config.model` describe."""
        layers = {name: self.config.encoder[name] for name in ("layers", "frozen")}
        encoder = _bert(self.config, self.description["fields"])
        return _build(self.config, encoder, self.num_outputs, layers)

    def init(self, rng: jax.Array) -> Any:
        """-> parameters."""
        batch = self.dummy_batch((1, 1, 1))
        return self.model.init(rng, batch["ids"], batch["mask"], batch.get("segments"))["params"]

    def warm_start(self, params: Any) -> Any:
        """The encoder begins with its pretrained weights, if it has any; of a pooler it has no use."""
        if not self.config.encoder.place:
            return params
        given = {name: value for name, value in self._pretrained.params.items() if name != "pooler_dense"}
        shapes = [jax.tree.map(np.shape, tree) for tree in (given, params["encoder"])]
        if shapes[0] != shapes[1]:
            raise UserError(
                f"config.encoder.place={self.config.encoder.place}: its weights are not those that "
                f"{self.workdir / 'vocab'} was made for: take a new --workdir"
            )
        return {**params, "encoder": given}

    def encoder_rows(self) -> list[tuple[str, str]]:
        """What the start table says of the encoder."""
        settings, kind, fields = self.config.encoder, self.description["kind"], self.description["fields"]
        place = settings.place or "begins at random"
        what = f"{place}: {kind}, {fields['num_layers']} layers of width {fields['d_model']}"
        read = {"last": "the last layer", "mixture": "a mixture of all layers"}
        how = read.get(settings.layers, f"the last {settings.layers} layers")
        return [("encoder", what), ("head reads", how + ", frozen" * settings.frozen)]

    # Training

    @functools.cached_property
    def layout(self) -> Rows:
        """How rows lie in a batch to train on."""
        return Rows(self.fields, self.reader.segments, self.num_texts)

    def batches(self, steps: int) -> Batches:
        """The training batches of `steps` steps."""
        config = self.config
        return Batches(
            self.train_corpus(),
            batch_tokens=config.train.batch_tokens,
            num_buckets=config.data.num_buckets,
            share=sharding.share(self.mesh, config.train.accumulate),
            seed=config.seed,
            steps=steps,
            layout=self.layout,
        )

    def dummy_batch(self, shape: tuple[int, ...]) -> Batch:
        """(rows, S, 1) -> a full batch."""
        batch = self.layout.arrays([], Shape(*shape))
        batch = {name: np.zeros_like(array) for name, array in batch.items()}
        return {**batch, "mask": np.ones_like(batch["mask"])}

    def loss_fn(self, params: Any, batch: dict[str, jax.Array], step: Step | None) -> tuple[jax.Array, jax.Array]:
        """-> (sum, weight: the number of rows that are not of nothing)."""
        options = {"train": True, "rngs": {"dropout": step.rng}} if step else {}
        outputs = self.model.apply({"params": params}, batch["ids"], batch["mask"], batch.get("segments"), **options)
        weights = batch["mask"].reshape(len(batch["mask"]), -1)[:, 0].astype(jnp.float32)
        return jnp.sum(self.loss(outputs, batch) * weights), jnp.sum(weights)

    # Predicting

    @functools.cached_property
    def _outputs(self) -> Any:
        """One compiled program a shape."""

        def outputs(params: Any, batch: dict[str, jax.Array]) -> jax.Array:
            return self.model.apply({"params": params}, batch["ids"], batch["mask"], batch.get("segments"))

        return jax.jit(outputs, out_shardings=sharding.replicated(self.local_mesh))

    def outputs(self, params: Any, items: Sequence[Item]) -> list[np.ndarray]:
        """What the head says of each item: float32[C], or of its pieces, float32[S, C]; items never see each other."""
        found: list[Any] = [None] * len(items)
        layout, longest = Rows({}, self.reader.segments, self.num_texts), self.reader.max_length
        lengths = [num_pieces(item) for item in items]
        data = self.local_mesh.shape["data"]
        places = pack_by_length(lengths, self.config.eval.batch_tokens, data, lambda length: bucket(length, longest))
        for numbers, shape in places:
            batch = layout.arrays([items[number] for number in numbers], shape)
            rows = np.asarray(self._outputs(params, sharding.shard_batch(batch, self.local_mesh)))
            for number, row in zip(numbers, rows, strict=False):
                found[number] = row[: lengths[number]] if row.ndim == 2 else row
        return found
