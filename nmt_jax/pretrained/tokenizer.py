"""Tokenizers of pretrained weights: read from `tokenizer.json` or BERT's `vocab.txt`, or trained for new ones."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import pathlib
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import sentencepiece
import tokenizers
import tokenizers.models
import tokenizers.normalizers
import tokenizers.pre_tokenizers
import tokenizers.processors

from nmt_jax.data.vocabulary.vocab import Vocab
from nmt_jax.errors import UserError

ALGORITHMS = ("wordpiece", "unigram")  # that `train` knows
BLANK = "\u2581"  # SentencePiece's mark of a blank, before the first piece of a word
FIRST = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")  # the first pieces of one trained here
BYTES = 256  # pieces of SentencePiece that spell unseen characters, and that no tokenizer here keeps

# What the pieces around a text, in place of an unknown one, of padding and of a masked one are called.
SPECIAL = (("[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]"), ("<s>", "</s>", "<unk>", "<pad>", "<mask>"))


@dataclasses.dataclass(frozen=True)
class Tokenizer:
    """A frozen tokenizer; `model` is the content of a tokenizer.json, which cuts nothing off and pads nothing."""

    model: str = dataclasses.field(repr=False)

    @classmethod
    def load(cls, folder: pathlib.Path) -> Tokenizer:
        """Reads the tokenizer of a folder; UserError where there is none or it is broken."""
        path = folder / "tokenizer.json"
        try:
            if path.is_file():
                tokenizer = tokenizers.Tokenizer.from_str(path.read_text(encoding="utf-8"))
            elif (folder / "vocab.txt").is_file():
                path = folder / "vocab.txt"
                tokenizer = _wordpiece(path, read_settings(folder))
            else:
                raise UserError(
                    f"{folder}: neither tokenizer.json nor vocab.txt: have the tokenizer written anew, where "
                    "transformers is installed, by AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)"
                )
        except UserError:
            raise
        except Exception as error:  # the library raises nothing narrower
            raise UserError(f"{path}: not a tokenizer ({error}): copy it anew") from error
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return cls(tokenizer.to_str())

    @classmethod
    def train(
        cls, texts: Iterable[str], *, size: int, algorithm: str = "wordpiece", lower_case: bool = True
    ) -> Tokenizer:
        """Trains at most `size` pieces on texts (a stream); the same texts give the same tokenizer in every process.

        "wordpiece": BERT's normalisation, words and search of the longest piece (Wu et al., 2016, section 4.1), over
        pieces of byte-pair merges (Sennrich et al., 2016); "unigram": Kudo (2018). Both are trained by SentencePiece:
        the trainers of the library `tokenizers` give other pieces in each process. The rarest characters, at most 1 in
        10,000, are [UNK]. UserError where the texts are empty or `size` is too small to hold the alphabet.
        """
        if algorithm not in ALGORITHMS:
            raise UserError(f"config.vocab.algorithm: {algorithm!r} is not one of {', '.join(ALGORITHMS)}")
        lower = [tokenizers.normalizers.Lowercase()] if lower_case else []
        whole = (" ".join(text.split()) for text in texts)
        if algorithm == "unigram":
            normalizer = tokenizers.normalizers.Sequence([tokenizers.normalizers.NFKC(), *lower])
            texts = (normalizer.normalize_str(text) for text in whole)
            vocab = Vocab.train(_short(texts), size=size + BYTES - 1, algorithm="unigram")  # 4 specials there, 5 here
            scores = [(piece, 0.0) for piece in FIRST] + _trained(vocab)
            ids = {piece: number for number, (piece, _) in enumerate(scores)}
            tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(scores, ids["[UNK]"]))
            tokenizer.normalizer = normalizer
            tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
            return cls(_finished(tokenizer, ids).to_str())
        bert = tokenizers.normalizers.BertNormalizer(lowercase=lower_case)
        split = tokenizers.pre_tokenizers.BertPreTokenizer()
        texts = (" ".join(word for word, _ in split.pre_tokenize_str(bert.normalize_str(text))) for text in whole)
        pieces = [piece for piece, _ in _trained(Vocab.train(_short(texts), size=size + BYTES, algorithm="bpe"))]
        letters = sorted({piece for piece in pieces if len(piece) == 1} - {BLANK})
        if len(FIRST) + 2 * len(letters) > size:
            raise UserError(
                f"config.vocab.size: {size} pieces cannot hold the alphabet, at the beginning of words and within: "
                f"give {len(FIRST) + 2 * len(letters)} or more"
            )
        merges = [
            piece.removeprefix(BLANK) if piece[0] == BLANK else f"##{piece}" for piece in pieces if piece != BLANK
        ]
        words = dict.fromkeys([*FIRST, *letters, *(f"##{letter}" for letter in letters), *merges])
        return cls(_bert({piece: number for number, piece in enumerate(list(words)[:size])}, bert).to_str())

    @functools.cached_property
    def _tokenizer(self) -> tokenizers.Tokenizer:
        return tokenizers.Tokenizer.from_str(self.model)

    def __len__(self) -> int:
        """One more than the greatest id."""
        return max(self._tokenizer.get_vocab(with_added_tokens=True).values(), default=-1) + 1

    def __call__(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """B texts -> ids int32[B, S], mask bool[B, S] (False: padding), special bool[B, S] ([CLS], [SEP] ...)."""
        # Half of a surrogate pair is no character and cannot be written as UTF-8.
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        encodings = self._tokenizer.encode_batch_fast(clean)
        lengths = np.array([len(encoding) for encoding in encodings], int)
        mask = np.arange(lengths.max(initial=0))[None] < lengths[:, None]
        ids, special = np.zeros(mask.shape, np.int32), np.zeros(mask.shape, bool)
        for row, encoding in enumerate(encodings):
            ids[row, : lengths[row]] = encoding.ids
            special[row, : lengths[row]] = encoding.special_tokens_mask
        return ids, mask, special

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, without [CLS] and [SEP]."""
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    def starts(self) -> np.ndarray:
        """bool[V]: which pieces begin a word; `##ing` does not, nor, in a vocabulary of `▁the`, `ing`."""
        pieces = self.pieces(range(len(self)))
        if any(piece.startswith("##") for piece in pieces):
            return np.array([not piece.startswith("##") for piece in pieces])
        return np.array([piece.startswith(BLANK) for piece in pieces])

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """What each id spells, as the vocabulary writes it: `##ing`, `Ġthe`; "" for an id that it does not have."""
        return [self._tokenizer.id_to_token(int(one)) or "" for one in ids]

    def id(self, piece: str) -> int | None:
        """The id of a piece, None if the vocabulary does not have it."""
        return self._tokenizer.token_to_id(piece)

    def save(self, folder: pathlib.Path, max_length: int) -> None:
        """Writes tokenizer.json and tokenizer_config.json."""
        (folder / "tokenizer.json").write_text(self.model, encoding="utf-8")
        names = ("cls_token", "sep_token", "unk_token", "pad_token", "mask_token")
        special = next((pieces for pieces in SPECIAL if self.id(pieces[0]) is not None), ())
        settings: dict[str, str | int] = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": max_length}
        settings |= {name: piece for name, piece in zip(names, special, strict=False) if self.id(piece) is not None}
        (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")


def read_settings(folder: pathlib.Path) -> dict:
    """The content of tokenizer_config.json, {} without one; UserError if it is broken."""
    path = folder / "tokenizer_config.json"
    return read_json(path) if path.is_file() else {}


def longest_text(folder: pathlib.Path) -> float:
    """The most tokens that the tokenizer of a folder is for; infinity if it does not say."""
    most = read_settings(folder).get("model_max_length")
    return most if isinstance(most, int) and most > 0 else math.inf


def read_json(path: pathlib.Path) -> dict:
    """An object from a file; UserError if there is none in it."""
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}: not the folder of a model") from error
    except ValueError as error:
        raise UserError(f"{path}: not JSON ({error}): copy it anew") from error
    if not isinstance(content, dict):
        raise UserError(f"{path}: not a JSON object: copy it anew")
    return content


