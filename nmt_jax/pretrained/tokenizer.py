"""Subword tokenizers of pretrained models: read from `tokenizer.json` or the files of a vocabulary, or trained."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import pathlib
import re
from collections.abc import Iterable, Sequence

import numpy as np
import sentencepiece
import tokenizers
import tokenizers.models
import tokenizers.normalizers
import tokenizers.pre_tokenizers

from nmt_jax.data.vocabulary.vocab import Vocab
from nmt_jax.errors import UserError
from nmt_jax.pretrained.model_files import read_json
from nmt_jax.pretrained.vocabulary_files import SPACE, bert_tokenizer, read_vocabulary, with_bert_pieces
from nmt_jax.storage.files import whole_file

ALGORITHMS = ("wordpiece", "unigram")  # that `Tokenizer.train` supports
FIRST = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")  # the first pieces of a tokenizer trained here
BYTES = 256  # byte pieces of SentencePiece, which tokenizers trained here do not keep

# Names of the special pieces.
SPECIAL = {
    "cls_token": ("[CLS]", "<s>"),
    "sep_token": ("[SEP]", "</s>"),
    "unk_token": ("[UNK]", "<unk>"),
    "pad_token": ("[PAD]", "<pad>"),
    "mask_token": ("[MASK]", "<mask>"),
}


@dataclasses.dataclass(frozen=True)
class Tokenizer:
    """A frozen tokenizer; `model` is the content of a tokenizer.json without truncation and padding."""

    model: str = dataclasses.field(repr=False)

    @classmethod
    def load(cls, folder: pathlib.Path, kind: str = "bert") -> Tokenizer:
        """Reads the tokenizer of a folder; kind: `model_type`, by which a SentencePiece model is interpreted.

        Raises UserError if there is none or it is damaged.
        """
        path = folder / "tokenizer.json"
        try:
            if path.is_file():
                tokenizer = tokenizers.Tokenizer.from_str(path.read_text(encoding="utf-8"))
            elif (found := read_vocabulary(folder, kind, read_settings(folder))) is not None:
                tokenizer = found
            else:
                raise UserError(
                    f"{folder}: neither tokenizer.json nor vocab.txt nor a model of SentencePiece; write the tokenizer "
                    "again, where transformers is installed, with "
                    "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)"
                )
        except UserError:
            raise
        except Exception as error:  # the libraries raise no narrower type
            where = path if path.is_file() else folder
            problem = str(error).split("\n")[0]
            raise UserError(f"{where}: not a tokenizer ({problem}): copy its files again") from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return cls(tokenizer.to_str())

    @classmethod
    def train(
        cls, texts: Iterable[str], *, size: int, algorithm: str = "wordpiece", lower_case: bool = True
    ) -> Tokenizer:
        """Trains a tokenizer of at most `size` pieces on a stream of texts, deterministically.

        algorithm: "wordpiece" is BERT's normalization, word splitting and longest-match search (Wu et al., 2016,
        section 4.1) with pieces from byte-pair merges (Sennrich et al., 2016); "unigram" is Kudo (2018). SentencePiece
        trains both, because the trainers of the library `tokenizers` produce other pieces in each process. The rarest
        characters, at most 1 in 10,000, become [UNK]. Raises UserError if the texts are empty or `size` is too small
        for the alphabet.
        """
        if algorithm not in ALGORITHMS:
            raise UserError(f"config.vocab.algorithm: {algorithm!r} is not one of {', '.join(ALGORITHMS)}")
        lower = [tokenizers.normalizers.Lowercase()] if lower_case else []
        whole = (" ".join(text.split()) for text in texts)
        if algorithm == "unigram":
            normalizer = tokenizers.normalizers.Sequence([tokenizers.normalizers.NFKC(), *lower])
            texts = (normalizer.normalize_str(text) for text in whole)
            vocab = Vocab.train(texts, size=size + BYTES - 1, algorithm="unigram")  # 4 specials there, 5 here
            scores = [(piece, 0.0) for piece in FIRST] + _trained(vocab)
            ids = {piece: number for number, (piece, _) in enumerate(scores)}
            tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(scores, ids["[UNK]"]))
            tokenizer.normalizer = normalizer
            tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
            return cls(with_bert_pieces(tokenizer, ids).to_str())
        bert = tokenizers.normalizers.BertNormalizer(lowercase=lower_case)
        split = tokenizers.pre_tokenizers.BertPreTokenizer()
        texts = (" ".join(word for word, _ in split.pre_tokenize_str(bert.normalize_str(text))) for text in whole)
        pieces = [piece for piece, _ in _trained(Vocab.train(texts, size=size + BYTES, algorithm="bpe"))]
        letters = sorted({piece for piece in pieces if len(piece) == 1} - {SPACE})
        if len(FIRST) + 2 * len(letters) > size:
            raise UserError(
                f"config.vocab.size: {size} pieces are too few for the alphabet, which needs two per letter: "
                f"use {len(FIRST) + 2 * len(letters)} or more"
            )
        merges = [
            piece.removeprefix(SPACE) if piece[0] == SPACE else f"##{piece}" for piece in pieces if piece != SPACE
        ]
        words = dict.fromkeys([*FIRST, *letters, *(f"##{letter}" for letter in letters), *merges])
        return cls(bert_tokenizer({piece: number for number, piece in enumerate(list(words)[:size])}, bert).to_str())

    def with_space(self) -> Tokenizer:
        """Returns the tokenizer that reads a space before the first word, if its pieces are those of bytes.

        The first word of a text then has the pieces that it has elsewhere, as in bert-score with RoBERTa.
        """
        content = json.loads(self.model)
        first = content["pre_tokenizer"] or {}
        steps = [step for step in first.get("pretokenizers", [first]) if step.get("type") == "ByteLevel"]
        if all(step["add_prefix_space"] for step in steps):
            return self
        for step in steps:
            step["add_prefix_space"] = True
        return Tokenizer(json.dumps(content))

    @functools.cached_property
    def _tokenizer(self) -> tokenizers.Tokenizer:
        return tokenizers.Tokenizer.from_str(self.model)

    def __len__(self) -> int:
        """One more than the largest id."""
        return max(self._tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    def __call__(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ids int32[B, S], mask bool[B, S] (False: padding) and special bool[B, S] ([CLS], [SEP] ...) of B texts."""
        # A lone surrogate cannot be encoded as UTF-8.
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        encodings = self._tokenizer.encode_batch_fast(clean)
        lengths = np.array([len(encoding) for encoding in encodings], int)
        mask = np.arange(lengths.max(initial=0))[None] < lengths[:, None]
        ids, special = np.zeros(mask.shape, np.int32), np.zeros(mask.shape, bool)
        for row, encoding in enumerate(encodings):
            ids[row, : lengths[row]] = encoding.ids
            special[row, : lengths[row]] = encoding.special_tokens_mask
        return ids, mask, special

    def word_numbers(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The number int[S] of the word, separated by blanks, that each piece of a text ends in.

        It is -1 for special pieces and for a blank. The pieces are those of `__call__`.
        """
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        numbers = []
        for text, encoding in zip(clean, self._tokenizer.encode_batch(clean), strict=True):
            words = np.full(1 + len(text), -1)  # that of no character, then those of all characters
            for word, found in enumerate(re.finditer(r"\S+", text)):
                words[1 + found.start() : 1 + found.end()] = word
            numbers.append(words[[end if end > start else 0 for start, end in encoding.offsets]])
        return numbers

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without [CLS] and [SEP]."""
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def spans(self, texts: Sequence[str]) -> list[np.ndarray]:
        """The characters [start, end) of each piece of each text, int[S, 2]; the pieces are those of `encode`."""
        encodings = self._tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [np.array(encoding.offsets, int).reshape(-1, 2) for encoding in encodings]

    def starts(self) -> np.ndarray:
        """Whether each piece begins a word, bool[V]; `##ing` does not, nor does `ing` beside pieces like `▁the`."""
        pieces = self.pieces(range(len(self)))
        if any(piece.startswith("##") for piece in pieces):
            return np.array([not piece.startswith("##") for piece in pieces])
        return np.array([piece.startswith(SPACE) for piece in pieces])

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The piece of each id in the form of the vocabulary, such as `##ing`; "" for an unknown id."""
        return [self._tokenizer.id_to_token(int(one)) or "" for one in ids]

    def id(self, piece: str) -> int | None:
        """The id of a piece, or None if it is not in the vocabulary."""
        return self._tokenizer.token_to_id(piece)

    def save(self, folder: pathlib.Path, max_length: int) -> None:
        """Writes tokenizer.json and tokenizer_config.json."""
        with whole_file(folder / "tokenizer.json") as file:
            file.write(self.model.encode())
        settings: dict[str, str | int] = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": max_length}
        for name, pieces in SPECIAL.items():
            if known := [piece for piece in pieces if self.id(piece) is not None]:
                settings[name] = known[0]
        with whole_file(folder / "tokenizer_config.json") as file:
            file.write(json.dumps(settings, indent=2).encode())


def read_settings(folder: pathlib.Path) -> dict:
    """The content of tokenizer_config.json, or {} if there is none. Raises UserError if it is damaged."""
    path = folder / "tokenizer_config.json"
    return read_json(path) if path.is_file() else {}


def longest_text(folder: pathlib.Path) -> float:
    """The maximum length in tokens according to the tokenizer of a folder; infinity if it is not specified."""
    length = read_settings(folder).get("model_max_length")
    return length if isinstance(length, int) and length > 0 else math.inf


def _trained(vocab: Vocab) -> list[tuple[str, float]]:
    """SentencePiece's pieces and scores, in its order, without its special pieces and byte pieces."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=vocab.model)
    ordinary = [
        number
        for number in range(len(vocab))
        if not (processor.is_control(number) or processor.is_unknown(number) or processor.is_byte(number))
    ]
    # Six digits, because the JSON of `tokenizers` does not preserve longer numbers exactly.
    return [(processor.id_to_piece(number), round(processor.get_score(number), 6)) for number in ordinary]
