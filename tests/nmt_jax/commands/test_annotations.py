"""`nmt-jax annotations`: systems ranked by people, agreement of raters, and a table for `nmt-jax judge`."""

import json

import pytest

from nmt_jax.data.readers.judgements import Columns, read_judged
from tests.fixtures.command_line import columns

# Errors of r1 and r2: A 1: 5 + 0.1, 0; A 2: 25, 0; B 1: 1, 1; B 2: 5, none; C has the references.
MQM = """system\tdoc\tdoc_id\tseg_id\trater\tsource\ttarget\tcategory\tseverity
A\td\t1\t1\tr1\tThe cat .\tDie <v>Katze</v> .\tAccuracy/Mistranslation\tMajor
A\td\t1\t1\tr1\tThe cat .\tDie Katze <v>.</v>\tFluency/Punctuation\tMinor
A\td\t1\t1\tr2\tThe cat .\tDie Katze .\tNo-error\tNo-error
A\td\t2\t2\tr1\tA dog\t<v>Hund</v>\tNon-translation!\tMajor
A\td\t2\t2\tr2\tA dog\tHund\tStyle/Awkward\tNeutral
B\td\t1\t1\tr1\tThe cat .\tDer <v>Katze</v>\tFluency/Grammar\tMinor
B\td\t1\t1\tr2\tThe cat .\tDer <v>Katze</v>\tFluency/Grammar\tMinor
B\td\t2\t2\tr1\tA <v>dog</v>\tEin\tAccuracy/Omission\tMajor
C\td\t1\t1\tr2\tThe cat .\tDie Katze .\tno-error\tno-error
C\td\t2\t2\tr2\tA dog\tEin Hund\tno-error\tno-error
"""


@pytest.fixture
def mqm(tmp_path):
    path = tmp_path / "mqm.tsv"
    path.write_text(MQM)
    return path


def test_systems_ranked_by_hand(nmt_jax, mqm):
    code, lines, stderr = nmt_jax("annotations", mqm, "--agreement=alpha_interval,kappa")
    assert (code, stderr) == (0, "")
    assert columns(lines)[:4] == [
        ["rank", "system", "texts", "mqm"],
        ["1", "C", "2", "0.0000"],
        ["2", "B", "2", "-3.0000"],  # ((1 + 1) / 2 + 5) / 2
        ["3", "A", "2", "-7.5250"],  # (5.1 / 2 + 25 / 2) / 2
    ]
    assert lines[4] == ""
    # Three texts have two ratings: 5.1 0, 25 0, 1 1. The mean squared difference is (5.1^2 + 25^2) / 3 within texts;
    # that of all pairs is twice the variance: 2 (5.1^2 + 25^2 + 1 + 1 - 32.1^2 / 6) / 5.
    within, among = (5.1**2 + 25**2) / 3, 2 * (5.1**2 + 25**2 + 2 - 32.1**2 / 6) / 5
    assert columns(lines)[5:] == [
        ["agreement", "mqm"],
        ["alpha_interval", f"{1 - within / among:.4f}"],
        ["kappa", "0.2500"],  # they agree on 1 of 3 texts, and by chance on 1 of 9
    ]


def test_weights_are_options(nmt_jax, mqm):
    flags = ("--weights=Major/non-translation=7,minor/Fluency/grammar=0.5,major=2", "--select=rater=r1")
    code, lines, stderr = nmt_jax("annotations", mqm, *flags)
    assert (code, columns(lines)[1:]) == (0, [["1", "B", "2", "-1.2500"], ["2", "A", "2", "-4.5500"]])
    assert stderr.startswith("nmt-jax: no agreement of raters: ")
    assert stderr.count("\n") == 1


def test_the_table_is_one_that_judge_reads(nmt_jax, mqm, tmp_path):
    path = tmp_path / "out.tsv"
    assert nmt_jax("annotations", mqm, f"--judgements={path}", "--reference=C").code == 0
    assert columns(path.read_text().splitlines()) == [
        ["system", "item", "source", "hypothesis", "reference", "ratings", "mqm"],
        ["A", "1", "The cat .", "Die Katze .", "Die Katze .", "2", "-2.55"],
        ["A", "2", "A dog", "Hund", "Ein Hund", "2", "-12.5"],
        ["B", "1", "The cat .", "Der Katze", "Die Katze .", "2", "-1"],
        ["B", "2", "A dog", "Ein", "Ein Hund", "1", "-5"],
    ]
    judged = read_judged(path, Columns(human=("mqm",), system="system", item="item"))
    assert judged.human["mqm"].tolist() == [-2.55, -12.5, -1, -5]
    assert (judged.systems, judged.items) == (list("AABB"), list("1212"))


