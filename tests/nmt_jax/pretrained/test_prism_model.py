"""Prism with a workdir: equal to what the translator says about given translations."""

import numpy as np
import pytest

from metrics_jax import Prism
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import open_metric
from nmt_jax.pretrained.prism_model import load_prism
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

HYPOTHESES = ["der alte Mann schläft .", "", "ein Hund", "das Haus ist rot und alt ."]
REFERENCES = ["the old man sleeps .", "a dog", "", "the house is red ."]


@pytest.mark.slow
def test_the_score_is_the_mean_of_both_directions(translator_workdir):
    """Each direction equals what `nmt-jax translate --given` computes."""
    task, params = open_trained(Workdir(translator_workdir), "translate")

    def means(sources, targets):
        return np.array([np.mean(one.log_probs) for one in task.translator.score((params,), sources, targets)])

    precision, recall = means(REFERENCES, HYPOTHESES), means(HYPOTHESES, REFERENCES)
    for direction, expected in (("precision", precision), ("recall", recall), ("f", (precision + recall) / 2)):
        metric = open_metric(f"prism|direction:{direction}", prism=str(translator_workdir))
        np.testing.assert_allclose(metric(HYPOTHESES, REFERENCES).segments, expected, atol=1e-5)


def test_signature_and_independence(translator_workdir):
    metric = Prism(load_prism(translator_workdir))
    assert metric.signature.startswith(f"prism|estimator:{metric.estimator.fingerprint[:16]}.float32|direction:f")
    assert Prism(load_prism(translator_workdir, "bfloat16")).signature != metric.signature
    whole = metric(HYPOTHESES, REFERENCES).segments
    assert metric(HYPOTHESES[3:], REFERENCES[3:]).score == whole[3]


def test_mistakes(language_model_workdir):
    with pytest.raises(UserError, match="--prism needs 'translate'"):
        load_prism(language_model_workdir)
    with pytest.raises(UserError, match="prism needs a trained model: --prism=PLACE, a workdir"):
        open_metric("prism")
