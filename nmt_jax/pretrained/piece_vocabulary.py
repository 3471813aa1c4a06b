"""The pieces of a published language model as the vocabulary of our language-modelling task."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Sequence

import numpy as np
import tokenizers

from nmt_jax.errors import UserError
from nmt_jax.pretrained.tokenizer import Tokenizer

TEXT_END = "<|endoftext|>"
LINE_END = "\n"


class PieceVocabulary:
    """The tokenizer of GPT-2 with the methods of `Vocab` that a language model needs.

    A line ends with the piece of a line break. Id 0, which marks padding, is <|endoftext|>, the piece before a text;
    the pieces with smaller ids in the tokenizer move up by one.
    """

    start = 0
    suppressed = (0,)
    unknown_id = -1  # every text has pieces

    def __init__(self, tokenizer: Tokenizer, size: int, where: str) -> None:
        """size: rows of the table of embeddings. Raises UserError if the tokenizer lacks one of the two pieces."""
        self._tokenizer = tokenizers.Tokenizer.from_str(tokenizer.model)
        text_end, line_end = tokenizer.id(TEXT_END), tokenizer.encode([LINE_END])[0]
        if text_end is None or len(line_end) != 1:
            raise UserError(
                f"{where}: the tokenizer has no piece {TEXT_END} or none for a line break: not one of GPT-2"
            )
        others = np.delete(np.arange(size), text_end)
        self.order = np.array([text_end, *others])  # the tokenizer's id of each of our ids
        self._ours = np.argsort(self.order)
        self.end = int(self._ours[line_end[0]])
        self.fingerprint = hashlib.sha256(tokenizer.model.encode()).hexdigest()

    def __len__(self) -> int:
        return len(self.order)

    def encode(self, text: str) -> list[int]:
        """The pieces of a text; <|endoftext|> in it is read as the end of a text."""
        # A lone surrogate cannot be encoded as UTF-8.
        clean = text.encode("utf-8", "replace").decode()
        ids = self._tokenizer.encode(clean, add_special_tokens=False).ids
        return [int(one) for one in self._ours[ids]] if ids else []

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids up to the first end of a line."""
        line = itertools.takewhile(lambda one: one != self.end, map(int, ids))
        return str(self._tokenizer.decode([int(self.order[one]) for one in line if one != self.start]))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The piece of each id in the form of the tokenizer, such as `Ġthe`; "" for an unused id."""
        return [self._tokenizer.id_to_token(int(self.order[one])) or "" for one in ids]
