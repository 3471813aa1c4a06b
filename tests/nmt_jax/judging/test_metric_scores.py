import numpy as np
import pytest

from metrics_jax import BLEU, ChrF
from metrics_jax.api import AdditiveMetric
from metrics_jax.embedding.contextual import TextTooLongError
from nmt_jax.data.readers.judgements import Judged
from nmt_jax.distributed.tables import Tables
from nmt_jax.errors import UserError
from nmt_jax.judging.metric_scores import JudgedTexts, contributions
from tests.fixtures.judged_texts import rows


def scores(name, metric, judged):
    tables, texts = Tables(), JudgedTexts(judged)
    texts.add_table(tables, name, metric)
    return texts.scores(name, tables.collect(), of_systems=False)


def test_contributions_average_to_the_corpus_score():
    texts = list(rows(1, 12))
    hypotheses, references = [row[2] for row in texts], [row[3] for row in texts]
    for metric in (BLEU(), ChrF()):
        statistics = metric.statistics(hypotheses, references)
        assert contributions(metric, statistics).mean() == pytest.approx(metric(hypotheses, references).score)
        assert contributions(metric, statistics[:1]) == pytest.approx(metric(hypotheses[:1], references[:1]).score)

    class Mean:
        def score(self, statistics):
            return statistics[..., 0] / statistics[..., 1]

    values = np.random.default_rng(0).random(9)
    np.testing.assert_allclose(contributions(Mean(), np.stack([values, np.ones(9)], axis=1)), values)


def test_metrics_are_fitted_to_distinct_references():
    class LengthMetric(AdditiveMetric):
        name, segments_per_call, higher_is_better = "seen", 2, False

        def fitted(self, references):
            assert references == [("r",), ("s",)]
            return self

        def statistics(self, hypotheses, references):
            assert len(hypotheses) <= 2
            return np.array([[len(text), 1.0] for text in hypotheses])

        def score(self, statistics):
            return statistics[..., 0] / statistics[..., 1]

    judged = Judged("n", ["aaa", "b", "aaa", "cc"], [["r"], ["s"], ["r"], ["r"]], list("1234"), {}, {}, None, None, {})
    assert scores("seen", LengthMetric(), judged).tolist() == [-3, -1, -3, -2]


def test_a_text_that_is_too_long_is_located_in_every_block():
    class Short(AdditiveMetric):
        name, segments_per_call, higher_is_better = "short", 1, True

        def fitted(self, references):
            return self

        def statistics(self, hypotheses, references):
            if hypotheses == ["bbb"]:
                raise TextTooLongError(0, "3 tokens", 2, "long:truncate")
            return np.ones((len(hypotheses), 2))

    judged = Judged("n", ["a", "a", "bbb"], [["r"], ["r"], ["r"]], ["n:1", "n:2", "n:3"], {}, {}, None, None, {})
    with pytest.raises(UserError, match=r"^n:3: this text or its reference is too long"):
        scores("short", Short(), judged)
