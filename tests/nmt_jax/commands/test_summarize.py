"""`nmt-jax summarize`: one summary per line of input."""

import json

import pytest

from nmt_jax.summarization.summarizer import METHODS, split_sentences


def test_sentences_end_where_another_begins():
    assert split_sentences("One ends. Two ends? Three\n") == ["One ends.", "Two ends?", "Three"]
    no_end = "It cost 3.5 pounds. no small letter begins one."
    assert split_sentences(no_end) == [no_end]
    assert split_sentences("with tabs. Only\t there ") == ["with tabs. Only", "there"]
    assert split_sentences("Er ging. Über uns flog es. «Ja.»") == ["Er ging.", "Über uns flog es.", "«Ja.»"]
    assert split_sentences(" ") == []


@pytest.mark.parametrize("method", METHODS)
def test_every_method_gives_one_line_per_line(nmt_jax, method):
    text = "A cat sat.\tA cat ate.\tRain fell.\tA cat sat and ate.\n\nOne.\n"
    code, lines, _ = nmt_jax("summarize", f"--method={method}", "--sentences=2", stdin=text)
    assert code == 0
    assert len(lines) == 3
    assert lines[1:] == ["", "One."]
    assert all(part in text for part in lines[0].split(". "))
    assert lines[0].count(".") == 2


def test_a_limit_of_words(nmt_jax):
    text = "One two.\tThree four five.\tSix.\n"
    assert nmt_jax("summarize", "--method=lead", "--words=4", stdin=text).lines == ["One two. Six."]


def test_json(nmt_jax):
    command = ("summarize", "--method=lead", "--sentences=1", "--format=json")
    line, after = nmt_jax(*command, stdin="One.\tTwo.\n\n").lines
    assert json.loads(after) == {"line": 2, "summary": "", "sentences": []}
    assert json.loads(line) == {"line": 1, "summary": "One.", "sentences": [1]}


@pytest.mark.parametrize("method", ["sumbasic", "lexrank", "textrank"])
def test_a_text_of_too_many_sentences(mistake, method):
    text = "Two.\t" * 5001
    assert "stdin:1: 5,001 sentences are too many" in mistake("summarize", f"--method={method}", stdin=text)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["text.txt"], "reads stdin: … < text.txt"),
        (["--method=lead", "--encoder=x"], "lead compares no sentences"),
        (["--method=textrank", "--threshold=0.2"], "textrank has none"),
        (["--encoder=/nowhere"], "/nowhere"),
    ],
)
def test_mistakes(mistake, flags, message):
    assert message in mistake("summarize", *flags, stdin="One.\n")
