"""`nmt-jax augment --kind=back_translation` and `forward_translation`: files, manifest, resuming, mistakes."""

import gzip
import json

import pytest

from nmt_jax.commands import machine_pairs
from nmt_jax.data import grammar
from nmt_jax.training.run import train
from nmt_jax.translation.requests import Hypothesis
from nmt_jax.workdir import Workdir
from tests.conftest import ROOT

GERMAN = ["Der Hund schläft .", "", "Die alte Frau sieht ein großes Haus am Fluss .", "Karl lacht .", "  ", "Ja ."] * 2


class Model:
    """Translates a line into its words in capitals; copy n has n more words. Fails at call number `fails`."""

    def __init__(self, fails=99):
        self.calls, self.fails = 0, fails

    def open(self, flag_values):
        def translate(lines):
            self.calls += 1
            if self.calls == self.fails:
                raise KeyboardInterrupt
            copies = range(flag_values.copies)
            return [[Hypothesis(line.upper() + " more" * n, 0.0, [], []) for n in copies] for line in lines]

        return translate


@pytest.fixture
def model(monkeypatch, tmp_path):
    """A stand-in for the model of the workdir, which reads German, and small chunks."""
    monkeypatch.setattr(machine_pairs, "_languages", lambda *_: ("en", "de"))
    monkeypatch.setattr(machine_pairs, "CHUNK", 5)
    monkeypatch.setattr(machine_pairs, "_open", Model().open)
    (tmp_path / "mono.de").write_text("".join(f"{line}\n" for line in GERMAN))
    return [f"--target={tmp_path / 'mono.de'}", "--workdir=reverse", f"--output={tmp_path / 'bt'}"]


BACK = ("augment", "--kind=back_translation")
NOISY = ("--noise", "--tag=<BT>", "--rate=0.2", "--search=sampling", "--copies=2")


def read(path):
    return path.read_bytes().decode().split("\n")[:-1]


def test_pairs_and_manifest(nmt_jax, model, tmp_path):
    finished = nmt_jax(*BACK, *model, "--tag=<BT>")
    assert finished.code == 0
    assert finished.lines == [str(tmp_path / name) for name in ("bt.en", "bt.de", "bt.json")]
    real = [line for line in GERMAN if line.strip()]
    assert read(tmp_path / "bt.de") == real
    assert read(tmp_path / "bt.en") == [f"<BT> {line.upper()}" for line in real]
    assert "12 lines: 8 pairs; left out: 4 empty lines, 0 empty translations" in finished.stderr
    record = json.loads((tmp_path / "bt.json").read_text())
    counts = {name: record[name] for name in ("lines", "empty", "untranslated", "pairs")}
    assert counts == {"lines": 12, "empty": 4, "untranslated": 0, "pairs": 8}
    assert (record["kind"], record["workdir"], record["tag"]) == ("back_translation", "reverse", "<BT>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bt.de", "bt.en", "bt.json", "mono.de"]


def test_self_training_makes_the_target(nmt_jax, model, tmp_path, monkeypatch):
    monkeypatch.setattr(machine_pairs, "_languages", lambda *_: ("de", "en"))
    source = [f"--source={tmp_path / 'mono.de'}", *model[1:]]
    assert nmt_jax("augment", "--kind=forward_translation", *source).code == 0
    assert read(tmp_path / "bt.de") == [line for line in GERMAN if line.strip()]
    assert read(tmp_path / "bt.en") == [line.upper() for line in GERMAN if line.strip()]


@pytest.mark.parametrize("fails", [1, 2, 3])
def test_a_resumed_job_writes_the_same_as_an_uninterrupted_one(nmt_jax, model, tmp_path, monkeypatch, fails):
    assert nmt_jax(*BACK, *model, *NOISY, f"--output={tmp_path / 'whole'}").code == 0
    killed, again = Model(fails), Model()
    monkeypatch.setattr(machine_pairs, "_open", killed.open)
    assert nmt_jax(*BACK, *model, *NOISY).code == 130
    assert len(list(tmp_path.glob("bt.json.parts/*.part"))) == fails - 1
    assert not list(tmp_path.glob("bt.*[en]"))
    monkeypatch.setattr(machine_pairs, "_open", again.open)
    assert nmt_jax(*BACK, *model, *NOISY).code == 0
    assert again.calls == 3 - (fails - 1)  # of three blocks
    for language in ("en", "de"):
        assert (tmp_path / f"bt.{language}").read_bytes() == (tmp_path / f"whole.{language}").read_bytes()
    assert not list(tmp_path.glob("*.parts"))


def test_a_job_that_was_killed_while_its_files_were_written_is_completed(nmt_jax, model, tmp_path, monkeypatch):
    def interrupt(path):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(machine_pairs, "sha256_of", interrupt)
        assert nmt_jax(*BACK, *model).code == 130
    assert read(tmp_path / "bt.de")
    assert not (tmp_path / "bt.json").exists()
    assert nmt_jax(*BACK, *model).code == 0
    assert (tmp_path / "bt.json").exists()


def test_a_part_of_the_text_gives_the_same_pairs(nmt_jax, model, tmp_path):
    assert nmt_jax(*BACK, *model, *NOISY, "--seed=3").code == 0
    with gzip.open(tmp_path / "part.de.gz", "wt") as file:
        file.write("".join(f"{line}\n" for line in GERMAN[6:]))
    part = [f"--target={tmp_path / 'part.de.gz'}", *model[1:], f"--output={tmp_path / 'part'}", "--first_line=7"]
    assert nmt_jax(*BACK, *part, *NOISY, "--seed=3").code == 0
    for language in ("en", "de"):
        assert read(tmp_path / f"part.{language}") == read(tmp_path / f"bt.{language}")[8:]
    assert nmt_jax(*BACK, *model, *NOISY, "--seed=4", "--overwrite").code == 0
    assert read(tmp_path / "part.en") != read(tmp_path / "bt.en")[8:]
    assert read(tmp_path / "part.de") == read(tmp_path / "bt.de")[8:]


