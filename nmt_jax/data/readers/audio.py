"""Recordings as sources: logarithmic mel filterbanks, normalized per utterance; a row is a frame of 25 ms.

The package soundfile reads the files: WAV, FLAC, Ogg, MP3 and others.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import wave
from collections.abc import Iterable, Iterator

import numpy as np

from nmt_jax.data import speech
from nmt_jax.data.readers import filterbanks
from nmt_jax.data.readers.filterbanks import RATE, WINDOW
from nmt_jax.errors import UserError
from nmt_jax.storage.files import whole_file
from nmt_jax.storage.paths import path_of

SPEECH = "speech"  # the corpus, and the first part of the names of its utterances
SCALE = 32_768  # of samples of 16 bits
UNKNOWN_SIZE = 0x7FFF0000  # WAV files that were written to a pipe state this size, or a larger one


@dataclasses.dataclass(frozen=True)
class AudioFiles:
    """Files of speech with 16,000 samples per second, see `RowReader`; several channels are averaged.

    mels: number of filters.
    """

    mels: int
    columns = 0  # a sequence
    dtype = "<f2"

    @property
    def width(self) -> int:
        """Filters."""
        return self.mels

    def read(self, line: str) -> np.ndarray:
        """The normalized filterbanks float16[S, mels] of a file. Raises UserError, naming the file."""
        return self.rows(_samples(line))

    def rows(self, samples: np.ndarray) -> np.ndarray:
        """The normalized filterbanks float16[S, mels] of samples float[N]."""
        return filterbanks.normalize(filterbanks.log_mel(samples, self.mels)).astype(self.dtype)

    def features(self, stored: np.ndarray) -> np.ndarray:
        return stored.astype(np.float32)


@dataclasses.dataclass(frozen=True)
class SpokenSentences(AudioFiles):
    """Sentences that are spoken here, by their names `speech:SPLIT:NUMBER`; any other line is the path of a file."""

    version: int = speech.VERSION

    def read(self, line: str) -> np.ndarray:
        name = line.strip()
        return _spoken(self, name) if name.partition(":")[0] == SPEECH else super().read(line)


@functools.lru_cache(1024)  # the evaluations of a training read the same utterances
def _spoken(reader: SpokenSentences, name: str) -> np.ndarray:
    return reader.rows(_utterance(name).samples() / SCALE)


def utterance_name(split: str, number: int) -> str:
    """The line that `SpokenSentences` reads."""
    return f"{SPEECH}:{split}:{number}"


def _utterance(name: str) -> speech.Utterance:
    """The utterance of a name. Raises UserError if there is none."""
    split, _, number = name.partition(":")[2].partition(":")
    return speech.utterance(split, int(number) if number.isdecimal() else -1)


def write_recordings(pairs: Iterable[tuple[str, str]], folder: str) -> Iterator[tuple[str, str]]:
    """Write the utterances that pairs (name, text) begin with to WAV files; yields (path, text).

    folder: of the files, which are called 0.wav and so on.
    """
    place = path_of(folder).absolute()
    for number, (name, text) in enumerate(pairs):
        path = place / f"{number}.wav"
        with whole_file(path) as file, wave.open(file, "wb") as recording:
            recording.setparams((1, 2, RATE, 0, "NONE", ""))
            recording.writeframes(_utterance(name).samples().astype("<i2").tobytes())
        yield str(path), text


def _samples(path: str) -> np.ndarray:
    """The samples float32[N] of a file, in [-1, 1]; the mean of its channels."""
    try:
        import soundfile
    except (ImportError, OSError):  # the latter: without the library libsndfile
        raise UserError("data.kind=audio needs soundfile: pip install 'nmt-jax[audio]'") from None
    try:
        content = path_of(path).read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        raise UserError(f"{path}: cannot read the file: {getattr(error, 'strerror', None) or error}") from None
    try:
        file = soundfile.SoundFile(io.BytesIO(content))
    except soundfile.SoundFileError:
        raise UserError(f"{path}: not a recording that soundfile can read; convert it to WAV or FLAC") from None
    with file:
        if file.samplerate != RATE:
            raise UserError(
                f"{path}: {file.samplerate:,} samples per second, but {RATE:,} are needed; convert it, for example "
                f"with ffmpeg -i FILE -ar {RATE} OUTPUT.wav"
            )
        try:
            samples = file.read(dtype="float32", always_2d=True)
        except soundfile.SoundFileError as error:
            raise UserError(f"{path}: cannot decode the recording, perhaps it is cut off: {error}") from None
        if len(samples) < file.frames or _lacks_bytes(content):
            raise UserError(f"{path}: the recording is cut off; copy the file again")
    if len(samples) < WINDOW:
        raise UserError(
            f"{path}: {'an empty recording' if not len(samples) else f'only {len(samples)} samples'}; at least "
            f"{WINDOW} are needed, 25 ms; remove the file from the list"
        )
    if not np.isfinite(samples).all():
        raise UserError(f"{path}: has samples that are NaN or infinite; write the file again")
    return samples.mean(axis=1)


def _lacks_bytes(content: bytes) -> bool:
    """Whether a WAV file is shorter than its header states, which libsndfile ignores."""
    stated = int.from_bytes(content[4:8], "little")
    return content[:4] == b"RIFF" and len(content) < stated + 8 and stated < UNKNOWN_SIZE
