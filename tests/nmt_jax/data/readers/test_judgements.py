"""Files of human judgements: scores stay with their texts, and errors name the line."""

import dataclasses
import gzip
import json

import numpy as np
import pytest

from nmt_jax.data.readers.judgements import Columns, judged_files, read_judged
from nmt_jax.errors import UserError

TSV = "id\tsys\thyp\tref\tz\traw\n1\ta\tx y\tx z\t0.5\t70\n1\tb\tx\tx z\t-1\t\n2\ta\t\tq\t0\t50\n"
COLUMNS = Columns(hypothesis="hyp", reference=("ref",), human=("z",), system="sys", item="id")


@pytest.fixture
def write(tmp_path):
    def to(name, content):
        path = tmp_path / name
        path.write_bytes(gzip.compress(content.encode()) if name.endswith(".gz") else content.encode())
        return path

    return to


def test_columns_are_found_by_name(write):
    path = write("wmt.seg.tsv", TSV)
    judged = read_judged(path, COLUMNS)
    assert judged.name == "wmt"
    assert judged.hypotheses == ["x y", "x", ""]
    assert judged.references == [["x z"], ["x z"], ["q"]]
    assert judged.human["z"].tolist() == [0.5, -1, 0]
    assert (judged.systems, judged.items) == (["a", "b", "a"], ["1", "1", "2"])
    assert judged.locations == [f"{path}:{line}" for line in (2, 3, 4)]
    assert judged.system_human == {}


def test_system_scores_in_a_separate_file(write):
    path = write("wmt.seg.tsv.gz", TSV)
    write("wmt.sys.tsv", "system\tz\na\t0.1\nb\t0.3\nHUMAN\t0.9\n")
    with pytest.warns(UserWarning, match=r"wmt\.sys\.tsv: systems without texts are ignored: HUMAN"):
        assert read_judged(path, COLUMNS).system_human["z"] == {"a": 0.1, "b": 0.3, "HUMAN": 0.9}
    assert judged_files(str(path.parent)) == [path]
    other = write("other.tsv", "system\tz\na\t1\nb\t2\n")
    assert read_judged(path, COLUMNS, str(other)).system_human["z"] == {"a": 1, "b": 2}


def test_ranks_are_turned_round(write):
    path = write("wmt.seg.tsv", TSV)
    write("wmt.sys.tsv", "system\tz\na\t1\nb\t2\n")
    judged = read_judged(path, dataclasses.replace(COLUMNS, human=("-z",)))
    assert judged.human["z"].tolist() == [-0.5, 1, 0]
    assert judged.system_human == {"z": {"a": -1, "b": -2}}


def test_objects_with_several_outputs(write):
    rows = [
        {
            "doc": 1,
            "refs": ["r", "s"],
            "out": [{"m": "A", "t": "x", "fluency": 2}, {"m": "B", "t": "y", "fluency": 3.5}],
        },
        {"doc": 2, "refs": "r", "out": [{"m": "A", "t": "z", "fluency": 4}]},
    ]
    path = write("s.jsonl.gz", "\n".join(map(json.dumps, rows)))
    columns = Columns("t", ("refs", "doc2"), ("fluency",), "m", "doc", "out", scores=("fluency",))
    with pytest.raises(UserError, match=r"s\.jsonl\.gz:1: no column 'doc2'"):
        read_judged(path, columns)
    judged = read_judged(path, Columns("t", ("refs",), ("fluency",), "m", "doc", "out", scores=("fluency",)))
    assert judged.references == [["r", "s"], ["r", "s"], ["r"]]
    assert judged.systems == ["A", "B", "A"]
    assert judged.items == ["1", "1", "2"]
    np.testing.assert_array_equal(judged.scores["fluency"], judged.human["fluency"])


