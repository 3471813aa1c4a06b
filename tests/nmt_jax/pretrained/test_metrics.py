"""Opening metrics with models and files: one-line errors that name the file, and signatures."""

import json
import shutil

import jax
import numpy as np
import pytest
import safetensors.numpy

from metrics_jax import Baseline, Idf
from metrics_jax.embedding.forward import shape_of_states
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import DTYPES, metric_error, open_metric
from tests.fixtures.encoder_folders import WORDPIECES, tensors, write_folder

GLOVE = "a 1 0\nb 0 1\nc 1 1\n"


@pytest.fixture
def folder(tmp_path):
    return str(write_folder(tmp_path / "bert"))


@pytest.fixture
def vectors(tmp_path):
    (tmp_path / "vectors.txt").write_text(GLOVE)
    return str(tmp_path / "vectors.txt")


def test_a_metric_without_files():
    assert open_metric("bleu|tokenize:zh").signature.startswith("bleu|tokenize:zh|")
    with pytest.raises(UserError, match="--metrics: no metric 'blue'; did you mean bleu"):
        open_metric("blue")


@pytest.mark.parametrize("name", ["bertscore|layer:0", "moverscore|layers:0", "yisi1|layer:0"])
def test_an_encoder_comes_from_a_folder_or_from_word_vectors(name, folder, vectors):
    for options in ({"encoder": folder}, {"vectors": vectors}):
        metric = open_metric(name, **options)
        np.testing.assert_allclose(metric(["a b c", "c"], ["a b c", "c"]).segments, 1, atol=1e-5)
        assert metric(["a b"], ["b c"]).score < 0.999
    with pytest.raises(UserError, match=r"needs an encoder: --encoder=PLACE.*--vectors=FILE"):
        open_metric(name)
    with pytest.raises(UserError, match="--metrics=wmd needs word vectors: --vectors=FILE"):
        open_metric("wmd", encoder=folder)


def test_the_dtype_is_in_the_signature(folder):
    signatures = {dtype: open_metric("bertscore", encoder=folder, dtype=dtype).signature for dtype in DTYPES}
    for dtype, signature in signatures.items():
        assert f".{dtype}|" in signature
        assert open_metric(signature, encoder=folder, dtype=dtype).signature == signature
    with pytest.raises(UserError, match=r"computed with encoder \w+\.bfloat16"):
        open_metric(signatures["bfloat16"], encoder=folder)


def test_an_encoder_is_read_once(folder):
    first, second = (open_metric(name, encoder=folder) for name in ("bertscore", "yisi1"))
    assert first.encoder is second.encoder


def test_compiled_programs_are_cached(tmp_path, folder, monkeypatch):
    chosen = jax.config.values["jax_compilation_cache_dir"]
    monkeypatch.setenv("NMT_JAX_CACHE", str(tmp_path))
    jax.config.update("jax_compilation_cache_dir", None)
    try:
        open_metric("bleu")
        assert jax.config.values["jax_compilation_cache_dir"] is None
        open_metric("bertscore", encoder=folder)
        assert jax.config.values["jax_compilation_cache_dir"] == str(tmp_path / "compilation")
    finally:
        jax.config.update("jax_compilation_cache_dir", chosen)


def test_frequencies_are_used_with_the_formula_of_the_metric(tmp_path, folder):
    counted = Idf({5: 1, 6: 2}, 3)
    counted.save(tmp_path / "idf.json")
    given = {"encoder": folder, "idf": str(tmp_path / "idf.json")}
    assert open_metric("bertscore", **given).idf == counted
    assert open_metric("yisi1", **given).idf.form == "yisi"
    assert open_metric("yisi1|idf:uniform", **given).idf == "uniform"
    assert open_metric("bleu", **given).name == "bleu"


def test_a_baseline_rescales(tmp_path, folder):
    plain = open_metric("bertscore|layer:0", encoder=folder)
    Baseline(((0.5, 0.5, 0.5),) * shape_of_states(plain.encoder.embed)[0]).save(tmp_path / "zero.csv")
    rescaled = open_metric("bertscore|layer:0", encoder=folder, baseline=str(tmp_path / "zero.csv"))
    assert rescaled(["a b"], ["b c"]).score == pytest.approx(2 * plain(["a b"], ["b c"]).score - 1, abs=1e-6)
    Baseline(((0.5, 0.5, 0.5),)).save(tmp_path / "other.csv")
    with pytest.raises(UserError, match="not of the same model"):
        open_metric("bertscore", encoder=folder, baseline=str(tmp_path / "other.csv"))


def _without_config(folder):
    (folder / "config.json").unlink()


def _cut_short(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def _other_shape(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"intermediate_size": config["intermediate_size"] + 1}))


def _other_vocabulary(folder):
    (folder / "vocab.txt").write_text("\n".join([*WORDPIECES, "another", "model"]) + "\n")


def _pickled(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


BROKEN = {
    _without_config: r"config\.json: No such file",
    _cut_short: r"model\.safetensors: truncated or damaged",
    _other_shape: r"model\.safetensors: .* but config\.json implies",
    _other_vocabulary: "not of the same model",
    _pickled: r"pytorch_model\.bin: pickled weights can run code",
    shutil.rmtree: "no such folder or installed package",
}


@pytest.mark.parametrize("damage", BROKEN, ids=lambda damage: damage.__name__.strip("_"))
def test_damaged_folders_raise_one_line_errors(damage, tmp_path):
    folder = write_folder(tmp_path / "broken")
    damage(folder)
    with pytest.raises(UserError, match=BROKEN[damage]) as caught:
        open_metric("bertscore", encoder=str(folder))
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_damaged_files_raise_one_line_errors(tmp_path, folder):
    (tmp_path / "broken").write_text("nothing of the kind\n")
    for option in ("baseline", "idf"):
        for name in ("broken", "nowhere"):
            with pytest.raises(UserError, match=rf"--metrics: .*{name}"):
                open_metric("bertscore", encoder=folder, **{option: str(tmp_path / name)})
    with pytest.raises(UserError, match=r"broken:1: "):
        open_metric("bertscore", vectors=str(tmp_path / "broken"))
    (tmp_path / "nan.txt").write_text(f"{GLOVE}d nan 1\n")
    with pytest.raises(UserError, match=r"nan\.txt:4: the vector of 'd' contains NaN"):
        open_metric("bertscore", vectors=str(tmp_path / "nan.txt"))


def test_non_finite_weights_raise_an_error(tmp_path):
    folder = write_folder(tmp_path / "bert")
    weights = {name: np.full_like(value, np.nan) for name, value in tensors("bert").items()}
    safetensors.numpy.save_file(weights, folder / "model.safetensors")
    with pytest.raises(ValueError, match="NaN or infinity"):
        open_metric("bertscore", encoder=str(folder))(["a"], ["b"])


def test_an_exception_without_a_message_gives_one():
    assert str(metric_error(ValueError("no tables"))) == "--metrics: no tables"
    assert str(metric_error(MemoryError(), "--utility")) == "--utility: not enough memory; score fewer or shorter lines"
