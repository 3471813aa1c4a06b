"""Log-probabilities and attention weights of given translations, from one model or an ensemble."""

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from nmt_jax.checkpoints.finite import check_outputs
from nmt_jax.data.batching.prediction import decoding_batches
from nmt_jax.data.vocabulary.vocab import BOS, EOS, PAD, UNK, Vocab
from nmt_jax.distributed.evaluation import Evaluator
from nmt_jax.errors import UserError
from nmt_jax.models.layers.features import batch_source, reduction_of, source_mask
from nmt_jax.translation.encoding import LineEncoder
from nmt_jax.translation.programs import Programs
from nmt_jax.translation.requests import Hypothesis, Line, Scored, as_lines

LONGEST = 16  # translation to score, times `data.max_length`


class Scorer:
    """Scores translations with one model, or with several models of the same vocabularies as an ensemble.

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
        num_unknown = max(getattr(model, "num_unknown", 0) for model in models)
        self.encoder = LineEncoder(config.data, vocabularies, num_unknown, reduction_of(models[0]))
        learned = (model.max_positions for model in models if getattr(model, "positions", "") == "learned")
        self.max_length = min(learned, default=sys.maxsize) - 1  # of a translation, to which EOS may be added

    def score(
        self,
        params: Sequence[Any],
        lines: Sequence[str | Line],
        translations: Sequence[str | Sequence[int]],
        with_attention: bool = False,
    ) -> list[Scored]:
        """Return the log-probabilities of one translation of each line, as text or ids, optionally with attention."""
        encoder, target_vocab = self.encoder, self.vocabularies[1]
        requests = as_lines(lines)
        unknown = [encoder.unknown(line.text) for line in requests]
        ids: list[Any] = [
            encoder.source(line.text, words, line.source_location)
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
            real = np.reshape(source_mask(source, encoder.reduction), (len(source), -1))
            for row, number in enumerate(numbers):
                length = len(targets[number])
                results[number] = Scored(
                    encoder.pieces(encoder.example(ids[number]), unknown[number]),
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
        texts = slice(0 if self.encoder.reader.only_text else 1, 2)
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

    def check_attention(self) -> None:
        """Raise UserError if a model has no attention."""
        if any(getattr(model, "attention", "") == "none" for model in self.models):
            raise UserError(
                "a model without attention gives no alignment, cannot replace unknown words and has no coverage penalty"
            )

    def _batches(self, ids: Any, kinds: Sequence[Any], budget: int, width: int) -> Any:
        # A single hypothesis would be a vector, whose products are rounded differently than those of matrices.
        multiple_of = self.evaluator.row_shards * (2 if width == 1 else 1)
        return decoding_batches(
            ids, batch_tokens=budget, multiple_of=multiple_of, reader=self.encoder.reader, kinds=kinds
        )

    def _scoring_batches(self, ids: Any, targets: Sequence[Sequence[int]]) -> Iterator[Any]:
        """Yield the numbers and the batch of sources to score together; those of long targets are alone."""
        longest = self.config.data.max_length
        kinds = [number if len(target) > longest else None for number, target in enumerate(targets)]
        yield from self._batches(ids, kinds, self.config.eval.batch_tokens, 1)


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
