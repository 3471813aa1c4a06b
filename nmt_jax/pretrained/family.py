"""What is known of a model family in Hugging Face's format."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import flax.linen as nn

from nmt_jax.models.layers.bert_stack import Bert

ACTIVATIONS = {
    "gelu": {"activation": "gelu_erf"},
    "gelu_new": {"activation": "gelu"},
    "gelu_pytorch_tanh": {"activation": "gelu"},
    "relu": {"activation": "relu"},
}


Tensors = Mapping[str, str | tuple[str, ...]]
Choices = Mapping[str, Mapping[Any, Mapping[str, Any]]]


@dataclasses.dataclass(frozen=True)
class Family:
    """How config.json and the tensors of one `model_type` become a module and its parameters.

    architecture: the class in transformers. tensors: tensor names by parameter, where `weight` or `bias` is appended to
    those of a layer and `{}` stands for the number of the layer; of several names the first one in the file is read.
    A name that begins with "/" has no prefix, even if others have the prefix of a model below a head. fields: keys of
    config.json by hyperparameter. choices: keys whose values mean hyperparameters. constant: hyperparameters that
    config.json does not contain. ordinary: the only supported value of a key. defaults: of keys that older files omit.
    same: for such keys, another key with their value. projects: there is a projection of the embeddings even if their
    width is that of the model. present: hyperparameters that say whether the file has a parameter, and the value if it
    does. ignored: endings of tensors that are in files but not needed. pad_id: if config.json has none.
    counts_from_pad: the first position is pad_id + 1. start_id: the first token of a decoder, if config.json names
    none.
    """

    architecture: str
    tensors: Tensors
    fields: Mapping[str, str]
    choices: Choices
    module: type[nn.Module] = Bert
    constant: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    ordinary: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    defaults: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    same: Mapping[str, str] = dataclasses.field(default_factory=dict)
    projects: bool = False
    present: Mapping[str, tuple[str, bool]] = dataclasses.field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    pad_id: int = 0
    counts_from_pad: bool = False
    start_id: int = 0
