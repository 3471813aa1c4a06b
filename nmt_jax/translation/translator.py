"""Text into text with one trained model, or with several as one: batches, searches, samples and scores."""

import functools
import itertools
import math
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from nmt_jax import platforms
from nmt_jax.data.batching.prediction import decoding_batches
from nmt_jax.data.lines import split_long
from nmt_jax.data.readers import sources
from nmt_jax.data.vocabulary.vocab import BOS, EOS, PAD, UNK, Vocab
from nmt_jax.decoding.beam_search import SearchRequest
from nmt_jax.decoding.constraints import Phrases
from nmt_jax.decoding.next_logits import IMPOSSIBLE
from nmt_jax.decoding.sampling import Sampling
from nmt_jax.decoding.search import Search
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.translation.programs import Programs


class Line(NamedTuple):
    """What is to be translated, and what is asked of its translation."""

    text: str
    prefix: str = ""  # it begins so
    phrases: tuple[str, ...] = ()  # it contains them
    where: str = ""  # that stands there, `FILE:LINE: `
    given: str = ""  # or it is given whole, to be judged


class Scored(NamedTuple):
    """A given translation as a model sees it."""

    source_pieces: list[str]  # S of them, an end of sentence after each source
    pieces: list[str]  # T of them, the last the end of the sentence
    log_probs: list[float]  # of each
    attention: np.ndarray  # float32[T, S]: what each step looked at, the mean of models; S = 0 without attention


class Hypothesis(NamedTuple):
    """One translation: its text, its score as it was ranked (of a sample: its log-probability), and its pieces."""

    text: str
    score: float
    pieces: list[str]
    ids: list[int]
    scored: Scored | None = None


class _Part(NamedTuple):
    """A line, or a part of a long one, as piece numbers."""

    source: list[int]
    unknown: list[str]
    prefix: list[int]
    phrases: list[list[int]]
    seed: int


