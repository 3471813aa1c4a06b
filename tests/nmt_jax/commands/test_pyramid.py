"""`nmt-jax pyramid`: scores of the annotated summaries of several files."""

import gzip
import json

import pytest

from tests.fixtures.command_line import columns

PYRAMID = {
    "references": ["A", "B"],
    "units": {"1": {"contributors": ["A", "B"]}, "2": {"contributors": ["A"]}, "3": {"contributors": ["B"]}},
    "summaries": {"long": {"units": ["1", "2"], "others": 2}, "short": {"units": ["2"]}},
}


@pytest.fixture
def files(tmp_path):
    first, second = tmp_path / "first.json", tmp_path / "second.json.gz"
    first.write_text(json.dumps(PYRAMID))
    second.write_bytes(gzip.compress(json.dumps(PYRAMID | {"summaries": {"none": {"units": []}}}).encode()))
    return [str(first), str(second)]


def test_scores_of_all_summaries_in_three_formats(nmt_jax, files):
    # A reference has two units, of weights 2 and 1. long: 3 of at most 4 and 3; short: 1 of at most 2 and 3.
    expected = [[files[0], "long", 3 / 4, 1], [files[0], "short", 1 / 2, 1 / 3], [files[1], "none", 0, 0]]
    code, lines, stderr = nmt_jax("pyramid", *files)
    assert (code, stderr) == (0, "")
    rows = columns(lines)
    assert [row[:2] for row in rows] == [row[:2] for row in expected]
    assert [[float(x) for x in row[2:]] for row in rows] == [pytest.approx(row[2:], abs=1e-6) for row in expected]
    assert nmt_jax("pyramid", *files, "--format=tsv").lines == ["file\tsummary\toriginal\tmodified", *lines]
    objects = json.loads("\n".join(nmt_jax("pyramid", *files, "--format=json").lines))
    assert [list(one.values()) for one in objects] == [[*row[:2], *map(pytest.approx, row[2:])] for row in expected]


def test_means_over_files(nmt_jax, files):
    rows = columns(nmt_jax("pyramid", files[0], files[0], files[1], "--average", "--format=tsv").lines)
    assert rows == [
        ["summary", "files", "original", "modified"],
        ["long", "2", "0.750000", "1.000000"],
        ["short", "2", "0.500000", "0.333333"],
        ["none", "1", "0.000000", "0.000000"],
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "first.json:1: not JSON"),
        ("<a>", "first.json:1: neither a JSON object nor DUCView's XML"),
        ("", "first.json: the file is empty"),
        (json.dumps(PYRAMID | {"summaries": {}}), "first.json: a pyramid without annotated summaries"),
        (json.dumps(PYRAMID | {"summaries": {"s": {"units": ["9"]}}}), "first.json:1: there is no unit '9'"),
        *(
            (json.dumps(PYRAMID | {"summaries": {"s": {"units": ["1"], "others": others}}}), '"others" must be a whole')
            for others in (-1, 1.5, None, "2", True)
        ),
    ],
)
def test_mistakes(mistake, files, tmp_path, content, words):
    (tmp_path / "first.json").write_text(content)
    assert words in mistake("pyramid", *files)


def test_no_file(mistake):
    assert "needs files of pyramids" in mistake("pyramid")
    assert "nowhere.pan: no such file" in mistake("pyramid", "nowhere.pan")
