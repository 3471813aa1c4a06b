"""Labelled texts: file formats, folds, and errors that name the line."""

import collections
import gzip
import itertools
import json

import pytest
from ml_collections import ConfigDict

from nmt_jax.data.readers.labelled import GrammarPairs, GrammarTexts, TextFile, open_labelled
from nmt_jax.errors import UserError

TSV = 'id\tlabel\ttitle\tbody\n1\tgood\tA "quoted\tone\n2\tbad\t\ttwo \u2028 lines\n'


def read(path, label="label", texts=("title", "body")):
    return [(item.label, item.sentences, item.location) for item in TextFile(path, label, texts)]


def data(folder, **changes) -> ConfigDict:
    names = {"corpus": "files", "directory": str(folder), "train": "a.tsv", "dev": "", "fold": 0, "folds": 3}
    return ConfigDict(names | {"label": "label", "texts": ["text"], "size": 10} | changes)


@pytest.mark.parametrize("packed", [False, True])
def test_columns_are_found_by_name_and_quotes_are_ordinary_characters(tmp_path, packed):
    path = tmp_path / ("a.tsv.gz" if packed else "a.tsv")
    path.write_bytes(gzip.compress(TSV.encode()) if packed else TSV.encode())
    first, second = read(path)
    assert first == ("good", ['A "quoted', "one"], f"{path}:2")
    assert second == ("bad", ["", "two \u2028 lines"], f"{path}:3")
    assert [sentences for _, sentences, _ in read(path, texts=("body",))] == [["one"], ["two \u2028 lines"]]
    assert [label for label, _, _ in read(path, label="id")] == ["1", "2"]


def test_objects_with_a_text_or_a_list_of_sentences(tmp_path):
    rows = [{"label": 1, "title": "t", "body": ["a b", "c"]}, {"label": "x", "title": [], "body": "tab\there", "n": 0}]
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [item[:2] for item in read(path)] == [("1", ["t", "a b", "c"]), ("x", ["tab\there"])]


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("a.tsv", "label\tbody\nx\ty\n", "1: no column 'title'; the columns are label, body"),
        ("a.tsv", TSV + "3\tgood\tx\n", "4: 3 tab-separated fields, but the header has 4"),
        ("a.tsv", TSV + "3\tgood\tx\ty\tz\n", "4: 5 tab-separated fields"),
        ("a.tsv", TSV + "\n", "4: 1 tab-separated fields"),
        ("a.tsv", TSV + "3\t \tx\ty\n", "4: the label is empty"),
        ("a.tsv", "label\tlabel\nx\ty\n", "1: the column 'label' occurs twice; rename one"),
        ("a.jsonl", '{"label": "x\\ty", "title": "", "body": ""}\n', "1: the label has a tab or a line break"),
        ("a.jsonl", '{"label": "x"', "1: not JSON"),
        ("a.jsonl", "[1]\n", "1: not a JSON object"),
        ("a.jsonl", '{"label": "x", "title": "y"}\n', "1: no column 'body'; the columns are label, title"),
        ("a.jsonl", '{"label": null, "title": "", "body": ""}\n', "1: 'label' is neither a string nor an integer"),
        ("a.jsonl", '{"label": 1, "title": "", "body": ["x", 2]}\n', "1: 'body' is neither a string nor a list"),
        ("a.jsonl", '{"label": 1, "title": {}, "body": "x"}\n', "1: 'title' is neither"),
    ],
)
def test_an_error_names_its_line(tmp_path, name, content, line):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(UserError) as error:
        read(path)
    assert str(error.value).startswith(f"{path}:{line}")


def test_invalid_files_and_settings(tmp_path):
    (tmp_path / "a.csv").write_text("label,text\n")
    with pytest.raises(UserError, match=r"in a \.tsv or \.jsonl file"):
        list(open_labelled(data(tmp_path, train="a.csv", dev="a.csv"), "train"))
    with pytest.raises(UserError, match="no such file"):
        open_labelled(data(tmp_path), "train")
    (tmp_path / "a.tsv").write_text("label\ttext\nx\ty\n")
    with pytest.raises(UserError, match=r"config\.data\.texts: name at least one"):
        list(open_labelled(data(tmp_path, texts=[]), "train"))
    for changes, words in (
        ({"directory": ""}, "config.data.directory"),
        ({"corpus": "tfds"}, "'tfds' is not one of grammar, files"),
        ({"fold": 3}, "the fold must be between 0 and folds - 1"),
        ({"fold": -1}, "the fold must be between 0 and folds - 1"),
        ({"folds": 1}, "the fold must be between 0 and folds - 1"),
    ):
        with pytest.raises(UserError, match=words):
            open_labelled(data(tmp_path, **changes), "train")


def texts_of(labelled):
    return [(item.label, *item.sentences) for item in labelled]


