import hashlib
import pickle

import pytest

from metrics_jax import WordNet
from metrics_jax.surface.wordnet import FILES
from tests.fixtures import wordnet


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return wordnet.write(tmp_path_factory.mktemp("wordnet"))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("bike", {"bike", "bicycle", "cycle"}),
        ("car", {"car", "auto", "automobile"}),  # from both of its synsets; multi-word entries are left out
        ("Cars", {"car", "auto", "automobile"}),
        ("america", {"America", "USA"}),
        ("large", {"big", "large"}),  # without the marker (a)
        ("bigger", set()),  # the rules remove "er", not "ger"
        ("larges", set()),  # "s" is not an ending of adjectives
        ("ran", {"run", "jog"}),
        ("runs", {"run", "jog"}),
        ("was", {"be", "exist"}),
        ("flies", {"fly", "wing"}),  # an exception
        ("wings", {"fly", "wing"}),
        ("axes", {"axis"}),  # the last of two lines is used; the rules do not apply to words in the list
        ("zebra", set()),
        ("", set()),
        ("s", set()),
        ("motor_car", {"car", "auto", "automobile"}),
        ("a\ud800\x00\u2028", set()),
    ],
)
def test_synonyms_of_words_and_base_forms(folder, word, expected):
    assert WordNet(folder).synonyms(word) == expected


def test_words_that_share_a_synset(folder):
    database = WordNet(folder)
    assert database.synsets("cars") & database.synsets("automobiles")
    assert not database.synsets("car") & database.synsets("bike")
    assert len(database.synsets("car")) == 2
    assert {part for part, _ in database.synsets("fast")} == {"adv"}
    assert database.synsets("zebra") == frozenset()


def test_senses_and_forms_of_base_forms(folder):
    database = WordNet(folder)
    assert database.bases("Flies") == (("verb", "fly"),)
    assert database.bases("zebra") == ()
    assert database.senses("noun", "car") == (
        ("car", "auto", "automobile", "motor_car"),
        ("car", "railway_car", "cable_car"),
    )
    assert database.senses("adj", "large") == (("big", "large"),)
    assert database.senses("verb", "car") == ()
    assert [database.num_tagged(part, "car") for part in ("noun", "verb")] == [2, 0]
    assert database.irregular_forms("verb", "fly") == ("flies",)
    assert database.irregular_forms("noun", "car") == ()


def test_gzipped_files(folder, tmp_path):
    packed = WordNet(wordnet.write(tmp_path, packed=True))
    assert packed.synonyms("bikes") == {"bike", "bicycle", "cycle"}
    assert packed.fingerprint == WordNet(folder).fingerprint
    assert packed.fingerprint == hashlib.sha256(b"".join((folder / name).read_bytes() for name in FILES)).hexdigest()


def test_fingerprint_depends_on_the_words(folder, tmp_path):
    other = wordnet.write(tmp_path, {**wordnet.SYNSETS, "adv": [["fast", "rapidly"]]})
    assert WordNet(other).fingerprint != WordNet(folder).fingerprint


def test_default_directory(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("WNSEARCHDIR", str(folder))
    assert WordNet() == WordNet(folder) == WordNet(str(folder))
    assert hash(WordNet()) == hash(WordNet(folder))
    other = wordnet.write(tmp_path / "other")
    assert WordNet(other) != WordNet()


def test_pickle(folder):
    assert pickle.loads(pickle.dumps(WordNet(folder))) == WordNet(folder)


def test_no_database(tmp_path, monkeypatch):
    monkeypatch.setenv("WNSEARCHDIR", str(tmp_path))
    with pytest.raises(ValueError, match=r"wordnet-base.*WNSEARCHDIR"):
        WordNet()
    with pytest.raises(ValueError, match=r"no WordNet database in \S*nowhere"):
        WordNet(tmp_path / "nowhere")


def test_missing_file(tmp_path):
    wordnet.write(tmp_path)
    (tmp_path / "verb.exc").unlink()
    with pytest.raises(ValueError, match=r"verb\.exc is missing"):
        WordNet(tmp_path)


def test_files_of_different_versions(tmp_path):
    wordnet.write(tmp_path / "a")
    longer = wordnet.write(tmp_path / "b", {**wordnet.SYNSETS, "noun": [["an", "earlier", "synset"], ["car", "auto"]]})
    (tmp_path / "a" / "data.noun").write_bytes((longer / "data.noun").read_bytes())
    with pytest.raises(ValueError, match=r"data\.noun and index\.noun .* different versions"):
        WordNet(tmp_path / "a").synonyms("bike")


def test_broken_file(tmp_path):
    wordnet.write(tmp_path, packed=True)
    (tmp_path / "index.adj.gz").write_bytes(b"\x1f\x8b\x08 this is no gzip file")
    with pytest.raises(ValueError, match=r"cannot read index\.adj"):
        WordNet(tmp_path).synonyms("car")


def test_wordnet_3_0(princeton):
    database = WordNet(princeton)
    assert database.fingerprint.startswith("186220b806452fb7")
    # From nltk 3.10.4: lemma names without underscore of wordnet.synsets(word).
    assert database.synonyms("bicycles") == {"bicycle", "bike", "cycle", "wheel", "pedal"}
    assert database.synonyms("offer") >= {"offer", "propose", "volunteer", "crack"}
    assert database.synonyms("axes") >= {"ax", "axis", "Axis", "bloc"}
    assert "man" in database.synonyms("men")
    assert database.synonyms("bicycl") == frozenset()
