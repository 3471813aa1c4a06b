"""Pretrained weights, made elsewhere or here -> modules, and back: `load_encoder("path/to/folder")` reads text."""

from nmt_jax.pretrained.bert_encoder import load_encoder, make_encoder
from nmt_jax.pretrained.huggingface import Pretrained, save
from nmt_jax.pretrained.loading import load

__all__ = ["Pretrained", "load", "load_encoder", "make_encoder", "save"]
