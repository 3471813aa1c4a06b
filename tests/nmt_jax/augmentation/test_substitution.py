"""Replaced words: synonyms in the same form, near vectors, their translations."""

import functools
import unicodedata

import numpy as np
import pytest

from metrics_jax.embedding.vectors import Vectors
from metrics_jax.surface.wordnet import WordNet
from nmt_jax.augmentation.augmenter import Pair, augment
from nmt_jax.augmentation.known_forms import count_forms
from nmt_jax.augmentation.neighbours import VectorNeighbours
from nmt_jax.augmentation.substitution import substitute
from nmt_jax.augmentation.synonyms import Synonyms
from nmt_jax.augmentation.target_side import read_lexicon, retarget, translate
from nmt_jax.augmentation.words import is_content, split
from nmt_jax.errors import UserError
from tests.fixtures import wordnet

TEXT = ["the auto and autos , bike , bikes and lads", "large , larger , biggest , jogs", "bicycles cars boys"]


@pytest.fixture(scope="module")
def database(tmp_path_factory) -> WordNet:
    return WordNet(wordnet.write(tmp_path_factory.mktemp("wordnet")))


def test_forms_are_kept_and_must_be_known(database):
    synonyms = Synonyms(database, count_forms(TEXT), senses=1)
    found = {word: synonyms(word) for word in ("car", "cars", "bicycles", "boys", "boy", "bigger", "large", "runs")}
    assert found == {
        "car": ("auto",),  # automobile is not in the text, motor_car is no single word
        "cars": ("autos",),
        "bicycles": ("bikes",),
        "boys": ("lads",),
        "boy": (),  # only lads is in the text
        "bigger": (),  # has a doubled consonant, which WordNet's rules do not undo
        "large": (),  # big is not in the text
        "runs": ("jogs",),
    }


def test_names_numbers_and_function_words_have_no_synonyms(database):
    known = count_forms(["america usa exist be fast quickly"])
    synonyms = Synonyms(database, known, senses=5)
    assert [synonyms(word) for word in ("america", "be", "fast")] == [(), (), ("quickly",)]
    assert not any(map(is_content, ("the", "isn", "forty", "seventeen", "inside", "x", "r2", "half")))
    assert all(map(is_content, ("river", "grader", "fortress")))


def test_a_sense_must_be_among_the_first_of_both_words(tmp_path):
    nouns = [["car", "machine"], ["machine", "engine"], ["car", "wagon"], ["lorry", "truck"]]
    synsets = {**wordnet.SYNSETS, "noun": [nouns[1], nouns[0], *nouns[2:]]}
    database, known = WordNet(wordnet.write(tmp_path, synsets)), count_forms(["car machine engine wagon truck"])
    assert Synonyms(database, known, senses=1)("car") == ()
    assert Synonyms(database, known, senses=2)("car") == ("machine", "wagon")
    assert Synonyms(database, known, senses=1)("lorry") == ("truck",)


def test_nouns_do_not_become_forms_of_verbs(tmp_path):
    synsets = {**wordnet.SYNSETS, "noun": [["attention", "attending", "heed"]]}
    synsets["verb"] = [["attend", "visit"], ["attend", "listen"]]
    database = WordNet(wordnet.write(tmp_path, synsets))
    assert Synonyms(database, count_forms(["attending heed"]), senses=1)("attention") == ("heed",)


def test_words_of_several_parts_of_speech_are_kept(tmp_path):
    synsets = {**wordnet.SYNSETS, "noun": [["run", "trip"]], "adv": [["fast", "quickly"]]}
    database = WordNet(wordnet.write(tmp_path, synsets))
    known = count_forms(["trip jog quickly"])
    assert Synonyms(database, known, senses=1)("run") == ()
    assert Synonyms(database, known, senses=1)("fast") == ("quickly",)


def test_neighbours_have_the_same_suffix_and_are_mutual():
    words = ("cat", "dog", "dogs", "puppy", "the", "hub")
    angles = np.array([0.0, 0.2, 0.1, 0.5, 0.05, 1.0])
    vectors = Vectors(words, np.stack([np.cos(angles), np.sin(angles)], axis=1))
    known = dict.fromkeys(words, 1)
    assert VectorNeighbours(vectors, known, 0.9, 3)("dog") == ("cat", "puppy")
    assert VectorNeighbours(vectors, known, 0.97, 3)("dog") == ("cat",)
    assert VectorNeighbours(vectors, known, 0.0, 1)("hub") == ()  # puppy is nearest to it, but dog to puppy
    assert VectorNeighbours(vectors, {"dog": 1, "puppy": 1}, 0.9, 3)("dog") == ("puppy",)
    assert VectorNeighbours(vectors, known, 0.9, 3)("unknown") == ()


