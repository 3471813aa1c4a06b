"""`nmt-jax choose_pairs`: pairs on which two metrics disagree, and the test of the metrics by people's choices."""

import pytest

from metrics_jax.judging.sign_test import pairs_needed, sign_test
from tests.fixtures.command_line import columns

SYSTEMS, ITEMS = "abc", range(8)


@pytest.fixture
def texts(tmp_path):
    """A file whose column `worse` turns the order of the metric `good` round for odd items."""
    rows = ["system\titem\thypothesis\treference\tgood\tworse"]
    for number, system in enumerate(SYSTEMS):
        for item in ITEMS:
            score = number + item / 10
            rows.append(f"{system}\t{item}\t{system} {item}\tr {item}\t{score}\t{score if item % 2 else -score}")
    path = tmp_path / "texts.tsv"
    path.write_text("\n".join(rows) + "\n")
    return path


SCORES = ("--scores=good", "--scores=-worse")


def test_the_pairs_and_their_power(nmt_jax, texts):
    code, lines, stderr = nmt_jax("choose_pairs", texts, *SCORES, "--difference=0.4")
    heading, *rows = columns(lines)
    needed = pairs_needed((1 + 0.4 / 0.5) / 2)  # they disagree on half of the pairs
    assert (code, len(rows)) == (0, min(needed, 12))
    assert stderr.startswith(
        "nmt-jax: 12 of 24 pairs are ordered differently (50.0%); if the accuracies differ by 0.4, "
    )
    assert f"{2 * needed} pairs chosen at random" in stderr
    for row in rows:
        one = dict(zip(heading, row, strict=True))
        assert one["choice"] == ""
        assert one["left"] == f"{one['left_system']} {one['item']}"
        assert one["reference"] == f"r {one['item']}"
        assert int(one["item"]) % 2 == 1
        later = max("left", "right", key=lambda side: one[f"{side}_system"])
        assert one[f"{later}_metric"] == "good"  # a good metric prefers the later system
    assert {row[heading.index("left_metric")] for row in rows} == {"good", "worse"}  # both are on both sides
    assert nmt_jax("choose_pairs", texts, *SCORES, "--difference=0.4").lines == lines
    assert nmt_jax("choose_pairs", texts, *SCORES, "--difference=0.4", "--seed=1").lines != lines


def test_metrics_that_read_sources(nmt_jax, mistake, texts, tmp_path):
    """The source decides: sari rewards the words that the text has and the source has not."""
    rows = ["system\titem\thypothesis\treference\tsource\tother"]
    for item in ITEMS:
        rows += [f"a\t{item}\tx y {item}\tx z {item}\tx y {item}\t1", f"b\t{item}\tx w {item}\tx z {item}\tx w w\t0"]
    path = tmp_path / "sources.tsv"
    path.write_text("\n".join(rows) + "\n")
    given = ("--metrics=sari", "--scores=other", "--pairs=8")
    code, lines, _ = nmt_jax("choose_pairs", path, *given, "--source=source")
    heading, *rows = columns(lines)
    assert (code, len(rows)) == (0, 8)
    for row in rows:
        one = dict(zip(heading, row, strict=True))
        preferred = next(side for side in ("left", "right") if one[f"{side}_metric"] == "sari")
        assert one[f"{preferred}_system"] == "b"
    assert "choose_pairs read it with --source" in mistake("choose_pairs", path, *given)
    wrong = mistake("choose_pairs", path, "--metrics=ter,chrf", "--source=source")
    assert "--source has no effect" in wrong


def test_fewer_pairs_than_needed(nmt_jax, texts):
    code, lines, stderr = nmt_jax("choose_pairs", texts, *SCORES, "--pairs=40")
    assert (code, len(lines)) == (0, 13)
    assert stderr.splitlines()[1] == "nmt-jax: warning: 40 pairs are needed, but there are only 12"


def test_choices_decide_between_the_metrics(nmt_jax, mistake, texts, tmp_path):
    heading, *rows = columns(nmt_jax("choose_pairs", texts, *SCORES, "--pairs=12").lines)
    at = {name: number for number, name in enumerate(heading)}
    for number, row in enumerate(rows):
        side = "left" if row[at["left_metric"]] == "good" else "right"
        row[at["choice"]] = ["", " TIE", {"left": "right", "right": "left"}[side], *[side] * 9][number]
    path = tmp_path / "choices.tsv"
    path.write_text("\n".join("\t".join(row) for row in [heading, *rows]) + "\n")
    code, lines, _ = nmt_jax("choose_pairs", f"--choices={path}")
    assert code == 0
    assert dict(columns(lines)) == {"good": "9", "worse": "1", "tie": "1", "p": f"{sign_test(9, 1):.6f}"}
    path.write_text(path.read_text().replace(" TIE", "both"))
    assert "choices.tsv:3: 'choice' is 'both': must be left, right, tie, or empty" in mistake(
        "choose_pairs", f"--choices={path}"
    )
    path.write_text(path.read_text().replace("good", "chrf", 1))
    assert "the metrics must be the same two in all rows" in mistake("choose_pairs", f"--choices={path}")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "two metrics are needed, not 0"),
        (["--metrics=chrf,bleu,ter"], "two metrics are needed, not 3"),
        (["--scores=good", "--scores=-good"], "two metrics are needed, not 2"),
        (["--scores=good", "--scores=best"], "texts.tsv:1: no column 'best'"),
        (["--scores=good", "--scores=item"], "the metrics order none of the 24 pairs of different texts"),
        ([*SCORES, "--difference=0.6"], "--difference=0.6: the metrics order only 50.0% of the pairs differently"),
        (
            [*SCORES, "--difference=0.0001"],
            "--difference=0.0001, --power=0.8: a share of 0.5001 needs more than 100,000",
        ),
        ([*SCORES, "--system=item"], "system 0 already has a text for item 0"),
        ([*SCORES, "more.tsv"], "needs one file"),
        (["--choices=c.tsv"], "texts.tsv is not read with --choices"),
        (["--choices=c.tsv", "--pairs=3"], "--pairs has no effect with --choices"),
        ([*SCORES, "--system="], "needs --system=COLUMN and --item=COLUMN"),
    ],
)
def test_mistakes(mistake, texts, flags, message):
    assert message in mistake("choose_pairs", texts, *flags)
