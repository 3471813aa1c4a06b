"""The models of COMET, COMET-QE, CometKiwi and xCOMET, from folders that `nmt-jax convert` wrote."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from metrics_jax.embedding.comet import RowScorer, SentenceEstimator, TextRow
from metrics_jax.embedding.xcomet import SEVERITIES, SpanScorer
from nmt_jax.errors import UserError
from nmt_jax.models.layers.comet import (
    ACTIVATIONS,
    POOLING,
    TRANSFORMATIONS,
    Estimator,
    LayerChoice,
    SentenceHead,
    UnifiedHead,
)
from nmt_jax.pretrained import comet_workdirs
from nmt_jax.pretrained.bert_encoder import settings_of
from nmt_jax.pretrained.comet_programs import compiled_module, with_head
from nmt_jax.pretrained.huggingface import Pretrained, load_folder
from nmt_jax.pretrained.loading import find_folder
from nmt_jax.pretrained.model_files import read_json, read_tensors
from nmt_jax.pretrained.reproducibility import fingerprint

Place = str | os.PathLike[str]
TENSORS = "model.safetensors"
DEFAULTS = {  # of the reference program, for settings that a checkpoint does not name
    **{"pool": "avg", "layer": "mix", "sent_layer": "mix", "layer_norm": True},
    **{"activations": "tanh", "final_activation": None},
}
DEFAULTS_BY_CLASS = {  # COMET 1 had no other transformation
    kind: {"layer_transformation": "softmax"} for kind in ("regression_metric", "referenceless_regression_metric")
}
JOINING = ("xlm-roberta", "xlm-roberta-xl")  # encoders whose rows of several texts are known


@dataclasses.dataclass(frozen=True, eq=False)
class _Checkpoint:
    """A converted checkpoint: its folder, its encoder, and the settings it was trained with."""

    folder: pathlib.Path
    pretrained: Pretrained
    settings: dict[str, Any]

    @classmethod
    def open(cls, folder: pathlib.Path, dtype: str, flag: str, needed: str) -> Any:
        """Raises UserError if the checkpoint is not of the class `needed`."""
        settings = read_json(folder / "config.json").get("comet")
        if not isinstance(settings, dict):
            raise UserError(f"{folder}: no checkpoint of COMET that nmt-jax convert wrote: config.json has no 'comet'")
        kind = settings.get("class_identifier")
        if kind != needed:
            raise UserError(f"{folder}: a model of class {kind!r}, but --{flag} needs {needed!r}")
        pretrained = load_folder(folder, dtype)
        if "pooler_dense" in pretrained.params:  # a layer that is not used
            params = {name: value for name, value in pretrained.params.items() if name != "pooler_dense"}
            pretrained = dataclasses.replace(pretrained, model=pretrained.model.clone(pooler=False), params=params)
        if not hasattr(pretrained.model, "first_position"):
            raise UserError(f"{folder}: a {pretrained.kind} model cannot be the encoder of COMET; XLM-R is")
        return cls(folder, pretrained, settings)

    @property
    def max_row(self) -> int:
        """The length of the longest row, in pieces; the reference program leaves two positions unused, if there are."""
        model = self.pretrained.model
        return min(self.pretrained.max_length, model.first_position + model.max_positions - 2)

    @property
    def max_text(self) -> int:
        """The length of the longest text, in pieces: two less than that of a row."""
        return self.max_row - 2

    def setting(self, name: str, known: Sequence[Any]) -> Any:
        """The value of a setting. Raises UserError if it is not one of `known`."""
        defaults = DEFAULTS | DEFAULTS_BY_CLASS.get(self.settings["class_identifier"], {})
        value = self.settings.get(name, defaults.get(name))
        value = value.lower() if isinstance(value, str) else value
        if value not in known:
            raise UserError(f"{self.folder / 'config.json'}: {name} {value!r} is none of {', '.join(map(str, known))}")
        return value

    def choice(self, layer_key: str) -> tuple[LayerChoice, dict[str, Any]]:
        """The mixture of the encoder's layers, or the one that is chosen, and the parameters."""
        count = self.pretrained.model.num_layers + 1
        layer = self.setting(layer_key, ["mix", *range(count)])
        if layer != "mix":
            return LayerChoice(layer), {}
        names = [f"layerwise_attention.scalar_parameters.{number}" for number in range(count)]
        gamma = "layerwise_attention.gamma"
        found = read_tensors(self.folder / TENSORS, {**dict.fromkeys(names, (1,)), gamma: (1,)})
        mixture = {"weights": np.concatenate([found[name] for name in names]), "gamma": found[gamma]}
        transformation = self.setting("layer_transformation", TRANSFORMATIONS)
        return LayerChoice(None, transformation, self.setting("layer_norm", (True, False))), {"mixture": mixture}

    def estimator(self, num_vectors: int) -> tuple[Estimator, dict[str, Any]]:
        """The network that computes scores from `num_vectors` vectors, and its parameters."""
        sizes = self.settings.get("hidden_sizes")
        if not isinstance(sizes, list) or not sizes or not all(type(size) is int and size > 0 for size in sizes):
            raise UserError(f"{self.folder / 'config.json'}: hidden_sizes {sizes!r} is not a list of sizes")
        activations = list(ACTIVATIONS)
        model = Estimator(
            tuple(sizes),
            self.setting("activations", activations),
            self.setting("final_activation", [None, *activations]),
        )
        widths = [num_vectors * self.pretrained.model.d_model, *sizes, 1]
        # Each hidden layer is a product, an activation and dropout in the reference program.
        names = [f"estimator.ff.{3 * number}" for number in range(len(sizes) + 1)]
        layers = [*(f"hidden_{number}" for number in range(len(sizes))), "output"]
        params = {
            layer: self.dense(name, *shape)
            for layer, name, shape in zip(layers, names, itertools.pairwise(widths), strict=True)
        }
        return model, params

    def dense(self, name: str, size: int, width: int) -> dict[str, np.ndarray]:
        """The parameters of a dense layer from `size` to `width` numbers."""
        found = read_tensors(self.folder / TENSORS, {f"{name}.weight": (width, size), f"{name}.bias": (width,)})
        return {"kernel": found[f"{name}.weight"].T, "bias": found[f"{name}.bias"]}

    def texts(self, texts: Sequence[str]) -> list[TextRow]:
        """Rows of texts with special pieces, each truncated by itself to `max_text` pieces."""
        special = self._special
        rows = []
        for ids in self.pretrained.tokenizer.encode(_clean(texts)):
            kept = ids[: self.max_text - 2]
            rows.append(TextRow(np.array([special[0], *kept, special[1]], np.int32), len(ids) + 2))
        return rows

    @functools.cached_property
    def _special(self) -> tuple[int, int]:
        """The ids that begin and end a text."""
        for first, last in (("<s>", "</s>"), ("[CLS]", "[SEP]")):
            ids = self.pretrained.tokenizer.id(first), self.pretrained.tokenizer.id(last)
            if ids[0] is not None and ids[1] is not None:
                return ids[0], ids[1]
        raise UserError(f"{self.folder}: its tokenizer has neither <s> and </s> nor [CLS] and [SEP]")

    def rows(self, *texts: Sequence[str]) -> list[TextRow]:
        """Rows of several texts each, with two special pieces between them; one that is too long loses its end.

        texts: the first texts of all rows, the second ones, and so on.
        """
        different = list(dict.fromkeys(itertools.chain(*texts)))
        read = dict(zip(different, self.texts(different), strict=True))
        rows = []
        for group in zip(*texts, strict=True):
            first, *others = (read[text] for text in group)
            parts = itertools.chain.from_iterable(([self._special[1]], row.ids[1:]) for row in others)
            ids = np.concatenate([first.ids, *parts]).astype(np.int32)
            rows.append(TextRow(ids[: self.max_row], sum(read[text].num_pieces for text in group)))
        return rows

    def spans(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The characters of each piece of the row of a text, int[S, 2]; (0, 0) for special pieces."""
        found = []
        for spans in self.pretrained.tokenizer.spans(_clean(texts)):
            kept = spans[: self.max_text - 2]
            found.append(np.concatenate([np.zeros((1, 2), int), kept, np.zeros((1, 2), int)]))
        return found

    def fingerprint(self, params: dict[str, Any], choice: LayerChoice, estimator: Estimator, *settings: Any) -> str:
        """SHA-256 of the parameters, the tokenizer, and the settings that no parameter shape reveals."""
        settings = (*settings, choice.layer, choice.transformation, choice.normalize)
        settings = (*settings, estimator.activation, estimator.final_activation)
        text = repr([*settings_of(self.pretrained.model, self.max_row), *settings])
        text = self.pretrained.tokenizer.model + text
        return fingerprint(text.encode(), params)


def _clean(texts: Sequence[str]) -> list[str]:
    """Texts that can be encoded as UTF-8, which a lone surrogate cannot."""
    return [text.encode("utf-8", "replace").decode() for text in texts]


def load_comet(
    place: Place, dtype: str = "float32", download: bool = False, revision: str = "main"
) -> SentenceEstimator:
    """The model of COMET; arguments and errors as for `load`.

    The folder is one that `nmt-jax convert` wrote, or a workdir of configs/comet.py.
    """
    return _sentence_estimator("comet", "regression_metric", 6, place, dtype, download, revision)


def load_cometqe(
    place: Place, dtype: str = "float32", download: bool = False, revision: str = "main"
) -> SentenceEstimator:
    """The model of COMET-QE; arguments and errors as for `load_comet`."""
    return _sentence_estimator("cometqe", "referenceless_regression_metric", 4, place, dtype, download, revision)


def _sentence_estimator(
    metric: str, kind: str, num_features: int, place: Place, dtype: str, download: bool, revision: str
) -> SentenceEstimator:
    """The estimator of a workdir, or of a checkpoint of class `kind`, that reads `num_features` vectors."""
    folder = find_folder(place, download, revision)
    if (folder / "checkpoints").is_dir():
        return comet_workdirs.load_workdir(folder, dtype, metric)
    checkpoint = _Checkpoint.open(folder, dtype, metric, kind)
    choice, choice_params = checkpoint.choice("layer")
    head = SentenceHead(choice, checkpoint.setting("pool", POOLING))
    estimator, estimator_params = checkpoint.estimator(num_features)
    params = {"encoder": checkpoint.pretrained.params, "head": {"choice": choice_params}}
    embed = jax.tree_util.Partial(with_head(checkpoint.pretrained.model, head), jax.device_put(params))
    estimate = jax.tree_util.Partial(compiled_module(estimator), jax.device_put(estimator_params))
    hashed = checkpoint.fingerprint({**params, "estimator": estimator_params}, choice, estimator, head.pooling)
    dtype = checkpoint.pretrained.model.dtype
    return SentenceEstimator(checkpoint.texts, embed, estimate, checkpoint.max_text, hashed, dtype)


def load_cometkiwi(place: Place, dtype: str = "float32", download: bool = False, revision: str = "main") -> RowScorer:
    """The model of CometKiwi; arguments and errors as for `load_comet`."""
    checkpoint = _Checkpoint.open(find_folder(place, download, revision), dtype, "cometkiwi", "unified_metric")
    if (segments := checkpoint.settings.get("input_segments")) != ["mt", "src"]:
        raise UserError(f"{checkpoint.folder}: reads {segments}; --cometkiwi needs a model that reads ['mt', 'src']")
    return _row_scorer(checkpoint)


def load_xcomet(place: Place, dtype: str = "float32", download: bool = False, revision: str = "main") -> SpanScorer:
    """The model of xCOMET; arguments and errors as for `load_comet`."""
    checkpoint = _Checkpoint.open(find_folder(place, download, revision), dtype, "xcomet", "xcomet_metric")
    if (labels := checkpoint.settings.get("error_labels")) != list(SEVERITIES):
        raise UserError(f"{checkpoint.folder}: labels errors as {labels}; xCOMET needs {', '.join(SEVERITIES)}")
    layer = checkpoint.setting("word_layer", range(checkpoint.pretrained.model.num_layers + 1))
    return SpanScorer(**vars(_row_scorer(checkpoint, layer, 1 + len(SEVERITIES))), spans=checkpoint.spans)


def _row_scorer(checkpoint: _Checkpoint, word_layer: int | None = None, num_labels: int = 0) -> RowScorer:
    """A scorer of rows; word_layer: the layer that labels are computed from, None for a model without labels."""
    if (kind := checkpoint.pretrained.kind) not in JOINING:
        raise UserError(f"{checkpoint.folder}: rows of several texts need an encoder of kind {JOINING[0]}, not {kind}")
    choice, choice_params = checkpoint.choice("sent_layer")
    estimator, estimator_params = checkpoint.estimator(1)
    head = UnifiedHead(choice, estimator, word_layer, num_labels)
    head_params = {"choice": choice_params, "estimator": estimator_params}
    if word_layer is not None:
        head_params["labels"] = checkpoint.dense("hidden2tag", checkpoint.pretrained.model.d_model, num_labels)
    params = {"encoder": checkpoint.pretrained.params, "head": head_params}
    outputs = jax.tree_util.Partial(with_head(checkpoint.pretrained.model, head), jax.device_put(params))
    hashed = checkpoint.fingerprint(params, choice, estimator, word_layer)
    return RowScorer(checkpoint.rows, outputs, checkpoint.max_row, hashed, checkpoint.pretrained.model.dtype)
