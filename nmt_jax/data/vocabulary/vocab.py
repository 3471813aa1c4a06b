"""Subword vocabularies: SentencePiece (Kudo and Richardson 2018), unigram or BPE, trained here or read from a file.

A vocabulary trained here keeps every character of a text as it is (normalisation "identity", not NFKC): no-break
spaces, ligatures and full-width forms come out of `decode` as they went into `encode`. Only plain spaces at the ends
and repeated plain spaces are dropped, because they mean nothing to a translation, and U+2581 (▁), SentencePiece's own
mark of a space, comes back as a space.

What a vocabulary without byte fallback cannot spell is unknown: a whole word to a vocabulary of words, a run of unseen
characters to one of subwords. Each is UNK, or, where the reader lists the unknown pieces of a line, V + its place in
that list, V being the size of the vocabulary (Gu et al., 2016; See et al., 2017: the extended vocabulary).
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import hashlib
import io
import os
import pathlib
import random
import re
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import sentencepiece

from nmt_jax.errors import UserError
from nmt_jax.files import whole_file

PAD, UNK, BOS, EOS = 0, 1, 2, 3

ALGORITHMS = ("unigram", "bpe", "word")
# Past this many sentences more text no longer changes the pieces, and the trainer holds all it reads in memory.
MAX_SENTENCES = 2_000_000

# SentencePiece seeds the generator of a thread once, from one global seed: whoever draws sets it under this lock.
_seed_lock = threading.Lock()
sentencepiece.set_min_log_level(3)  # its errors reach us as exceptions; stderr is for what the user must read


@dataclasses.dataclass(frozen=True)
class Vocab:
    """A frozen vocabulary with PAD, UNK, BOS, EOS = 0, 1, 2, 3; `model` is the content of a .model file."""

    model: bytes = dataclasses.field(repr=False)

    @classmethod
    def train(cls, texts: Iterable[str], *, size: int, algorithm: str = "unigram", byte_fallback: bool = True) -> Vocab:
        """Trains at most `size` pieces on texts (a stream); the same texts give the same bytes in every process.

        Unigram: Kudo (2018), section 3.2; BPE: Sennrich et al. (2016), section 3.2; word: what stands between two
        blanks. A corpus too small for `size` pieces gives fewer. With `byte_fallback` a character outside the
        vocabulary is spelt in UTF-8 bytes, so no text is lost; a vocabulary of words has none: rare words are unknown.
        Raises UserError where the texts are empty or `size` is too small to hold the alphabet.
        """
        if algorithm not in ALGORITHMS:
            raise UserError(f"config.vocab.algorithm: {algorithm!r} is not one of {', '.join(ALGORITHMS)}")
        byte_fallback = byte_fallback and algorithm != "word"
        sentences = _sample(texts, MAX_SENTENCES)
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(sentences),
                model_writer=model,
                model_type=algorithm,
                vocab_size=size,
                hard_vocab_limit=False,
                pad_id=PAD,
                unk_id=UNK,
                bos_id=BOS,
                eos_id=EOS,
                byte_fallback=byte_fallback,
                # The rarest characters of a large corpus would each take a piece never learnt: bytes spell them.
                character_coverage=0.9999 if byte_fallback else 1.0,
                normalization_rule_name="identity",
                num_threads=4,  # fixed: the sums of the threads decide ties
                minloglevel=3,
            )
        except RuntimeError as error:
            if "sentences_.empty()" in str(error) or "all_chars_count" in str(error):
                raise UserError(f"cannot train a vocabulary: no usable text in {len(sentences)} lines") from error
            least = re.search(r"smaller than required_chars\. \d+ vs (\d+)", str(error))
            if least is None:
                raise
            alphabet = (
                "the alphabet and the 256 bytes of config.vocab.byte_fallback" if byte_fallback else "the alphabet"
            )
            raise UserError(
                f"config.vocab.size: {size} pieces cannot hold {alphabet}: give {least[1]} or more"
            ) from error
        return cls(model.getvalue())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vocab:
        """Reads a .model file; UserError where it is missing, broken, or numbers the special pieces differently."""
        try:
            model = pathlib.Path(path).read_bytes()
        except OSError as error:
            raise UserError(f"{path}: cannot read the vocabulary: {error.strerror}") from error
        vocab = cls(model)
        try:
            processor = vocab._processor
        except RuntimeError as error:
            raise UserError(f"{path}: not a SentencePiece .model file; train it again or name another") from error
        found = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
        if found != (PAD, UNK, BOS, EOS):
            raise UserError(
                f"{path}: its pad, unk, bos, eos are {found}; train it with "
                f"--pad_id={PAD} --unk_id={UNK} --bos_id={BOS} --eos_id={EOS}"
            )
        return vocab

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the .model file, whole or not at all."""
        with whole_file(pathlib.Path(path)) as file:
            file.write(self.model)

    @functools.cached_property
    def _processor(self) -> sentencepiece.SentencePieceProcessor:
        if not self.model:
            raise RuntimeError("an empty model")  # SentencePiece itself would wait for a file name
        return sentencepiece.SentencePieceProcessor(model_proto=self.model)

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the model."""
        return hashlib.sha256(self.model).hexdigest()

    def __len__(self) -> int:
        return self._processor.get_piece_size()

    def encode(self, text: str, unknown: Sequence[str] = ()) -> list[int]:
        """The best segmentation of text, without BOS and EOS; [] for nothing but spaces.

        A piece that the vocabulary lacks is V + its place in `unknown`, and UNK where it is not there either.
        """
        ids: list[int] = self._processor.encode(text)
        return ids if UNK not in ids else self._number(self._segment(text), unknown)

    def unknown(self, text: str, limit: int) -> list[str]:
        """The pieces of text that the vocabulary lacks, each once, in order of first appearance, at most `limit`."""
        if not limit:
            return []
        return list(dict.fromkeys(piece for piece, number in self._segment(text) if number == UNK))[:limit]

    def sample(self, text: str, alpha: float, seed: int, unknown: Sequence[str] = ()) -> list[int]:
        """A random segmentation, a pure function of (text, alpha, seed): subword regularisation.

        Unigram: drawn in proportion to P(segmentation)**alpha (Kudo 2018, equation 9, l = infinity), so a small alpha
        is the more random; BPE: each merge is dropped with probability alpha (Provilkov et al. 2020, algorithm 1).
        `unknown` as in `encode`. UserError for a vocabulary of words, which has one segmentation only.
        """
        # The generator belongs to the thread and is seeded at its first draw; a thread of one's own is a fresh one.
        with _seed_lock, concurrent.futures.ThreadPoolExecutor(1) as thread:
            sentencepiece.set_random_generator_seed(seed)
            drawn = thread.submit(self._segment, text, enable_sampling=True, nbest_size=-1, alpha=alpha)
            try:
                return self._number(drawn.result(), unknown)
            except RuntimeError as error:
                raise UserError("config.vocab.sampling_alpha: words have one segmentation only; set it to 0") from error

    def _segment(self, text: str, **options: Any) -> list[tuple[str, int]]:
        """Pieces and their numbers, unknown words one by one: SentencePiece runs neighbours together."""
        segments: list[tuple[str, int]] = []
        for piece in self._processor.encode(text, out_type=str, **options):
            number = self._processor.piece_to_id(piece)
            if number > EOS:
                segments.append((piece, number))
            else:  # "<s>" in a text is a word like any other
                segments += [(part, UNK) for part in re.findall("▁?[^▁]+", piece)]
        return segments

    def _number(self, segments: list[tuple[str, int]], unknown: Sequence[str]) -> list[int]:
        places = {piece: len(self) + place for place, piece in enumerate(unknown)}
        return [places.get(piece, UNK) if number == UNK else number for piece, number in segments]

    def decode(self, ids: Iterable[int], unknown: Sequence[str] = ()) -> str:
        """The text of ids up to the first EOS, without PAD and BOS; V + n is unknown[n], and UNK is written as ⁇."""
        text: str = self._processor.decode(self.pieces(_until_eos(ids), unknown))
        return text.replace("▁", " ").removeprefix(" ")  # SentencePiece leaves unknown pieces as they are

    def pieces(self, ids: Sequence[int], unknown: Sequence[str] = ()) -> list[str]:
        """The pieces themselves, one an id, for people to read: specials as <pad>, <s>, </s>, a space as ▁.

        V + n is unknown[n], or <unk> where there are not so many.
        """
        known = len(self)
        extended = dict(enumerate(unknown, start=known))
        return [
            self._processor.id_to_piece(i) if i < known else extended.get(i, self._processor.id_to_piece(UNK))
            for i in map(int, ids)
        ]


def _sample(texts: Iterable[str], size: int) -> list[str]:
    """At most `size` of the texts, each as likely as any other, and the same ones every time.

    Vitter (1985), algorithm R; SentencePiece's own sample is another one in each process, whatever its seed.
    """
    generator = random.Random(0)
    kept: list[str] = []
    for count, text in enumerate(texts):
        if count < size:
            kept.append(text)
        elif (slot := generator.randrange(count + 1)) < size:
            kept[slot] = text
    return kept


def _until_eos(ids: Iterable[int]) -> list[int]:
    kept = []
    for i in map(int, ids):
        if i == EOS:
            break
        if i not in (PAD, BOS):
            kept.append(i)
    return kept
