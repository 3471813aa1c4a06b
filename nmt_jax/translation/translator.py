"""Translation of text with one trained model or an ensemble: batches, decoding, scoring and attention."""

import functools
import itertools
import math
import sys
import warnings
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from nmt_jax import platforms
from nmt_jax.checkpoints.finite import check_outputs
from nmt_jax.data.batching.prediction import decoding_batches, padded_length
from nmt_jax.data.lines import split_long
from nmt_jax.data.readers import sources
from nmt_jax.data.readers.source_reader import SourceReader
from nmt_jax.data.vocabulary.vocab import BOS, EOS, PAD, UNK, Vocab
from nmt_jax.decoding.beam_search import SearchRequest
from nmt_jax.decoding.constraints import Phrases
from nmt_jax.decoding.method import DecodingMethod, Search
from nmt_jax.decoding.next_logits import IMPOSSIBLE
from nmt_jax.decoding.stepwise import Method
from nmt_jax.distributed.evaluation import Evaluator
from nmt_jax.errors import UserError
from nmt_jax.models.layers.features import Source, batch_source, reduction_of, source_mask
from nmt_jax.translation.programs import Programs
from nmt_jax.translation.requests import Hypothesis, Line, Scored, as_lines

ESTIMATED = 1 << 16  # pieces of all hypotheses of a batch, from which on its memory is estimated first
CHANGES = "--beam_size or --num_samples, or the length by --max_length_ratio, --max_length_offset and --min_length"
LONGEST = 16  # translation to score, times `data.max_length`
STEPS = 4  # of decoding, between two looks at the hypotheses
EMPTY = Hypothesis("", 0.0, [], [])


class _Part(NamedTuple):
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


class _LengthLimit(NamedTuple):
    """The longest translation, EOS included: a function of the length of the source alone."""

    ratio: float
    offset: int
    minimum: int
    maximum: int

    def of_length(self, source_length: int) -> int:
        return min(max(math.ceil(self.ratio * source_length) + self.offset, 1), self.maximum)

    def of(self, part: _Part) -> int:
        return min(max(self.of_length(part.length), self.minimum), self.maximum)


def _join(parts: list[list[Hypothesis]]) -> list[Hypothesis]:
    """Join the n-th best hypotheses of the parts of a line to the n-th best of the line."""
    if len(parts) == 1:
        return parts[0]
    return [
        best[0]._replace(
            text=" ".join(part.text for part in best if part.text),
            score=sum(part.score for part in best),
            pieces=[piece for part in best for piece in part.pieces],
            ids=[number for part in best for number in part.ids],
        )
        for best in zip(*parts, strict=True)
    ]


