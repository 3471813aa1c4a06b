"""`nmt-jax align_sentences`: two documents in, two parallel files and a list of beads out."""

import gzip

import pytest

from tests.fixtures.command_line import columns

ENGLISH = """The old man sees a red house in the small town near the river.
He does not know who lives in it. The door is open, but nobody is there.

  Anna reads.
She is tired.
"""
GERMAN = """Der alte Mann sieht ein rotes Haus in der kleinen Stadt am Fluss.
Er weiß nicht, wer darin wohnt.
Die Tür ist offen, aber niemand ist da.


Anna liest.
Sie ist müde.

"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "book.en").write_text(ENGLISH)
    (tmp_path / "book.de").write_text(GERMAN)
    return [f"--source={tmp_path / 'book.en'}", f"--target={tmp_path / 'book.de'}", f"--output={tmp_path / 'aligned'}"]


def test_two_parallel_files_and_the_beads(nmt_jax, files, tmp_path):
    code, lines, stderr = nmt_jax("align_sentences", *files, f"--beads={tmp_path / 'beads.tsv'}")
    assert (code, lines) == (0, [str(tmp_path / name) for name in ("aligned.en", "aligned.de", "beads.tsv")])
    assert (tmp_path / "aligned.en").read_text().splitlines() == [line.strip() for line in ENGLISH.splitlines() if line]
    assert (tmp_path / "aligned.de").read_text().splitlines()[1:3] == [
        "Er weiß nicht, wer darin wohnt. Die Tür ist offen, aber niemand ist da.",
        "Anna liest.",
    ]
    rows = columns((tmp_path / "beads.tsv").read_text().splitlines())
    assert [row[:2] for row in rows] == [["1", "1"], ["2", "2,3"], ["4", "6"], ["5", "7"]]
    assert all(0 < float(row[2]) < 4 for row in rows)
    assert "nmt-jax: 2 paragraphs: 3 1-1, 1 1-2" in stderr


def test_marked_paragraphs_may_be_empty_and_compressed(nmt_jax, tmp_path):
    (tmp_path / "a.en.gz").write_bytes(gzip.compress(b"\xef\xbb\xbfOne.\n<P>\nTwo.\n\nThree.\n<P>\n"))
    (tmp_path / "a.de").write_text("<P>\r\nZwei.\r\nDrei .\r\n")
    files = [f"--source={tmp_path / 'a.en.gz'}", f"--target={tmp_path / 'a.de'}", f"--output={tmp_path / 'b'}"]
    code, _, stderr = nmt_jax("align_sentences", *files, "--boundary=<P>", f"--beads={tmp_path / 'beads'}")
    assert code == 0
    assert (tmp_path / "b.en").read_text() == "Two.\nThree.\n"
    assert (tmp_path / "b.de").read_text() == "Zwei.\nDrei .\n"
    rows = columns((tmp_path / "beads").read_text().splitlines())
    assert [row[:2] for row in rows] == [["1", ""], ["3", "2"], ["5", "3"]]
    assert "2 paragraphs: 2 1-1, 1 1-0" in stderr


@pytest.mark.parametrize(
    ("english", "flags", "message"),
    [
        (b"", [], "book.en: the file is empty"),
        (b"\n \n", [], "book.en: the file has no sentences"),
        (b"One.\n\nTwo.\n\xff\n", [], "book.en:4: not UTF-8"),
        (b"One.\n", [], "book.de:6: paragraph 2 of 2, but "),
        (b"One.\n\n\nTwo.\n\nThree.\n", [], "book.en:6: paragraph 3 of 3, but "),
        (b"One.\n", ["--source=missing.en"], "missing.en: no such file"),
        (b"One.\n", ["--source=book"], "use names that end in different languages, such as book.en and book.de"),
        (b"One.\n", ["--target="], "needs --source=FILE, --target=FILE and --output=PREFIX"),
        (b"One.\n", ["more"], "needs --source=FILE, --target=FILE and --output=PREFIX"),
        (b"One.\n", ["--variance=0"], "--variance"),
    ],
)
def test_mistakes(mistake, files, tmp_path, english, flags, message):
    (tmp_path / "book.en").write_bytes(english)
    assert message in mistake("align_sentences", *files, *flags)
    assert not list(tmp_path.glob("aligned*"))


def test_inputs_and_existing_files_are_kept(mistake, files, tmp_path):
    assert "a file would be used twice" in mistake("align_sentences", *files, f"--output={tmp_path / 'book'}")
    assert "used twice" in mistake("align_sentences", *files, f"--beads={tmp_path / 'book.de'}", "--overwrite")
    (tmp_path / "link.en").symlink_to(tmp_path / "book.en")
    assert "used twice" in mistake("align_sentences", *files, f"--output={tmp_path / 'link'}", "--overwrite")
    assert "is a folder" in mistake("align_sentences", *files, f"--beads={tmp_path}", "--overwrite")
    assert "is not a regular file" in mistake("align_sentences", *files, "--beads=/dev/null", "--overwrite")
    assert "book.en is not a writable folder" in mistake(
        "align_sentences", *files, f"--beads={tmp_path / 'book.en' / 'x'}"
    )
    (tmp_path / "aligned.de").write_text("precious")
    assert "aligned.de: already exists" in mistake("align_sentences", *files)
    assert (tmp_path / "aligned.de").read_text() == "precious"
