"""Subword vocabularies: SentencePiece (Kudo and Richardson, 2018), unigram or BPE, trained here or read from a file.

Vocabularies trained here preserve the characters of a text (normalization "identity", not NFKC): `decode` returns
no-break spaces, ligatures and full-width forms as they were given to `encode`. Only leading, trailing and repeated
spaces are lost, and U+2581 (▁), the space marker of SentencePiece, is returned as a space.

Without byte fallback, some text is unknown: words to a vocabulary of words, runs of unseen characters to a vocabulary
of subwords. Each is encoded as UNK or, if the caller lists the unknown pieces of a line, as V + its index in that list,
where V is the size of the vocabulary (the extended vocabulary of Gu et al., 2016, and See et al., 2017).
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import hashlib
import io
import itertools
import os
import random
import re
import threading
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import sentencepiece

from nmt_jax.errors import UserError
from nmt_jax.storage.files import whole_file
from nmt_jax.storage.paths import path_of

PAD, UNK, BOS, EOS = 0, 1, 2, 3

ALGORITHMS = {"unigram": "unigram", "bpe": "bpe", "word": "word", "character": "char"}  # names in SentencePiece
# More sentences hardly change the vocabulary, and the trainer holds all of them in memory.
MAX_SENTENCES = 2_000_000
MAX_BYTES = 1 << 30  # of a sentence; by default, SentencePiece ignores those of more than 4,192

# SentencePiece seeds the generator of each thread once, from a global seed, which is set under this lock.
_seed_lock = threading.Lock()
sentencepiece.set_min_log_level(3)  # errors are raised as exceptions


@dataclasses.dataclass(frozen=True)
class Vocab:
    """A frozen vocabulary with PAD, UNK, BOS, EOS = 0, 1, 2, 3; `model` is the content of a .model file."""

    model: bytes = dataclasses.field(repr=False)

    # What a language model reads before a text and at the end of a line, never draws, and reads for unknown pieces.
    start: ClassVar[int] = EOS
    end: ClassVar[int] = EOS
    suppressed: ClassVar[tuple[int, ...]] = (PAD, BOS)
    unknown_id: ClassVar[int] = UNK

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        *,
        size: int,
        algorithm: str = "unigram",
        byte_fallback: bool = True,
        sample_lines: int = MAX_SENTENCES,
        symbols: Sequence[str] = (),
    ) -> Vocab:
        """Trains a vocabulary of at most `size` pieces on an iterable of texts; equal texts give equal bytes.

        algorithm: "unigram" (Kudo, 2018, section 3.2), "bpe" (Sennrich et al., 2016, section 3.2), "word" (words
        separated by spaces) or "character" (spaces included). byte_fallback: whether characters outside the vocabulary
        are spelled as UTF-8 bytes, so that no text is lost; ignored by "word", where rare words are unknown.
        sample_lines: number of texts drawn at random, the same ones every time, if there are more. symbols: strings
        that are one piece each. A corpus too small for `size` pieces gives fewer. Raises UserError if the texts are
        empty or `size` is too small for the alphabet.
        """
        if algorithm not in ALGORITHMS:
            raise UserError(f"config.vocab.algorithm: {algorithm!r} is not one of {', '.join(ALGORITHMS)}")
        byte_fallback = byte_fallback and algorithm != "word"
        sentences = _sample(texts, sample_lines)
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(sentences),
                model_writer=model,
                model_type=ALGORITHMS[algorithm],
                vocab_size=size,
                hard_vocab_limit=False,
                pad_id=PAD,
                unk_id=UNK,
                bos_id=BOS,
                eos_id=EOS,
                byte_fallback=byte_fallback,
                user_defined_symbols=list(symbols),
                # The rarest characters of a large corpus are spelled as bytes instead of one untrained piece each.
                character_coverage=0.9999 if byte_fallback else 1.0,
                normalization_rule_name="identity",
                max_sentence_length=MAX_BYTES,
                num_threads=4,  # fixed, because the order of summation decides ties
                minloglevel=3,
            )
        except RuntimeError as error:
            if "sentences_.empty()" in str(error) or "all_chars_count" in str(error):
                raise UserError(f"cannot train a vocabulary: no usable text in {len(sentences)} lines") from error
            least = re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error))
            if least is None:
                raise
            pieces = "the alphabet" + " and the 256 bytes of config.vocab.byte_fallback" * byte_fallback
            message = f"config.vocab.size={size} is too small for {pieces}: set it to {least[1]} or more"
            raise UserError(message) from error
        return cls(model.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vocab:
        """Reads a .model file. Raises UserError if it is missing or damaged, or its special pieces have other ids."""
        try:
            model = path_of(path).read_bytes()
        except OSError as error:
            raise UserError(f"{path}: cannot read the vocabulary: {error.strerror}") from error
        vocab = cls(model)
        try:
            processor = vocab._processor
            processor.id_to_piece(list(range(len(vocab))))
        except (
            RuntimeError,
            UnicodeDecodeError,
        ) as error:  # the latter: pieces, or a message about them, are not UTF-8
            advice = "train the vocabulary again or name another file"
            raise UserError(f"{path}: not a SentencePiece .model file; {advice}") from error
        found = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
        if found != (PAD, UNK, BOS, EOS):
            raise UserError(
                f"{path}: the ids of pad, unk, bos and eos are {found}; train the vocabulary with "
                f"--pad_id={PAD} --unk_id={UNK} --bos_id={BOS} --eos_id={EOS}"
            )
        return vocab

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the .model file, the whole file or nothing."""
        with whole_file(path_of(path)) as file:
            file.write(self.model)

    @functools.cached_property
    def _processor(self) -> sentencepiece.SentencePieceProcessor:
        if not self.model:
            raise RuntimeError("an empty model")  # SentencePiece would expect a file name
        return sentencepiece.SentencePieceProcessor(model_proto=self.model)

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the model."""
        return hashlib.sha256(self.model).hexdigest()

    def __len__(self) -> int:
        return self._processor.get_piece_size()

    def encode(self, text: str, unknown: Sequence[str] = ()) -> list[int]:
        """The best segmentation of a text, without BOS and EOS; [] if there are only spaces.

        A piece outside the vocabulary is encoded as V + its index in `unknown`, or UNK if it is not listed there.
        """
        ids: list[int] = self._processor.encode(text)
        return ids if UNK not in ids else self._number(self._segment(text), unknown)

    def unknown(self, text: str, limit: int) -> list[str]:
        """The distinct pieces of a text that are outside the vocabulary, in order of appearance, at most `limit`."""
        if not limit:
            return []
        return list(dict.fromkeys(piece for piece, number in self._segment(text) if number == UNK))[:limit]

    def sample(self, text: str, alpha: float, seed: int, unknown: Sequence[str] = ()) -> list[int]:
        """A random segmentation for subword regularization, a pure function of (text, alpha, seed).

        Unigram: drawn with probability proportional to P(segmentation)**alpha (Kudo, 2018, equation 9, l = infinity),
        so a smaller alpha is more random. BPE: each merge is dropped with probability alpha (Provilkov et al., 2020,
        algorithm 1). unknown: as in `encode`. Raises UserError for a vocabulary of words or characters, which has only
        one segmentation.
        """
        # Generators belong to threads and are seeded at their first draw, so a new thread has a fresh generator.
        with _seed_lock, concurrent.futures.ThreadPoolExecutor(1) as thread:
            sentencepiece.set_random_generator_seed(seed)
            drawn = thread.submit(self._segment, text, enable_sampling=True, nbest_size=-1, alpha=alpha)
            try:
                return self._number(drawn.result(), unknown)
            except RuntimeError as error:
                message = (
                    "config.vocab.sampling_alpha: a vocabulary of words or characters has only one segmentation; "
                    "set it to 0"
                )
                raise UserError(message) from error

    def _segment(self, text: str, **options: Any) -> list[tuple[str, int]]:
        """Pieces and their ids; adjacent unknown words, which SentencePiece merges, are separated."""
        segments: list[tuple[str, int]] = []
        for piece in self._processor.encode(text, out_type=str, **options):
            number = self._processor.piece_to_id(piece)
            if number > EOS:
                segments.append((piece, number))
            else:  # "<s>" in a text is an ordinary word
                segments += [(part, UNK) for part in re.findall("▁?[^▁]+", piece)]
        return segments

    def _number(self, segments: list[tuple[str, int]], unknown: Sequence[str]) -> list[int]:
        numbers = {piece: len(self) + index for index, piece in enumerate(unknown)}
        return [numbers.get(piece, UNK) if number == UNK else number for piece, number in segments]

    def decode(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> str:
        """The text of ids up to the first EOS, without PAD and BOS; V + n becomes unknown[n], and UNK becomes ⁇."""
        kept = [i for i in itertools.takewhile(lambda i: i != EOS, map(int, ids)) if i not in (PAD, BOS)]
        text: str = self._processor.decode(self.pieces(kept, unknown))
        return text.replace("▁", " ").removeprefix(" ")  # SentencePiece does not convert the markers of unknown pieces

    def pieces(self, ids: Sequence[int], unknown: Sequence[str] = ()) -> list[str]:
        """The piece of each id, for display: <pad>, <s> and </s> for special ids, ▁ for a space.

        V + n becomes unknown[n], or <unk> if `unknown` is shorter.
        """
        known = len(self)
        extended = dict(enumerate(unknown, start=known))
        return [
            self._processor.id_to_piece(i) if i < known else extended.get(i, self._processor.id_to_piece(UNK))
            for i in map(int, ids)
        ]


def _sample(texts: Iterable[str], size: int) -> list[str]:
    """A uniform random sample of at most `size` texts, the same one every time (Vitter, 1985, algorithm R).

    SentencePiece's own sample differs between processes, whatever its seed.
    """
    generator = random.Random(0)
    kept: list[str] = []
    for count, text in enumerate(texts):
        if count < size:
            kept.append(text)
        elif (slot := generator.randrange(count + 1)) < size:
            kept[slot] = text
    return kept
