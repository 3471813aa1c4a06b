"""Text of one language: which lines and documents belong to which split."""

import gzip

import pytest
from ml_collections import ConfigDict

from nmt_jax.data import grammar
from nmt_jax.data.readers.monolingual import open_documents, open_lines
from nmt_jax.errors import UserError

LINES = [f"the dog number n{n} barks" for n in range(20)]


@pytest.fixture
def data(tmp_path):
    """`config.data` of lines, and the training file that it names."""
    (tmp_path / "train.txt").write_text("".join(f"{line}\n" for line in LINES))
    settings = {"corpus": "text", "directory": str(tmp_path), "train": "train.txt", "dev": "", "test": ""}
    return ConfigDict(settings | {"dev_share": 0.1, "test_share": 0.15, "size": 5})


@pytest.fixture
def documents(tmp_path):
    """`config.data` of documents, and the file that it names."""
    (tmp_path / "documents.txt").write_text("".join(f"a{n}.\nb{n}.\n\n" for n in range(10, 30)))
    settings = {"corpus": "text", "directory": str(tmp_path), "train": ["documents.txt"], "running": []}
    return ConfigDict(settings | {"paragraphs": 2, "dev_share": 0.1, "size": 80})


def test_the_end_of_the_training_file_is_held_out(data):
    train, dev, test = (list(open_lines(data, split)) for split in ("train", "dev", "test"))
    assert (train, dev, test) == (LINES[:15], LINES[15:17], LINES[17:])
    assert open_lines(data, "dev").name.endswith("train.txt, lines 16 to 17")
    assert len({open_lines(data, split).fingerprint() for split in ("train", "dev", "test")}) == 3


def test_a_split_with_its_own_file_leaves_the_training_file_whole(data, tmp_path):
    with gzip.open(tmp_path / "dev.txt.gz", "wt") as file:
        file.write("a dog\n")
    data.dev = "dev.txt"
    assert list(open_lines(data, "dev")) == ["a dog"]
    assert list(open_lines(data, "train")) == LINES[:17]
    data.test_share = 0.0
    assert list(open_lines(data, "train")) == LINES


def test_grammar_lines_are_german(data):
    data.corpus = "grammar"
    assert list(open_lines(data, "train")) == [german for _, german in grammar.pairs("train", 5)]
    assert open_lines(data, "train").fingerprint() != open_lines(data, "dev").fingerprint()


@pytest.mark.parametrize(
    ("changes", "split", "line"),
    [
        ({"corpus": "tfds"}, "train", "config.data.corpus: 'tfds' is not one of grammar, text"),
        ({"directory": ""}, "train", "config.data.directory: name the folder of the text"),
        ({"train": "nowhere.txt"}, "train", r"nowhere\.txt: no such file, plain or with \.gz"),
        ({"dev": "nowhere.txt"}, "dev", r"nowhere\.txt: no such file"),
        ({"dev_share": 0.0}, "dev", r"config\.data\.dev: name a file, or hold out .* config\.data\.dev_share=0\.1"),
        ({"dev_share": -0.1}, "train", "both must be at least 0, and their sum less than 1"),
        ({"dev_share": 0.5, "test_share": 0.5}, "train", "both must be at least 0, and their sum less than 1"),
        ({"dev_share": 0.01}, "dev", "20 lines are too few to hold out 0 for dev and 3 for test"),
    ],
)
def test_invalid_settings_for_lines(data, changes, split, line):
    data.update(changes)
    with pytest.raises(UserError, match=line):
        open_lines(data, split)


def test_blank_lines_separate_documents_and_every_tenth_is_held_out(documents):
    train, dev = (list(open_documents(documents, split)) for split in ("train", "dev"))
    assert dev == [["a19.", "b19."], ["a29.", "b29."]]
    assert train == [[f"a{n}.", f"b{n}."] for n in range(10, 30) if n not in (19, 29)]
    assert open_documents(documents, "train").fingerprint() != open_documents(documents, "dev").fingerprint()


def test_running_text_becomes_paragraphs_of_joined_lines(documents, tmp_path):
    with gzip.open(tmp_path / "book.txt.gz", "wt") as file:
        file.write("\n \nIt was\nthe best.\n\n\nIt\nwas.\n\nThe worst.\n")
    documents.update(train=[], running=["book.txt"], dev_share=0.01)
    assert list(open_documents(documents, "train")) == [["It was the best.", "It was."], ["The worst."]]
    documents.train = ["documents.txt"]
    assert len(list(open_documents(documents, "train"))) == 22


def test_grammar_documents_alternate_between_languages(documents):
    documents.corpus = "grammar"
    found = list(open_documents(documents, "train"))
    assert [len(document) for document in found] == [8] * 10
    words = [set(" ".join(document).split()) for document in found]
    assert all(("der" in text or "die" in text or "das" in text) == bool(n % 2) for n, text in enumerate(words))


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"corpus": "tfds"}, "config.data.corpus: 'tfds' is not one of grammar, text"),
        ({"directory": ""}, r"config\.data\.directory: name the folder of the text"),
        ({"train": []}, r"config\.data\.train, config\.data\.running: name"),
        ({"train": ["nowhere.txt"]}, r"nowhere\.txt: no such file, plain or with \.gz"),
        ({"running": ["nowhere.txt"]}, r"nowhere\.txt: no such file"),
        ({"dev_share": 0.0}, r"config\.data\.dev_share=0.0 must be more than 0"),
        ({"dev_share": 1.0}, r"config\.data\.dev_share=1.0 must be more than 0"),
        ({"paragraphs": 1}, r"config\.data\.paragraphs=1 must be at least 2"),
    ],
)
def test_invalid_settings_for_documents(documents, changes, line):
    documents.update(changes)
    with pytest.raises(UserError, match=line):
        open_documents(documents, "train")