def _join(parts: list[list[Hypothesis]]) -> list[Hypothesis]:
    """The n-th best hypotheses of the parts of a line as the n-th best of the line."""
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
    """Models of the same vocabularies, that translate together; their parameters are given to each call.

    say_unknown: whether a translation may contain unknown words, <unk>.
    """

    def __init__(
        self,
        config: ConfigDict,
        models: Sequence[Any],
        vocabularies: tuple[Vocab, Vocab],
        mesh: Mesh,
        say_unknown: bool = False,
    ) -> None:
        self.config = config
        self.models = tuple(models)
        self.vocabularies = vocabularies
        self.mesh = mesh
        never = (PAD, BOS) if say_unknown else (PAD, UNK, BOS)
        self.programs = Programs(models, never, halve=mesh.size == 1)
        self.num_sources = len(sources.languages(config.data.source))
        self.num_unknown = max(getattr(model, "num_unknown", 0) for model in models)

    def search(self, **options: Any) -> Search:
        """The search that `config.decode` describes, but for these options; None stands for what it says."""
        decode = self.config.decode
        given = {name: value for name, value in options.items() if value is not None}
        try:
            return Search(**({"beam_size": decode.beam_size, "length_penalty": decode.length_penalty} | given))
        except ValueError as error:
            raise UserError(str(error)) from None

    # Text in, text out

    def translate(
        self,
        params: Sequence[Any],
        lines: Sequence[str | Line],
        how: Search | Sampling,
        *,
        max_length_ratio: float | None = None,
        max_length_offset: int | None = None,
        batch_tokens: int | None = None,
    ) -> list[list[Hypothesis]]:
        """Lines -> for each, in their order, the n best hypotheses or samples; an empty line gives empty ones.

        params: those of each model. What is not given is taken from `config.decode`. What comes of a line hangs on the
        line (a sample on the seed, too), never on its neighbours: a line that comes twice has the same samples.
        A line of `data.max_length` pieces or more, longer than anything the models were trained on, is translated in
        parts, if it has one source and nothing is asked of it. UserError for what cannot be asked.
        """
        decode = self.config.decode
        ratio = decode.max_length_ratio if max_length_ratio is None else max_length_ratio
        offset = decode.max_length_offset if max_length_offset is None else max_length_offset
        width = how.beam_size if isinstance(how, Search) else how.num_samples
        count = how.n_best if isinstance(how, Search) else width
        asked = [line if isinstance(line, Line) else Line(line) for line in lines]
        split = [self._parts(line) for line in asked]
        parts = list(itertools.chain.from_iterable(split))

        def limit(part: _Part) -> int:
            # It hangs on the sentence's own length, so that a translation never depends on its neighbours.
            most = math.ceil(ratio * sources.lengths([*part.source, EOS]).max()) + offset
            return max(most, how.min_length + 1) if isinstance(how, Search) else most

        for line, own in zip(asked, split, strict=True):
            needed, room = len(own[0].prefix) + sum(map(len, own[0].phrases)) + 1, limit(own[0])
            if (line.prefix or line.phrases) and needed > room:
                raise UserError(
                    f"{line.where}what is asked of the translation has {needed} pieces, its end among them, but it may "
                    f"have {room}: ask for less, or raise --max_length_ratio or --max_length_offset"
                )
            if line.phrases and not isinstance(how, Search):
                raise UserError(f"{line.where}constraints are met by a beam search, not by sampling")
        filled = [number for number, part in enumerate(parts) if any(piece != EOS for piece in part.source)]
        results = [[Hypothesis("", 0.0, [], [])] * count for _ in parts]
        most = self.config.eval.batch_tokens
        most = min(most, platforms.current().translation_batch_tokens or most)
        budget = batch_tokens or max(most // width, 1)
        for numbers, batch in self._batches([parts[number].source for number in filled], budget):
            source = batch["source"]
            own = [parts[filled[number]] for number in numbers]
            max_length = max(math.ceil(ratio * source.shape[-1]) + offset, *map(limit, own))
            tokens, scores = self._run(params, source, own, [limit(part) for part in own], how, max_length)
            for row, (number, part) in enumerate(zip(numbers, own, strict=True)):
                results[filled[number]] = [
                    self._hypothesis(best, score, part.unknown)
                    for best, score in zip(tokens[row], scores[row], strict=True)
                    if score > IMPOSSIBLE / 2 or count == 1
                ]
        translated = iter(results)
        return [_join([next(translated) for _ in own]) for own in split]

    def score(
        self,
        params: Sequence[Any],
        lines: Sequence[str],
        translations: Sequence[str | Sequence[int]],
        watched: bool = False,
    ) -> list[Scored]:
        """Lines and a translation of each, as text or piece numbers -> what the models together think of it.

        watched: with what they look at.
        """
        source_vocab, target_vocab = self.vocabularies
        unknown = [source_vocab.unknown(line, self.num_unknown) for line in lines]
        ids = [
            sources.encode(line, self.num_sources, functools.partial(source_vocab.encode, unknown=words))
            for line, words in zip(lines, unknown, strict=True)
        ]
        targets = [
            [*(target_vocab.encode(given, words) if isinstance(given, str) else given), EOS]
            for given, words in zip(translations, unknown, strict=True)
        ]
        results: list[Any] = [None] * len(lines)
        for numbers, batch in self._batches(ids, self.config.eval.batch_tokens):
            source = batch["source"]
            longest = max(len(targets[number]) for number in numbers)
            target = np.full((len(source), 1 << (longest - 1).bit_length()), PAD, np.int32)
            for row, number in enumerate(numbers):
                target[row, : len(targets[number])] = targets[number]
            found = self.programs.force(
                tuple(params), *sharding.shard_batch((source, target), self.mesh), watched=watched
            )
            log_probs, weights = jax.device_get(found)
            real = source.reshape(len(source), -1) != PAD
            for row, number in enumerate(numbers):
                length = len(targets[number])
                results[number] = Scored(
                    source_vocab.pieces([*ids[number], EOS], unknown[number]),
                    target_vocab.pieces(targets[number], unknown[number]),
                    [float(value) for value in log_probs[row, :length]],
                    weights[row, :length][:, real[row] if watched else slice(None)],
                )
        return results

    def judge(self, params: Sequence[Any], lines: Sequence[Line], watched: bool = False) -> list[list[Hypothesis]]:
        """The given translation of each line as its only hypothesis; its score is the log-probability, with its end."""
        scored = self.score(params, [line.text for line in lines], [line.given for line in lines], watched)
        return [
            [Hypothesis(line.given, sum(one.log_probs), one.pieces[:-1], [], one)]
            for line, one in zip(lines, scored, strict=True)
        ]

    def watch(
        self, params: Sequence[Any], lines: Sequence[Line], found: list[list[Hypothesis]], replace_unknown: bool = False
    ) -> list[list[Hypothesis]]:
        """The hypotheses of each line with how the models see them.

        replace_unknown: in vocabularies of words <unk> is the word of the line that it looks at most.
        """
        flat = [(line, hypothesis) for line, own in zip(lines, found, strict=True) for hypothesis in own]
        texts, ids = [line.text for line, _ in flat], [hypothesis.ids for _, hypothesis in flat]
        attends = all(getattr(model, "attention", "") != "none" for model in self.models)
        if not attends:
            raise UserError("a model without attention looks at nothing: no alignment, no unknown words replaced")
        scored = iter(self.score(params, texts, ids, watched=True))

        def watched(line: Line, hypothesis: Hypothesis) -> Hypothesis:
            hypothesis = hypothesis._replace(scored=next(scored))
            if not replace_unknown or UNK not in hypothesis.ids:
                return hypothesis
            words, scored_now = line.text.split(), hypothesis.scored
            assert scored_now is not None
            looked_at = [words[place] for place in scored_now.attention[:, : len(words)].argmax(axis=1)]
            said = [
                word if piece == UNK else own.replace("▁", "")
                for piece, word, own in zip(hypothesis.ids, looked_at, hypothesis.pieces, strict=False)
            ]
            return hypothesis._replace(text=" ".join(said))

        return [[watched(line, one) for one in own] for line, own in zip(lines, found, strict=True)]

    def _parts(self, line: Line) -> list[_Part]:
        """The pieces of a line, or of its parts."""
        source_vocab, target_vocab = self.vocabularies
        texts = [line.text]
        if self.num_sources == 1 and not line.prefix and not line.phrases:
            texts = split_long(line.text, source_vocab.encode, self.config.data.max_length)
        parts = []
        for text in texts:
            unknown = source_vocab.unknown(text, self.num_unknown)
            encode = functools.partial(target_vocab.encode, unknown=unknown)
            wanted = [line.prefix, *line.phrases]
            ids = [encode(one) for one in wanted]
            for one, pieces in zip(wanted, ids, strict=True):
                if UNK in pieces:
                    raise UserError(f"{line.where}{one!r} cannot be said: the vocabulary lacks some of it")
            parts.append(
                _Part(
                    sources.encode(text, self.num_sources, functools.partial(source_vocab.encode, unknown=unknown)),
                    unknown,
                    ids[0],
                    [pieces for pieces in ids[1:] if pieces],
                    zlib.crc32(text.encode("utf-8", "surrogatepass")),
                )
            )
        return parts

    def _batches(self, ids: Sequence[Sequence[int]], budget: int) -> Any:
        data = self.mesh.shape["data"]
        return decoding_batches(ids, batch_tokens=budget, multiple_of=data, num_sources=self.num_sources)

    def _run(
        self,
        params: Sequence[Any],
        source: np.ndarray,
        parts: list[_Part],
        limits: list[int],
        how: Search | Sampling,
        max_length: int,
    ) -> tuple[np.ndarray, np.ndarray]:
        """One batch: tokens int[B, n, T] and scores [B, n], moved to the host once."""
        empty: list[list[list[int]]] = [[]] * (len(source) - len(parts))
        prefix = phrases = None
        if any(part.prefix for part in parts):
            prefix = np.full((len(source), max_length), PAD, np.int32)
            for row, part in zip(prefix, parts, strict=False):
                row[: len(part.prefix)] = part.prefix
        if any(part.phrases for part in parts):
            phrases = Phrases.of([part.phrases for part in parts] + empty)
        room = np.zeros(len(source), np.int32)
        room[: len(limits)] = limits
        asked = SearchRequest(jnp.asarray(room), None if prefix is None else jnp.asarray(prefix), phrases)
        source, asked = sharding.shard_batch((source, asked), self.mesh)
        params = tuple(params)
        if isinstance(how, Search):
            found = self.programs.search(params, source, asked, search=how, max_length=max_length)
        else:
            seeds = np.zeros(len(room), np.uint32)
            seeds[: len(parts)] = [part.seed for part in parts]
            (seeds,) = sharding.shard_batch((seeds,), self.mesh)
            found = self.programs.sample(params, source, asked, seeds, sampling=how, max_length=max_length)
        tokens, scores = jax.device_get(found)
        return tokens, scores

    def _hypothesis(self, tokens: np.ndarray, score: float, unknown: list[str]) -> Hypothesis:
        vocab = self.vocabularies[1]
        ids = [int(piece) for piece in tokens if piece not in (PAD, EOS)]
        return Hypothesis(vocab.decode(ids, unknown), float(score), vocab.pieces(ids, unknown), ids)