def test_nothing_is_lost_or_mixed(nmt_jax, mistake, model, tmp_path, monkeypatch):
    monkeypatch.setattr(machine_pairs, "_open", Model(fails=2).open)
    nmt_jax(*BACK, *model)
    assert "was started with a different tag" in mistake(*BACK, *model, "--tag=x")
    (tmp_path / "mono.de").write_text("anders\n" * 12)
    assert "was made from another input" in mistake(*BACK, *model)
    monkeypatch.setattr(machine_pairs, "_open", Model().open)
    (tmp_path / "mono.de").write_text("".join(f"{line}\n" for line in GERMAN))
    assert nmt_jax(*BACK, *model).code == 0
    assert "already exists" in mistake(*BACK, *model)
    assert "used twice" in mistake(*BACK, *model, f"--output={tmp_path / 'mono'}", "--overwrite")
    assert read(tmp_path / "mono.de") == GERMAN


@pytest.mark.parametrize("lines", ["\n \n", "Ja .\n"])
def test_no_pair_is_an_error(mistake, model, tmp_path, monkeypatch, lines):
    (tmp_path / "mono.de").write_text(lines)
    monkeypatch.setattr(machine_pairs, "_open", lambda _: lambda texts: [[Hypothesis("", 0.0, [], [])] for _ in texts])
    assert "mono.de: no pair was made" in mistake(*BACK, *model)
    assert [path.name for path in tmp_path.iterdir()] == ["mono.de"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--source=x"], "--source has no effect with --kind=back_translation: the model makes it"),
        (["--kind=forward_translation"], "--kind=forward_translation needs --source=FILE of real text"),
        (["--workdir="], "--kind=back_translation needs --workdir=FOLDER"),
        (["--temperature=2"], "--temperature has no effect with --search=beam"),
        (["--search=sampling", "--beam_size=2"], "--beam_size has no effect with --search=sampling"),
        (["--search=sampling", "--top_k=2"], "--top_k has no effect with --search=sampling"),
        (["--search=greedy", "--copies=2"], "--copies=2: greedy search finds one translation"),
        (["--rate=0.2"], "--rate has no effect without --noise"),
        (["--seed=2"], "--seed has no effect with --search=beam and without --noise"),
        (["--keep_original"], "--keep_original has no effect with --kind=back_translation"),
        (["--lexicon=x"], "--lexicon has no effect with --kind=back_translation"),
        (["--tag=a b"], "--tag='a b' must be one word without blanks"),
        (["--target=nowhere.de"], "nowhere.de: no such file"),
        (["--kind=swap", "--source=x"], "--workdir has no effect with --kind=swap"),
    ],
)
def test_mistakes(mistake, model, tmp_path, flags, message):
    assert message in mistake(*BACK, *model, *flags)
    assert [path.name for path in tmp_path.iterdir()] == ["mono.de"]


def test_models_that_do_not_fit(mistake, translator_workdir, tmp_path):
    (tmp_path / "mono.de").write_text("Ja .\n")
    flags = [*BACK, f"--target={tmp_path / 'mono.de'}", f"--output={tmp_path / 'bt'}"]
    assert "translates from en into de" in mistake(*flags, f"--workdir={translator_workdir}")
    assert "no such workdir" in mistake(*flags, f"--workdir={tmp_path / 'nowhere'}")


@pytest.mark.slow
def test_from_text_to_a_model_and_back(nmt_jax, translator_workdir, tmp_path):
    """The shared model reads English, so English is the real side; then the languages are exchanged (iteration)."""
    pairs = list(grammar.pairs("train", 8))
    for side, language in enumerate(("en", "de")):
        (tmp_path / f"mono.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs))
    first = [*BACK, f"--workdir={translator_workdir}", f"--target={tmp_path / 'mono.en'}", "--tag=<BT>"]
    assert nmt_jax(*first, f"--output={tmp_path / 'bt'}").code == 0
    made = len(read(tmp_path / "bt.en"))
    assert 0 < made <= 8
    assert all(line.startswith("<BT> ") for line in read(tmp_path / "bt.de"))
    forward = ["augment", "--kind=forward_translation", first[2], f"--source={tmp_path / 'mono.en'}"]
    assert nmt_jax(*forward, f"--output={tmp_path / 'self'}").code == 0
    assert [f"<BT> {line}" for line in read(tmp_path / "self.de")] == read(tmp_path / "bt.de")
    assert read(tmp_path / "self.en") == read(tmp_path / "bt.en")
    changes = {"data.source": "de", "data.target": "en", "data.synthetic": str(tmp_path / "bt"), "data.upsample": "2"}
    changes |= {"data.cache": str(tmp_path / "cache"), "vocab.symbols": '["<BT>"]'}
    train(f"{ROOT}/configs/quickstart.py:smoke=true", tmp_path / "reverse", changes)
    assert Workdir(tmp_path / "reverse").config().data.upsample == 2
    again = [*BACK, f"--workdir={tmp_path / 'reverse'}", f"--target={tmp_path / 'mono.de'}"]
    for search in ("greedy", "top_k"):
        assert nmt_jax(*again, f"--output={tmp_path / search}", f"--search={search}").code == 0
        assert 0 < len(read(tmp_path / f"{search}.en")) == len(read(tmp_path / f"{search}.de")) <= 8
    assert read(tmp_path / "top_k.en") != read(tmp_path / "greedy.en")
