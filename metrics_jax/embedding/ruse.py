"""RUSE (Shimanaka et al., 2018): how good a text is, by a regressor over the vectors of whole sentences."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import os
import sys
import zipfile
from collections.abc import Sequence
from typing import ClassVar, Literal

import numpy as np

from metrics_jax.api import AdditiveMetric, References
from metrics_jax.embedding.bleurt import over_references
from metrics_jax.embedding.encoder import Encoder, encode
from metrics_jax.references import flatten, pair, starts

TEXTS = 4096  # encoded at a time: the vectors of all their tokens are in memory together
Layer = tuple[np.ndarray, np.ndarray]  # kernel float32[in, out] and bias float32[out]


@dataclasses.dataclass(frozen=True, eq=False)
class Regressor:
    """What RUSE judges with: encoders of sentences, and a network with rectified hidden layers and one output.

    states: which hidden states of the encoders are read, 0 the embeddings, -1 the last. normalize: the mean over a
    sentence of each of them is scaled to a root mean square of 1. ValueError for layers that do not fit together.
    """

    encoders: tuple[Encoder, ...]
    layers: tuple[Layer, ...]
    normalize: bool = False
    states: tuple[int, ...] = (-1,)

    def __post_init__(self) -> None:
        widths = [kernel.shape for kernel, _ in self.layers]
        chained = all(first[1] == second[0] for first, second in itertools.pairwise(widths))
        if not widths or not chained or widths[-1][1] != 1:
            raise ValueError(f"layers of shapes {widths}: each reads what the one before it puts out, the last is one")

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the encoders and the weights."""
        digest = hashlib.sha256(
            repr([self.normalize, self.states, *(one.fingerprint for one in self.encoders)]).encode()
        )
        for kernel, bias in self.layers:
            digest.update(repr(kernel.shape).encode())
            digest.update(np.ascontiguousarray(kernel, np.float32).data)
            digest.update(np.ascontiguousarray(bias, np.float32).data)
        return digest.hexdigest()

    @property
    def dtype(self) -> str:
        """Of the encoders' products."""
        return "+".join(dict.fromkeys(one.dtype for one in self.encoders if one.dtype))

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """Features float32[N, F] -> float64[N], each row by itself: to the bit it does not depend on the others."""
        if features.shape[1] != self.layers[0][0].shape[0]:
            raise ValueError(
                f"the encoders make {features.shape[1]} features of a pair, the regressor reads "
                f"{self.layers[0][0].shape[0]}: it was trained on other encoders"
            )
        *hidden, (kernel, bias) = self.layers
        scores = np.zeros(len(features))
        for number, row in enumerate(features):
            for weights, shift in hidden:
                row = np.maximum(row @ weights + shift, 0)
            scores[number] = (row @ kernel + bias)[0]
        return scores

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the layers and the encoders' fingerprints as .npz; the encoders themselves are not in it."""
        arrays: dict[str, np.ndarray] = {}
        for number, (kernel, bias) in enumerate(self.layers):
            arrays |= {f"kernel_{number}": kernel, f"bias_{number}": bias}
        arrays["encoders"] = np.array([one.fingerprint for one in self.encoders])
        arrays |= {"normalize": np.array(self.normalize), "states": np.array(self.states)}
        with open(path, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str], encoders: Sequence[Encoder]) -> Regressor:
        """Reads what `save` wrote, without unpickling; ValueError for other encoders and for a damaged file."""
        try:
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored}
            numbers = range(sum(name.startswith("kernel_") for name in arrays))
            layers = tuple((arrays[f"kernel_{number}"], arrays[f"bias_{number}"]) for number in numbers)
            told, normalize = arrays["encoders"].tolist(), bool(arrays["normalize"])
            states = tuple(arrays["states"].tolist())
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{path}: not a regressor that Regressor.save wrote: {error}") from error
        if told != [one.fingerprint for one in encoders]:
            raise ValueError(f"{path}: its {len(told)} encoders are not the {len(encoders)} given: hand it the same")
        return cls(tuple(encoders), layers, normalize, states)


