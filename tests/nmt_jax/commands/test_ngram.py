"""`nmt-jax ngram`, and `nmt-jax perplexity` with its files."""

import dataclasses
import json

import numpy as np
import pytest

from nmt_jax.ngram.binary import write_binary
from nmt_jax.ngram.files import read_model
from tests.conftest import ROOT

TEXT = ROOT / "tests" / "nmt_jax" / "ngram" / "text.txt"
FALLBACK = "--discount_fallback=0.5,1,1.5"
LINES = ["the old dog sleeps", "a zebra sings", "we sing"]


@pytest.fixture
def binary(nmt_jax, tmp_path):
    path = tmp_path / "m.ngram"
    assert nmt_jax("ngram", f"--input={TEXT}", "--order=4", FALLBACK, f"--output={path}").code == 0
    return path


def test_a_model_is_estimated_converted_and_measured(nmt_jax, binary, tmp_path):
    text = tmp_path / "m.arpa"
    code, lines, stderr = nmt_jax("ngram", f"--order={4}", FALLBACK, f"--output={text}", stdin=TEXT.read_bytes())
    assert (code, lines) == (0, [])
    # The discounts that lmplz prints; text.txt has too few trigrams and 4-grams.
    assert stderr.splitlines() == [
        "1-grams: 28, discounts 0.4118 0.5176 1.9020",
        "2-grams: 82, discounts 0.4792 1.5975 2.7262",
        "3-grams: 119, discounts 0.5000 1.0000 1.5000",
        "4-grams: 117, discounts 0.5000 1.0000 1.5000",
    ]
    again = tmp_path / "again.arpa"
    assert nmt_jax("ngram", f"--convert={binary}", f"--output={again}").code == 0
    assert again.read_bytes() == text.read_bytes()
    for path in (text, binary):
        code, lines, stderr = nmt_jax("perplexity", f"--ngram={path}", stdin="\n".join(LINES))
        assert (code, stderr) == (0, "")
        measures = dict(line.split() for line in lines)
        assert list(measures) == ["perplexity", "known_perplexity", "lines", "tokens", "unknown"]
        scores = read_model(path).score(LINES)
        for name, log_p in (
            ("perplexity", scores.log_probabilities),
            ("known_perplexity", scores.log_probabilities[~scores.unknown]),
        ):
            assert float(measures[name]) == pytest.approx(10 ** -log_p.mean(), rel=1e-5)
        assert [measures[name] for name in ("lines", "tokens", "unknown")] == ["3", "12", "1"]


def test_lines_have_their_own_perplexities(nmt_jax, binary, tmp_path):
    (tmp_path / "text").write_text("\n".join(LINES))
    code, lines, stderr = nmt_jax("perplexity", f"--ngram={binary}", "--segments", f"--input={tmp_path / 'text'}")
    assert (code, stderr) == (0, "")
    rows = [json.loads(line) for line in lines]
    assert [(row["line"], row["tokens"], row["unknown"]) for row in rows] == [(1, 5, 0), (2, 4, 1), (3, 3, 0)]
    for row, (log_p, _) in zip(rows, read_model(binary).score(LINES).by_line(), strict=True):
        np.testing.assert_allclose(row["log10_probabilities"], log_p, atol=1e-6)
        assert row["perplexity"] == pytest.approx(10 ** -log_p.mean(), rel=1e-5)


def test_bits_per_character_of_known_words(nmt_jax, binary):
    measures = dict(line.split() for line in nmt_jax("perplexity", f"--ngram={binary}", stdin="we sing\n").lines)
    bits = 3 * np.log2(float(measures["perplexity"]))
    assert float(measures["bits_per_character"]) == pytest.approx(bits / len("we sing\n"), rel=1e-5)


@pytest.mark.parametrize("value", [np.nan, 0.5])
def test_a_damaged_model(mistake, binary, tmp_path, value):
    model = read_model(binary)
    damaged = dataclasses.replace(model, log_probabilities=tuple(0 * p + value for p in model.log_probabilities))
    write_binary(damaged, tmp_path / "damaged")
    assert "probabilities above 1; it is damaged" in mistake("perplexity", f"--ngram={tmp_path / 'damaged'}", stdin="a")


@pytest.mark.parametrize(
    ("arguments", "text", "message"),
    [
        (("ngram",), "a", "nmt-jax ngram needs --output="),
        (("ngram", "text"), "a", "reads stdin"),
        (("ngram", "--output=m.txt"), "a", "m.txt: the name must end in .arpa"),
        (("ngram", "--output={}"), "a", "already exists"),
        (("ngram", "--output=m.arpa"), "a b\n", "stdin: no 1-gram has the adjusted count 2"),
        (("ngram", "--output=m.arpa"), "a b\n<s> b\n", "stdin:2: the word <s> marks"),
        (("ngram", "--output=m.arpa"), "\n", "stdin: the text has no words"),
        (("ngram", "--output=m.arpa", "--input=nowhere"), "", "nowhere: no such file"),
        (("ngram", "--output=m.arpa", "--discount_fallback=1"), "a", "needs three numbers"),
        (("ngram", "--output=m.arpa", "--discount_fallback=a,b,c"), "a", "needs three numbers"),
        (("ngram", "--output=m.arpa", "--discount_fallback=2,2,2"), "a", "at most 1, 2 and 3"),
        (("ngram", "--output=m.arpa", "--order=0"), "a", "order"),
        (("ngram", "--output=m.arpa", "--convert={}", "--order=3"), "", "--order has no effect with --convert"),
        (("perplexity", "--ngram={}", "--workdir=w"), "a", "--workdir has no effect with --ngram"),
        (("perplexity", "--ngram={}", "--checkpoint=last"), "a", "--checkpoint has no effect with --ngram"),
        (("perplexity", "--workdir=w", "--segments"), "a", "--segments has no effect without --ngram"),
        (("perplexity", "--ngram={}"), "\n\n", "every line is empty"),
        (("perplexity", "--ngram=nowhere"), "a", "nowhere: no such file"),
        (("perplexity", f"--ngram={TEXT}"), "a", "text.txt:1: found 'the dog sees the cat', expected"),
    ],
)
def test_mistakes(mistake, binary, tmp_path, monkeypatch, arguments, text, message):
    monkeypatch.chdir(tmp_path)
    assert message in mistake(*(argument.format(binary) for argument in arguments), stdin=text)
    assert sorted(path.name for path in tmp_path.iterdir()) == [binary.name]
