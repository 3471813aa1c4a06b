"""The embedded images: guarantees about scenes, their pixels and boxes, and captions in English and German."""

import collections
import hashlib

import numpy as np
import pytest
from ml_collections import ConfigDict
from PIL import Image

from nmt_jax.data import scenes
from nmt_jax.data.readers.parallel_text import open_text
from nmt_jax.data.readers.rows import row_reader
from nmt_jax.data.scenes.captions import caption
from nmt_jax.data.scenes.objects import AMBIGUOUS, COLOURS, GRID, SHAPES, SIZES, Object
from nmt_jax.data.scenes.scene import ambiguous_combinations, combinations
from nmt_jax.errors import UserError

SIZE = 48
SHAPE = {noun.english: number for number, (noun, _) in enumerate(SHAPES)}
COLOUR = {word.english: number for number, (word, _) in enumerate(COLOURS)}
SMALL, LARGE = range(len(SIZES))


def thing(size, colour, shape, row, column):
    return Object(SHAPE[shape], COLOUR[colour], size, row, column)


def some(split, count=300):
    return [scenes.scene(split, number) for number in range(count)]


def test_scenes_are_the_same_everywhere():
    whole = hashlib.sha256()
    for split in scenes.SPLITS:
        for one in some(split, 20):
            whole.update(one.draw(SIZE).tobytes())
            whole.update(f"{one.caption('en')}\t{one.caption('de')}\n".encode())
    # A change of scenes needs another version, or prepared corpora of the old ones are used.
    assert (scenes.VERSION, whole.hexdigest()[:16]) == (3, "de71e37753a7addd")


def test_splits_share_no_combination_of_shape_and_colour():
    found = {
        split: {(one.shape, one.colour) for scene in some(split) for one in scene.objects} for split in scenes.SPLITS
    }
    assert {split: len(pairs) for split, pairs in found.items()} == {"train": 48, "dev": 8, "test": 8}
    assert len(set.union(*found.values())) == 64
    for split, pairs in found.items():
        assert pairs == set(combinations(split))
        assert {shape for shape, _ in pairs} == {colour for _, colour in pairs} == set(range(8))


def test_objects_are_inside_their_places_and_boxes_hold_them():
    side = SIZE // GRID
    for scene in some("train", 100):
        boxes = scene.boxes(SIZE)
        assert len({(one.row, one.column) for one in scene.objects}) == len(scene.objects) == len(boxes)
        for one, (left, top, right, bottom) in zip(scene.objects, boxes, strict=True):
            mask = one.mask(SIZE)
            assert mask[top:bottom, left:right].sum() == mask.sum() >= 8
            assert side * one.column <= left < right <= side * (one.column + 1)
            assert side * one.row <= top < bottom <= side * (one.row + 1)
            assert mask[top:bottom, left].any()
            assert mask[bottom - 1, left:right].any()


def test_pixels_have_the_colours_of_the_objects():
    scene = next(one for one in some("train") if not one.noise)
    pixels = scene.draw(SIZE)
    assert pixels.dtype == np.uint8
    inside = np.zeros((SIZE, SIZE), bool)
    for one in scene.objects:
        inside |= one.mask(SIZE)
        assert (pixels[one.mask(SIZE)] == one.rgb).all()
        assert np.abs(one.rgb - COLOURS[one.colour][1]).max() <= 15
    assert (pixels[~inside] == scene.grey).all()
    noisy = next(one for one in some("train") if one.noise)
    assert noisy.draw(SIZE).std() > 0
    np.testing.assert_array_equal(noisy.draw(SIZE), noisy.draw(SIZE))


@pytest.mark.parametrize(
    ("objects", "english", "german"),
    [
        (
            [thing(LARGE, "red", "circle", 0, 0)],
            "a large red circle at the top left",
            "ein großer roter Kreis oben links",
        ),
        (
            [thing(SMALL, "white", "diamond", 1, 1)],
            "a small white diamond in the middle",
            "eine kleine weiße Raute in der Mitte",
        ),
        (
            [thing(SMALL, "purple", "column", 1, 0)],
            "a small purple column on the left",
            "eine kleine violette Säule links",
        ),
        ([thing(LARGE, "brown", "bar", 0, 1)], "a large brown bar at the top", "ein großer brauner Balken oben"),
        ([thing(SMALL, "green", "cross", 2, 1)], "a small green cross at the bottom", "ein kleines grünes Kreuz unten"),
        (
            [thing(LARGE, "black", "ring", 0, 2), thing(LARGE, "blue", "square", 2, 2)],
            "a large black ring above a large blue square",
            "ein großer schwarzer Ring über einem großen blauen Quadrat",
        ),
        (
            [thing(SMALL, "yellow", "triangle", 0, 2), thing(LARGE, "blue", "diamond", 2, 2)],
            "a large blue diamond below a small yellow triangle",
            "eine große blaue Raute unter einem kleinen gelben Dreieck",
        ),
        (
            [thing(SMALL, "red", "diamond", 1, 0), thing(LARGE, "white", "circle", 1, 2)],
            "a large white circle to the right of a small red diamond",
            "ein großer weißer Kreis rechts von einer kleinen roten Raute",
        ),
        (
            [thing(SMALL, "red", "cross", 1, 0), thing(SMALL, "red", "ring", 1, 1)],
            "a small red cross to the left of a small red ring",
            "ein kleines rotes Kreuz links von einem kleinen roten Ring",
        ),
        (
            [thing(SMALL, "red", "circle", row, 0) for row in range(3)],
            "from top to bottom a small red circle, a small red circle and a small red circle",
            "von oben nach unten ein kleiner roter Kreis, ein kleiner roter Kreis und ein kleiner roter Kreis",
        ),
        (
            [thing(LARGE, "green", "square", 0, column) for column in range(3)],
            "from left to right a large green square, a large green square and a large green square",
            "von links nach rechts ein großes grünes Quadrat, ein großes grünes Quadrat und ein großes grünes Quadrat",
        ),
    ],
)
def test_captions(objects, english, german):
    assert caption(objects, "en") == english
    assert caption(objects, "de") == german


