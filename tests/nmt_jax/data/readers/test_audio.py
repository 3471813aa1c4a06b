"""Recordings as rows: formats and channels, and what is said about bad files."""

import io
import re
import subprocess

import numpy as np
import pytest
import soundfile
from ml_collections import ConfigDict

from nmt_jax.data.readers import filterbanks
from nmt_jax.data.readers.audio import AudioFiles
from nmt_jax.data.readers.parallel_text import open_text
from nmt_jax.data.readers.rows import row_reader
from nmt_jax.errors import UserError
from tests.conftest import ROOT
from tests.fixtures.filterbank_golden import signal

RATE = 16_000
READER = AudioFiles(40)


def write(path, samples, rate=RATE, **options):
    soundfile.write(path, samples, rate, **options)
    return str(path)


def test_rows_are_normalized_filterbanks_whatever_the_format(tmp_path):
    expected = filterbanks.normalize(filterbanks.log_mel(signal(), 40))
    for name, options in (("a.wav", {"subtype": "FLOAT"}), ("b.wav", {"subtype": "PCM_24"}), ("c.flac", {})):
        stored = READER.read(write(tmp_path / name, signal(), **options))
        assert stored.dtype == np.float16
        rows = READER.features(stored)
        assert rows.dtype == np.float32
        assert rows.shape == (24, READER.width) == (24, 40)
        # The silence at the end has no noise in 32 and 24 bits; 16 bits of a FLAC file are rounded.
        np.testing.assert_allclose(rows, expected, atol=0.05)


def test_channels_are_averaged(tmp_path):
    stereo = np.stack([signal(), np.zeros_like(signal())], axis=1)
    one, both = READER.read(write(tmp_path / "1.wav", signal() / 2)), READER.read(write(tmp_path / "2.wav", stereo))
    np.testing.assert_allclose(both, one, atol=0.05)


def test_the_stated_size_of_a_pipe_is_not_believed(tmp_path):
    whole = io.BytesIO()
    soundfile.write(whole, signal(), RATE, format="WAV")
    content = bytearray(whole.getvalue())
    expected = READER.read(write(tmp_path / "a.wav", signal()))
    content[4:8], content[40:44] = b"\x24\xf0\xff\x7f", b"\x00\xf0\xff\x7f"  # as espeak-ng --stdout writes them
    (tmp_path / "pipe.wav").write_bytes(content)
    np.testing.assert_array_equal(READER.read(str(tmp_path / "pipe.wav")), expected)


@pytest.mark.parametrize("suffix", ["wav", "flac"])
def test_a_truncated_recording_is_one_clear_line(suffix, tmp_path):
    path = tmp_path / f"bad.{suffix}"
    whole = (tmp_path / write(path, signal())).read_bytes()
    for count in (len(whole) - 20, len(whole) // 2, 60, 20):
        path.write_bytes(whole[:count])
        message = "the recording is cut off|cannot decode the recording, perhaps it is cut off: .+|not a recording .+"
        with pytest.raises(UserError, match=rf"^{path}: ({message})"):
            READER.read(str(path))


@pytest.mark.parametrize(
    ("samples", "rate", "message"),
    [
        (signal(), 22_050, "22,050 samples per second, but 16,000 are needed; convert it, for example with ffmpeg"),
        (signal(), 8000, "8,000 samples per second"),
        (np.zeros(0), RATE, "an empty recording; at least 400 are needed, 25 ms; remove the file from the list"),
        (signal()[:399], RATE, "only 399 samples; at least 400"),
        (np.array([0.1, np.nan] * 300), RATE, "has samples that are NaN or infinite; write the file again"),
    ],
)
def test_an_unsuitable_recording_is_one_clear_line(samples, rate, message, tmp_path):
    path = write(tmp_path / "bad.wav", samples, rate, subtype="FLOAT")
    with pytest.raises(UserError, match=rf"^{path}: {message}"):
        READER.read(path)


def test_a_file_that_is_no_recording_is_one_clear_line(tmp_path):
    path = tmp_path / "bad.wav"
    for content in (b"", b"one two three\n", b"RIFF" + bytes(100)):
        path.write_bytes(content)
        with pytest.raises(UserError, match=rf"^{path}: not a recording that soundfile can read; convert it to WAV"):
            READER.read(str(path))
    path.unlink()
    with pytest.raises(UserError, match=rf"^{path}: no such file"):
        READER.read(str(path))
    with pytest.raises(UserError, match=rf"^{tmp_path}: cannot read the file: Is a directory"):
        READER.read(str(tmp_path))
    with pytest.raises(UserError, match="cannot read the file: embedded null byte"):
        READER.read("a\0b.wav")


def test_the_reader_is_that_of_the_config():
    assert row_reader("audio", ConfigDict({"corpus": "text", "mels": 40})) == READER


def test_the_documented_command_makes_a_list_of_librispeech(tmp_path):
    for speaker, lines in (("84", ["0000 IT RAINED", "0001 NOBODY'S HOME"]), ("174", ["0000 WE WAIT"])):
        chapter = tmp_path / "LibriSpeech/dev-clean" / speaker / "121"
        chapter.mkdir(parents=True)
        (chapter / f"{speaker}-121.trans.txt").write_text("".join(f"{speaker}-121-{line}\n" for line in lines))
        for line in lines:
            write(chapter / f"{speaker}-121-{line[:4]}.flac", signal())
    page = (ROOT / "docs/how-to/speech.md").read_text(encoding="utf-8")
    command = re.search(r"```sh\n(find LibriSpeech.+?)```", page, re.DOTALL)[1]
    subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    data = {"corpus": "text", "kind": "audio", "mels": 40, "directory": str(tmp_path), "source": "flac", "target": "en"}
    pairs = list(open_text(ConfigDict(data | {"dev": "val"}), "dev"))
    assert [text for _, text in pairs] == ["we wait", "it rained", "nobody's home"]
    assert all(READER.read(path).shape == (24, 40) for path, _ in pairs)
