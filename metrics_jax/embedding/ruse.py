"""RUSE (Shimanaka et al., 2018): a regressor, trained on human ratings, over vectors of whole sentences."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import os
import zipfile
from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from metrics_jax.api import References, flatten, pair
from metrics_jax.embedding.contextual import LearnedMetric
from metrics_jax.embedding.encoder import Encoder, encode

TEXTS = 4096  # encoded at a time: the vectors of all their tokens are in memory together
Layer = tuple[np.ndarray, np.ndarray]  # kernel float32[in, out] and bias float32[out]


@dataclasses.dataclass(frozen=True, eq=False)
class Regressor:
    """Sentence encoders and a multilayer perceptron with ReLU hidden layers and one output.

    states: the hidden states of the encoders that are read; 0 is the embedding layer, -1 the last. normalize: scale the
    mean of each state over a sentence to a root mean square of 1. Raises ValueError if the layers' shapes do not match.
    """

    encoders: tuple[Encoder, ...]
    layers: tuple[Layer, ...]
    normalize: bool = False
    states: tuple[int, ...] = (-1,)

    def __post_init__(self) -> None:
        shapes = [kernel.shape for kernel, _ in self.layers]
        chained = all(first[1] == second[0] for first, second in itertools.pairwise(shapes))
        if not shapes or not chained or shapes[-1][1] != 1:
            raise ValueError(
                f"layers of shapes {shapes}: each must read the outputs of the previous one, and the last must have "
                "one output"
            )

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the encoders and the weights."""
        settings = [self.normalize, self.states, *(one.fingerprint for one in self.encoders)]
        digest = hashlib.sha256(repr(settings).encode())
        for kernel, bias in self.layers:
            digest.update(repr(kernel.shape).encode())
            digest.update(np.ascontiguousarray(kernel, np.float32).data)
            digest.update(np.ascontiguousarray(bias, np.float32).data)
        return digest.hexdigest()

    @property
    def dtype(self) -> str:
        """The dtypes of the encoders' matrix products, joined by "+"."""
        return "+".join(dict.fromkeys(one.dtype for one in self.encoders if one.dtype))

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Scores float64[N] of features float32[N, F]; each row is computed alone, so the other rows change no bit."""
        if features.shape[1] != self.layers[0][0].shape[0]:
            raise ValueError(
                f"the encoders produce {features.shape[1]} features per pair, the regressor expects "
                f"{self.layers[0][0].shape[0]}: it was trained with other encoders"
            )
        *hidden, (kernel, bias) = self.layers
        scores = np.zeros(len(features))
        for number, row in enumerate(features):
            for weights, shift in hidden:
                row = np.maximum(row @ weights + shift, 0)
            scores[number] = (row @ kernel + bias)[0]
        return scores

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the layers and the encoders' fingerprints as .npz; the encoders themselves are not included."""
        arrays: dict[str, np.ndarray] = {}
        for number, (kernel, bias) in enumerate(self.layers):
            arrays |= {f"kernel_{number}": kernel, f"bias_{number}": bias}
        arrays["encoders"] = np.array([one.fingerprint for one in self.encoders])
        arrays |= {"normalize": np.array(self.normalize), "states": np.array(self.states)}
        with open(path, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], encoders: Sequence[Encoder]) -> Regressor:
        """Read a file that `save` wrote, without unpickling.

        Raises ValueError if the file is damaged or the regressor was saved with other encoders.
        """
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored}
            numbers = range(sum(name.startswith("kernel_") for name in arrays))
            layers = tuple((arrays[f"kernel_{number}"], arrays[f"bias_{number}"]) for number in numbers)
            fingerprints, normalize = arrays["encoders"].tolist(), bool(arrays["normalize"])
            states = tuple(arrays["states"].tolist())
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path}: not a regressor that Regressor.save wrote: {error}") from error
        if fingerprints != [one.fingerprint for one in encoders]:
            raise ValueError(
                f"{path}: saved with {len(fingerprints)} encoders that are not the {len(encoders)} given here: "
                "pass the same encoders"
            )
        return cls(tuple(encoders), layers, normalize, states)


