import numpy as np
import pytest
import scipy.stats

from metrics_jax import BLEU, ChrF
from metrics_jax.embedding import forward
from nmt_jax.data.readers.judgements import Columns
from nmt_jax.errors import UserError
from nmt_jax.judging.evaluation import evaluate_metrics
from nmt_jax.judging.judgement_files import Protocol
from tests.fixtures.encoder_folders import write_folder
from tests.fixtures.judged_texts import rows, write


def test_systems_are_compared_by_corpus_scores(tmp_path):
    table = write(tmp_path / "a.tsv", rows())
    columns = Columns(human=("human",), system="system", item="item")
    column = evaluate_metrics([table], columns, Protocol(level="system"), metrics=["bleu", "chrf"]).columns[0]
    by_system = {}
    for system, _, *values in rows():
        by_system.setdefault(system, []).append(values)
    texts = [list(zip(*values, strict=True)) for values in by_system.values()]
    human_means = [np.mean(human) for _, _, human in texts]
    for metric, value in zip((BLEU(), ChrF()), column.values, strict=True):
        corpora = [metric(hypotheses, references).score for hypotheses, references, _ in texts]
        assert value == pytest.approx(scipy.stats.pearsonr(corpora, human_means).statistic, abs=1e-9)


def test_metrics_share_encoded_texts(tmp_path, monkeypatch):
    path = write(tmp_path / "a.tsv", rows(2, 4))
    seen = []
    usual = forward.Forward.__call__
    monkeypatch.setattr(
        forward.Forward, "__call__", lambda self, texts, batch: (seen.append(len(texts)), usual(self, texts, batch))[1]
    )
    encoder = write_folder(tmp_path / "encoder")
    columns = Columns(human=("human",))
    metrics = ["bertscore|layer:1|long:window", "yisi1|layer:1|long:window"]
    found = evaluate_metrics([path], columns, Protocol(), metrics=metrics, encoder=str(encoder)).columns
    assert np.isfinite(found[0].values).all()
    assert seen[0] > 0
    assert sum(seen[1:]) == 0


@pytest.mark.parametrize(
    "named",
    [{"metrics": ["bleu"], "scores": ["-bleu"]}, {"metrics": ["chrf", "bleu", "chrf"]}],
)
def test_metrics_have_different_names(tmp_path, named):
    with pytest.raises(UserError, match=r"two metrics have the name (bleu|chrf): remove or rename one"):
        evaluate_metrics([write(tmp_path / "a.tsv", rows())], Columns(human=("human",)), Protocol(), **named)


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        (Protocol(("pearson", "tau")), "there is no 'tau'"),
        (Protocol(("spa",)), "use level system"),
        (Protocol(level="system"), "pass --system=COLUMN"),
        (Protocol(grouping="item"), "pass --item=COLUMN"),
    ],
)
def test_impossible_coefficients_are_found_before_scoring(tmp_path, monkeypatch, protocol, words):
    monkeypatch.setattr(BLEU, "statistics", None)
    table = write(tmp_path / "a.tsv", rows())
    with pytest.raises(UserError, match=words):
        evaluate_metrics([table], Columns(human=("human",)), protocol, metrics=["bleu"])
