"""Lines as the models of a translator read them: token ids or rows of features, in parts where a line is long."""

import functools
import zlib
from typing import Any, NamedTuple

from ml_collections import ConfigDict

from nmt_jax.data.batching.prediction import padded_length
from nmt_jax.data.lines import split_long
from nmt_jax.data.readers import sources
from nmt_jax.data.readers.source_reader import SourceReader
from nmt_jax.data.vocabulary.vocab import EOS, UNK, Vocab
from nmt_jax.errors import UserError
from nmt_jax.translation.requests import Line


class Part(NamedTuple):
    """A line, or a part of a long line, as ids without the last EOS, or as another example of a `SourceReader`.

    length: pieces of the longest source, EOS included, or rows. empty: whether there is nothing to translate.
    """

    source: Any
    length: int
    empty: bool
    unknown: list[str]
    prefix: list[int]
    phrases: list[list[int]]
    seed: int


class LineEncoder:
    """Encodes lines, and the constraints on their translations, with the vocabularies of source and target.

    data: `config.data`. num_unknown: see `Vocab.unknown`. reduction: rows for each state of the encoder.
    """

    def __init__(self, data: ConfigDict, vocabularies: tuple[Vocab, Vocab], num_unknown: int, reduction: int) -> None:
        self.vocabularies, self.num_unknown, self.reduction = vocabularies, num_unknown, reduction
        self.reader = SourceReader.of(data)
        self.num_sources = len(self.reader.readers)
        self._max_length = data.max_length

    def unknown(self, text: str) -> list[str]:
        """The words of a source that its vocabulary lacks and the models can copy."""
        return self.vocabularies[0].unknown(text, self.num_unknown)

    def source(self, text: str, unknown: list[str], location: str = "") -> Any:
        """Return the ids of a line, without the last EOS, or another example of its sources.

        Raises UserError, which begins with `location`, if a source is missing or its file is bad.
        """
        encode = functools.partial(self.vocabularies[0].encode, unknown=unknown)
        try:
            if self.reader.only_text:
                return sources.encode(text, self.num_sources, encode)
            return self.reader.features(self.reader.read(text, encode))
        except UserError as error:
            raise UserError(f"{location}{error}") from None

    def example(self, source: Any) -> Any:
        """What `source` returned, with the last EOS."""
        return [*source, EOS] if self.reader.only_text else source

    def pieces(self, example: Any, unknown: list[str]) -> list[str]:
        """Return the pieces of ids with EOS after each source; of rows, the numbers of the encoder's states, from 0."""
        text_pieces = functools.partial(self.vocabularies[0].pieces, unknown=unknown)
        return self.reader.pieces(example, text_pieces, self.reduction)

    def parts(self, line: Line) -> list[Part]:
        """Return a line as one part, or as several if it has one source, no constraints and too many pieces."""
        texts = [line.text]
        if self.num_sources == 1 and self.reader.only_text and not line.prefix and not line.phrases:
            texts = split_long(line.text, self.vocabularies[0].encode, self._max_length)
        return [self._part(text, line) for text in texts]

    def padded_length(self, line: Line) -> int:
        """Return the length in pieces to which a line is padded, or the first part of a long one."""
        return padded_length(self.example(self.parts(line)[0].source), self.reader)

    def _part(self, text: str, line: Line) -> Part:
        """A text of a line, with the constraints of the line."""
        unknown = self.unknown(text)
        required = [line.prefix, *line.phrases]
        ids = [self.vocabularies[1].encode(one, unknown=unknown) for one in required]
        for one, pieces in zip(required, ids, strict=True):
            if UNK in pieces:
                raise UserError(f"{line.location}{one!r} contains text that the target vocabulary lacks")
        source = self.source(text, unknown, line.source_location)
        phrases = [pieces for pieces in ids[1:] if pieces]
        seed, example = zlib.crc32(text.encode("utf-8", "surrogatepass")), self.example(source)
        length, empty = int(self.reader.lengths(example).max()), self.reader.empty(example)
        return Part(source, length, empty, unknown, ids[0], phrases, seed)