@dataclasses.dataclass(frozen=True)
class RUSE(AdditiveMetric):
    """What a regressor makes of the vectors of a translation t and its reference r; without bounds.

    Of each encoder it reads r, t, |r - t| and r * t (section 3.2, figure 2; the reference first, as in the published
    program); a sentence's vector is the mean of its tokens' states, special ones included. The unit is that of the
    ratings that it was trained on: for ours a standard deviation of them, 0 being their mean. The corpus score is the
    mean over segments.

    Several references: the largest of their scores ("max"), or the mean. An empty text is read like any other. long: a
    text that is longer than an encoder reads keeps its beginning ("truncate"), or is read in windows.
    """

    regressor: Regressor
    multi_reference: Literal["max", "mean"] = "max"
    long: Literal["truncate", "window"] = "truncate"

    name: ClassVar[str] = "ruse"
    at_once: ClassVar[int] = sys.maxsize  # segments: the more come together, the fewer are encoded twice

    def __post_init__(self) -> None:
        if self.multi_reference not in ("max", "mean"):
            raise ValueError(f"multi_reference={self.multi_reference!r} is neither max nor mean")
        if self.long not in ("truncate", "window"):
            raise ValueError(f"long={self.long!r} is neither truncate nor window")

    def statistics(self, hypotheses: Sequence[str], references: References) -> np.ndarray:
        """-> float[N, 3]: the score, whether a text was too long for an encoder, 1."""
        texts, owner = flatten(hypotheses, references)
        judge, long = self.regressor, self.long
        found = [
            sentence_vectors(encoder, texts, normalize=judge.normalize, states=judge.states, long=long)
            for encoder in judge.encoders
        ]
        vectors, cut = [one for one, _ in found], np.logical_or.reduce([long for _, long in found])
        left, right = (np.array(side) for side in pair(range(len(texts)), owner))
        scores = np.concatenate(
            [
                self.regressor(features([v[right[some]] for v in vectors], [v[left[some]] for v in vectors]))
                for some in (slice(first, first + TEXTS) for first in range(0, len(owner), TEXTS))
            ]
        )
        if not np.isfinite(scores).all():
            raise ValueError("a score is NaN or infinity: the weights of the regressor or its encoders are damaged")
        scores = over_references(scores, owner, self.multi_reference)
        cuts = np.maximum.reduceat(cut[left] | cut[right], starts(owner))
        return np.column_stack([scores, cuts, np.ones(len(scores))]).astype(np.float64)

    def score(self, statistics: np.ndarray) -> np.ndarray:
        """Summed statistics float[..., 3] -> the mean over segments float[...]."""
        return statistics[..., 0] / statistics[..., -1]

    def parts(self, statistics: np.ndarray) -> dict[str, float | np.ndarray]:
        """long: the number of segments with a text too long for an encoder."""
        return {"long": float(statistics[1])}


def features(references: Sequence[np.ndarray], hypotheses: Sequence[np.ndarray]) -> np.ndarray:
    """Vectors float32[N, D] of each encoder -> float32[N, F]: r, t, |r - t|, r * t of each, encoder by encoder."""
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
    """The means of `states` of each text's tokens, side by side, float32[N, D], and whether it was too long, bool[N].

    normalize: each mean is scaled to a root mean square of 1, so that its products with others are of that size, too.
    """
    distinct = sorted(set(texts), key=lambda text: (len(text), text))  # of like length: batches have little padding
    means, cut = [], []
    for first in range(0, len(distinct), TEXTS):
        encoded = encode(encoder, distinct[first : first + TEXTS], states, normalize=False, long=long)
        means += [encoded[number][0].mean(axis=0) for number in range(len(encoded))]
        cut += encoded.long.tolist()
    places = {text: number for number, text in enumerate(distinct)}
    order = [places[text] for text in texts]
    vectors = np.stack(means)[order]
    if normalize:
        apart = vectors.reshape(len(vectors), len(states), -1)
        size = np.sqrt(np.mean(np.square(apart), axis=2, keepdims=True))
        vectors = (apart / np.maximum(size, 1e-30)).reshape(vectors.shape)
    return vectors, np.array(cut)[order]
