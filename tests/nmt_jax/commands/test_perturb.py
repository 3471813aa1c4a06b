"""`nmt-jax perturb`: a reproducible table of perturbed sentences, which training reads."""

import csv
import io

import pytest

from metrics_jax import BLEU, Rouge
from nmt_jax import __main__ as cli
from nmt_jax.commands import perturb
from nmt_jax.errors import UserError
from nmt_jax.training.run import train
from tests.conftest import ROOT

SENTENCES = ["the old man sees the house .", "she sleeps", "", "a tall woman reads the old book in the garden ."]


@pytest.fixture
def mlm(pretraining_workdir):
    return pretraining_workdir


def test_every_row_has_the_scores_of_the_metrics():
    header, *rows = perturb.run(SENTENCES * 3)
    assert header == ["reference", "candidate", "how", "bleu", "rouge"]
    assert len(rows) == 9
    for reference, candidate, how, bleu, rouge in rows:
        assert how == "drop"
        assert len(candidate.split()) < len(reference.split())
        assert float(bleu) == pytest.approx(BLEU(effective_order=True)([candidate], [reference]).score, rel=1e-5)
        assert float(rouge) == pytest.approx(Rouge("L")([candidate], [reference]).score, rel=1e-5, abs=1e-6)
    assert len({candidate for _, candidate, *_ in rows}) > 6  # candidates depend on the number of the sentence, too


def test_masks_are_filled_in_independently_of_other_sentences(mlm):
    _, *rows = perturb.run(SENTENCES, mlm=mlm, metrics=["bleu"])
    assert [row[2] for row in rows] == ["drop"] * 3 + ["mask"] * 3
    filled = [row for row in rows if row[2] == "mask"]
    assert all(candidate and "[" not in candidate for _, candidate, *_ in filled)
    assert any(candidate != reference for reference, candidate, *_ in filled)
    _, *again = perturb.run([*SENTENCES, "karl sleeps"], mlm=mlm, metrics=["bleu"])
    assert [row for row in again if row[2] == "mask"][:3] == filled
    _, *other = perturb.run(SENTENCES, mlm=mlm, metrics=["bleu"], seed=1)
    assert [row for row in other if row[2] == "mask"] != filled


def test_a_sentence_that_is_too_long_keeps_its_end(mlm):
    long = " ".join(["the old man sees the house ."] * 30)
    _, _, (_, candidate, how, _) = perturb.run([long], mlm=mlm, metrics=["bleu"])
    assert how == "mask"
    assert candidate.endswith(" ".join(["the old man sees the house ."] * 20))


@pytest.mark.slow
def test_back_translation(tmp_path):
    for name, source, target in (("there", "en", "de"), ("back", "de", "en")):
        changes = {"data.source": source, "data.target": target, "data.cache": str(tmp_path / "cache")}
        train(f"{ROOT}/configs/quickstart.py:smoke=true", tmp_path / name, changes)
    _, *rows = perturb.run(SENTENCES, there=tmp_path / "there", back=tmp_path / "back", metrics=["bleu"])
    assert [row[2] for row in rows] == ["drop"] * 3 + ["back"] * 3


@pytest.mark.slow
def test_the_table_is_what_training_reads(tmp_path, capfdbinary, mlm):
    (tmp_path / "lines.txt").write_text('the "old" man\tsleeps\nshe reads\n' * 8)
    code = cli.main(["perturb", f"--input={tmp_path / 'lines.txt'}", f"--mlm={mlm}"])
    assert code == 0
    table = capfdbinary.readouterr().out
    rows = list(csv.DictReader(io.StringIO(table.decode(), newline="\n"), delimiter="\t", quoting=csv.QUOTE_NONE))
    assert len(rows) == 32
    assert rows[0]["reference"] == 'the "old" man sleeps'
    (tmp_path / "synthetic.tsv").write_bytes(table)
    changes = {"data.corpus": "files", "data.directory": str(tmp_path), "data.label": "bleu,rouge"}
    page = f"{ROOT}/configs/bleurt.py:stage=pretrain,smoke=true"
    measures = train(page, tmp_path / "w", changes | {"data.folds": "4"})
    assert {"dev/loss", "dev/pearson"} <= set(measures)


def test_mistakes(tmp_path, mlm):
    for options, words in (
        ({"there": "x"}, "needs both --there=WORKDIR and --back=WORKDIR"),
        ({"mlm": tmp_path / "nowhere"}, "no such workdir"),
        ({"metrics": ["bertscore"]}, "needs an encoder"),
        ({"there": mlm, "back": mlm}, "its task is 'pretrain', but this needs 'translate'"),
    ):
        with pytest.raises(UserError, match=words):
            next(perturb.run(SENTENCES, **options))
