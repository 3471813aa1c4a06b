"""Files of PyTorch: the tensors that torch 2.13 saved, and files that are damaged or made to do harm."""

import json
import pathlib
import pickle
import typing
import zipfile

import numpy as np
import pytest
import safetensors.numpy

from nmt_jax.errors import UserError
from nmt_jax.pretrained.conversion import convert
from nmt_jax.pretrained.torch_files import TorchFile, TorchTensor, shards, tensors_of

FOLDER = pathlib.Path(__file__).parents[2] / "fixtures" / "torch_files"  # written by make_torch_files.py
TABLE = np.arange(12, dtype=np.float32).reshape(3, 4) / 8
VALUES = {
    "float32": TABLE,
    "transposed": TABLE.T,
    "row": TABLE[1, 1:],
    "float16": np.array([0.5, -65504], np.float32),
    "bfloat16": np.array([1.0, -3.140625, 202 * 2.0**92], np.float32),  # 8 bits of 1e30
    "float64": np.array([[0.1]], np.float32),
    "int64": np.array([-1, 1 << 40]),
    "bool": np.array([True, False]),
    "scalar": np.array(2.5, np.float32),
    "empty": np.zeros((0, 3), np.float32),
    "tied": np.array([1.5, -2], np.float32),
    "tied.too": np.array([1.5, -2], np.float32),
    "parameter": np.array([7], np.float32),
}


class Reduced:
    """An object whose pickle calls a function."""

    def __init__(self, function, *arguments):
        self.called = function, arguments

    def __reduce__(self):
        return self.called


class Storage:
    """What `Pickler` saves as the persistent id of a storage."""

    def __init__(self, *identity):
        self.identity = identity


class Named:
    """A global of this name; it is written by name, so that torch need not be there."""

    def __init__(self, name):
        self.name = name


class Pickler(pickle._Pickler):
    """Writes pickles as torch does."""

    dispatch: typing.ClassVar = dict(pickle._Pickler.dispatch)

    def persistent_id(self, value):
        return value.identity if isinstance(value, Storage) else None

    def save_named(self, value):
        module, _, name = value.name.rpartition(".")
        self.write(f"c{module}\n{name}\n".encode())

    def save_call(self, value):
        function, arguments = value.called
        self.save(function)
        self.save(arguments)
        self.write(b"R")

    dispatch[Named], dispatch[Reduced] = save_named, save_call


def tensor(size=2, offset=0, shape=(2,), strides=(1,), key="0", dtype="torch.FloatStorage"):
    storage = Storage("storage", Named(dtype), key, "cpu", size)
    return Reduced(Named("torch._utils._rebuild_tensor_v2"), storage, offset, shape, strides, False, {})


def write(path, content, *, storages=(b"\0" * 8,), raw=None, compression=zipfile.ZIP_STORED, root="archive"):
    """A file as torch writes it; raw: the pickle itself."""
    pickled = path.with_suffix(".pkl")
    with pickled.open("wb") as file:
        Pickler(file, 2).dump(content)
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr(f"{root}/data.pkl", pickled.read_bytes() if raw is None else raw)
        for number, data in enumerate(storages):
            archive.writestr(f"{root}/data/{number}", data)
    return path


def read(path):
    file = TorchFile(path)
    return {name: np.asarray(value) for name, value in tensors_of(file, file.content).items()}