def _wordpiece(path: pathlib.Path, settings: dict) -> tokenizers.Tokenizer:
    """BERT's own tokenizer (Devlin et al., 2019, section 3; Wu et al., 2016) of a list of pieces, one a line."""
    pieces = path.read_text(encoding="utf-8").split("\n")
    vocab = {piece.rstrip("\r"): number for number, piece in enumerate(pieces) if piece or number < len(pieces) - 1}
    missing = [piece for piece in SPECIAL[0][:4] if piece not in vocab]
    if missing:
        raise UserError(f"{path}: {', '.join(missing)} not among its {len(vocab)} pieces: not a vocabulary of BERT")
    normalizer = tokenizers.normalizers.BertNormalizer(
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
        strip_accents=settings.get("strip_accents"),
        lowercase=settings.get("do_lower_case", True),
    )
    return _bert(vocab, normalizer)


def _bert(vocab: dict[str, int], normalizer: tokenizers.normalizers.Normalizer) -> tokenizers.Tokenizer:
    """BERT's search of the longest pieces in words."""
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100)
    )
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return _finished(tokenizer, vocab)


def _finished(tokenizer: tokenizers.Tokenizer, vocab: dict[str, int]) -> tokenizers.Tokenizer:
    """With BERT's special pieces, and its form of one text and of two."""
    tokenizer.add_special_tokens([piece for piece in SPECIAL[0] if piece in vocab])
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(piece, vocab[piece]) for piece in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def _short(texts: Iterable[str]) -> Iterator[str]:
    """The texts in parts of at most 256 words: SentencePiece passes over lines of more than 4,192 bytes."""
    for text in texts:
        words = text.split(" ")
        yield from (" ".join(words[start : start + 256]) for start in range(0, len(words), 256))


def _trained(vocab: Vocab) -> list[tuple[str, float]]:
    """The pieces of SentencePiece and their scores, in its order, without its own special pieces and bytes."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=vocab.model)
    ordinary = [
        number
        for number in range(len(vocab))
        if not (processor.is_control(number) or processor.is_unknown(number) or processor.is_byte(number))
    ]
    # Six digits, because longer numbers come out of the JSON of `tokenizers` as their neighbours.
    return [(processor.id_to_piece(number), round(processor.get_score(number), 6)) for number in ordinary]
