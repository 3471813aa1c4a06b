"""The figures of captions and of the pointing game, counted by hand."""

import numpy as np
import pytest

from benchmarks.scenes import (
    answer_figures,
    bleu_figures,
    caption_figures,
    described,
    meaning_figures,
    pointing,
    pointing_figures,
    recall_figures,
    with_different_captions,
)
from nmt_jax.data import scenes

SIZE, COLUMNS = 48, 6  # patches of 8 pixels
EXPECTED = [scenes.scene("test", number) for number in range(3)]
TRUE = [scene.caption("en") for scene in EXPECTED]


def test_kinds_of_words():
    words = [("a", None), ("small", 1), ("red", 1), ("ring", 1), ("above", None), ("a", None), ("large", 0)]
    assert described(words) == [None, "size", "colour", "shape", None, None, "size"]


def test_captions_are_right_as_a_whole_or_but_for_one_kind_of_word():
    assert set(caption_figures(TRUE, EXPECTED, "en").values()) == {100.0}
    kinds = described(EXPECTED[0].words("en"))
    words = TRUE[0].split()
    words[kinds.index("shape")] = "star"
    figures = caption_figures([" ".join(words), TRUE[1], f"{TRUE[2]} too"], EXPECTED, "en")
    assert figures["exact"] == figures["exact_without_colour"] == pytest.approx(100 / 3)
    assert figures["exact_without_shape"] == pytest.approx(200 / 3)
    shapes = sum(described(scene.words("en")).count("shape") for scene in EXPECTED[:2])
    assert figures["words_shape"] == pytest.approx(100 * (1 - 1 / shapes))
    assert figures["words_size"] == 100


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        ((16, 8, 24, 16), (True, True, 1 / 36)),  # the patch itself
        ((20, 12, 21, 13), (True, True, 1 / 36)),  # a pixel right of and below its centre
        ((16, 8, 20, 16), (True, False, 1 / 36)),  # its left half
        ((23, 15, 25, 17), (True, False, 4 / 36)),  # a corner of four patches
        ((24, 8, 32, 16), (False, False, 1 / 36)),  # the next patch
        ((0, 0, 48, 48), (True, True, 1.0)),
    ],
)
def test_the_patch_with_most_attention_overlaps_the_box(box, expected):
    attention = np.full((COLUMNS, COLUMNS), 0.1)
    attention[1, 2] = 0.2  # pixels 16 to 23 across and 8 to 15 down
    assert pointing(attention, box, SIZE) == pytest.approx(expected)


def test_attention_to_the_objects_wins_the_game_and_attention_to_another_corner_loses_it():
    right, wrong = [], []
    for scene in EXPECTED:
        boxes = scene.boxes(SIZE)
        rows = np.zeros((2, len(scene.words("en")) + 1, COLUMNS, COLUMNS))
        for t, (_, number) in enumerate(scene.words("en")):
            if number is not None:
                left, top, last, bottom = boxes[number]
                rows[0, t, (top + bottom) // 16, (left + last) // 16] = 1.0
                rows[1, t, 0 if top > 24 else 5, 0 if left > 24 else 5] = 1.0
        right.append(rows[0].reshape(-1, COLUMNS**2))
        wrong.append(rows[1].reshape(-1, COLUMNS**2))
    figures = pointing_figures(right, EXPECTED, "en", SIZE, COLUMNS)
    assert figures["pointing"] == figures["pointing_colour"] == 100
    assert 0 < figures["pointing_chance"] < 30
    assert pointing_figures(wrong, EXPECTED, "en", SIZE, COLUMNS)["pointing"] == 0


def test_meanings_are_counted():
    expected = [scenes.scene("test", number, "ambiguous") for number in range(8)]
    nouns = [[one for one in scene.objects if one.ambiguous] for scene in expected]
    count = sum(map(len, nouns))
    assert 0 < count < 8
    right = [scene.caption("de") for scene in expected]
    assert meaning_figures(right, expected) == {"meaning": 100, "other_meaning": 0, "words": count}
    wrong = [
        text.replace(one.noun.german, one.other_meaning.german) if found else text
        for text, found in zip(right, nouns, strict=True)
        for one in found or [None]
    ]
    assert meaning_figures(wrong, expected) == {"meaning": 0, "other_meaning": 100, "words": count}
    figures = bleu_figures(wrong, expected, "de")
    assert figures["bleu_plain"] == pytest.approx(100)
    assert figures["bleu_ambiguous"] < 100


def test_answers_are_counted_by_kind():
    asked = [
        scenes.Question("size", "what size is the bar ?", "small"),
        scenes.Question("size", "what size is the ring ?", "large"),
        scenes.Question("count", "how many rings are there ?", "2"),
        scenes.Question("count", "how many bars are there ?", "0"),
    ]
    trained = [*asked, *asked[:1], *asked[2:3]]
    assert answer_figures(["small", "small", "2", "0"], asked, trained) == {
        "accuracy": 75,
        "accuracy_count": 100,
        "accuracy_size": 50,
        "most_frequent": 50,
        "most_frequent_count": 50,
        "most_frequent_size": 50,
    }


def test_recall_is_counted_in_both_directions():
    similarities = np.array([[0.9, 0.8, 0.1], [0.1, 0.2, 0.3], [0.1, 0.3, 0.7]])  # of images to captions
    figures = recall_figures(similarities)
    assert figures["captions_recall_1"] == pytest.approx(200 / 3)  # image 1 is nearer to caption 2
    assert figures["images_recall_1"] == pytest.approx(200 / 3)  # caption 1 is nearer to image 0
    assert figures["images_recall_5"] == 100
    low, high = figures["images_interval"]
    assert low < figures["images_recall_1"] < high


def test_scenes_are_chosen_by_their_captions():
    chosen = with_different_captions("test", 10, 30, "en")
    assert len(chosen) == 30
    assert min(chosen.values()) == 10
    for caption, number in chosen.items():
        assert scenes.scene("test", number).caption("en") == caption
