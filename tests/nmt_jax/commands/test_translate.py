"""`nmt-jax translate` with a Transformer that has learned next to nothing."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from nmt_jax.commands import streams, translate
from nmt_jax.data.vocabulary.vocab import Vocab
from nmt_jax.errors import UserError
from nmt_jax.translation import translator
from nmt_jax.translation.output_format import TranslationFormat
from nmt_jax.translation.requests import Hypothesis, read_requests
from nmt_jax.workdir import Workdir, write_manifest
from tests.conftest import with_devices
from tests.fixtures.command_line import Finished, columns, error_line
from tests.fixtures.workdirs import train_smoke

STRANGE = ["the old man sleeps .", "", "a\u2028b\x85c", "\x00", "🙂 🙂", " ", "x\ty", "word " * 30]
LINE = ["the old man sleeps ."]


@pytest.fixture(scope="module")
def opened():
    """The translators of the tests of this module, by config, number of models and options."""
    return {}


@pytest.fixture
def workdir(translator_workdir, opened, monkeypatch):
    """The shared workdir; translators with the same models are one, so that its programs are compiled once."""
    open_translator = translate.open_translator

    def open_once(folders, *, checkpoint=None, **options):
        translator, params = open_translator(folders, checkpoint=checkpoint, **options)
        key = (folders[0].config_file.read_text(), len(folders), *options.items())
        return opened.setdefault(key, translator), params

    monkeypatch.setattr(translate, "open_translator", open_once)
    return translator_workdir


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source"
    path.write_text("the dog .\nthe cat .\nthe cow .\n")  # a batch of one shape
    return path


@pytest.fixture
def translated(nmt_jax, workdir, source):
    """Translate the source file with flags."""

    def run(*flags: object) -> Finished:
        return nmt_jax("translate", f"--workdir={workdir}", f"--input={source}", *flags)

    return run


def test_one_line_of_output_per_line_of_input(nmt_jax, workdir):
    stdin = "\ufeff" + "\n".join(STRANGE) + "\n"
    code, lines, stderr = nmt_jax("translate", f"--workdir={workdir}", "--chunk=3", stdin=stdin)
    assert code == 0
    assert len(lines) == len(STRANGE)
    assert lines[1] == ""
    assert "\r" not in stderr  # no progress bar outside a terminal


def test_translations_do_not_depend_on_chunks_or_other_lines(workdir):
    lines = [*STRANGE[:3], "the dog ."]
    whole = [best[0].text for best in translate.run(workdir, lines)]
    assert [best[0].text for best in translate.run(workdir, lines[:3], chunk=1)] == whole[:3]
    assert [best[0].text for best in translate.run(workdir, lines[::-1], chunk=3)] == whole[::-1]


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
    (three,) = translate.run(workdir, LINE, n_best=3, length_penalty=0.0)
    scores = [hypothesis.score for hypothesis in three]
    assert len({hypothesis.text for hypothesis in three}) == 3
    assert scores == sorted(scores, reverse=True)
    (greedy,) = translate.run(workdir, LINE, beam_size=1, length_penalty=0.0, max_length_ratio=0.1)
    assert len(greedy) == 1
    assert len(greedy[0].pieces) < len(three[0].pieces)


def test_checkpoints_can_be_chosen(workdir):
    scores = {which: next(translate.run(workdir, LINE, checkpoint=which))[0].score for which in ("last", "best", 1, 2)}
    assert scores["last"] == scores[1]
    assert scores[2] != scores["last"]


def test_n_best_rows_and_json_objects(nmt_jax, workdir):
    command = ("translate", f"--workdir={workdir}", "--nbest=2")
    rows = columns(nmt_jax(*command, stdin="the dog .\n\n").lines)
    assert [row[0] for row in rows] == ["1", "1", "2", "2"]
    assert float(rows[0][1]) >= float(rows[1][1])
    objects = [json.loads(line) for line in nmt_jax(*command, "--format=json", stdin="the dog .\n\n").lines]
    assert [item["line"] for item in objects] == [1, 2]
    assert [hypothesis["text"] for hypothesis in objects[0]["hypotheses"]] == [row[2] for row in rows[:2]]


def test_a_line_break_spelled_in_bytes_stays_in_one_line():
    assert TranslationFormat().show(1, [Hypothesis("a\nb\u2028c", -1.0, [], [])]) == "a b\u2028c\n".encode()


def test_lines_before_invalid_utf8_are_translated(nmt_jax, workdir):
    stdin = b"the dog .\nthe cat .\nthe \xff\nthe cow .\n"
    finished = nmt_jax("translate", f"--workdir={workdir}", stdin=stdin)
    assert (finished.code, len(finished.lines)) == (2, 2)
    assert error_line(finished).startswith("stdin:3: not UTF-8")


def test_empty_input_gives_empty_output(nmt_jax, workdir):
    assert nmt_jax("translate", f"--workdir={workdir}")[:2] == (0, [])


def test_an_input_file_without_a_last_line_feed(translated, mistake, workdir, source, tmp_path):
    source.write_text("the dog .\nthe cat .")
    assert len(translated().lines) == 2
    assert "nowhere" in mistake("translate", f"--workdir={workdir}", f"--input={tmp_path / 'nowhere'}")


def test_a_long_line_is_translated_in_parts(workdir):
    (long,), (short,) = translate.run(workdir, ["dog " * 128, "the dog ."])
    assert len(long.text) > 10 * len(short.text) > 0


def test_requests_that_exclude_each_other(mistake, workdir):
    with pytest.raises(UserError, match="beam_size=4"):
        translate.run(workdir, [], n_best=4)
    command = ("translate", f"--workdir={workdir}")
    assert "exclude each other" in mistake(*command, "--average=2", "--checkpoint=last")
    assert "--input=source.txt" in mistake(*command, "source.txt")
    assert "--nbest and --num_samples" in mistake(*command, "--nbest=2", "--num_samples=2")
    assert "--num_samples=-1" in mistake(*command, "--num_samples=-1")


def test_a_moved_workdir_translates(workdir, tmp_path):
    before = next(translate.run(workdir, ["the dog ."]))
    moved = shutil.copytree(workdir, tmp_path / "elsewhere")
    assert next(translate.run(moved, ["the dog ."])) == before


def test_attention_of_a_sentence_is_drawn(nmt_jax, workdir, tmp_path):
    pytest.importorskip("matplotlib")
    output = tmp_path / "attention.svg"
    assert nmt_jax("plot", f"--workdir={workdir}", "--sentence=the old man sleeps .", f"--output={output}").code == 0
    assert output.stat().st_size > 1000


def test_an_interrupted_output_is_continued(translated, source, tmp_path):
    expected = translated().lines
    output = tmp_path / "out"
    flags = [f"--output={output}", "--chunk=1"]
    text = source.read_bytes()
    source.write_bytes(text.replace(b"cow", b"\xff"))
    finished = translated(*flags)
    assert finished.code == 2
    assert "source:3: not UTF-8" in finished.stderr
    assert not output.exists()
    assert len(list((tmp_path / "out.parts").glob("*.part"))) == 2
    finished = translated(*flags, "--beam_size=2")
    assert finished.code == 2
    assert "beam_size" in error_line(finished)
    source.write_bytes(text)
    assert translated(*flags).code == 0
    assert output.read_text().splitlines() == expected
    assert not (tmp_path / "out.parts").exists()
    assert translated(*flags).code == 2  # the output is complete


@pytest.mark.slow
def test_prefixes_and_constraints(translated, tmp_path):
    prefixes, phrases = tmp_path / "prefixes", tmp_path / "phrases"
    prefixes.write_text("der Hund\n\n\n")
    phrases.write_text("\ndas Haus\tdie Katze\n\n")
    plain = translated("--max_length_offset=40").lines
    lines = translated("--max_length_offset=40", f"--prefixes={prefixes}", f"--constraints={phrases}").lines
    assert lines[0].startswith("der Hund")
    assert "das Haus" in lines[1]
    assert "die Katze" in lines[1]
    assert lines[2] == plain[2]


def test_files_with_fewer_or_more_lines_than_the_input(tmp_path):
    path, lines = tmp_path / "prefixes", ["the dog .", "the cow ."]
    path.write_text("der Hund\n")
    with pytest.raises(UserError, match=f"^{path}:2: no such line, but source has more"):
        list(read_requests(lines, "source", prefixes=str(path)))
    path.write_text("der Hund\n\n\n")
    with pytest.raises(UserError, match=f"^{path}: has more lines than source"):
        list(read_requests(lines, "source", given=str(path)))
    path.write_text("der Hund\t\tdas Haus\n\n")
    found = list(read_requests(lines, "source", constraints=str(path)))
    assert [request.phrases for request in found] == [("der Hund", "das Haus"), ()]


def test_constraints_that_are_too_long(translated, tmp_path):
    phrases = tmp_path / "phrases"
    phrases.write_text("\n\n" + "Haus " * 200 + "\n")
    finished = translated(f"--constraints={phrases}")
    assert finished.code == 2
    assert f"{phrases}:3: the prefix and constraints need" in error_line(finished)


@pytest.mark.slow
def test_samples_and_the_sample_of_highest_expected_utility(translated, mistake, workdir):
    flags = ["--num_samples=4", "--temperature=2"]
    rows = columns(translated(*flags).lines)
    assert [row[0] for row in rows] == ["1"] * 4 + ["2"] * 4 + ["3"] * 4
    assert columns(translated(*flags).lines) == rows
    assert columns(translated(*flags, "--seed=1").lines) != rows
    _, chosen, stderr = translated(*flags, "--utility=chrf")
    texts = [row[2] for row in rows]
    assert len(chosen) == 3
    assert all(text.replace("\t", " ") in texts[4 * n : 4 * n + 4] for n, text in enumerate(chosen))
    assert "bleu|effective_order:true, not optimized" in stderr
    for wrong, words in {"--top_p=0": "--top_p", "--epsilon=1": "--epsilon", "--utility=nothing": "'nothing'"}.items():
        assert words in mistake("translate", f"--workdir={workdir}", *flags, wrong)
    assert "--utility needs samples" in mistake("translate", f"--workdir={workdir}", "--utility=chrf")


@pytest.mark.slow
def test_word_alignments(translated, source):
    plain = translated().lines
    rows = translated("--alignment=argmax").lines
    for line, row, words in zip(plain, rows, source.read_text().splitlines(), strict=True):
        text, alignment = row.split("\t")
        assert text == line
        pairs = [tuple(map(int, pair.split("-"))) for pair in alignment.split()]
        assert sorted(target for _, target in pairs) == list(range(len(text.split())))
        assert all(place < len(words.split()) for place, _ in pairs)
    rows = translated("--format=json", "--attention", "--nbest=2").lines
    first = json.loads(rows[0])["hypotheses"][0]
    assert len(first["attention"]) == len(first["text"].split())
    assert len(first["log_probs"]) == len(first["pieces"]) + 1
    for wrong in ("--alignment=2", "--alignment=x", "--attention", "--replace_unknown"):
        finished = translated(wrong)
        assert finished.code == 2
        assert wrong.partition("=")[0] in error_line(finished)


@pytest.mark.slow
def test_an_ensemble_of_the_same_model_twice_is_that_model(nmt_jax, translated, workdir, source, tmp_path):
    plain = translated().lines
    point = tmp_path / "d_k=4,d_v=4,seed=0"  # a sweep puts commas into the names of workdirs
    point.symlink_to(workdir)
    folders = f"{point},{workdir}"
    assert nmt_jax("translate", f"--workdir={folders}", f"--input={source}").lines == plain
    assert streams.existing_folders(folders.split(",")) == [point, workdir]
    assert streams.existing_folders(f"{workdir},{point},{workdir}".split(",")) == [workdir, point, workdir]
    assert streams.existing_folders(f"{point}".split(",")) == [point]


def test_an_ensemble_needs_one_vocabulary(mistake, workdir, source, tmp_path):
    other = shutil.copytree(workdir, tmp_path / "other")
    vocab = next((other / "vocab").iterdir())
    Vocab.train(["a b c d e f"] * 50, size=300).save(vocab)
    write_manifest(other, Workdir(other).config())
    assert "the vocabulary differs from that of" in mistake(
        "translate", f"--workdir={workdir},{other}", f"--input={source}"
    )


@pytest.mark.slow
def test_eight_devices_translate_like_one(translated, workdir, source):
    for flags in ([], ["--num_samples=2"]):
        expected = translated(*flags).lines
        command = [sys.executable, "-m", "nmt_jax", "translate", f"--workdir={workdir}", f"--input={source}", *flags]
        finished = subprocess.run(command, env=with_devices(8), capture_output=True, check=True, text=True)
        found = finished.stdout.split("\n")[:-1]
        if flags:  # scores differ in the last digits
            found, expected = ([row[2] for row in columns(rows)] for rows in (found, expected))
        assert found == expected


@pytest.mark.slow
def test_given_translations_are_scored(translated, tmp_path):
    (tmp_path / "prefixes").write_text("die Frau\n" * 3)
    sample = ["--num_samples=1", f"--prefixes={tmp_path / 'prefixes'}", "--max_length_ratio=0", "--max_length_offset=8"]
    rows = translated(*sample, "--format=json", "--attention").lines
    samples = [json.loads(row)["hypotheses"][0] for row in rows]
    given = f"--given={tmp_path / 'given'}"
    (tmp_path / "given").write_text("".join(f"{one['text']}\n" for one in samples))
    for one, row in zip(samples, translated(given, "--format=json").lines, strict=True):
        scored = json.loads(row)["hypotheses"][0]
        assert scored["text"] == one["text"]
        assert scored["score"] == pytest.approx(sum(scored["log_probs"]), abs=1e-4)
        # After the prefix, a model may spell a text in other pieces than the vocabulary.
        equal = [a == b for a, b in zip(scored["pieces"], one["pieces"], strict=False)]
        common = [*equal, False].index(False)
        assert common > 0
        assert scored["log_probs"][:common] == pytest.approx(one["log_probs"][:common], abs=1e-4)
    assert [row[0] for row in columns(translated(given, "--alignment=argmax").lines)] == ["1", "2", "3"]
    assert translated(given, "--nbest=2").code == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "flags",
    [
        ("--beam_size=10000000",),
        ("--num_samples=10000000",),
        ("--beam_size=100000", "--min_length=10000"),
        ("--beam_size=30000",),  # the compiler knows it: 300 GiB
        ("--beam_size=100000", "--max_length_ratio=100", "--max_length_offset=10000"),
    ],
)
def test_more_memory_than_there_is_is_refused_before_compilation(flags, workdir, mistake):
    assert "GiB are free: lower --beam_size" in mistake(
        "translate", f"--workdir={workdir}", *flags, stdin="the dog .\n"
    )


def test_a_large_search_says_that_it_may_take_minutes(translated, monkeypatch):
    monkeypatch.setattr(translator, "ESTIMATED", 10)
    with pytest.warns(UserWarning, match=r"^\d+ x 3 hypotheses of up to \d+ pieces may take minutes"):
        assert translated().code == 0


@pytest.mark.slow
def test_the_type_of_products_can_be_chosen(translated):
    scores = {}
    for dtype in ("model", "float32", "bfloat16", "int8"):
        rows = columns(translated("--nbest=2", f"--decode_dtype={dtype}").lines)
        scores[dtype] = np.array([float(score) for _, score, _ in rows])
    np.testing.assert_array_equal(scores["model"], scores["float32"])
    for dtype in ("bfloat16", "int8"):
        assert 0 < np.abs(scores[dtype] - scores["float32"]).max() < 0.3


@pytest.fixture(scope="module")
def recurrent_workdir(tmp_path_factory):
    return train_smoke("rnn_luong", tmp_path_factory.mktemp("recurrent"), {})


@pytest.mark.slow
def test_a_recurrent_model_has_no_products_in_int8(recurrent_workdir, mistake, source):
    error = mistake("translate", f"--workdir={recurrent_workdir}", f"--input={source}", "--decode_dtype=int8")
    assert "config.model_name=rnn has no products in int8; use float32 or bfloat16" in error


@pytest.mark.slow
def test_a_length_limit_of_nothing(translated):
    for flags in ([], ["--num_samples=1"]):
        finished = translated(*flags, "--max_length_ratio=0", "--max_length_offset=0")
        assert finished.code == 0
        assert len(finished.lines) == 3


@pytest.mark.slow
def test_a_given_translation_of_a_megabyte(translated, source, tmp_path):
    given = tmp_path / "given"
    given.write_text("der Hund .\n" + "x" * 2**20 + "\n\n")
    finished = translated(f"--given={given}")
    assert finished.code == 2
    assert error_line(finished).startswith(f"{given}:2: a text of ")
    given.write_text("der Hund .\n" + "der Hund " * 100 + "\n\n")  # longer than all lines in training
    scores = [float(row[1]) for row in columns(translated(f"--given={given}").lines)]
    given.write_text("der Hund .\n\n\n")
    others = [float(row[1]) for row in columns(translated(f"--given={given}").lines)]
    assert scores[1] < 10 * others[1]
    assert (scores[0], scores[2]) == pytest.approx((others[0], others[2]), abs=1e-4)
