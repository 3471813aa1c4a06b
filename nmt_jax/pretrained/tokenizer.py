"""Tokenizers that came with pretrained weights, read from `tokenizer.json` or BERT's `vocab.txt`."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import pathlib
from collections.abc import Sequence

import numpy as np
import tokenizers
import tokenizers.models
import tokenizers.normalizers
import tokenizers.pre_tokenizers
import tokenizers.processors

from nmt_jax.errors import UserError

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
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100)
    )
    tokenizer.add_special_tokens([piece for piece in SPECIAL[0] if piece in vocab])
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True),
        strip_accents=settings.get("strip_accents"),
        lowercase=settings.get("do_lower_case", True),
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(piece, vocab[piece]) for piece in ("[CLS]", "[SEP]")],
    )
    return tokenizer