@dataclasses.dataclass(frozen=True)
class RUSE(LearnedMetric):
    """The output of a regressor on the sentence vectors of a translation t and its reference r; unbounded.

    The regressor reads r, t, |r - t| and r * t of each encoder (section 3.2, figure 2; reference first, as in the
    published program). The vector of a sentence is the mean of the states of its tokens, special tokens included. The
    unit is that of the ratings the regressor was trained on. For ours, it is their standard deviation, and 0 is their
    mean. The corpus score is the mean over segments. An empty text is read like any other.

    multi_reference: the maximum ("max") or the mean of the scores of several references. long: a text that is too long
    for an encoder keeps its beginning ("truncate") or is read in overlapping windows ("window").
    """

    regressor: Regressor
    multi_reference: Literal["max", "mean"] = "max"
    long: Literal["truncate", "window"] = "truncate"

    name: ClassVar[str] = "ruse"
    long_options: ClassVar[tuple[str, str]] = ("truncate", "window")

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """Returns float64[N, 3]: the score, whether a text was too long for an encoder, 1."""
        texts, owner = flatten(hypotheses, references)
        normalize, states = self.regressor.normalize, self.regressor.states
        found = [
            sentence_vectors(encoder, texts, normalize=normalize, states=states, long=self.long)
            for encoder in self.regressor.encoders
        ]
        vectors, cut = [one for one, _ in found], np.logical_or.reduce([long for _, long in found])
        left, right = (np.array(side) for side in pair(range(len(texts)), owner))
        spans = [slice(first, first + TEXTS) for first in range(0, len(owner), TEXTS)]
        pairs = (([v[right[span]] for v in vectors], [v[left[span]] for v in vectors]) for span in spans)
        scores = np.concatenate([self.regressor(features(*both)) for both in pairs])
        if not np.isfinite(scores).all():
            raise ValueError("a score is NaN or infinity: the weights of the regressor or its encoders are damaged")
        return self.segment_statistics(scores, cut[left] | cut[right], owner)


def features(references: Sequence[np.ndarray], hypotheses: Sequence[np.ndarray]) -> np.ndarray:
    """Features float32[N, F] from one float32[N, D] per encoder: r, t, |r - t| and r * t, encoder by encoder."""
    sides = zip(references, hypotheses, strict=True)
    return np.concatenate([np.concatenate([r, t, np.abs(r - t), r * t], axis=1) for r, t in sides], axis=1)


def sentence_vectors(
    encoder: Encoder,
    texts: Sequence[str],
    *,
    normalize: bool = False,
    states: tuple[int, ...] = (-1,),
    long: str = "truncate",
) -> tuple[np.ndarray, np.ndarray]:
    """Mean vectors float32[N, D] of N texts, and whether each text was too long for the encoder, bool[N].

    The vector of a text is the concatenation of the means of its tokens' `states`. normalize: scale each mean to a root
    mean square of 1, so that products of two vectors have the same scale as the vectors.
    """
    distinct = sorted(set(texts), key=lambda text: (len(text), text))  # similar lengths together: less padding
    means, cut = [], []
    for first in range(0, len(distinct), TEXTS):
        encoded = encode(encoder, distinct[first : first + TEXTS], states, normalize=False, long=long)
        means += [encoded[number][0].mean(axis=0) for number in range(len(encoded))]
        cut += encoded.long.tolist()
    numbers = {text: number for number, text in enumerate(distinct)}
    order = [numbers[text] for text in texts]
    vectors = np.stack(means)[order]
    if normalize:
        apart = vectors.reshape(len(vectors), len(states), -1)
        size = np.sqrt(np.mean(np.square(apart), axis=2, keepdims=True))
        vectors = (apart / np.maximum(size, 1e-30)).reshape(vectors.shape)
    return vectors, np.array(cut)[order]
