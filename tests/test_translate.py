import io
import json
import pathlib

import pytest

from nmt_jax import __main__ as cli
from nmt_jax import train, translate
from nmt_jax.errors import UserError
from nmt_jax.translation_format import TranslationFormat

QUICKSTART = str(pathlib.Path(__file__).parent.parent / "configs" / "quickstart.py")
STRANGE = ["the old man sleeps .", "", "a\u2028b\x85c", "\x00", "🙂 🙂", " ", "x\ty", "word " * 30]


@pytest.fixture(scope="module")
def workdir(tmp_path_factory) -> pathlib.Path:
    """A workdir with two checkpoints of a tiny model that has learnt next to nothing."""
    folder = tmp_path_factory.mktemp("translate")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NMT_JAX_CACHE", str(folder / "cache"))
        changes = {"train.steps": "2", "train.keep_last": "2", "eval.max_segments": "2", "decode.beam_size": "3"}
        train.run(QUICKSTART + ":smoke=true", folder / "w", changes)
    return folder / "w"


@pytest.fixture
def stdin(monkeypatch):
    """Puts bytes on stdin."""

    def put(data: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))

    return put


def _lines(out: bytes) -> list[str]:
    assert out.endswith(b"\n")
    return out.decode().removesuffix("\n").split("\n")


def test_a_line_out_for_every_line_in(workdir, stdin, capfdbinary):
    stdin(b"\xef\xbb\xbf" + "\n".join(STRANGE).encode() + b"\n")
    assert cli.main(["translate", f"--workdir={workdir}", "--chunk=3"]) == 0
    out, err = capfdbinary.readouterr()
    lines = _lines(out)
    assert len(lines) == len(STRANGE)
    assert lines[1] == ""
    assert b"\r" not in err  # no progress where nobody looks


def test_translations_do_not_depend_on_chunks_or_neighbours(workdir):
    whole = [best[0].text for best in translate.run(workdir, STRANGE)]
    single = [best[0].text for line in STRANGE[:3] for best in translate.run(workdir, [line], chunk=1)]
    assert whole[:3] == single
    assert [best[0].text for best in translate.run(workdir, STRANGE[::-1], chunk=5)] == whole[::-1]


def test_translation_starts_before_the_input_ends(workdir):
    read = []

    def lines():
        for line in STRANGE:
            read.append(line)
            yield line

    results = translate.run(workdir, lines(), chunk=2)
    next(results)
    assert len(read) == 2


def test_flags_reach_the_search(workdir):
    line = ["the old man sleeps ."]
    (three,) = translate.run(workdir, line, n_best=3)
    scores = [hypothesis.score for hypothesis in three]
    assert len({hypothesis.text for hypothesis in three}) == 3
    assert scores == sorted(scores, reverse=True)
    (short,) = translate.run(workdir, line, max_length_ratio=0.1)
    assert len(short[0].pieces) < len(three[0].pieces)
    greedy, wide = (next(translate.run(workdir, line, beam_size=n, length_penalty=0.0))[0].score for n in (1, 8))
    assert wide >= greedy


def test_checkpoints_can_be_chosen(workdir):
    line = ["the old man sleeps ."]
    scores = {which: next(translate.run(workdir, line, checkpoint=which))[0].score for which in ("last", "best", 1, 2)}
    assert scores["last"] == scores[1]
    assert scores[2] != scores["last"]


def test_nbest_rows_and_json_objects(workdir, stdin, capfdbinary):
    stdin(b"the dog .\n\n")
    assert cli.main(["translate", f"--workdir={workdir}", "--nbest=2"]) == 0
    rows = [line.split("\t") for line in _lines(capfdbinary.readouterr().out)]
    assert [row[0] for row in rows] == ["1", "1", "2", "2"]
    assert float(rows[0][1]) >= float(rows[1][1])
    stdin(b"the dog .\n\n")
    assert cli.main(["translate", f"--workdir={workdir}", "--nbest=2", "--format=json"]) == 0
    objects = [json.loads(line) for line in _lines(capfdbinary.readouterr().out)]
    assert [item["line"] for item in objects] == [1, 2]
    assert [hypothesis["text"] for hypothesis in objects[0]["hypotheses"]] == [row[2] for row in rows[:2]]


def test_a_line_break_spelt_in_bytes_stays_one_line():
    from nmt_jax.tasks.translator import Hypothesis

    assert TranslationFormat().show(1, [Hypothesis("a\nb\u2028c", -1.0, [], [])]) == "a b\u2028c\n".encode()


def test_invalid_utf8_is_named_and_what_came_before_is_translated(workdir, stdin, capfdbinary):
    stdin(b"the dog .\nthe cat .\nthe \xff\nthe cow .\n")
    assert cli.main(["translate", f"--workdir={workdir}"]) == 2
    out, err = capfdbinary.readouterr()
    assert len(_lines(out)) == 2
    assert err.count(b"\n") == 1
    assert err.startswith(b"nmt-jax: error: stdin:3: not UTF-8")


def test_nothing_in_is_nothing_out(workdir, stdin, capfdbinary):
    stdin(b"")
    assert cli.main(["translate", f"--workdir={workdir}"]) == 0
    assert capfdbinary.readouterr().out == b""


def test_a_file_is_read_instead_of_stdin(workdir, tmp_path, capfdbinary):
    (tmp_path / "source").write_text("the dog .\nthe cat .")
    assert cli.main(["translate", f"--workdir={workdir}", f"--input={tmp_path / 'source'}"]) == 0
    assert len(_lines(capfdbinary.readouterr().out)) == 2
    assert cli.main(["translate", f"--workdir={workdir}", f"--input={tmp_path / 'nowhere'}"]) == 2


def test_a_line_of_ten_thousand_words_is_translated_in_parts(workdir):
    (long,), (short,) = translate.run(workdir, ["dog " * 10_000, "the dog ."])
    assert len(long.text) > 100 * len(short.text) > 0


def test_requests_that_exclude_each_other(workdir):
    with pytest.raises(UserError, match="beam_size=4"):
        translate.run(workdir, [], n_best=4)
    assert cli.main(["translate", f"--workdir={workdir}", "--average=2", "--checkpoint=last"]) == 2
    assert cli.main(["translate", f"--workdir={workdir}", "source.txt"]) == 2


def test_a_moved_workdir_translates(workdir, tmp_path):
    before = next(translate.run(workdir, ["the dog ."]))
    moved = workdir.rename(tmp_path / "elsewhere")
    try:
        assert next(translate.run(moved, ["the dog ."])) == before
    finally:
        moved.rename(workdir)


def test_attention_of_a_sentence_is_drawn(workdir, tmp_path):
    pytest.importorskip("matplotlib")
    output = tmp_path / "attention.svg"
    assert cli.main(["plot", f"--workdir={workdir}", "--sentence=the old man sleeps .", f"--output={output}"]) == 0
    assert output.stat().st_size > 1000