def test_the_corpus_names_drawings_that_the_reader_draws(tmp_path):
    data = {"corpus": "scenes", "kind": "image", "image_size": SIZE, "patch_size": 8, "size": 3, "name": ""}
    german, english = (ConfigDict(data | {"source": "scenes", "target": language}) for language in ("de", "en"))
    corpus, reader = open_text(german, "train"), row_reader("image", german)
    pairs = list(corpus)
    assert pairs[2] == ("scenes:train:2", scenes.scene("train", 2).caption("de"))
    assert [pair for part in corpus.slices(2, tmp_path) for pair in part] == pairs
    assert len(list(open_text(german, "dev"))) == 1000
    assert corpus.fingerprint() != open_text(english, "train").fingerprint()
    drawn = reader.read("scenes:test:7")
    Image.fromarray(scenes.scene("test", 7).draw(SIZE)).save(tmp_path / "scene.png")
    np.testing.assert_array_equal(reader.read(str(tmp_path / "scene.png")), drawn)


@pytest.mark.parametrize(
    "name", ["scenes:test", "scenes:a:b:test:1", "scenes:test:-1", "scenes:test:x", "scenes:trian:1", "scenes"]
)
def test_a_name_of_no_scene_is_an_error(name):
    reader = row_reader("image", ConfigDict({"corpus": "scenes", "image_size": SIZE, "patch_size": 8}))
    with pytest.raises(
        UserError, match=r"no such scene; (use one of train, dev, test and a number from 0|its name is)"
    ):
        reader.read(name)


@pytest.mark.parametrize("language", ["en", "de"])
def test_words_know_the_object_that_they_describe(language):
    for scene in some("train", 60):
        words = scene.words(language)
        assert " ".join(word for word, _ in words) == scene.caption(language)
        for number, one in enumerate(scene.objects):
            described = [word.rstrip(",") for word, which in words if which == number]
            if language == "en":
                assert described == [*(word.english for word in one.adjectives), one.noun.english]
            else:
                assert described[-1] == one.noun.german
                for word, adjective in zip(described[:-1], one.adjectives, strict=True):
                    assert word.startswith(adjective.german)


def test_only_the_drawing_resolves_an_ambiguous_name(tmp_path):
    meanings = [noun for noun, _ in AMBIGUOUS]
    assert [one.english for one in meanings[::2]] == [one.english for one in meanings[1::2]]
    assert len({one.german for one in meanings}) == len(meanings)
    for split in scenes.SPLITS:
        found = ambiguous_combinations(split)
        colours = [{colour for shape, colour in found if shape == len(SHAPES) + n} for n in range(len(AMBIGUOUS))]
        assert colours[::2] == colours[1::2]  # the colour does not tell the meaning
        assert len(colours[0]) == (6 if split == "train" else 1)
    seen = collections.Counter()
    for number in range(300):
        scene = scenes.scene("train", number, "ambiguous")
        objects = [one for one in scene.objects if one.ambiguous]
        assert len(objects) <= 1
        seen.update([one.noun.german for one in objects] or ["none"])
    assert 90 < seen.pop("none") < 150  # 40 %
    assert len(seen) == len(AMBIGUOUS)
    assert min(seen.values()) > 15
    data = {"corpus": "scenes", "name": "ambiguous", "size": 3, "kind": "text,image", "source": "en,scenes"}
    corpus = open_text(ConfigDict(data | {"target": "de"}), "train")
    scene = scenes.scene("train", 2, "ambiguous")
    expected = f"{scene.caption('en')}\tscenes:ambiguous:train:2", scene.caption("de")
    assert list(corpus)[2] == expected
    assert [pair for part in corpus.slices(2, tmp_path) for pair in part][2] == expected
    reader = row_reader("image", ConfigDict({"corpus": "scenes", "image_size": SIZE, "patch_size": 8}))
    drawn = reader.pixels(reader.read("scenes:ambiguous:train:2"))
    np.testing.assert_array_equal(drawn, scene.draw(SIZE))


def test_meanings_look_different():
    drawn = [Object(len(SHAPES) + number, 0, SMALL, 1, 1).mask(SIZE) for number in range(len(AMBIGUOUS))]
    for number, one in enumerate(drawn):
        assert one.sum() >= 8
        for other in drawn[number + 1 :]:
            assert (one ^ other).sum() >= 8


def test_an_unknown_family_is_an_error():
    with pytest.raises(UserError, match="scenes:odd:test:1: no such scene; its family is one of"):
        scenes.scene("test", 1, "odd")


def test_questions_are_a_corpus(tmp_path):
    data = {"corpus": "scenes", "name": "questions", "size": 3, "kind": "text,image", "source": "question,scenes"}
    corpus = open_text(ConfigDict(data | {"target": "answer"}), "train")
    scene = scenes.scene("train", 2, "questions")
    expected = f"{scene.question.text}\tscenes:questions:train:2", scene.question.answer
    assert list(corpus)[2] == expected
    assert [pair for part in corpus.slices(2, tmp_path) for pair in part][2] == expected
