"""Pretrained weights from other programs or from a workdir: `load_encoder("path/to/folder")`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmt_jax.pretrained.bert_encoder import load_encoder, make_encoder
    from nmt_jax.pretrained.huggingface import Pretrained, save
    from nmt_jax.pretrained.loading import load

__all__ = ["Pretrained", "load", "load_encoder", "make_encoder", "save"]


def __getattr__(name: str) -> Any:
    """Import the public names on first use: the verbs that need no encoder start without JAX."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from nmt_jax.pretrained import bert_encoder, huggingface

    return getattr(bert_encoder if hasattr(bert_encoder, name) else huggingface, name)
