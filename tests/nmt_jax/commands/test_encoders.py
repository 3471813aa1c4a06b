"""`nmt-jax encoders`: the same rows in three formats."""

import json

from nmt_jax.pretrained.catalogue import PUBLISHED


def test_rows_in_three_formats(nmt_jax):
    code, lines, stderr = nmt_jax("encoders")
    assert (code, stderr) == (0, "")
    rows = [line.split("\t") for line in nmt_jax("encoders", "--format=tsv").lines]
    assert [line.split() for line in lines] == [[cell for cell in row if cell] for row in rows]
    assert rows[0] == ["name", "family", "layers", "width", "licence", "bertscore_layer"]
    objects = json.loads("\n".join(nmt_jax("encoders", "--format=json").lines))
    assert [one["name"] for one in objects] == [*PUBLISHED] == [row[0] for row in rows[1:]]
    found = {one["name"]: one for one in objects}
    assert found["microsoft/mpnet-base"] == {
        **{"name": "microsoft/mpnet-base", "family": "mpnet", "layers": 12, "width": 768},
        **{"licence": "MIT", "bertscore_layer": 8},
    }
    assert found["google/rembert"]["bertscore_layer"] is None


def test_one_family(nmt_jax):
    rows = nmt_jax("encoders", "--family=rembert", "--format=tsv").lines
    assert [row.split("\t")[:2] for row in rows] == [["name", "family"], ["google/rembert", "rembert"]]
    code, _, stderr = nmt_jax("encoders", "--family=gpt2")
    assert code == 2
    assert "gpt2" in stderr


def test_arguments_are_refused(nmt_jax):
    code, _, stderr = nmt_jax("encoders", "roberta")
    assert code == 2
    assert "nmt-jax encoders takes flags only, not 'roberta'" in stderr
