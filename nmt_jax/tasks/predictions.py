"""Pieces that a model predicts, with their probabilities."""

from typing import NamedTuple


class Candidate(NamedTuple):
    """A piece that may stand at a place, and its probability."""

    piece: str
    probability: float


class Prediction(NamedTuple):
    """A piece of a text, its probability after the pieces before it, and the most probable pieces at its place."""

    piece: str
    probability: float
    best: list[Candidate]


class Filling(NamedTuple):
    """A piece for a mask, its probability, and the text with this piece in place of the mask."""

    piece: str
    probability: float
    text: str
