"""InfoLM with masked language models: equal to torchmetrics with random weights."""

import numpy as np
import pytest

from metrics_jax import Idf, InfoLM, load
from nmt_jax.errors import UserError
from nmt_jax.pretrained.masked_encoder import load_masked_encoder
from nmt_jax.pretrained.metrics import open_metric
from tests.fixtures import infolm_folders

HYPOTHESES, REFERENCES = infolm_folders.pairs()
GOLDEN = infolm_folders.golden()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return infolm_folders.write(tmp_path_factory.mktemp("bert"), "bert", GOLDEN["bert"]["shapes"])


@pytest.fixture(scope="module")
def encoder(folder):
    return load_masked_encoder(folder)


@pytest.mark.filterwarnings("ignore:.* were truncated")
@pytest.mark.parametrize("measure", list(infolm_folders.MEASURES))
def test_measures_equal_the_reference(measure, encoder):
    """The texts contain unknown words, and some are too long for the model."""
    metric = InfoLM(encoder, measure, **infolm_folders.MEASURES[measure], idf="uniform")
    expected = np.array(GOLDEN["bert"]["scores"][measure])
    expected = -expected if measure in infolm_folders.NEGATIVE else expected
    found = metric(HYPOTHESES, REFERENCES).segments
    if measure == "fisher_rao_distance":  # torchmetrics' float32 has few digits near 0
        found, expected = np.cos(found / 2), np.cos(expected / 2)
    assert np.ptp(expected) > 0.01
    np.testing.assert_allclose(found, expected, atol=5e-6, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* were truncated")
@pytest.mark.parametrize("kind", ["roberta", "distilbert", "mpnet", "albert"])
def test_heads_of_other_families(kind, tmp_path):
    found = load_masked_encoder(infolm_folders.write(tmp_path, kind, GOLDEN[kind]["shapes"]))
    metric = InfoLM(found, "l1_distance", idf="uniform")
    expected = GOLDEN[kind]["scores"]["l1_distance"]
    assert max(expected) > 0.1
    np.testing.assert_allclose(metric(HYPOTHESES, REFERENCES).segments, expected, atol=1e-5)


def test_idf_equals_the_reference(encoder):
    """torchmetrics counts the tokens of the hypotheses in all hypotheses."""
    hypotheses, references = infolm_folders.growing()
    metric = InfoLM(encoder, "l1_distance")
    counted = InfoLM(encoder, "l1_distance", hypothesis_idf=metric.count(hypotheses))
    np.testing.assert_allclose(counted(hypotheses, references).segments, GOLDEN["bert"]["idf"], atol=1e-5)
    assert (metric(hypotheses, references).segments != counted(hypotheses, references).segments).any()


def test_properties(encoder):
    """Of divergences and distances; an empty text has the uniform distribution."""
    hypotheses, references = ["a b c", "", "a", ""], ["a b c", "", "", "b b"]
    for measure, options in infolm_folders.MEASURES.items():
        segments = InfoLM(encoder, measure, **options, idf="uniform")(hypotheses, references).segments
        assert np.isfinite(segments).all()
        assert (segments >= 0).all()
        np.testing.assert_allclose(segments[:2], 0, atol=1e-6)
        assert segments[2:].min() > 1e-3


@pytest.mark.filterwarnings("ignore:.* were truncated")
def test_a_score_is_independent_of_other_segments(encoder):
    metric = InfoLM(encoder, idf=Idf.fit([[5, 6], [7]]))
    whole = metric(HYPOTHESES, REFERENCES).segments
    np.testing.assert_array_equal(metric(HYPOTHESES[::-1], REFERENCES[::-1]).segments[::-1], whole)
    for k in (0, 5, len(whole) - 1):
        assert metric([HYPOTHESES[k]], [REFERENCES[k]]).score == whole[k]
    np.testing.assert_array_equal(np.diag(metric.pairwise(HYPOTHESES, REFERENCES)), whole)
    groups = [[reference, hypothesis] for reference, hypothesis in zip(REFERENCES, HYPOTHESES, strict=True)]
    np.testing.assert_array_equal(metric(HYPOTHESES, groups).segments, 0)  # the nearest counts


def test_the_signature_recreates_the_metric(folder):
    metric = open_metric(
        "infolm|information_measure:ab_divergence|alpha:0.25|beta:0.5|idf:uniform", encoder=str(folder)
    )
    result = metric(["a b", "c"], ["a c", "c d e"])
    assert "|information_measure:ab_divergence|alpha:0.25|beta:0.5|temperature:0.25|idf:uniform|" in result.signature
    assert load(result.signature, encoder=metric.encoder)(["a b", "c"], ["a c", "c d e"]).score == result.score


def test_mistakes(folder, encoder, tmp_path):
    shapes = GOLDEN["bert"]["shapes"]
    removed = {name: None for name in shapes if name.startswith("cls.")}
    bare = infolm_folders.write(tmp_path / "bare", "bert", shapes, **removed)
    for spec, options, words in (
        ("infolm", {}, "needs a masked language model: --encoder=PLACE"),
        ("infolm", {"encoder": str(bare)}, "no tensor cls.predictions.transform.dense.weight"),
        ("infolm|information_measure:renyi_divergence", {"encoder": str(folder)}, "renyi_divergence needs alpha"),
        ("infolm|alpha:2", {"encoder": str(folder)}, "kl_divergence has no alpha"),
        ("infolm|information_measure:beta_divergence|beta:-1", {"encoder": str(folder)}, "not defined for beta=-1"),
        ("infolm|information_measure:ab_divergence|beta:1|alpha:-1", {"encoder": str(folder)}, "not defined for"),
        ("infolm|temperature:0", {"encoder": str(folder)}, "must be at least 0.01"),
        ("infolm|long:window", {"encoder": str(folder)}, "long='window' is none of truncate, error"),
    ):
        with pytest.raises(UserError, match=words):
            open_metric(spec, **options)
    with pytest.raises(ValueError, match=r"segment 0 is too long: 20 tokens, .* choose long:truncate$"):
        InfoLM(encoder, long="error")(["a " * 18], ["a"])
