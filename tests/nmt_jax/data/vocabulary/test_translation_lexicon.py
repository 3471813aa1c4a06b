"""Translation lexicons: which entries are kept, and errors that name the line."""

import gzip

import numpy as np
import pytest

from nmt_jax.data.vocabulary import translation_lexicon
from nmt_jax.data.vocabulary.translation_lexicon import Lexicon
from nmt_jax.data.vocabulary.vocab import Vocab
from nmt_jax.errors import UserError

SOURCE = Vocab.train(["the house is old"] * 3, size=20, algorithm="word")
TARGET = Vocab.train(["das Haus ist alt Heim"] * 3, size=20, algorithm="word")
LINES = [
    "house\tHaus\t0.75",
    "house\tHeim\t0.25",
    "old\talt\t1",
    "castle\tHaus\t0.5",
    "house\tBau\t.01",
    "the old\talt\t.5",
]


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def entries(lexicon):
    """{(source word, target word): probability}."""
    return {
        (SOURCE.decode([f]), TARGET.decode([lexicon.targets[f, n]])): float(lexicon.probabilities[f, n])
        for f, n in np.argwhere(lexicon.probabilities)
    }


def test_entries_of_single_tokens_are_kept_and_others_reported(tmp_path):
    lexicon = Lexicon.read(write(tmp_path / "table", LINES), SOURCE, TARGET)
    assert entries(lexicon) == {("house", "Haus"): 0.75, ("house", "Heim"): 0.25, ("old", "alt"): 1.0}
    assert lexicon.targets.shape == lexicon.probabilities.shape == (len(SOURCE), 2)
    assert lexicon.report.startswith("3 of 6 entries, for 2 words; skipped: words of several tokens")
    assert Lexicon.read(write(tmp_path / "table", LINES[:3]), SOURCE, TARGET).report == "3 of 3 entries, for 2 words"


def test_compressed_and_saved_files_are_equivalent(tmp_path):
    plain = Lexicon.read(write(tmp_path / "table", LINES), SOURCE, TARGET)
    (tmp_path / "other.gz").write_bytes(gzip.compress((tmp_path / "table").read_bytes()))
    plain.save(tmp_path / "saved.tsv", SOURCE, TARGET)
    for name in ("other", "saved.tsv"):
        again = Lexicon.read(tmp_path / name, SOURCE, TARGET)
        np.testing.assert_array_equal(again.targets, plain.targets)
        np.testing.assert_array_equal(again.probabilities, plain.probabilities)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.gz", "saved.tsv", "table"]


def test_subwords_that_are_whole_words_are_kept(tmp_path):
    vocab = Vocab.train(["the house is old", "the houses are older"] * 9, size=300)
    whole = next(word for word in ("the", "house", "houses", "old") if len(vocab.encode(word)) == 1)
    lexicon = Lexicon.read(write(tmp_path / "table", [f"{whole}\tHaus\t.5", "zzz\tHaus\t.5"]), vocab, TARGET)
    assert np.argwhere(lexicon.probabilities).tolist() == [[vocab.encode(whole)[0], 0]]


def test_only_the_most_probable_translations_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(translation_lexicon, "ENTRIES", 2)
    lines = ["house\tdas\t0.1", "house\tHaus\t0.5", "house\tist\t0.2"]
    lexicon = Lexicon.read(write(tmp_path / "table", lines), SOURCE, TARGET)
    assert entries(lexicon) == pytest.approx({("house", "Haus"): 0.5, ("house", "ist"): 0.2})
    assert "2 of 3 entries" in lexicon.report


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "house Haus 0.5",
            r"table:2: not an entry \('house Haus 0.5'\); write SOURCE, TARGET and PROBABILITY, separated by tabs",
        ),
        ("house\tHaus", "table:2: not an entry"),
        ("house\t\t0.5", "table:2: not an entry"),
        ("", "table:2: not an entry"),
        ("house\tHaus\tmuch", "table:2: 'much' is not a number; write the probability as"),
        ("house\tHaus\t0", r"table:2: the probability 0 is not in \(0, 1\]"),
        ("house\tHaus\t1.5", r"table:2: the probability 1.5 is not in"),
        ("house\tHaus\tnan", r"table:2: the probability nan is not in"),
        ("old\talt\t0.5", "table:2: duplicate entry 'old', 'alt'"),
    ],
)
def test_invalid_lines_are_reported(line, message, tmp_path):
    with pytest.raises(UserError, match=message):
        Lexicon.read(write(tmp_path / "table", ["old\talt\t0.5", line]), SOURCE, TARGET)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "table: the file is empty"),
        (["castle\tBurg\t1"], "table: none of the 1 entries consists of single tokens of the two vocabularies"),
        (None, "table: no such file"),
    ],
)
def test_files_without_usable_entries(lines, message, tmp_path):
    if lines is not None:
        write(tmp_path / "table", lines)
    with pytest.raises(UserError, match=message):
        Lexicon.read(tmp_path / "table", SOURCE, TARGET)
