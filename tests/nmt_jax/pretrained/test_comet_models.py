"""COMET, COMET-QE, CometKiwi and xCOMET: equal to unbabel-comet with random weights."""

import json

import numpy as np
import pytest

import metrics_jax
from nmt_jax.errors import UserError
from nmt_jax.pretrained import comet_models
from nmt_jax.pretrained.conversion import convert
from nmt_jax.pretrained.metrics import open_metric
from tests.fixtures import comet_folders

HYPOTHESES, REFERENCES, SOURCES = comet_folders.texts()
MODELS = [  # of tests/fixtures/comet_golden.json, and the metric
    ("regression", "comet"),
    ("softmax", "comet"),
    ("one layer", "comet"),
    ("referenceless", "cometqe"),
    ("kiwi", "cometkiwi"),
    ("xcomet", "xcomet"),
    ("xcomet xl", "xcomet"),
]
SLOW = ("softmax", "one layer", "xcomet xl")
LONG = {"cometkiwi": 3, "xcomet": 9}  # texts that are cut; these metrics read several as one row


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("comet")
    return {name: comet_folders.write(folder / name, name) for name, _ in MODELS}


def opened(spec, folder):
    return open_metric(spec, sources=True, **{spec.partition("|")[0]: str(folder)})


@pytest.mark.parametrize(
    ("name", "metric"), [pytest.param(*one, marks=[pytest.mark.slow] if one[0] in SLOW else []) for one in MODELS]
)
def test_equals_the_reference_program(name, metric, folders):
    """unbabel-comet 2.2.7, with truncated texts and an empty one."""
    found = opened(metric, folders[name])(HYPOTHESES, REFERENCES, SOURCES)
    expected = comet_folders.golden(name)["scores"]
    np.testing.assert_allclose(found.segments, expected, atol=1e-5, rtol=0)
    assert np.ptp(expected) > 0.005
    assert found.parts == {"long": LONG.get(metric, 2)}
    assert found.score == pytest.approx(np.mean(expected), abs=1e-5)


@pytest.mark.parametrize("name", ["xcomet", pytest.param("xcomet xl", marks=pytest.mark.slow)])
def test_error_spans_equal_the_reference_program(name, folders):
    found = opened("xcomet", folders[name]).error_spans(HYPOTHESES, REFERENCES, SOURCES)
    expected = comet_folders.golden(name)["metadata"]["error_spans"]
    kept = [[(one["start"], one["end"], one["severity"]) for one in group] for group in expected]
    assert [[one[:3] for one in group] for group in found] == kept
    confidences = [one["confidence"] for group in expected for one in group]
    np.testing.assert_allclose([one.confidence for group in found for one in group], confidences, atol=1e-5)
    assert len(confidences) > 5


def test_xcomet_without_references(folders):
    """unbabel-comet 2.2.7: one reading, whose score has the weights of all three."""
    metric = open_metric("xcometqe", sources=True, xcomet=str(folders["xcomet"]))
    found = metric(HYPOTHESES, None, SOURCES)
    stored = comet_folders.golden("xcomet")["without_references"]
    np.testing.assert_allclose(found.segments, stored["scores"], atol=1e-5, rtol=0)
    spans = metric.error_spans(HYPOTHESES, SOURCES)
    kept = [[(one["start"], one["end"], one["severity"]) for one in group] for group in stored["error_spans"]]
    assert [[one[:3] for one in group] for group in spans] == kept


def test_a_checkpoint_that_torch_saved(folders, tmp_path):
    base = comet_folders.write_base(tmp_path / "base")
    path = comet_folders.GOLDEN.with_name("torch_files") / "comet.ckpt"
    convert(path, tmp_path / "out", base)
    one, other = (opened("comet", folder) for folder in (tmp_path / "out", folders["regression"]))
    assert one.signature == other.signature
    found = one(HYPOTHESES, REFERENCES, SOURCES)
    np.testing.assert_array_equal(found.segments, other(HYPOTHESES, REFERENCES, SOURCES).segments)


@pytest.mark.parametrize(("name", "metric"), MODELS[3:6])
def test_a_score_is_independent_of_other_segments(name, metric, folders):
    metric = opened(metric, folders[name])
    whole = metric(HYPOTHESES, REFERENCES, SOURCES).segments
    for k in (0, 20, 21):
        assert metric([HYPOTHESES[k]], [REFERENCES[k]], [SOURCES[k]]).score == whole[k]
    np.testing.assert_array_equal(metric(HYPOTHESES[::-1], REFERENCES[::-1], SOURCES[::-1]).segments[::-1], whole)


