import io
import json
import shutil
import subprocess
import sys

import pytest

from nmt_jax import __main__ as cli
from nmt_jax.commands import translate
from nmt_jax.data.vocabulary.vocab import Vocab
from nmt_jax.errors import UserError
from nmt_jax.translation.output_format import TranslationFormat
from tests.conftest import ROOT, with_devices

QUICKSTART = str(ROOT / "configs" / "quickstart.py")
STRANGE = ["the old man sleeps .", "", "a\u2028b\x85c", "\x00", "🙂 🙂", " ", "x\ty", "word " * 30]


@pytest.fixture
def workdir(translator_workdir):
    return translator_workdir


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
    from nmt_jax.translation.translator import Hypothesis

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


def run_cli(capfdbinary, *arguments) -> tuple[int, list[str], str]:
    """Exit code, lines on stdout, stderr."""
    code = cli.main(["translate", *map(str, arguments)])
    out, err = capfdbinary.readouterr()
    return code, out.decode().split("\n")[:-1], err.decode()


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source"
    path.write_text("the dog .\nthe cat sees the house .\nthe cow .\n")
    return path


def test_an_output_that_was_begun_is_gone_on_with(workdir, source, tmp_path, capfdbinary):
    _, expected, _ = run_cli(capfdbinary, f"--workdir={workdir}", f"--input={source}")
    arguments = [f"--workdir={workdir}", f"--input={source}", f"--output={tmp_path / 'out'}", "--chunk=1"]
    text = source.read_bytes()
    source.write_bytes(text.replace(b"cow", b"\xff"))
    code, _, err = run_cli(capfdbinary, *arguments)
    assert code == 2
    assert "source:3: not UTF-8" in err
    assert (tmp_path / "out").read_text().splitlines() == expected[:2]
    code, _, err = run_cli(capfdbinary, *arguments, "--beam_size=2")
    assert code == 2
    assert "another beam_size" in err
    source.write_bytes(text)
    assert run_cli(capfdbinary, *arguments)[0] == 0
    assert (tmp_path / "out").read_text().splitlines() == expected
    assert run_cli(capfdbinary, *arguments)[0] == 2  # it is whole


def test_what_is_asked_in_files_is_done_and_what_cannot_be_is_named(workdir, source, tmp_path, capfdbinary):
    prefixes, phrases = tmp_path / "prefixes", tmp_path / "phrases"
    prefixes.write_text("der Hund\n\n\n")
    phrases.write_text("\ndas Haus\tdie Katze\n\n")
    arguments = [f"--workdir={workdir}", f"--input={source}", "--max_length_offset=40"]
    _, plain, _ = run_cli(capfdbinary, *arguments)
    _, lines, _ = run_cli(capfdbinary, *arguments, f"--prefixes={prefixes}", f"--constraints={phrases}")
    assert lines[0].startswith("der Hund")
    assert "das Haus" in lines[1]
    assert "die Katze" in lines[1]
    assert lines[2] == plain[2]
    prefixes.write_text("der Hund\n")
    code, _, err = run_cli(capfdbinary, *arguments, f"--prefixes={prefixes}")
    assert code == 2
    assert f"{prefixes}:2: no such line" in err
    prefixes.write_text("der Hund\n\n\n\n")
    assert "has more lines" in run_cli(capfdbinary, *arguments, f"--prefixes={prefixes}")[2]
    phrases.write_text("\n\n" + "Haus " * 200 + "\n")
    code, _, err = run_cli(capfdbinary, *arguments, f"--constraints={phrases}")
    assert code == 2
    assert f"{phrases}:3: the prefix and constraints need" in err


def test_samples_and_the_best_expected_of_them(workdir, source, capfdbinary):
    arguments = [f"--workdir={workdir}", f"--input={source}", "--num_samples=4", "--temperature=2"]
    _, rows, _ = run_cli(capfdbinary, *arguments)
    assert [row.split("\t")[0] for row in rows] == ["1"] * 4 + ["2"] * 4 + ["3"] * 4
    assert run_cli(capfdbinary, *arguments)[1] == rows
    assert run_cli(capfdbinary, *arguments, "--seed=1")[1] != rows
    _, chosen, err = run_cli(capfdbinary, *arguments, "--utility=chrf")
    texts = [row.split("\t")[2] for row in rows]
    assert len(chosen) == 3
    assert all(text.replace("\t", " ") in texts[4 * n : 4 * n + 4] for n, text in enumerate(chosen))
    assert "bleu|effective_order:true, not optimized" in err
    for wrong in ("--top_p=0", "--epsilon=1", "--utility=nothing"):
        assert run_cli(capfdbinary, *arguments, wrong)[0] == 2
    assert run_cli(capfdbinary, *arguments[:2], "--utility=chrf")[0] == 2


