"""Tagged sentences: both schemes are converted to BIO, and errors name the line."""

import gzip

import pytest
from ml_collections import ConfigDict

from nmt_jax.data.readers.tagged import TaggedFile, open_tagged
from nmt_jax.errors import UserError


def read(path, scheme="bio", word=0, tag=-1):
    return [(item.words, item.tags, item.location) for item in TaggedFile(path, word, tag, scheme)]


def data(folder, **changes) -> ConfigDict:
    names = {"corpus": "files", "directory": str(folder), "train": "a.conll", "dev": "", "fold": 0, "folds": 3}
    return ConfigDict(names | {"word_column": 0, "tag_column": -1, "scheme": "bio", "size": 10} | changes)


@pytest.mark.parametrize("packed", [False, True])
def test_sentences_end_at_blank_lines_only(tmp_path, packed):
    text = "-DOCSTART- O\n\nU.N.\tB-ORG\nin\u2028x\tO\n\n\nBonn\tB-LOC\n \nRhine \tB-LOC"
    path = tmp_path / ("a.conll.gz" if packed else "a.conll")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert read(path) == [
        (["U.N.", "in\u2028x"], ["B-ORG", "O"], f"{path}:3"),
        (["Bonn"], ["B-LOC"], f"{path}:7"),
        (["Rhine"], ["B-LOC"], f"{path}:9"),
    ]


def test_iob1_is_converted_to_bio(tmp_path):
    path = tmp_path / "a"
    path.write_text("a I-PER\nb I-PER\nc B-PER\nd I-PER\ne I-LOC\nf O\ng I-LOC\n")
    ((_, tags, _),) = read(path, "iob1")
    assert tags == ["B-PER", "I-PER", "B-PER", "I-PER", "B-LOC", "O", "B-LOC"]


def test_columns_by_number(tmp_path):
    path = tmp_path / "a"
    path.write_text("1 Bonn NNP B-LOC x\n")
    assert read(path, word=1, tag=3)[0][:2] == (["Bonn"], ["B-LOC"])


@pytest.mark.parametrize(
    ("text", "scheme", "words"),
    [
        ("a O\nb I-PER\n", "bio", ":2: I-PER follows O: an entity must begin with B-PER"),
        ("I I-PER\n", "bio", ":1: I-PER follows nothing"),
        ("a B-LOC\nb I-PER\n", "bio", ":2: I-PER follows B-LOC"),
        ("a B-PER\n\nb I-PER\n", "bio", ":3: I-PER follows nothing"),
        ("a O\nb B-PER\n", "iob1", ":2: B-PER follows O: .* set config.data.scheme=bio"),
        ("a PER\n", "bio", ":1: tag 'PER' is not O, B-TYPE or I-TYPE"),
        ("a E-PER\n", "bio", ":1: tag 'E-PER' is not"),
        ("a O\nb\t\n", "bio", ":2: tag '' is not"),
        ("\tO\n", "bio", ":1: the word is empty"),
    ],
)
def test_invalid_tags(tmp_path, text, scheme, words):
    path = tmp_path / "a.conll"
    path.write_text(text)
    with pytest.raises(UserError, match=f"^{path}{words}"):
        read(path, scheme)
    with pytest.raises(UserError, match=r":1: . columns, but config\.data\.word_column=9"):
        read(path, scheme, word=9)


def test_folds_are_disjoint_sets_of_sentences(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("".join(f"w{n % 20} O\nx B-A\n\n" for n in range(40)))
    folds = [[item.words[0] for item in open_tagged(data(tmp_path, fold=fold), "dev")] for fold in range(3)]
    assert sorted(map(len, folds)) == [12, 14, 14]  # of twenty sentences, each twice
    assert not set(folds[0]) & set(folds[1])
    train = [item.words[0] for item in open_tagged(data(tmp_path), "train")]
    assert sorted(train) == sorted(folds[1] + folds[2])


def test_invalid_settings(tmp_path):
    (tmp_path / "a.conll").write_text("a O\n")
    for changes, words in (
        ({"corpus": "x"}, "config.data.corpus: 'x'"),
        ({"scheme": "bioes"}, "config.data.scheme: 'bioes' is not one of bio, iob1"),
        ({"directory": ""}, "name the folder of a.conll"),
        ({"fold": 3}, r"config\.data\.fold=3, config\.data\.folds=3"),
        ({"dev": "b.conll"}, "b.conll: no such file"),
    ):
        with pytest.raises(UserError, match=words):
            open_tagged(data(tmp_path, **changes), "dev")


def test_the_grammar_tags_people_and_towns():
    found = list(open_tagged(data("", corpus="grammar", size=200), "train"))
    named = {(tag, word) for item in found for word, tag in zip(item.words, item.tags, strict=True) if tag != "O"}
    assert {tag for tag, _ in named} == {"B-PER", "B-LOC"}
    assert ("B-LOC", "London") in named


def test_published_files(shared):
    wikigold = list(TaggedFile(shared / "data" / "wikigold" / "wikigold.conll", 0, -1, "iob1"))
    assert {tag[2:] for item in wikigold for tag in item.tags} == {"", "PER", "LOC", "ORG", "MISC"}
    wnut = list(TaggedFile(shared / "data" / "wnut17" / "dev.conll", 0, -1, "bio"))
    assert len(wnut) == 1009  # as documented
