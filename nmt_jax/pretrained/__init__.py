"""Weights made elsewhere -> our modules, and back: `load_encoder("path/to/folder")` is what metrics read text with."""

from nmt_jax.pretrained.encoder import load_encoder, make_encoder
from nmt_jax.pretrained.folder import Pretrained, load, save

__all__ = ["Pretrained", "load", "load_encoder", "make_encoder", "save"]