class Translator:
    """Translates with one model, or with several models of the same vocabularies as an ensemble.

    A source that is not text is the path of a file, and its rows of features count as pieces.

    The parameters of the models are passed to each call. allow_unknown: whether translations may contain <unk>.
    evaluator: of a task that evaluates itself; by default one for all devices of `mesh`.
    """

    def __init__(
        self,
        config: ConfigDict,
        models: Sequence[Any],
        vocabularies: tuple[Vocab, Vocab],
        mesh: Mesh,
        allow_unknown: bool = False,
        evaluator: Evaluator | None = None,
    ) -> None:
        self.config, self.models, self.vocabularies, self.mesh = config, tuple(models), vocabularies, mesh
        self.evaluator = evaluator or Evaluator(mesh)
        suppressed = (PAD, BOS) if allow_unknown else (PAD, UNK, BOS)
        self.programs = Programs(models, suppressed, halve=mesh.size == 1)
        self.num_sources = len(sources.languages(config.data.source))
        self.reader = SourceReader.of(config.data)
        self.reduction = reduction_of(models[0])  # rows for each state that is attended to
        self.num_unknown = max(getattr(model, "num_unknown", 0) for model in models)
        learned = (model.max_positions for model in models if getattr(model, "positions", "") == "learned")
        self.max_length = min(learned, default=sys.maxsize) - 1  # of a translation, to which EOS may be added

    def search(self, **options: Any) -> Search:
        """Return the search of `config.decode` with some options changed, None for no change.

        Raises UserError if an option is invalid.
        """
        defaults = {name: self.config.decode[name] for name in ("beam_size", "length_penalty")}
        try:
            return Search(**defaults | {name: value for name, value in options.items() if value is not None})
        except ValueError as error:
            raise UserError(str(error)) from None

    def translate(
        self,
        params: Sequence[Any],
        lines: Sequence[str | Line],
        method: DecodingMethod,
        *,
        max_length_ratio: float | None = None,
        max_length_offset: int | None = None,
        batch_tokens: int | None = None,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each line, best first; those of an empty line are empty.

        params: the parameters of each model. Options that are None are taken from `config.decode`. The hypotheses of a
        line depend only on the line (and those of sampling on the seed), not on other lines: a line that occurs twice
        has the same samples. A line of `data.max_length` pieces or more is translated in parts if it has one source and
        no constraints. Raises UserError if a constraint cannot be met, or if the method needs attention and a model has
        none.
        """
        if method.needs_attention:
            self.check_attention()
        decode = self.config.decode
        ratio = decode.max_length_ratio if max_length_ratio is None else max_length_ratio
        offset = decode.max_length_offset if max_length_offset is None else max_length_offset
        limit = _LengthLimit(ratio, offset, method.min_limit, self.max_length)
        requests = as_lines(lines)
        split = [self._parts(line) for line in requests]
        for line, line_parts in zip(requests, split, strict=True):
            _check_constraints(line, line_parts[0], method, limit.of(line_parts[0]))
        parts = list(itertools.chain.from_iterable(split))
        filled = [number for number, part in enumerate(parts) if not part.empty]
        results = [[EMPTY] * method.num_results for _ in parts]
        budget = batch_tokens or max(self._batch_tokens() // method.width, 1)
        ids = [parts[number].source for number in filled]
        kinds = [(bool(parts[number].prefix), bool(parts[number].phrases)) for number in filled]
        for numbers, batch in self._batches(ids, kinds, budget, method.width):
            rows = [filled[number] for number in numbers]
            found = self._decode(params, batch_source(batch), [parts[row] for row in rows], method, limit)
            for row, hypotheses in zip(rows, found, strict=True):
                results[row] = hypotheses
        translated = iter(results)
        return [_join([next(translated) for _ in line_parts]) for line_parts in split]

    def grow(self, params: Sequence[Any], line: Line, method: Method, steps: int = STEPS) -> Iterator[list[Hypothesis]]:
        """Yield the best hypotheses of a line so far after every few steps, and at the end those of `translate`.

        A line that `translate` divides, and an empty one, have the end only.
        """
        if method.needs_attention:
            self.check_attention()
        decode = self.config.decode
        limit = _LengthLimit(decode.max_length_ratio, decode.max_length_offset, method.min_limit, self.max_length)
        parts = self._parts(line)
        if len(parts) > 1 or parts[0].empty:
            yield self.translate(params, [line], method)[0]
            return
        _check_constraints(line, parts[0], method, limit.of(parts[0]))
        _, batch = next(self._batches([parts[0].source], [None], self._batch_tokens(), method.width))
        placed, max_length = self._place(batch_source(batch), parts, limit)
        source, request, _ = placed
        options: dict[str, Any] = {"method": method, "max_length": max_length}
        if self._check_size(params, placed, method, max_length):
            steps = max_length
        state = self.programs.begin(tuple(params), source, request, **options)
        finished = False
        while not finished:
            proceeded = self.programs.proceed(tuple(params), *placed, state, steps=steps, **options)
            state, *outputs = proceeded
            tokens, scores, finished = self.evaluator.fetch(outputs)
            yield self._hypotheses(tokens, scores, parts, method)[0]

    def score(
        self,
        params: Sequence[Any],
        lines: Sequence[str | Line],
        translations: Sequence[str | Sequence[int]],
        with_attention: bool = False,
    ) -> list[Scored]:
        """Return the log-probabilities of one translation of each line, as text or ids, optionally with attention."""
        source_vocab, target_vocab = self.vocabularies
        requests = as_lines(lines)
        unknown = [source_vocab.unknown(line.text, self.num_unknown) for line in requests]
        ids: list[Any] = [
            self.encode_source(line.text, words, line.source_location)
            for line, words in zip(requests, unknown, strict=True)
        ]
        targets = [
            [*(target_vocab.encode(text, words) if isinstance(text, str) else text), EOS]
            for text, words in zip(translations, unknown, strict=True)
        ]
        results: list[Any] = [None] * len(lines)
        for numbers, batch in self._scoring_batches(ids, targets):
            source = batch_source(batch)
            longest = max(len(targets[number]) for number in numbers)
            width = min(1 << (longest - 1).bit_length(), self.max_length + 1)
            target = np.full((len(source), width), PAD, np.int32)
            for row, number in enumerate(numbers):
                target[row, : len(targets[number])] = targets[number]
            force, batch = self.programs.kept("force", self.mesh.size), (source, target)
            log_probs, weights = self.evaluator.run(force, tuple(params), *batch, with_attention=with_attention)
            check_outputs(log_probs)
            real = np.reshape(source_mask(source, self.reduction), (len(source), -1))
            for row, number in enumerate(numbers):
                length = len(targets[number])
                results[number] = Scored(
                    self.source_pieces(self._example(ids[number]), unknown[number]),
                    target_vocab.pieces(targets[number], unknown[number]),
                    [float(value) for value in log_probs[row, :length]],
                    weights[row, :length][:, real[row] if with_attention else slice(None)],
                )
        return results

    def score_given(
        self, params: Sequence[Any], lines: Sequence[Line], with_attention: bool = False
    ) -> list[list[Hypothesis]]:
        """Return the given translation of each line as its only hypothesis, with its log-probability as the score."""
        limit = min(LONGEST * self.config.data.max_length, self.max_length)
        texts = slice(0 if self.reader.only_text else 1, 2)
        for line in lines:
            for text, vocab in [*zip((line.text, line.translation), self.vocabularies, strict=True)][texts]:
                if len(text) > limit and (count := len(vocab.encode(text))) > limit:
                    raise UserError(
                        f"{line.location}a text of {count:,} pieces is too long to be scored; at most {limit:,} are "
                        "possible"
                    )
        translations = [line.translation for line in lines]
        scored = self.score(params, lines, translations, with_attention)
        return [
            [Hypothesis(text, sum(one.log_probs), one.pieces[:-1], [], one)]
            for text, one in zip(translations, scored, strict=True)
        ]

    def add_attention(
        self,
        params: Sequence[Any],
        lines: Sequence[Line],
        hypotheses: list[list[Hypothesis]],
        replace_unknown: bool = False,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each line with log-probabilities and attention weights.

        replace_unknown: <unk> becomes the source word with the highest attention weight; for vocabularies of words.
        Raises UserError if a model has no attention.
        """
        self.check_attention()
        texts = [line.text for line, group in zip(lines, hypotheses, strict=True) for _ in group]
        scored = iter(
            self.score(params, texts, [one.ids for group in hypotheses for one in group], with_attention=True)
        )
        complete = [[one._replace(scored=next(scored)) for one in group] for group in hypotheses]
        if not replace_unknown:
            return complete
        return [[_replace_unknown(line, one) for one in group] for line, group in zip(lines, complete, strict=True)]

    def padded_length(self, line: Line) -> int:
        """Return the length in pieces to which `translate` pads a line, or the first part of a long one."""
        return padded_length(self._example(self._parts(line)[0].source), self.reader)

    def check_attention(self) -> None:
        """Raise UserError if a model has no attention."""
        if any(getattr(model, "attention", "") == "none" for model in self.models):
            raise UserError(
                "a model without attention gives no alignment, cannot replace unknown words and has no coverage penalty"
            )

    # Parts and batches

    def encode_source(self, text: str, unknown: list[str], location: str = "") -> Any:
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

    def source_pieces(self, example: Any, unknown: list[str]) -> list[str]:
        """Return the pieces of ids with EOS after each source; of rows, the numbers of the encoder's states, from 0."""
        text_pieces = functools.partial(self.vocabularies[0].pieces, unknown=unknown)
        return self.reader.pieces(example, text_pieces, self.reduction)

    def _example(self, source: Any) -> Any:
        """What `encode_source` returned, with the last EOS."""
        return [*source, EOS] if self.reader.only_text else source

    def _parts(self, line: Line) -> list[_Part]:
        """The ids of a line, or of its parts."""
        source_vocab, target_vocab = self.vocabularies
        texts = [line.text]
        if self.num_sources == 1 and self.reader.only_text and not line.prefix and not line.phrases:
            texts = split_long(line.text, source_vocab.encode, self.config.data.max_length)
        parts = []
        for text in texts:
            unknown = source_vocab.unknown(text, self.num_unknown)
            required = [line.prefix, *line.phrases]
            ids = [target_vocab.encode(one, unknown=unknown) for one in required]
            for one, pieces in zip(required, ids, strict=True):
                if UNK in pieces:
                    raise UserError(f"{line.location}{one!r} contains text that the target vocabulary lacks")
            source = self.encode_source(text, unknown, line.source_location)
            phrases = [pieces for pieces in ids[1:] if pieces]
            seed, example = zlib.crc32(text.encode("utf-8", "surrogatepass")), self._example(source)
            length, empty = int(self.reader.lengths(example).max()), self.reader.empty(example)
            parts.append(_Part(source, length, empty, unknown, ids[0], phrases, seed))
        return parts

    def _batch_tokens(self) -> int:
        """Tokens of a batch, before it is divided by the width of the search."""
        most = self.config.eval.batch_tokens
        return min(most, platforms.current().translation_batch_tokens or most)

    def _batches(self, ids: Any, kinds: Sequence[Any], budget: int, width: int) -> Any:
        # A single hypothesis would be a vector, whose products are rounded differently than those of matrices.
        multiple_of = self.evaluator.row_shards * (2 if width == 1 else 1)
        return decoding_batches(ids, batch_tokens=budget, multiple_of=multiple_of, reader=self.reader, kinds=kinds)

    def _scoring_batches(self, ids: Any, targets: Sequence[Sequence[int]]) -> Iterator[Any]:
        """Yield the numbers and the batch of sources to score together; those of long targets are alone."""
        longest = self.config.data.max_length
        kinds = [number if len(target) > longest else None for number, target in enumerate(targets)]
        yield from self._batches(ids, kinds, self.config.eval.batch_tokens, 1)

    def _decode(
        self, params: Sequence[Any], source: Source, parts: list[_Part], method: DecodingMethod, limit: _LengthLimit
    ) -> list[list[Hypothesis]]:
        """Decode one batch; the rows of `source` after the parts are padding."""
        placed, max_length = self._place(source, parts, limit)
        large = self._check_size(params, placed, method, max_length)
        decode = self.programs.decode if large else self.programs.kept("decode", self.mesh.size)
        outputs = decode(tuple(params), *placed, method=method, max_length=max_length)
        tokens, scores = self.evaluator.fetch(outputs)  # in one transfer
        return self._hypotheses(tokens, scores, parts, method)

    def _place(self, source: Source, parts: list[_Part], limit: _LengthLimit) -> tuple[Any, int]:
        """The source, requirements and seeds of one batch on the devices, and the longest length."""
        part_limits = [limit.of(part) for part in parts]
        max_length = max(limit.of_length(source.shape[-1]), *part_limits)
        prefix: Any = None
        phrases = None
        if any(part.prefix for part in parts):
            rows = np.full((len(source), max_length), PAD, np.int32)
            for row, part in zip(rows, parts, strict=False):
                row[: len(part.prefix)] = part.prefix
            prefix = rows
        if any(part.phrases for part in parts):
            padding: list[list[list[int]]] = [[]] * (len(source) - len(parts))
            phrases = Phrases.of([part.phrases for part in parts] + padding)
        unused = [0] * (len(source) - len(parts))
        limits: Any = np.array(part_limits + unused, np.int32)
        seeds = np.array([part.seed for part in parts] + unused, np.uint32)
        # NumPy arrays, since `jnp.asarray` compiles a program.
        return self.evaluator.place((source, SearchRequest(limits, prefix, phrases), seeds)), max_length

    def _hypotheses(
        self, tokens: np.ndarray, scores: np.ndarray, parts: list[_Part], method: DecodingMethod
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each part, from tokens int[B, n, T] and scores float[B, n]."""
        check_outputs(scores)
        return [
            [
                self._hypothesis(ids, score, part.unknown)
                for ids, score in zip(*row, strict=True)
                if score > IMPOSSIBLE / 2 or method.num_results == 1
            ]
            for part, *row in zip(parts, tokens, scores, strict=False)
        ]

    def _check_size(self, params: Sequence[Any], placed: Any, method: DecodingMethod, max_length: int) -> bool:
        """Return whether a batch is large; warn that it takes long, or raise UserError if memory does not suffice.

        placed: the batch, beginning with the source. A first estimate needs no compilation; the compiler knows better.
        """
        rows = len(placed[0])
        if rows * method.width * max_length < ESTIMATED:
            return False
        size = f"{rows} x {method.width:,} hypotheses of up to {max_length:,} pieces"
        options: dict[str, Any] = {"method": method, "max_length": max_length}
        _check_memory(size, self.programs.decoding_bytes(tuple(params), placed[0], **options) / self.mesh.size)
        program = self.programs.decode.lower(tuple(params), *placed, **options).compile()
        if memory := program.memory_analysis():  # some devices do not report it
            _check_memory(size, memory.temp_size_in_bytes + memory.output_size_in_bytes)
        warnings.warn(f"{size} may take minutes; to be faster, lower {CHANGES}", stacklevel=2)
        return True

    def _hypothesis(self, tokens: np.ndarray, score: float, unknown: list[str]) -> Hypothesis:
        vocab = self.vocabularies[1]
        ids = [int(piece) for piece in tokens if piece not in (PAD, EOS)]
        return Hypothesis(vocab.decode(ids, unknown), float(score), vocab.pieces(ids, unknown), ids)


def _check_memory(size: str, needed: float) -> None:
    """Raise UserError if more memory is needed than is free."""
    free = platforms.free_memory()
    if needed > free:
        raise UserError(
            f"{size} need about {needed / 2**30:.1f} GiB, but {free / 2**30:.1f} GiB are free: lower {CHANGES}"
        )


def _check_constraints(line: Line, part: _Part, method: DecodingMethod, limit: int) -> None:
    """Raise UserError if a translation cannot meet the constraints of a line."""
    needed = len(part.prefix) + sum(map(len, part.phrases)) + 1
    if (line.prefix or line.phrases) and needed > limit:
        raise UserError(
            f"{line.location}the prefix and constraints need {needed} pieces, end of sentence included, but the limit "
            f"is {limit}: shorten them, or raise --max_length_ratio or --max_length_offset"
        )
    if line.phrases:
        try:
            method.check_phrases()
        except ValueError as error:
            raise UserError(f"{line.location}{error}") from None


def _replace_unknown(line: Line, hypothesis: Hypothesis) -> Hypothesis:
    """Replace each <unk> by the source word with the highest attention weight."""
    if UNK not in hypothesis.ids:
        return hypothesis
    assert hypothesis.scored is not None
    source_words = line.text.split()
    aligned = hypothesis.scored.attention[:, : len(source_words)].argmax(axis=1)
    words = [
        source_words[position] if number == UNK else piece.replace("▁", "")
        for number, position, piece in zip(hypothesis.ids, aligned, hypothesis.pieces, strict=False)
    ]
    return hypothesis._replace(text=" ".join(words))
