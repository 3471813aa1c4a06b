"""Translation of text with one trained model or an ensemble: batches, lengths, memory and decoding."""

import itertools
import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt_jax import platforms
from nmt_jax.checkpoints.finite import check_outputs
from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.decoding.beam_search import SearchRequest
from nmt_jax.decoding.constraints import Phrases
from nmt_jax.decoding.method import DecodingMethod, Search
from nmt_jax.decoding.next_logits import IMPOSSIBLE
from nmt_jax.decoding.stepwise import Method
from nmt_jax.errors import UserError
from nmt_jax.models.layers.features import Source, batch_source
from nmt_jax.translation.encoding import Part
from nmt_jax.translation.requests import Hypothesis, Line, as_lines
from nmt_jax.translation.scorer import Scorer

ESTIMATED = 1 << 16  # pieces of all hypotheses of a batch, from which on its memory is estimated first
CHANGES = "--beam_size or --num_samples, or the length by --max_length_ratio, --max_length_offset and --min_length"
STEPS = 4  # of decoding, between two looks at the hypotheses
EMPTY = Hypothesis("", 0.0, [], [])


class _LengthLimit(NamedTuple):
    """The longest translation, EOS included: a function of the length of the source alone."""

    ratio: float
    offset: int
    minimum: int
    maximum: int

    def of_length(self, source_length: int) -> int:
        return min(max(math.ceil(self.ratio * source_length) + self.offset, 1), self.maximum)

    def of(self, part: Part) -> int:
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


class Translator(Scorer):
    """Translates with one model, or with several models of the same vocabularies as an ensemble.

    A source that is not text is the path of a file, and its rows of features count as pieces.
    """

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
        split = [self.encoder.parts(line) for line in requests]
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
        parts = self.encoder.parts(line)
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

    def _batch_tokens(self) -> int:
        """Tokens of a batch, before it is divided by the width of the search."""
        most = self.config.eval.batch_tokens
        return min(most, platforms.current().translation_batch_tokens or most)

    def _decode(
        self, params: Sequence[Any], source: Source, parts: list[Part], method: DecodingMethod, limit: _LengthLimit
    ) -> list[list[Hypothesis]]:
        """Decode one batch; the rows of `source` after the parts are padding."""
        placed, max_length = self._place(source, parts, limit)
        large = self._check_size(params, placed, method, max_length)
        decode = self.programs.decode if large else self.programs.kept("decode", self.mesh.size)
        outputs = decode(tuple(params), *placed, method=method, max_length=max_length)
        tokens, scores = self.evaluator.fetch(outputs)  # in one transfer
        return self._hypotheses(tokens, scores, parts, method)

    def _place(self, source: Source, parts: list[Part], limit: _LengthLimit) -> tuple[Any, int]:
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
        self, tokens: np.ndarray, scores: np.ndarray, parts: list[Part], method: DecodingMethod
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


def _check_constraints(line: Line, part: Part, method: DecodingMethod, limit: int) -> None:
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
