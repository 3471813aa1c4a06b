"""How sentences are spoken: random voices, speeds, pitches, volumes and noise, and the samples that espeak-ng makes."""

from __future__ import annotations

import dataclasses
import functools
import subprocess

import numpy as np

from nmt_jax.data.grammar import SPLITS
from nmt_jax.data.speech.sentences import sentence
from nmt_jax.errors import UserError

VERSION = 2  # increase it whenever a sentence, or the way it is spoken, changes
PROGRAM = "espeak-ng"
LANGUAGE = "en-us"
VOICES = {  # variants of its voice, by split; those of training differ much in tone
    "train": (
        *("m1", "m2", "m3", "m4", "m5", "m6", "f1", "f2", "f3"),
        *("Andy", "Diogo", "Gene", "Henrique", "Hugo", "Marco", "antonio", "iven4", "miguel", "quincy", "sandro"),
        *("travis", "Alicia", "Annie", "belinda", "linda"),
    ),
    "dev": ("m7", "f5"),
    "test": ("m8", "f4"),
}
SPEED, PITCH, VOLUME = (130, 190), (30, 70), (30, 100)  # ranges: words a minute, and numbers of espeak-ng
NOISY, NOISE = 0.7, (12.0, 36.0)  # share of utterances with noise, and the range of its level in dB below the speech
_RATE = 22_050  # samples per second of espeak-ng
_UP, _DOWN = 320, 441  # 16,000 / 22,050
_HEADER = 44  # bytes before the samples
_FULL_SCALE = 32_767


@dataclasses.dataclass(frozen=True)
class Utterance:
    """A sentence and how it is spoken; noise: its level in dB below the speech, or None. key: of the noise."""

    text: str
    voice: str
    speed: int
    pitch: int
    volume: int
    noise: float | None
    key: tuple[int, ...]

    def samples(self) -> np.ndarray:
        """The samples int16[N], 16,000 per second. Raises UserError without espeak-ng."""
        options = {"-v": f"{LANGUAGE}+{self.voice}", "-s": self.speed, "-p": self.pitch, "-a": self.volume}
        content = _run("--stdout", *(str(part) for option in options.items() for part in option), self.text)
        speech = _resample(np.frombuffer(content, "<i2", offset=_HEADER))
        if self.noise is not None:
            level = np.sqrt(np.mean(speech**2)) * 10 ** (-self.noise / 20)
            speech = speech + np.random.default_rng(self.key).normal(0, level, len(speech))
        return np.clip(np.rint(speech), -_FULL_SCALE, _FULL_SCALE).astype(np.int16)


@functools.lru_cache(4096)
def utterance(split: str, number: int) -> Utterance:
    """Utterance `number`, from 0 on, of a split: "train", "dev" or "test".

    Raises UserError for another split, or a number below 0.
    """
    if split not in SPLITS or number < 0:
        raise UserError(
            f"speech:{split}:{number}: no such utterance; use one of {', '.join(SPLITS)} and a number from 0 on"
        )
    key = (SPLITS.index(split), number)
    random = np.random.default_rng(key)
    voice = VOICES[split][random.integers(len(VOICES[split]))]
    speed, pitch, volume = (int(random.integers(low, high + 1)) for low, high in (SPEED, PITCH, VOLUME))
    noise = float(random.uniform(*NOISE)) if random.random() < NOISY else None
    return Utterance(sentence(split, number), voice, speed, pitch, volume, noise, (*key, 1))


@functools.cache
def program_version() -> str:
    """The version of espeak-ng, such as "1.51". Raises UserError if it is not installed."""
    return _run("--version").decode("utf-8", "replace").split(":", 1)[1].split()[0]


def _resample(samples: np.ndarray) -> np.ndarray:
    """Samples of espeak-ng at 16 kHz, float64[N]: the same spectrum without the frequencies from 8 kHz on."""
    samples = np.pad(samples.astype(np.float64), (0, -len(samples) % _DOWN))
    length = len(samples) // _DOWN * _UP
    return np.fft.irfft(np.fft.rfft(samples)[: length // 2 + 1], length) * (length / len(samples))


def _run(*arguments: str) -> bytes:
    """What espeak-ng writes to its standard output."""
    try:
        finished = subprocess.run([PROGRAM, *arguments], capture_output=True, check=False)
    except FileNotFoundError:
        raise UserError(f"data.corpus=speech needs the program {PROGRAM}: apt-get install {PROGRAM}") from None
    if finished.returncode or (arguments[0] == "--stdout" and not _is_speech(finished.stdout)):
        message = finished.stderr.decode("utf-8", "replace").strip() or "no sound"
        raise UserError(f"{PROGRAM} {' '.join(arguments)}: {message}")
    return finished.stdout


def _is_speech(content: bytes) -> bool:
    """Whether a WAV file has samples, at the rate that is expected."""
    return len(content) > _HEADER and int.from_bytes(content[24:28], "little") == _RATE