@pytest.fixture
def change():
    candidates = {"dog": ("animal", "wolf"), "boys": ("lads",), "old": ("aged",), "rose": ("flower",)}
    return functools.partial(substitute, rate=1.0, candidates=lambda word: candidates.get(word, ()), choices=1)


def test_punctuation_capitals_and_articles_are_kept(change):
    line, random = "Boys, see a dog. (dog) Rose an old dog DOG", np.random.default_rng(0)
    changed = change(line.split(), random)
    assert " ".join(changed.words) == "Lads, see a wolf. (animal) Rose an aged animal DOG"
    assert changed.replaced == {0: "lads", 3: "wolf", 4: "animal", 7: "aged", 8: "animal"}
    assert changed.num_changed == 5


def test_the_share_of_replaced_words_is_the_rate():
    lines = 2000
    change = functools.partial(substitute, rate=0.2, candidates=lambda word: ("b",) * (word == "aa"), choices=1)
    line = ["aa", "1"] * 5  # of which only half can be replaced
    count = sum(change(line, np.random.default_rng(n)).num_changed for n in range(lines))
    assert count / (10 * lines) == pytest.approx(0.2, abs=0.012)


def test_only_words_linked_one_to_one_are_translated():
    replaced = {0: "lads", 1: "dog", 2: "cat", 3: "bird"}
    links = {(0, 0), (1, 1), (1, 2), (2, 3), (4, 3), (3, 4)}
    lexicon = {"lads": {"kerle": 0.9}, "dog": {"Hund": 0.8}, "cat": {"Katze": 0.7}}
    found = retarget(["Jungen,", "b", "c", "d", "e"], links, replaced, lexicon)
    assert found == (["Kerle,", "b", "c", "d", "e"], 1, 3)
    assert retarget(["a", "Hund."], {(1, 1)}, {1: "dog"}, lexicon) == (["a", "Hund."], 0, 1)


def test_the_first_word_of_a_target_is_looked_up_in_lower_case():
    lexicon = {"large": {"große": 0.4, "dicke": 0.5}}
    assert retarget(["Große", "Hunde"], {(0, 0)}, {0: "large"}, lexicon) == (["Große", "Hunde"], 0, 1)
    assert retarget(["Die", "Große"], {(0, 1)}, {0: "large"}, lexicon) == (["Die", "dicke"], 1, 0)
    assert retarget(["Kleine"], {(0, 0)}, {0: "large"}, lexicon) == (["Dicke"], 1, 0)


def test_a_target_changes_with_its_source(change):
    pair = Pair("the boys  run", "die Jungen  rennen", {(0, 0), (1, 1), (2, 2)})
    assert augment(pair, change, 0, 0, 0, {"lads": {"Kerle": 0.5}}) == ("the lads run", "die Kerle rennen", 1, 1, 0)
    assert augment(pair, change, 0, 0, 0, {}) == ("the lads run", "die Jungen  rennen", 1, 0, 1)
    assert augment(pair, change, 0, 0, 0) == ("the lads run", "die Jungen  rennen", 1, 0, 0)


def test_translations_agree_with_the_old_word():
    lexicon = {"small": {"kleinen": 0.4, "kleines": 0.1, "winziges": 0.2}}
    assert translate("small", "großes", lexicon) == "kleines"
    assert translate("small", "großem", lexicon) == "kleinen"  # no form ends so
    assert translate("small", "winziges", lexicon) == "winziges"  # a translation already
    assert translate("tiny", "großes", lexicon) == "großes"


def test_words_with_a_likely_translation_are_kept(tmp_path):
    path = tmp_path / "lexicon.tsv"
    path.write_text("dog\tHund\t0.4\ndog\tKöter\t0.5\ndog\t,\t0.9\ncat\tKatze\t0.1\nx\ty\t1\n")
    assert read_lexicon(path, 0.3, {"dog", "cat"}) == {"dog": {"Hund": 0.4, "Köter": 0.5}}
    with pytest.raises(UserError, match="none of its source words occurs in the text"):
        read_lexicon(path, 0.3, {"bird"})
    with pytest.raises(UserError, match=r"no translation has a probability of at least 0\.3"):
        read_lexicon(path, 0.3, {"cat"})


def test_affixes():
    assert [split(token) for token in ("(dog).", "--", "it's", "é!")] == [
        ("(", "dog", ")."), ("--", "", ""), ("", "it's", ""), ("", "é", "!"),
    ]  # fmt: skip


def test_affixes_have_no_marks_of_the_word():
    assert split("(हिन्दी!") == ("(", "हिन्दी", "!")
    assert split("हिन्दी") == ("", "हिन्दी", "")  # ends with a mark
    assert split(unicodedata.normalize("NFD", "Café.")) == ("", unicodedata.normalize("NFD", "Café"), ".")
    assert split("dog❤️") == ("", "dog", "❤️")