def test_pairwise_equals_single_scores(folders):
    hypotheses, references, sources = HYPOTHESES[:3], REFERENCES[:2], SOURCES[:3]
    for name, metric in (("one layer", "comet"), ("kiwi", "cometkiwi")):
        metric = opened(metric, folders[name])
        expected = [[metric([h], [r], [s]).score for r in references] for h, s in zip(hypotheses, sources, strict=True)]
        np.testing.assert_allclose(metric.pairwise(hypotheses, references, sources), expected, atol=1e-6)
        indexed = metric.index_texts([*hypotheses, *references], [*sources, *sources[:2]])
        np.testing.assert_allclose(indexed.pairwise(np.arange(3), np.arange(3, 5)), expected, atol=1e-6)


def test_several_references(folders):
    metric = opened("comet", folders["regression"])
    one, other = (metric(HYPOTHESES, texts, SOURCES).segments for texts in (REFERENCES, REFERENCES[::-1]))
    groups = list(zip(REFERENCES, REFERENCES[::-1], strict=True))
    np.testing.assert_array_equal(metric(HYPOTHESES, groups, SOURCES).segments, np.maximum(one, other))
    mean = opened("comet|multi_reference:mean", folders["regression"])
    np.testing.assert_allclose(mean(HYPOTHESES, groups, SOURCES).segments, (one + other) / 2, atol=1e-12)


def test_signatures(folders):
    comet, kiwi = opened("comet", folders["regression"]), opened("cometkiwi", folders["kiwi"])
    found = kiwi(HYPOTHESES[:2], None, SOURCES[:2]).signature
    assert found == f"cometkiwi|nrefs:0|estimator:{kiwi.estimator.fingerprint[:16]}.float32|long:truncate|version:0.1.0"
    assert metrics_jax.load(found, estimator=kiwi.estimator) == kiwi
    hashed = comet.estimator.fingerprint[:16]
    assert comet.signature.startswith(f"comet|estimator:{hashed}.float32|multi_reference:max|long:truncate")
    with pytest.raises(ValueError, match="computed with estimator"):
        metrics_jax.load(comet.signature, estimator=kiwi.estimator)


def test_other_settings_change_the_signature(folders, tmp_path):
    signatures = {opened("comet", folders["regression"]).signature}
    for number, changed in enumerate(({"pool": "cls"}, {"layer_transformation": "softmax"}, {"layer_norm": True})):
        folder = comet_folders.write(tmp_path / str(number), "regression", **changed)
        signatures.add(opened("comet", folder).signature)
    signatures.add(open_metric("comet", sources=True, comet=str(folders["regression"]), dtype="bfloat16").signature)
    assert len(signatures) == 5


def test_settings_that_a_checkpoint_does_not_name(folders, tmp_path):
    """The reference program has defaults for them."""
    stored = comet_folders.golden("softmax")["settings"]
    folder = comet_folders.write(tmp_path / "short", "softmax")
    config = json.loads((folder / "config.json").read_text())
    named = ("class_identifier", "pool", "hidden_sizes")
    config["comet"] = {name: stored[name] for name in named}
    (folder / "config.json").write_text(json.dumps(config))
    assert opened("comet", folder).signature == opened("comet", folders["softmax"]).signature


def test_vectors_are_kept_on_disk(folders, tmp_path):
    options = {"sources": True, "comet": str(folders["regression"]), "cache": str(tmp_path / "cache")}
    first = open_metric("comet", **options)(HYPOTHESES, REFERENCES, SOURCES).segments
    metric = open_metric("comet", **options)
    metric = type(metric)(type(metric.estimator)(**{**vars(metric.estimator), "embed": lambda ids, mask: ids * np.nan}))
    np.testing.assert_array_equal(metric(HYPOTHESES, REFERENCES, SOURCES).segments, first)


def test_long_texts_raise_errors_if_asked(folders):
    for name, metric in (("regression", "comet"), ("kiwi", "cometkiwi"), ("referenceless", "cometqe")):
        with pytest.raises(ValueError, match="segment 21 is too long"):
            opened(f"{metric}|long:error", folders[name])(HYPOTHESES, REFERENCES, SOURCES)


