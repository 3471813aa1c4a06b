"""Files of annotations: MQM, ESA and plain scores; errors name the line."""

import json

import pytest

from nmt_jax.data.readers.annotations import AnnotationColumns, Error, parse_marked, read_annotations
from nmt_jax.errors import UserError

MQM = """system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity
A\td\t1\t7\tr1\tThe cat .\tDie <v>Katze</v> .\tAccuracy/Mistranslation\tMajor
B\td\t1\t7\tr1\tThe <v>cat</v> .\tDie .\tAccuracy/Omission\tMinor
A\td\t1\t7\tr1\tThe cat .\tDie Katze<v> .</v>\tFluency/Punctuation\tMinor
A\td\t1\t7\tr2\tThe cat .\tDie Katze .\tNo-error\tno-error
"""
ESA = {
    "system": "A",
    "line_id": 3,
    "doc_id": "d",
    "src": "a\tb",
    "tgt": "x y",
    "annotator": "r1",
    "esa_score": 70,
    "esa_spans": [
        {"start_i": 0, "end_i": 1, "severity": "minor", "error_type": None},
        {"start_i": "missing", "end_i": "missing", "severity": "major"},
    ],
}


@pytest.fixture
def write(tmp_path):
    def to(name, content):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else "".join(json.dumps(row) + "\n" for row in content))
        return path

    return to


def test_mqm_has_a_row_per_error(write):
    path = write("m.tsv", MQM)
    first, other, without = read_annotations(path, "mqm")
    assert (first.system, first.item, first.rater, first.location) == ("A", "7", "r1", f"{path}:2")
    assert (first.source, first.hypothesis) == ("The cat .", "Die Katze .")
    assert first.errors == (
        Error("Major", "Accuracy/Mistranslation", ((4, 9),), (), f"{path}:2"),
        Error("Minor", "Fluency/Punctuation", ((9, 11),), (), f"{path}:4"),
    )
    assert (other.source, other.errors[0].spans, other.errors[0].source_spans) == ("The cat .", (), ((4, 7),))
    assert (without.rater, without.errors) == ("r2", ())


def test_columns_and_rows_can_be_chosen(write):
    path = write("m.tsv", MQM.replace("seg_id", "globalSegId"))
    found = read_annotations(path, "mqm", AnnotationColumns(item="doc+doc_id"), {"rater": "r2", "doc": "d"})
    assert [(one.item, one.rater) for one in found] == [("d:1", "r2")]
    with pytest.raises(UserError, match=r"m\.tsv: no annotations with rater=r3"):
        read_annotations(path, "mqm", select={"rater": "r3"})


@pytest.mark.parametrize("in_tsv", [False, True])
def test_esa_has_a_score_and_spans(write, in_tsv):
    if in_tsv:
        row = {**ESA, "src": "a b", "esa_spans": json.dumps(ESA["esa_spans"])}
        path = write("e.tsv", "\n".join("\t".join(map(str, cells)) for cells in (row, row.values())))
    else:
        path = write("e.jsonl", [ESA])
    (one,) = read_annotations(path, "esa")
    assert (one.system, one.item, one.rater, one.source, one.hypothesis) == ("A", "3", "r1", "a b", "x y")
    assert one.scores == {"esa": 70}
    assert [(error.severity, error.spans) for error in one.errors] == [("minor", ((0, 1),)), ("major", ())]


def test_plain_scores_need_no_texts(write):
    path = write("s.tsv", "system\titem\trater\trank\tfluency\nA\t1\tr\t2\t0.5\nB\t1\tr\t1\t4\n")
    found = read_annotations(path, "scores", AnnotationColumns(scores=("-rank", "fluency")))
    assert [one.scores for one in found] == [{"rank": -2, "fluency": 0.5}, {"rank": -1, "fluency": 4}]
    assert found[0].hypothesis == ""


def test_all_rows_have_the_same_columns_of_scores(write):
    rows = [{"system": "A", "item": item, "rater": "r", name: 1} for item, name in (("1", "score"), ("2", "esa_score"))]
    with pytest.raises(UserError, match=r"s\.jsonl:2: other columns of scores than in .*:1: esa_score and score"):
        read_annotations(write("s.jsonl", rows), "scores")


def test_markers():
    assert parse_marked("a <v>b</v> c<v></v> <v>d</v>") == ("a b c d", ((2, 3), (5, 5), (6, 7)))
    assert parse_marked("a < v > b") == ("a < v > b", ())


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("<v>Katze</v>", "Katze</v>", ":2: 'target': </v> without its counterpart"),
        ("<v>Katze</v>", "<v>Katze", ":2: 'target': <v> without </v>"),
        ("<v>Katze</v>", "<v>Ka<v>tze</v></v>", ":2: 'target': <v> without its counterpart"),
        ("The <v>cat</v>", "The cat</v>", ":3: 'source': </v> without"),
        ("category", "kind", ":1: no column 'category'; the columns are system, doc"),
        ("\tMajor", "\t", ":2: 'severity' is empty"),
        ("\tMajor", "", ":2: 8 tab-separated fields, but the header has 9"),
        ("A\td\t1\t7\tr2", "A\td\t1\t\tr2", r":5: 'seg_id' is empty"),
        ("A\td\t1\t7\tr2", "A\td\t1\t7\t", r":5: 'rater' is empty"),
        (MQM[MQM.index("\n") :], "\n", ": no annotations"),
        (MQM, "", ": the file is empty"),
    ],
)
def test_invalid_mqm(write, old, new, words):
    with pytest.raises(UserError, match=rf"bad\.tsv{words}") as caught:
        read_annotations(write("bad.tsv", MQM.replace(old, new)), "mqm")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"esa_score": None}, "'esa_score' is empty"),
        ({"esa_score": 101}, "'esa_score' is 101; ESA scores are from 0 to 100"),
        ({"esa_score": "good"}, "'esa_score' is not a number"),
        ({"esa_spans": "[{"}, "'esa_spans' is not a list of objects"),
        ({"esa_spans": [1]}, "'esa_spans' is not a list of objects"),
        ({"esa_spans": [{"start_i": 0, "end_i": 1}]}, "an error span has no severity"),
        ({"esa_spans": [{"start_i": 2, "end_i": 1, "severity": "minor"}]}, "an error span has start_i=2, end_i=1"),
        ({"esa_spans": [{"start_i": True, "end_i": 1, "severity": "minor"}]}, "an error span has start_i=True"),
        ({}, r"rater r1 already judged the text of system A for item 3 in .*:1"),
    ],
)
def test_invalid_esa(write, change, words):
    with pytest.raises(UserError, match=rf"bad\.jsonl:2: {words}"):
        read_annotations(write("bad.jsonl", [ESA, {**ESA, **change}]), "esa")
