"""The embedded speech: guarantees about sentences, voices and samples, and recordings that are written."""

import collections
import hashlib
import wave

import numpy as np
import pytest
from ml_collections import ConfigDict

from nmt_jax.commands import corpus as command
from nmt_jax.data import speech
from nmt_jax.data.grammar import split_of
from nmt_jax.data.readers.audio import AudioFiles
from nmt_jax.data.readers.parallel_text import open_text
from nmt_jax.data.readers.rows import row_reader
from nmt_jax.data.speech import utterances
from nmt_jax.data.speech.sentences import LONGEST, WORDS, spoken
from nmt_jax.errors import UserError
from tests.fixtures.speech import needs_espeak

DATA = ConfigDict(
    {"corpus": "speech", "kind": "audio", "mels": 40, "size": 3, "source": "speech", "target": "en", "directory": ""}
)


def some(split, count=40):
    return [speech.utterance(split, number) for number in range(count)]


def test_sentences_and_voices_are_the_same_everywhere():
    whole = hashlib.sha256()
    for split in speech.SPLITS:
        for one in some(split, 10):
            whole.update(repr(one).encode())
    # A change of utterances needs another version, or prepared corpora of the old ones are used.
    assert (speech.VERSION, whole.hexdigest()[:16]) == (2, "415a2528c3584ac2")


def test_sentences_are_short_and_of_one_split():
    assert spoken("Anna's son, aged 7 – twenty-one!") == "anna's son aged twenty one"
    for split in speech.SPLITS:
        for one in some(split):
            assert len(one.text) <= LONGEST
            assert set(one.text.split()) <= WORDS
            assert split_of(one.text) == split
    assert len({one.text for one in some("train")}) > 30


def test_splits_share_no_voice():
    voices = {split: {one.voice for one in some(split, 300)} for split in speech.SPLITS}
    assert {split: len(found) for split, found in voices.items()} == {"train": 25, "dev": 2, "test": 2}
    assert len(set.union(*voices.values())) == 29
    kinds = collections.Counter(one.noise is None for one in some("train"))
    assert min(kinds.values()) > 5


@needs_espeak
def test_samples_depend_on_the_utterance_alone():
    quiet = speech.Utterance("please wait", "m1", 150, 50, 100, None, (0, 0, 1))
    samples = quiet.samples()
    assert samples.dtype == np.int16
    assert 8000 < len(samples) < 32_000
    np.testing.assert_array_equal(quiet.samples(), samples)
    noisy = speech.Utterance("please wait", "m1", 150, 50, 100, 20.0, (0, 0, 1)).samples()
    noise = noisy.astype(float) - samples
    power = 10 * np.log10(np.mean(samples.astype(float) ** 2) / np.mean(noise**2))
    assert power == pytest.approx(20, abs=0.5)
    assert np.abs(noisy).max() < 32_767
    other = speech.Utterance("please wait", "f1", 180, 50, 100, None, (0, 0, 1)).samples()
    assert len(other) < len(samples)  # faster


@needs_espeak
def test_the_corpus_names_utterances_that_the_reader_speaks(tmp_path):
    corpus, reader = open_text(DATA, "train"), row_reader("audio", DATA)
    pairs = list(corpus)
    assert pairs[2] == ("speech:train:2", speech.utterance("train", 2).text)
    assert [pair for part in corpus.slices(2, tmp_path) for pair in part] == pairs
    assert len(list(open_text(DATA, "dev"))) == 3
    assert corpus.fingerprint() != open_text(DATA, "dev").fingerprint()
    rows = reader.read(pairs[0][0])
    assert rows.dtype == np.float16
    expected = AudioFiles(40).rows(speech.utterance("train", 0).samples() / 32_768)
    np.testing.assert_array_equal(rows, expected)


@needs_espeak
def test_recordings_are_written_and_read_again(tmp_path):
    source, target = command.run(ConfigDict({"data": DATA}), "test", str(tmp_path / "test"), lines=2)
    assert [source, target] == [f"{tmp_path}/test.speech", f"{tmp_path}/test.en"]
    paths = (tmp_path / "test.speech").read_text().splitlines()
    assert paths == [f"{tmp_path}/test-wav/{number}.wav" for number in range(2)]
    texts = (tmp_path / "test.en").read_text().splitlines()
    assert texts == [speech.utterance("test", number).text for number in range(2)]
    with wave.open(paths[1]) as recording:
        assert recording.getparams()[:3] == (1, 2, 16_000)
    np.testing.assert_array_equal(AudioFiles(40).read(paths[1]), row_reader("audio", DATA).read("speech:test:1"))


@pytest.mark.parametrize("name", ["speech:test", "speech:test:-1", "speech:test:x", "speech:trian:1", "speech"])
def test_a_name_of_no_utterance_is_an_error(name):
    with pytest.raises(UserError, match="no such utterance; use one of train, dev, test and a number from 0 on"):
        row_reader("audio", DATA).read(name)


def test_without_the_program_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr(utterances, "PROGRAM", "espeak-missing")
    with pytest.raises(UserError, match="needs the program espeak-missing: apt-get install espeak-missing"):
        speech.utterance("train", 0).samples()