def refused(path, words):
    """Reading a file fails with one line."""
    with pytest.raises(UserError, match=words) as caught:
        read(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_tensors_that_torch_saved():
    found = read(FOLDER / "tensors.pt")
    assert found.keys() == VALUES.keys()
    for name, value in VALUES.items():
        assert found[name].dtype == value.dtype, name
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_a_checkpoint_of_lightning(tmp_path):
    """Classes outside the weights are skipped and named; nothing is imported."""
    found = convert(FOLDER / "lightning.ckpt", tmp_path / "out")
    assert found == (2, None, ["__builtin__.set", "argparse.Namespace"])
    tensors = safetensors.numpy.load_file(tmp_path / "out" / "model.safetensors")
    assert {name: value.tolist() for name, value in tensors.items()} == {"weight": [[0.25, -0.5]], "bias": [1.0]}


def test_converted_tensors_equal_those_of_torch(tmp_path):
    convert(FOLDER / "tensors.pt", tmp_path / "out")
    tensors = safetensors.numpy.load_file(tmp_path / "out" / "model.safetensors")
    assert tensors.keys() == VALUES.keys()
    for name, value in VALUES.items():
        np.testing.assert_array_equal(tensors[name], value, err_msg=name, strict=True)


def test_files_written_here_are_read(tmp_path):
    path = write(tmp_path / "m.pt", {"a": tensor()}, storages=[np.array([1, 2], "<f4").tobytes()])
    assert read(path)["a"].tolist() == [1, 2]


@pytest.mark.parametrize("name", ["builtins.eval", "posix.system", "pathlib.Path.touch", "torch.load"])
def test_no_code_of_a_file_runs(name, tmp_path):
    target = tmp_path / "created"
    argument = f"__import__('pathlib').Path({str(target)!r}).touch()" if "eval" in name else f"touch {target}"
    call = Reduced(Named(name), argument)
    refused(write(tmp_path / "among.pt", {"a": tensor(), "b": call}), f"b is an object of {name}")
    refused(write(tmp_path / "whole.pt", call), "no tensors by name")
    refused(write(tmp_path / "state.pt", {"a": Reduced(call)}), "calls|object of")
    skipped = write(tmp_path / "m.ckpt", {"state_dict": {"a": tensor()}, "hyper_parameters": {"x": call}})
    assert convert(skipped, tmp_path / "out").skipped == [name]
    assert not target.exists()


def test_pickles_that_torch_does_not_write(tmp_path):
    for raw, words in (
        (b"\x80\x02(X\x01\x00\x00\x00aios\nsystem\n.", "instruction INST"),
        (b"\x80\x02\x82\x01.", "instruction EXT1"),
        (b"\x80\x02K\x01)R.", "not a function"),
        (b"\x80\x02h\x05.", "not a complete pickle"),
        (b"\x80\x02}", "not a complete pickle"),
        (b"\x80\x020.", "not a complete pickle"),
        (b"", "not a complete pickle"),
        (b"\x80\x02" + b"(" * 50_000, "not a complete pickle"),
        (b"\x80\x02)" + b"\x85" * 200_000 + b"]\x94.", "no tensors by name"),
    ):
        refused(write(tmp_path / "m.pt", None, raw=raw), words)


def test_wrong_sizes(tmp_path):
    for wrong, words in (
        (tensor(shape=(3,)), "shape .3,. in a storage of 2 numbers"),
        (tensor(offset=1), "in a storage of 2 numbers"),
        (tensor(shape=(1 << 40,), strides=(0,)), "in a storage of 2 numbers"),  # one number as a terabyte
        (tensor(strides=(-1,)), "a wrong shape"),
        (tensor(size=1 << 50, shape=(1 << 50,)), "far larger than the file"),
        (tensor(size=3), "storage 0 is truncated"),
        (tensor(key="1"), "truncated or damaged"),
        (tensor(key="../../secret"), "truncated or damaged"),
        (tensor(size=-1), "without a name or a size"),
        (tensor(dtype="torch.QInt8Storage"), "type torch.QInt8Storage"),
        (tensor(shape=(0,) * 70, strides=(1,) * 70), "truncated or damaged"),
    ):
        refused(write(tmp_path / "m.pt", {"a": wrong}), words)
    many = {str(number): tensor(size=1 << 14, shape=(1 << 14,)) for number in range(300)}
    refused(write(tmp_path / "m.pt", many, storages=[b"\0" * (1 << 16)]), "far larger than the file")


def test_zips_that_torch_does_not_write(tmp_path):
    bomb = write(tmp_path / "bomb.pt", {"a": tensor()}, raw=b"0" * (1 << 20), compression=zipfile.ZIP_DEFLATED)
    refused(bomb, "data.pkl is compressed")
    numbers = np.random.default_rng(0).bytes(4096)  # so that the pickle is smaller than the file
    packed = write(tmp_path / "packed.pt", {"a": tensor()}, storages=[numbers], compression=zipfile.ZIP_DEFLATED)
    refused(packed, "data.pkl is compressed")
    refused(write(tmp_path / "deep.pt", {}, root="a/b"), "needs one data.pkl")
    refused(FOLDER / "before_1_6.pt", "format before version 1.6")
    (tmp_path / "text.pt").write_text("no zip")
    refused(tmp_path / "text.pt", "not a file of PyTorch")
    whole = (FOLDER / "tensors.pt").read_bytes()
    for kept in range(0, len(whole) - 1, 97):
        (tmp_path / "cut.pt").write_bytes(whole[:kept])
        refused(tmp_path / "cut.pt", "truncated, damaged or not a file")


def test_damaged_bytes_give_a_line_or_tensors(tmp_path):
    whole, generator = (FOLDER / "lightning.ckpt").read_bytes(), np.random.default_rng(0)
    refusals = 0
    for _ in range(300):
        damaged = bytearray(whole)
        for place in generator.integers(0, len(whole), 3):
            damaged[place] = generator.integers(256)
        (tmp_path / "m.ckpt").write_bytes(damaged)
        try:
            read(tmp_path / "m.ckpt")
        except UserError as error:
            refusals += "\n" not in str(error)
    assert refusals == 300  # a checkpoint has no tensors at its top


def test_several_files(tmp_path):
    for number, name in enumerate("ab"):
        data = np.array([number, 5], "<f4").tobytes()
        write(tmp_path / f"pytorch_model-{number}.bin", {name: tensor()}, storages=[data])
    index = tmp_path / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "pytorch_model-0.bin", "b": "pytorch_model-1.bin"}}))
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "vocab.txt").write_text("a")
    (tmp_path / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n")
    assert convert(tmp_path, tmp_path / "out") == (2, "cc-by-4.0", [])
    tensors = safetensors.numpy.load_file(tmp_path / "out" / "model.safetensors")
    assert {name: value.tolist() for name, value in tensors.items()} == {"a": [0, 5], "b": [1, 5]}
    assert json.loads((tmp_path / "out" / "config.json").read_text()) == {"model_type": "bert"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *("config.json", "model.safetensors", "vocab.txt", "README.md")
    }
    for name, words in (("../x.bin", "not the name of a file beside it"), ("c.bin", "c.bin and 0 more of its files")):
        index.write_text(json.dumps({"weight_map": {"a": name}}))
        with pytest.raises(UserError, match=words):
            shards(index)


def test_tensors_are_read_when_they_are_needed(tmp_path):
    """A file larger than the memory can be converted: opening it reads no storage."""
    file = TorchFile(write(tmp_path / "m.pt", {"a": tensor(size=3, shape=(3,))}))  # its storage is truncated
    assert isinstance(file.content["a"], TorchTensor)
    with pytest.raises(UserError, match="truncated"):
        np.asarray(file.content["a"])