def test_words_are_aligned(workdir, source, capfdbinary):
    arguments = [f"--workdir={workdir}", f"--input={source}"]
    _, plain, _ = run_cli(capfdbinary, *arguments)
    _, rows, _ = run_cli(capfdbinary, *arguments, "--alignment=argmax")
    for line, row, words in zip(plain, rows, source.read_text().splitlines(), strict=True):
        text, alignment = row.split("\t")
        assert text == line
        pairs = [tuple(map(int, pair.split("-"))) for pair in alignment.split()]
        assert sorted(target for _, target in pairs) == list(range(len(text.split())))
        assert all(place < len(words.split()) for place, _ in pairs)
    _, rows, _ = run_cli(capfdbinary, *arguments, "--format=json", "--attention", "--nbest=2")
    first = json.loads(rows[0])["hypotheses"][0]
    assert len(first["attention"]) == len(first["text"].split())
    assert len(first["log_probs"]) == len(first["pieces"]) + 1
    for wrong in (["--alignment=2"], ["--alignment=x"], ["--attention"], ["--replace_unknown"]):
        assert run_cli(capfdbinary, *arguments, *wrong)[0] == 2


def test_an_ensemble_of_one_model_twice_is_that_model_and_vocabularies_must_be_the_same(
    workdir, source, tmp_path, capfdbinary
):
    _, plain, _ = run_cli(capfdbinary, f"--workdir={workdir}", f"--input={source}")
    _, twice, _ = run_cli(capfdbinary, f"--workdir={workdir},{workdir}", f"--input={source}")
    assert twice == plain
    point = tmp_path / "d_k=4,d_v=4,seed=0"  # as a sweep calls it
    point.symlink_to(workdir)
    for folders in (f"{point}", f"{point},{workdir},{point}"):
        assert run_cli(capfdbinary, f"--workdir={folders}", f"--input={source}")[1] == plain
    other = shutil.copytree(workdir, tmp_path / "other")
    vocab = next((other / "vocab").iterdir())
    Vocab.train(["a b c d e f"] * 50, size=300).save(vocab)
    code, _, err = run_cli(capfdbinary, f"--workdir={workdir},{other}", f"--input={source}")
    assert code == 2
    assert "its vocabulary is not that of" in err


def test_eight_devices_say_what_one_says(workdir, source, capfdbinary):
    for flags in ([], ["--num_samples=2"]):
        _, expected, _ = run_cli(capfdbinary, f"--workdir={workdir}", f"--input={source}", *flags)
        command = [sys.executable, "-m", "nmt_jax", "translate", f"--workdir={workdir}", f"--input={source}", *flags]
        finished = subprocess.run(command, env=with_devices(8), capture_output=True, check=True, text=True)
        found = finished.stdout.split("\n")[:-1]
        if flags:  # scores differ in the last digits
            found, expected = ([row.split("\t")[2] for row in rows] for rows in (found, expected))
        assert found == expected


def test_given_translations_are_scored(workdir, source, tmp_path, capfdbinary):
    arguments = [f"--workdir={workdir}", f"--input={source}"]
    _, rows, _ = run_cli(
        capfdbinary, *arguments, "--num_samples=1", "--format=json", "--temperature=0.5", "--attention"
    )
    samples = [json.loads(row)["hypotheses"][0] for row in rows]
    (tmp_path / "given").write_text("".join(f"{one['text']}\n" for one in samples))
    _, rows, _ = run_cli(capfdbinary, *arguments, f"--given={tmp_path / 'given'}", "--format=json")
    for one, row in zip(samples, rows, strict=True):
        judged = json.loads(row)["hypotheses"][0]
        assert judged["text"] == one["text"]
        assert judged["score"] == pytest.approx(sum(judged["log_probs"]), abs=1e-4)
        if judged["pieces"] == one["pieces"]:  # a model may spell a text in other pieces than the vocabulary
            assert judged["log_probs"] == pytest.approx(one["log_probs"], abs=1e-4)
    _, rows, _ = run_cli(capfdbinary, *arguments, f"--given={tmp_path / 'given'}", "--alignment=argmax")
    assert [row.split("\t")[0] for row in rows] == ["1", "2", "3"]
    assert run_cli(capfdbinary, *arguments, f"--given={tmp_path / 'given'}", "--nbest=2")[0] == 2
