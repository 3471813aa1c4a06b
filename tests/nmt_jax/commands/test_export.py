"""`nmt-jax export`: other programs compute with the exported parameters what the model computes."""

import dataclasses
import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax import __main__ as cli
from nmt_jax import config as configs
from nmt_jax import export as formats
from nmt_jax.checkpoints.reading import load_params
from nmt_jax.checkpoints.train_state import TrainState
from nmt_jax.checkpoints.writing import Checkpoints
from nmt_jax.data.vocabulary.vocab import BOS, EOS, PAD, UNK
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.export import safetensors
from nmt_jax.models import transformer
from nmt_jax.models.layers.activations import ACTIVATIONS
from nmt_jax.tasks.registry import make_task
from nmt_jax.workdir import write_manifest
from tests.conftest import ROOT

LENGTH = 12
SENTENCES = ["the old man sees the house .", "she sleeps .", "we do not know where the children are .", "dog cat dog ."]
TINY = {"num_encoder_layers": "2", "num_decoder_layers": "1", "d_model": "8", "d_ff": "12", "num_heads": "2"}
SEEDS = {  # some hypotheses end early, none with EOS at rank K … 2K, which only our search considers
    "post_gelu_learned": 118,
    "pre_swiglu_untied": 16,
    "post_gelu_erf_two_way": 58,
}
MODELS = {
    "post_gelu_learned": {"norm": "post", "activation": "gelu", "positions": "learned", "d_k": "3", "d_v": "5"},
    "pre_swiglu_untied": {"activation": "swiglu", "tie_embeddings": "none", "d_k": "6", "d_v": "2"},
    "post_gelu_erf_two_way": {"norm": "post", "activation": "gelu_erf", "tie_embeddings": "two-way"},
}


def _config(folder, model, **changes):
    decode = {"decode.max_length_ratio": "0", "decode.max_length_offset": str(LENGTH), "decode.beam_size": "3"}
    model = {f"model.{name}": value for name, value in {**TINY, **model}.items()}
    return configs.load(
        f"{ROOT}/configs/quickstart.py:smoke=true", {"data.cache": f"{folder}/cache", **decode, **model, **changes}
    )


def _params(task, seed):
    """Random parameters with clear-cut predictions: EOS is very likely or unlikely, special pieces are never likely."""
    random = np.random.default_rng(seed)
    params = jax.tree_util.tree_map_with_path(
        lambda path, leaf: ("scale" in str(path)) + random.normal(scale=0.6, size=leaf.shape).astype(np.float32),
        jax.eval_shape(task.init, jax.random.key(0)),
    )
    if not hasattr(task.model, "num_decoder_layers"):
        return params
    model, direction = task.model, np.eye(task.model.d_model, dtype=np.float32)[0]
    last = params[f"decoder_{model.num_decoder_layers - 1}"]["ffn_residual"]["layer_norm"]
    norm = params["decoder_norm"] if model.norm == "pre" else last
    norm["bias"] = norm["bias"] + 8 * direction
    name = {"three-way": "source_embedding", "two-way": "target_embedding", "none": "output_table"}
    table = params[name[model.tie_embeddings]]["table"]
    table[:, 0] = 0.0
    table[[PAD, UNK, BOS]] -= 8 * direction
    table[EOS] *= 5
    return params


