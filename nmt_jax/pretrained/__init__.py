"""Pretrained weights from other programs or from a workdir: `load_encoder("path/to/folder")`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmt_jax.pretrained.bert_encoder import load_encoder, make_encoder
    from nmt_jax.pretrained.huggingface import Pretrained, save
    from nmt_jax.pretrained.loading import load

__all__ = ["Pretrained", "load", "load_encoder", "make_encoder", "save"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use: the verbs that need no encoder start without JAX."""
    from nmt_jax.pretrained import bert_encoder, huggingface, loading

    if name in __all__:
        return next(getattr(module, name) for module in (bert_encoder, huggingface, loading) if hasattr(module, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
