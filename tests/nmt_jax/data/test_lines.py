"""Lines: split at newlines only; errors name the file and the line."""

import gzip
import os
import re

import hypothesis
import pytest
from hypothesis import strategies as st

from nmt_jax.data.lines import count_lines, num_lines, read_lines, split_long
from nmt_jax.errors import UserError


@hypothesis.given(
    lines=st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufeff")), min_size=1)
)
@hypothesis.example(lines=["a\u2028b\x85c\x0bd\x0ce\x1cf", "NUL \x00 and 😀", "", " ", "wort " * 10_000])
def test_lines_are_split_at_newlines_only(lines, tmp_path_factory):
    path = tmp_path_factory.mktemp("lines") / "text.de"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    assert list(read_lines(path)) == lines


def test_line_ends_and_byte_order_mark(tmp_path):
    path = tmp_path / "text.de"
    path.write_bytes("\ufeffeins\r\nzw\rei\ndrei\ufeff".encode())
    assert list(read_lines(path)) == ["eins", "zw\rei", "drei\ufeff"]


def test_gzip_files_are_read_and_found_without_their_suffix(tmp_path):
    (tmp_path / "text.de.gz").write_bytes(gzip.compress("Über\nuns\n".encode()))
    assert list(read_lines(tmp_path / "text.de.gz")) == ["Über", "uns"]
    assert list(read_lines(tmp_path / "text.de")) == ["Über", "uns"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("text.de", b"gut\nna \xefve\n", ":2: not UTF-8 (byte 0xef at column 4); convert the text to UTF-8"),
        ("text.de", b"gut\n\xed\xa0\x80", ":2: not UTF-8"),  # a lone surrogate
        ("text.de", b"", ": the file is empty"),
        ("text.de.gz", gzip.compress(b"", mtime=0), ": the file is empty"),
        ("text.de.gz", b"plain text\n", ":1: damaged gzip file"),
        ("text.de.gz", gzip.compress(b"eins\n" * 1000, mtime=0)[:-10], "damaged gzip file"),
        ("text.de", None, ": no such file, plain or with .gz"),
    ],
)
def test_invalid_files_are_reported_with_their_line(name, content, message, tmp_path):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=f"^{re.escape(str(path))}.*{re.escape(message)}"):
        list(read_lines(path))


def test_an_empty_name_is_an_error():
    with pytest.raises(UserError, match="the name of an input file is empty"):
        list(read_lines(""))


def test_a_pipe_is_not_opened_to_count_its_lines(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert num_lines(str(tmp_path / "pipe")) is None  # opening it would wait for a writer


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(UserError, match="is a folder"):
        list(read_lines(tmp_path))


@hypothesis.given(st.text(alphabet="ab .!\u2028", max_size=300), st.integers(2, 40))
def test_split_parts_are_short_and_make_up_the_line(line, limit):
    parts = split_long(line, list, limit)
    assert "".join(parts) == line
    assert all(len(part) < limit or len(part) == 1 for part in parts)


def test_a_long_line_is_split_between_sentences():
    assert split_long("a b c d e. f g h i.", list, 15) == ["a b c d e. ", "f g h i."]
    assert split_long("aaaa bbbb cccc", list, 14) == ["aaaa ", "bbbb cccc"]


def test_counting_lines_does_not_move_the_position(tmp_path):
    path = tmp_path / "text"
    for content, lines in ((b"", 0), (b"a", 1), (b"a\n", 1), (b"a\n\nb", 3), (b"x\xe2\x80\xa8y\n" * 200_000, 200_000)):
        path.write_bytes(content)
        with path.open("rb") as file:
            assert count_lines(file) == lines
            assert file.tell() == 0
    (tmp_path / "text.gz").write_bytes(gzip.compress(b"a\nb\n"))
    with (tmp_path / "text.gz").open("rb") as file:
        assert count_lines(file) is None
    reading, writing = os.pipe()
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert count_lines(pipe) is None


def test_a_line_without_end_is_refused_before_it_fills_the_memory():
    with pytest.raises(UserError, match="/dev/zero:1: a line of more than 64 MiB"):
        next(read_lines("/dev/zero"))