def test_a_development_file_leaves_the_training_file_whole(tmp_path):
    (tmp_path / "a.tsv").write_text("label\ttext\n" + "".join(f"x\ttext {n}\n" for n in range(10)))
    (tmp_path / "b.tsv").write_text("label\ttext\ny\tother\n")
    assert len(texts_of(open_labelled(data(tmp_path, dev="b.tsv"), "train"))) == 10
    assert texts_of(open_labelled(data(tmp_path, dev="b.tsv"), "dev")) == [("y", "other")]


def test_folds_are_stratified_by_label_and_keep_equal_texts_together(tmp_path):
    rows = [("common", f"text {n % 60}") for n in range(90)] + [("rare", f"text {n}") for n in range(9)]
    path = tmp_path / "a.tsv"

    def write(rows):
        path.write_text("label\ttext\n" + "".join("\t".join(row) + "\n" for row in rows))

    def fold(number, split):
        return texts_of(open_labelled(data(tmp_path, fold=number), split))

    write(rows)
    devs = [fold(number, "dev") for number in range(3)]
    for number, dev in enumerate(devs):
        assert sorted(dev + fold(number, "train")) == sorted(rows)
        distinct = collections.Counter(label for label, _ in set(dev))
        assert distinct == {"common": 20, "rare": 3}
    assert all(not set(a) & set(b) for a, b in itertools.combinations(devs, 2))
    write(rows[::-1])  # folds do not depend on the order of the file
    assert [fold(number, "dev")[::-1] for number in range(3)] == devs


def test_grammar_texts_alternate_between_english_and_german():
    texts = list(GrammarTexts("train", 8))
    assert [item.label for item in texts] == ["en", "de"] * 4
    assert [len(item.sentences) for item in texts] == [1, 2, 3, 1, 2, 3, 1, 2]
    assert texts_of(texts) == texts_of(GrammarTexts("train", 8)) == texts_of(GrammarTexts("train", 9))[:8]
    assert not {text for item in texts for text in item.sentences} & {
        text for item in GrammarTexts("dev", 8) for text in item.sentences
    }


def test_folds_ignore_scores(tmp_path):
    (tmp_path / "a.tsv").write_text("label\ttext\n" + "".join(f"{n / 90}\ttext {n % 60}\n" for n in range(90)))
    devs = [texts_of(open_labelled(data(tmp_path, fold=number, scores=True), "dev")) for number in range(3)]
    assert [len({text for _, text in dev}) for dev in devs] == [20, 20, 20]
    assert sum(map(len, devs)) == 90
    assert all(not {text for _, text in a} & {text for _, text in b} for a, b in itertools.combinations(devs, 2))


def test_several_files_may_have_different_column_names(tmp_path):
    (tmp_path / "a.tsv").write_text("score\tone\tother\n1\ta\tx\n2\tb\ty\n")
    (tmp_path / "b.jsonl").write_text('{"z": 3, "score2": 5, "text": "c"}\n')
    settings = data(tmp_path, train="a.tsv,b.jsonl", dev="a.tsv", label="z|score", texts=["text|one"])
    texts = open_labelled(settings, "train")
    assert texts.name == f"{tmp_path / 'a.tsv'} and 1 more"
    found = [(item.label, item.sentences, item.location, item.columns) for item in texts]
    assert found == [
        ("1", ["a"], f"{tmp_path / 'a.tsv'}:2", ("score",)),
        ("2", ["b"], f"{tmp_path / 'a.tsv'}:3", ("score",)),
        ("3", ["c"], f"{tmp_path / 'b.jsonl'}:1", ("z",)),
    ]
    folds = data(tmp_path, train="a.tsv,b.jsonl", label="z|score", texts=["text|one"])
    both = [item for split in ("train", "dev") for item in open_labelled(folds, split)]
    assert sorted(item.label for item in both) == ["1", "2", "3"]
    with pytest.raises(UserError, match=r"a\.tsv:1: no column 'z\|y'; the columns are score, one, other"):
        list(open_labelled(data(tmp_path, label="z|y", texts=["one"]), "train"))
    with pytest.raises(UserError, match=r"b\.jsonl:1: no column 'y'; the columns are z, score2, text"):
        list(open_labelled(data(tmp_path, train="b.jsonl", dev="b.jsonl", label="y"), "train"))


def test_several_columns_of_scores(tmp_path):
    (tmp_path / "a.tsv").write_text("bleu\trouge\ttext\n0.5\t1\ta\n")
    (item,) = open_labelled(data(tmp_path, dev="a.tsv", label="rouge,bleu"), "train")
    assert (item.label, item.columns) == ("1\t0.5", ("rouge", "bleu"))


def test_grammar_pairs_are_scored_by_the_share_of_words_kept():
    pairs = list(GrammarPairs("train", 40, ("a", "b")))
    assert len(pairs) == 40
    for number, item in enumerate(pairs):
        words, left = (sentence.split() for sentence in item.sentences)
        share = float(item.label.split("\t")[0])
        assert item.label == f"{share:.3f}\t{share:.3f}"
        if number % 4:
            assert len(left) / len(words) == pytest.approx(share, abs=1e-3)
    assert {item.sentences[0] for item in pairs}.isdisjoint(
        item.sentences[0] for item in GrammarPairs("dev", 40, ("a",))
    )
