"""`nmt-jax summarize`: a line for a line, of the text's own sentences."""

import io
import json
import sys

import pytest

from nmt_jax.__main__ import main
from nmt_jax.summarization.summarizer import METHODS, split_sentences


@pytest.fixture
def summarized(monkeypatch, capfd):
    def call(text, *flags):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        code = main(["summarize", *flags])
        out, err = capfd.readouterr()
        return code, out.split("\n")[:-1], err

    return call


def test_sentences_end_where_another_begins():
    assert split_sentences("One ends. Two ends? Three\n") == ["One ends.", "Two ends?", "Three"]
    assert split_sentences("It cost 3.5 pounds. no small letter begins one.") == [
        "It cost 3.5 pounds. no small letter begins one."
    ]
    assert split_sentences("with tabs. Only\t there ") == ["with tabs. Only", "there"]
    assert split_sentences("Er ging. Über uns flog es. «Ja.»") == ["Er ging.", "Über uns flog es.", "«Ja.»"]
    assert split_sentences(" ") == []


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_a_line_for_a_line(summarized, method):
    text = "A cat sat.\tA cat ate.\tRain fell.\tA cat sat and ate.\n\nOne.\n"
    code, lines, _ = summarized(text, f"--method={method}", "--sentences=2")
    assert code == 0
    assert len(lines) == 3
    assert lines[1:] == ["", "One."]
    assert all(part in text for part in lines[0].split(". "))
    assert lines[0].count(".") == 2


def test_lead_and_words(summarized):
    assert summarized("One two.\tThree four five.\tSix.\n", "--method=lead", "--words=4")[1] == ["One two. Six."]
    row = json.loads(summarized("One.\tTwo.\n", "--method=lead", "--sentences=1", "--format=json")[1][0])
    assert row == {"summary": "One.", "sentences": [1]}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["text.txt"], "reads stdin: … < text.txt"),
        (["--method=lead", "--encoder=x"], "lead compares no sentences"),
        (["--method=textrank", "--threshold=0.2"], "textrank has none"),
        (["--encoder=/nowhere"], "/nowhere"),
    ],
)
def test_mistakes(summarized, flags, message):
    code, _, err = summarized("One.\n", *flags)
    assert code == 2
    assert message in err