def test_mistakes(folders, tmp_path):
    with pytest.raises(UserError, match="comet needs a trained model: --comet=PLACE, the folder of a published model"):
        open_metric("comet", sources=True)
    with pytest.raises(UserError, match="needs the source of each text"):
        open_metric("comet", comet=str(folders["regression"]))
    with pytest.raises(UserError, match="'unified_metric', but --comet needs 'regression_metric'"):
        opened("comet", folders["kiwi"])
    with pytest.raises(UserError, match=r"config\.json has no 'comet'"):
        opened("comet", comet_folders.write_base(tmp_path / "base"))
    for number, (changed, words) in enumerate(
        (
            ({"pool": "sum"}, "pool 'sum' is none of avg, cls"),
            ({"layer": 4}, "layer 4 is none of mix, 0, 1"),
            ({"layer_transformation": "entmax"}, "layer_transformation 'entmax'"),
            ({"activations": "Mish"}, "activations 'mish' is none of tanh"),
            ({"hidden_sizes": "10"}, "hidden_sizes '10' is not a list"),
            ({"hidden_sizes": [10, 7]}, "estimator.ff.3.* has shape"),
        )
    ):
        with pytest.raises(UserError, match=words):
            comet_models.load_comet(comet_folders.write(tmp_path / str(number), "regression", **changed))
    with pytest.raises(UserError, match=r"labels errors as .'minor'.; xCOMET needs minor, major, critical"):
        opened("xcomet", comet_folders.write(tmp_path / "labels", "xcomet", error_labels=["minor"]))
    other = comet_folders.write(tmp_path / "kind", "kiwi")
    content = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**content, "model_type": "camembert"}))
    with pytest.raises(UserError, match="need an encoder of kind xlm-roberta, not camembert"):
        opened("cometkiwi", other)
    with pytest.raises(UserError, match="word_layer 4 is none of 0, 1, 2, 3"):
        opened("xcomet", comet_folders.write(tmp_path / "layer", "xcomet", word_layer=4))
    with pytest.raises(UserError, match="xcometqe needs a trained model: --xcomet=PLACE"):
        open_metric("xcometqe", sources=True)
    metric = opened("comet", folders["regression"])
    with pytest.raises(ValueError, match="comet needs sources"):
        metric(["a"], ["b"])
    with pytest.raises(ValueError, match="2 hypotheses but 1 sources"):
        metric(["a", "b"], ["b", "a"], ["a"])
    with pytest.raises(ValueError, match="cometkiwi needs sources"):
        opened("cometkiwi", folders["kiwi"])(["a"])


def test_the_command_line(folders, nmt_jax, mistake, tmp_path):
    """`nmt-jax score` needs references only if a metric reads them; `mbr` decides by COMET."""
    for name, lines in (("h", HYPOTHESES), ("r", REFERENCES), ("s", SOURCES)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    models = [f"--comet={folders['regression']}", f"--cometkiwi={folders['kiwi']}"]
    source, reference = f"--source={tmp_path / 's'}", f"--reference={tmp_path / 'r'}"
    flags = [source, "--metrics=cometkiwi", "--format=json", *models]
    (alone,) = json.loads("\n".join(nmt_jax("score", tmp_path / "h", *flags).lines))
    assert alone["score"] == pytest.approx(np.mean(comet_folders.golden("kiwi")["scores"]), abs=1e-5)
    assert "nrefs:0" in alone["signature"]
    flags[1] = "--metrics=comet,cometkiwi"
    found = json.loads("\n".join(nmt_jax("score", tmp_path / "h", reference, *flags).lines))
    assert [row["metric"] for row in found] == ["comet", "cometkiwi"]
    assert (found[1]["score"], found[1]["signature"]) == (alone["score"], alone["signature"])  # nrefs:0, too
    assert "needs references: --reference=FILE" in mistake("score", tmp_path / "h", *flags)
    candidates = "".join(f"{line + 1}\t0\t{text}\n" for line in (0, 1) for text in HYPOTHESES[line : line + 3])
    (tmp_path / "two").write_text("".join(f"{line}\n" for line in SOURCES[:2]))
    flags = ["--utility=comet", f"--source={tmp_path / 'two'}", models[0]]
    chosen = nmt_jax("mbr", *flags, stdin=candidates).lines
    metric = opened("comet", folders["regression"])
    for line, text in enumerate(chosen):
        texts = HYPOTHESES[line : line + 3]
        scores = metric.pairwise(texts, texts, [SOURCES[line]] * 3).mean(axis=1)
        assert text == texts[int(scores.argmax())]