def test_ranked_pairs(write):
    path = write("rank.tsv", "better\tworse\treference\nx\ty\tr\nz\tx\tr\n")
    judged = read_judged(path, Columns("better", worse="worse"))
    assert judged.hypotheses == ["x", "y", "z", "x"]
    assert judged.human["rank"].tolist() == [100, 0, 100, 0]
    assert judged.items == [f"{path}:2"] * 2 + [f"{path}:3"] * 2
    assert judged.systems is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (TSV.replace("70\n", "70\textra\n"), ":2: 7 tab-separated fields, but the header has 6"),
        (TSV.replace("\t0.5", "\t"), ":2: 'z' is empty"),
        (TSV.replace("\t0.5", "\tgood"), ":2: 'z' is not a number: 'good'"),
        (TSV.replace("\t0.5", "\tnan"), ":2: 'z' is 'nan'"),
        (TSV.replace("1\tb", "1\ta"), ":3: system a already has a text for item 1 in .*:2"),
        (TSV.replace("hyp", "text"), ":1: no column 'hyp'; the columns are id, sys, text, ref, z, raw"),
        (TSV.replace("-1", "0.5").replace("\t0\t", "\t0.5\t"), ": all 3 judgements 'z' are 0.5"),
        ("\n".join(TSV.split("\n")[:2]), ": 1 judged texts"),
        ("", ": the file is empty"),
    ],
)
def test_invalid_tables(write, content, words):
    with pytest.raises(UserError, match=rf"bad\.tsv{words}") as caught:
        read_judged(write("bad.tsv", content), COLUMNS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("{", "not JSON"),
        ("[1]", "not a JSON object"),
        ('{"t": 3, "r": "r", "h": 1}', "'t' is not a string"),
        ('{"t": "x", "r": [], "h": 1}', "'r' is neither"),
        ('{"t": "x", "r": ["a", 2], "h": 1}', "'r' is neither"),
        ('{"t": "x", "r": "r", "h": null}', "'h' is empty"),
        ('{"t": "x", "r": "r", "h": true}', "'h' is True"),
        ('{"t": "x", "r": "r", "h": [1]}', "'h' is not a number"),
    ],
)
def test_invalid_objects(write, row, words):
    path = write("bad.jsonl", '{"t": "x", "r": "r", "h": 1}\n' + row + "\n")
    with pytest.raises(UserError, match=rf"bad\.jsonl:2: {words}"):
        read_judged(path, Columns("t", ("r",), ("h",)))
    with pytest.raises(UserError, match=r"bad\.jsonl:1: no column 'out'"):
        read_judged(path, Columns("t", ("r",), ("h",), outputs="out"))


def test_invalid_files_of_system_scores(write):
    path = write("wmt.seg.tsv", TSV)
    for content, words in (
        ("system\tz\na\t1\n", r"wmt\.seg\.tsv:3: system b has no score in .*wmt\.sys\.tsv"),
        ("system\tz\na\t1\na\t2\n", r"wmt\.sys\.tsv:3: duplicate system a"),
        ("name\tz\na\t1\n", r"wmt\.sys\.tsv:1: no column 'system'"),
    ):
        write("wmt.sys.tsv", content)
        with pytest.raises(UserError, match=words):
            read_judged(path, COLUMNS)


def test_invalid_files(write, tmp_path):
    for call, words in (
        (lambda: judged_files(str(tmp_path / "x.tsv")), "no such file"),
        (lambda: judged_files(str(tmp_path)), r"no \.tsv or \.jsonl file found"),
        (lambda: read_judged(write("a.csv", "a"), COLUMNS), r"a\.csv: judged texts must be in a \.tsv or \.jsonl file"),
        (lambda: read_judged(write("a.tsv", TSV), Columns()), "--human=COLUMN"),
    ):
        with pytest.raises(UserError, match=words):
            call()


def test_published_data(shared):
    summaries = {"outputs": "outputs", "hypothesis": "summary", "item": "doc_id"}
    for name, columns, size in (
        ("wmt_da/wmt17.cs-en.tsv", Columns(human=("human_z",), system="system", item="seg_id"), 560),
        ("wmt19_darr/wmt19.kk-en.tsv.gz", Columns("better", worse="worse"), 2 * 9728),
        ("newsroom/newsroom.dev.jsonl.gz", Columns(human=("coherence", "fluency"), system="system", **summaries), 280),
        ("qags_cnn/qags_cnn.dev.jsonl.gz", Columns(reference=("source",), human=("fact",), **summaries), 235),
        ("d2t/bagel.jsonl.gz", Columns(reference=("references",), human=("quality",), item="id"), 404),
        ("stsb/stsb-en.dev.tsv", Columns("sentence1", ("sentence2",), ("score",)), 1500),
        ("mlqe_pe/en-de.dev.tsv", Columns(reference=("post_edit",), human=("da_z_mean",), scores=("hter",)), 1000),
    ):
        path = shared / "data" / name
        if not path.exists():
            pytest.skip(f"no data at {path}")
        assert len(read_judged(path, columns).hypotheses) == size
