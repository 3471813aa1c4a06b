"""Scaling of scores by column, and errors that name the line."""

import numpy as np
import pytest

from nmt_jax.data.readers.labelled import Labelled, ScoreScaler, scores
from nmt_jax.errors import UserError


def item(label, *columns):
    return Labelled(label, ["a"], "a.tsv:7", columns)


ITEMS = [item("1", "score"), item("3", "score"), item("-10\t4", "z", "y"), item("10\t5", "z", "y")]


def test_scaling_by_deviation_or_by_range():
    scales = ScoreScaler.fit(ITEMS)
    assert scales.columns == {"score": [2, 1], "z": [0, 10], "y": [4.5, 0.5]}
    assert scales.scaled(ITEMS[2]) == [-1, -1]
    assert ScoreScaler.fit(ITEMS, by_range=True).columns == {"score": [1, 2], "z": [-10, 20], "y": [4, 1]}


def test_predictions_are_formatted_on_the_scale_of_the_first_known_column():
    scales = ScoreScaler.fit(ITEMS)
    assert scales.format("other|z|score", [0.5]) == "5.0000"
    assert scales.format("score,y", np.array([1.0, -1.0])) == "3.0000\t4.0000"
    assert "score = 2 + 1 y" in str(scales)


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([item("high", "z")], "a.tsv:7: the score 'high' is not a number"),
        ([item("1\tinf", "z", "y")], "a.tsv:7: the score 'inf' is not a number"),
        ([item("1", "z"), item("1", "z")], "all training texts have the same score in column 'z'"),
        ([], "no text to train on"),
    ],
)
def test_invalid_scores(items, words):
    with pytest.raises(UserError, match=words):
        ScoreScaler.fit(items)


def test_an_unseen_column():
    with pytest.raises(UserError, match=r"a\.tsv:7: column 'x' does not occur in the training texts"):
        ScoreScaler.fit(ITEMS).scaled(item("1", "x"))
    assert scores(ITEMS[3]) == {"z": 10, "y": 5}