def test_esa_has_two_columns_and_z_scores(nmt_jax, tmp_path):
    major = [{"start_i": 0, "end_i": 1, "severity": "major"}]
    rows = [("A", "x", 90, []), ("B", "x", 70, major), ("A", "y", 40, major), ("B", "y", 40, [])]
    names = ("system", "annotator", "esa_score", "esa_spans")
    objects = [dict(zip(names, row, strict=True)) | {"line_id": 0, "tgt": "t", "src": "s"} for row in rows]
    path = tmp_path / "esa.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in objects))
    code, lines, stderr = nmt_jax("annotations", path, "--kind=esa", "--format=json", "--agreement=alpha_ratio")
    assert code == 2  # errors are negative scores
    assert "--agreement=alpha_ratio: the level ratio needs ratings that are not negative" in stderr
    with pytest.warns(UserWarning, match="esa: these raters gave all texts one score, so their z-scores are 0: y"):
        code, lines, _ = nmt_jax("annotations", path, "--kind=esa", "--format=json", "--z_scores")
    found = json.loads("\n".join(lines))
    half = 0.5**0.5  # of two scores, standardized by their sample deviation
    assert found["raters"] == {"x": 2, "y": 2}
    assert found["systems"] == [
        {"rank": rank, "system": system, "texts": 1, "scores": pytest.approx({"esa_z": esa, "esa_spans_z": 0})}
        for rank, system, esa in ((1, "A", half / 2), (2, "B", -half / 2))
    ]
    assert set(found["agreement"]) == {"esa_z", "esa_spans_z"}
    assert code == 0


def test_ranks_are_turned_round_and_equal_scores_share_a_rank(nmt_jax, tmp_path):
    path = tmp_path / "r.tsv"
    path.write_text(
        "system\titem\trater\trank\n" + "".join(f"{s}\t1\t{r}\t{k}\n" for s, r, k in ("Aa2", "Bb1", "Cc2", "Da4"))
    )
    flags = ("--kind=scores", "--score=-rank", "--agreement=")
    code, lines, _ = nmt_jax("annotations", path, *flags)
    assert code == 0
    assert [row[:2] + row[3:] for row in columns(lines)] == [
        ["rank", "system", "rank"],
        *(["1", "B", "-1.0000"], ["2", "A", "-2.0000"], ["2", "C", "-2.0000"], ["4", "D", "-4.0000"]),
    ]


def test_items_that_are_not_unique_are_noticed(nmt_jax, mqm):
    mqm.write_text(MQM + "A\te\t1\t1\tr3\tOther\tAnderer Text\tno-error\tno-error\n")
    with pytest.warns(UserWarning, match=rf"{mqm}:12: another text of system A for item 1 than in {mqm}:2; if"):
        assert nmt_jax("annotations", mqm).code == 0
    assert nmt_jax("annotations", mqm, "--item=doc+seg_id").stderr == ""


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (
            [],
            "mqm.tsv:2: severity 'Critical' has no weight; those with a weight are neutral, minor, major; give it one",
        ),
        (["--weights=critical"], "--weights=critical: must be SEVERITY=WEIGHT"),
        (["--weights=critical=-1"], "--weights=critical=-1: must be SEVERITY=WEIGHT"),
        (["--weights=critical=nan"], "--weights=critical=nan: must be"),
        (["--kind=esa"], "mqm.tsv:1: no column 'score|esa_score'"),
        (["--kind=esa", "--score=-score"], "--kind=esa has one score"),
        (["--kind=esa", "--score="], "--kind=esa needs --score=COLUMN"),
        (["--kind=scores", "--score="], "--kind=scores needs --score=COLUMN"),
        (["--kind=scores", "--score=category"], "mqm.tsv:2: 'category' is not a number: 'Accuracy/Mistranslation'"),
        (["--kind=scores", "--weights=major=1"], "--weights has no effect with --kind=scores"),
        (["--score=mqm"], "--score has no effect with --kind=mqm"),
        (["--reference=C"], "--reference has no effect without --judgements"),
        (["--agreement=alpha"], "--agreement=alpha: choose from alpha_nominal"),
        (["--select=rater"], "--select=rater: must be COLUMN=VALUE"),
        (["--select=nobody=r1"], "mqm.tsv:1: no column 'nobody'"),
        (["--select=rater=r2", "--agreement=alpha_interval"], "--agreement=alpha_interval: no text has two ratings"),
        (["--agreement=fleiss", "--weights=critical=9"], "the same number of ratings of every text"),
        (["--judgements=new.txt"], "--judgements=new.txt: the name must end in .tsv"),
        (["--judgements=OUT", "--weights=critical=9", "--reference=D"], "no such system; the systems are A, B, C"),
        (["--judgements=OUT", "--weights=critical=9", "--reference=B"], "--reference=B has no text for item 3"),
        (["more.tsv"], "needs one file"),
    ],
)
def test_mistakes(mistake, mqm, tmp_path, flags, message):
    mqm.write_text(MQM.replace("Major", "Critical", 1) + "A\td\t3\t3\tr2\tx\ty\tno-error\tno-error\n")
    output = tmp_path / "out.tsv"
    assert message in mistake("annotations", mqm, *(flag.replace("OUT", str(output)) for flag in flags))
    assert not output.exists()


def test_an_existing_table_is_kept(mistake, nmt_jax, mqm, tmp_path):
    output = tmp_path / "out.tsv"
    output.write_text("mine")
    assert "out.tsv: already exists" in mistake("annotations", mqm, f"--judgements={output}")
    assert nmt_jax("annotations", mqm, f"--judgements={output}", "--overwrite").code == 0
    assert output.read_text().startswith("system\titem")
