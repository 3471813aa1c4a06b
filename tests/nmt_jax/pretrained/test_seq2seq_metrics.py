"""MetricX and BARTScore: equal to the models of transformers with random weights."""

import numpy as np
import pytest

from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import open_metric
from tests.fixtures import estimator_folders

HYPOTHESES, REFERENCES, SOURCES = estimator_folders.texts()


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {name: str(estimator_folders.write(folder / name, name)) for name in ("metricx", "bartscore")}


def scored(metric):
    given = [SOURCES] if "sources" in metric.needs else []
    return metric(HYPOTHESES, REFERENCES, *given).segments


@pytest.mark.parametrize(
    ("spec", "flag"),
    [
        ("metricx23", "metricx23"),
        pytest.param("metricx24", "metricx24", marks=pytest.mark.slow),
        pytest.param("metricx23qe", "metricx23qe", marks=pytest.mark.slow),
        ("metricx24qe", "metricx24"),
    ],
)
@pytest.mark.slow
def test_metricx_equals_the_reference(spec, flag, folders):
    metric = open_metric(spec, sources=True, **{flag: folders["metricx"]})
    expected = np.array(estimator_folders.golden("metricx")[spec])
    np.testing.assert_allclose(scored(metric), np.clip(expected, 0, 25), atol=1e-5, rtol=0)
    assert not metric.higher_is_better


def test_bartscore_equals_the_reference(folders):
    """With texts that are too long for the model, and an empty one."""
    stored = {
        name: np.array(found) for name, found in estimator_folders.golden("bartscore").items() if name != "shapes"
    }
    stored["f"] = (stored["precision"] + stored["recall"]) / 2
    for direction in ("precision", "recall", "f"):
        metric = open_metric(f"bartscore|direction:{direction}", bartscore=folders["bartscore"])
        np.testing.assert_allclose(scored(metric), stored[direction], atol=1e-5, rtol=0)
    assert metric(HYPOTHESES, REFERENCES).parts == {"long": 2.0}
    metric = open_metric("bartscore_source", sources=True, bartscore=folders["bartscore"])
    np.testing.assert_allclose(scored(metric), stored["source"], atol=1e-5, rtol=0)


def test_a_score_is_independent_of_other_segments(folders):
    for spec, flag in (("metricx23", "metricx"), ("bartscore", "bartscore")):
        metric = open_metric(spec, **{spec: folders[flag]})
        whole = metric(HYPOTHESES, REFERENCES).segments
        for k in (0, 13, 14):
            assert metric([HYPOTHESES[k]], [REFERENCES[k]]).score == whole[k]
        np.testing.assert_array_equal(metric(HYPOTHESES[::-1], REFERENCES[::-1]).segments[::-1], whole)


def test_several_references(folders):
    """The best counts: the least error, the largest probability."""
    groups = list(zip(REFERENCES, SOURCES, strict=True))
    for spec, flag, best in (("metricx23", "metricx", np.minimum), ("bartscore", "bartscore", np.maximum)):
        metric = open_metric(spec, **{spec: folders[flag]})
        one, other = (metric(HYPOTHESES, texts).segments for texts in (REFERENCES, SOURCES))
        np.testing.assert_array_equal(metric(HYPOTHESES, groups).segments, best(one, other))
    mean = open_metric("metricx23|multi_reference:mean", metricx23=folders["metricx"])
    both = [metric(HYPOTHESES, texts).segments for metric in (mean,) for texts in (REFERENCES, SOURCES)]
    np.testing.assert_allclose(mean(HYPOTHESES, groups).segments, np.mean(both, axis=0), atol=1e-12)


def test_mistakes(folders):
    for spec, options, words in (
        ("metricx23", {}, "needs a trained model: --metricx23=PLACE"),
        ("metricx24qe", {"sources": True}, "needs a trained model: --metricx24=PLACE"),
        ("bartscore_source", {"bartscore": folders["bartscore"]}, "needs the source of each text"),
        ("metricx23", {"metricx23": folders["bartscore"]}, "a bart model without the piece <extra_id_10>"),
        ("bartscore|direction:both", {"bartscore": folders["bartscore"]}, "direction='both': choose precision, recall"),
        (
            "metricx23|multi_reference:max",
            {"metricx23": folders["metricx"]},
            "choose min or mean",
        ),
    ):
        with pytest.raises(UserError, match=words):
            open_metric(spec, **options)
    with pytest.raises(ValueError, match="segment 14 is too long"):
        open_metric("bartscore|long:error", bartscore=folders["bartscore"])(HYPOTHESES, REFERENCES)