def _save(workdir, config, *steps):
    """Write a workdir with checkpoints at `steps`, which are also the random seeds; the first is the best."""
    workdir.mkdir()
    configs.save(config, workdir / "config.json")
    task = make_task(config, workdir, sharding.make_mesh())
    params = [_params(task, seed) for seed in steps]
    with Checkpoints(workdir / "checkpoints", keep_last=len(steps)) as checkpoints:
        for step, tree in zip(steps, params, strict=True):
            state = TrainState(step=jnp.int32(step), params=tree, opt_state=(), ema=(), skipped=jnp.int32(0))
            checkpoints.save(step, state, {}, {}, score=-float(step))
    write_manifest(workdir, config)
    return task, params


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a workdir `transformer`, whose vocabulary other tests use."""
    folder = tmp_path_factory.mktemp("export")
    decode = {"decode.length_penalty": "1.0", "decode.max_length_offset": "256"}  # the limit of CTranslate2
    _save(folder / "transformer", _config(folder, {}, **decode), 107, 144)
    return folder


def _export(*arguments):
    return cli.main(["export", *(f"--{name}={value}" for name, value in arguments)])


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_ctranslate2_computes_what_the_model_computes(folder, tmp_path, name):
    ctranslate2 = pytest.importorskip("ctranslate2", reason="pip install 'nmt-jax[ctranslate2]'")
    from nmt_jax.export import ctranslate2 as written

    joint = "untied" not in name
    config = _config(folder, MODELS[name], **{"vocab.joint": str(joint).lower()})
    task = make_task(config, folder / ("transformer" if joint else "untied"), sharding.make_mesh())
    params = _params(task, SEEDS[name])
    written.write(
        task.model, params, task.vocabularies, tmp_path, quantization="float32", beam_size=3, length_penalty=0.0
    )
    ours = [best[0] for best in task.translate(params, SENTENCES, beam_size=3, length_penalty=0.0)]
    print(name, [(len(best.pieces), best.score) for best in ours], [best.pieces for best in ours])
    translator = ctranslate2.Translator(str(tmp_path), intra_threads=1)
    vocab = task.vocabularies[0]
    sources = [vocab.pieces(vocab.encode(line)) for line in SENTENCES]
    theirs = translator.translate_batch(
        sources,
        beam_size=3,
        length_penalty=0,
        min_decoding_length=0,
        max_decoding_length=LENGTH,
        return_scores=True,
    )
    assert [result.hypotheses[0] for result in theirs] == [best.pieces for best in ours]
    np.testing.assert_allclose([result.scores[0] for result in theirs], [best.score for best in ours], atol=1e-4)


def test_every_field_of_the_transformer_is_known(folder):
    pytest.importorskip("ctranslate2", reason="pip install 'nmt-jax[ctranslate2]'")
    from nmt_jax.export import ctranslate2 as written

    assert set(written.ACTIVATIONS) == set(ACTIVATIONS)
    exported = {*TINY, "source_vocab_size", "target_vocab_size", "d_k", "d_v"}
    exported |= {"positions", "max_positions", "tie_embeddings", "norm", "activation"}
    training = {"dropout", "attention_dropout", "relu_dropout", "word_dropout", "remat", "scan_layers"}
    training |= {"dtype", "parent", "name"}
    refused = {"num_sources", "combination", "source_columns", "image_encoder"}  # other sources than one text
    refused |= {"convolution_width", "subsampling_layers", "ctc", "copying", "copy_heads", "max_unknown"}
    assert {field.name for field in dataclasses.fields(transformer.Model)} == exported | training | refused


@pytest.mark.slow
def test_the_exported_program_translates_like_the_workdir(folder, tmp_path, capfdbinary):
    pytest.importorskip("ctranslate2", reason="pip install 'nmt-jax[ctranslate2]'")
    text = "\n".join(["\ufeff" + SENTENCES[0], "", "a\u2028b \r <s> 🙂", " ", *SENTENCES[1:]])
    (tmp_path / "source").write_text(text, encoding="utf-8")
    assert cli.main(["translate", f"--workdir={folder / 'transformer'}", f"--input={tmp_path / 'source'}"]) == 0
    ours = capfdbinary.readouterr().out
    where = (("workdir", folder / "transformer"), ("output", tmp_path / "out"))
    assert _export(*where, ("to", "ctranslate2")) == 0
    assert b"Next: python" in capfdbinary.readouterr().err
    (tmp_path / "out").rename(tmp_path / "elsewhere")
    with open(tmp_path / "source", "rb") as source:
        command = [sys.executable, str(tmp_path / "elsewhere" / "translate.py")]
        theirs = subprocess.run(command, stdin=source, stdout=subprocess.PIPE, check=True).stdout
    assert theirs == ours
    assert len(set(ours.split(b"\n"))) > 3


def test_quantized_matrices_take_less_space(folder, tmp_path):
    pytest.importorskip("ctranslate2", reason="pip install 'nmt-jax[ctranslate2]'")
    sizes = {}
    for quantization in ("float32", "float16", "int16", "int8", "int8_float16"):
        where = (("workdir", folder / "transformer"), ("output", tmp_path / quantization))
        assert _export(*where, ("to", "ctranslate2"), ("quantization", quantization)) == 0
        sizes[quantization] = (tmp_path / quantization / "model.bin").stat().st_size
    assert sizes["float32"] > sizes["int16"] > sizes["int8"] > sizes["int8_float16"]
    assert sizes["float32"] > 1.8 * sizes["float16"]


@pytest.mark.slow
def test_safetensors_keep_every_bit(folder, tmp_path):
    workdir = folder / "transformer"
    for which, flags in {"best": [], "last": [("checkpoint", "last")], 2: [("average", 2)]}.items():
        output = tmp_path / "new" / str(which)
        assert _export(("workdir", workdir), ("to", "safetensors"), ("output", output), *flags) == 0
        read, expected = safetensors.load(output), load_params(workdir, which)
        assert jax.tree.structure(read) == jax.tree.structure(expected)
        for leaf, other in zip(jax.tree.leaves(read), jax.tree.leaves(expected), strict=True):
            assert leaf.dtype == other.dtype
            assert leaf.tobytes() == np.asarray(other).tobytes()
        assert json.loads((output / "config.json").read_text()) == json.loads((workdir / "config.json").read_text())
        assert (output / "vocab" / "joint.model").read_bytes() == (workdir / "vocab" / "joint.model").read_bytes()
    (output / safetensors.FILE).write_bytes(b"\x08")
    with pytest.raises(UserError, match="truncated or damaged"):
        safetensors.load(output)


def test_any_model_can_be_exported_as_safetensors(folder, tmp_path):
    config = configs.load(
        f"{ROOT}/configs/rnn_lm.py:smoke=true",
        {"data.corpus": "grammar", "data.cache": f"{folder}/cache", "model.d_hidden": "4"},
    )
    _, (params,) = _save(tmp_path / "lm", config, 1)
    assert _export(("workdir", tmp_path / "lm"), ("to", "safetensors"), ("output", tmp_path / "out")) == 0
    jax.tree.map(np.testing.assert_array_equal, safetensors.load(tmp_path / "out"), params)


def test_mistakes_leave_no_files(folder, tmp_path, capsys):
    for name, page in ("rnn", "rnn_luong.py:smoke=true"), ("copying", "copy_summarize.py:model=transformer,smoke=true"):
        (tmp_path / name / "checkpoints" / "1").mkdir(parents=True)
        (tmp_path / name / "config.json").write_text(json.dumps(configs.load(f"{ROOT}/configs/{page}").to_dict()))
        write_manifest(tmp_path / name, configs.read(tmp_path / name / "config.json"))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    workdir, to, output = (f"--workdir={folder / 'transformer'}", "--to=ctranslate2", f"--output={tmp_path / 'out'}")
    cases = {
        (): "needs --workdir=FOLDER",
        (workdir, output): "--to=ctranslate2|safetensors",
        (workdir, to): "--output=FOLDER",
        (workdir, to, output, "more"): "needs --workdir=FOLDER",
        (workdir, output, "--to=onnx"): "ctranslate2|safetensors",
        (workdir, to, output, "--checkpoint=last", "--average=2"): "exclude each other",
        (workdir, output, "--to=safetensors", "--quantization=int8"): "--quantization needs --to=ctranslate2",
        (workdir, to, output, "--quantization=int3"): "int8",
        (f"--workdir={tmp_path / 'nowhere'}", to, output): "no such workdir",
        (f"--workdir={tmp_path / 'full'}", to, output): "not a workdir",
        (f"--workdir={tmp_path / 'rnn'}", to, output): "needs model_name='transformer', but this is 'rnn'",
        (f"--workdir={tmp_path / 'copying'}", to, output): "cannot copy source words",
        (workdir, to, f"--output={tmp_path / 'full'}"): "already exists",
        (workdir, to, f"--output={tmp_path / 'full' / 'mine'}"): "already exists",
        (workdir, "--to=safetensors", f"--output={tmp_path / 'full' / 'mine' / 'x'}"): "cannot be written",
    }
    before = sorted(tmp_path.rglob("*"))
    for arguments, words in cases.items():
        assert cli.main(["export", *arguments]) == 2, arguments
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("nmt-jax: error: ")
        assert err.count("\n") == 1
        assert words in err
    assert sorted(tmp_path.rglob("*")) == before


def test_a_full_disk_leaves_no_files(folder, tmp_path, monkeypatch, capsys):
    def full(path, tensors):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(safetensors, "write_tensors", full)
    where = (("workdir", folder / "transformer"), ("output", tmp_path / "out"))
    assert _export(*where, ("to", "safetensors")) == 2
    assert "cannot be written: No space left on device" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_without_ctranslate2_the_error_names_the_package(folder, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    monkeypatch.setitem(sys.modules, "ctranslate2.specs", None)
    monkeypatch.delitem(sys.modules, "nmt_jax.export.ctranslate2", raising=False)
    monkeypatch.delattr(formats, "ctranslate2", raising=False)
    where = (("workdir", folder / "transformer"), ("output", tmp_path / "out"))
    assert _export(*where, ("to", "ctranslate2")) == 2
    assert "pip install 'nmt-jax[ctranslate2]'" in capsys.readouterr().err
