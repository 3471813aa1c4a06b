"""Paths in an object store behave as local paths do; the store is an S3 server on the loopback."""

import gzip
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from nmt_jax.data.lines import read_lines
from nmt_jax.distributed.parts import Part, Parts
from nmt_jax.errors import UserError
from nmt_jax.storage import paths
from nmt_jax.storage.files import (
    SUMS,
    is_complete,
    local_copy,
    move_folder,
    remove_folder,
    upload,
    whole_file,
    whole_folder,
    write_sums,
)
from nmt_jax.storage.paths import is_remote, path_of
from nmt_jax.training import lock
from nmt_jax.training.lock import WorkdirLock
from nmt_jax.workdir import Workdir
from tests.conftest import ROOT

FILES = {"a.txt": "first", "b.txt": "zweite ü", "sub/c.txt": "third", "sub/deep/d.json": "{}"}


def test_texts_name_local_paths_or_urls():
    assert type(path_of("a//b/../c")) is type(pathlib.Path())
    assert path_of("runs/x") == pathlib.Path("runs/x")
    path = path_of("s3://bucket/runs/x")
    assert is_remote(path)
    assert not is_remote("s3/bucket")
    assert (str(path), str(path / "y.txt"), str(path.parent)) == (
        "s3://bucket/runs/x",
        "s3://bucket/runs/x/y.txt",
        "s3://bucket/runs",
    )
    assert path_of(path) == path == path.absolute() == path.expanduser()
    with pytest.raises(UserError, match="s3://: names no bucket"):
        path_of("s3://")
    assert str(path.with_name("z").relative_to(path.parent)) == "z"
    assert str(Workdir("gs://b/w").checkpoints) == "gs://b/w/checkpoints"


def look(root):
    """What the methods of a path say about a tree, as texts relative to `root`."""

    def names(paths):
        return sorted(str(path.relative_to(root)) for path in paths)

    with (root / "b.txt").open(encoding="utf-8") as file:
        lines = list(file)
    places = [root / name for name in ("a.txt", "sub", "sub/deep", "none", "su", "sub/c.txt")]
    return {
        "kinds": [(path.exists(), path.is_file(), path.is_dir(), path.is_symlink()) for path in places],
        "in": names(root.iterdir()),
        "in sub": names((root / "sub").iterdir()),
        "glob": names(root.glob("*.txt")),
        "deeper": names(root.glob("*/*.txt")),
        "all": names(path for path in root.rglob("*") if path.is_file()),
        "texts": [(root / name).read_text(encoding="utf-8") for name in FILES],
        "lines": lines,
        "size": (root / "b.txt").stat().st_size,
    }


def test_methods_say_the_same_as_those_of_local_paths(tmp_path, bucket):
    found = []
    for root in (tmp_path / "tree", path_of(f"{bucket}/tree")):
        for name, text in FILES.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        (root / "gone").touch()
        (root / "gone").unlink()
        (root / "gone").unlink(missing_ok=True)
        found.append(look(root))
        with pytest.raises(FileNotFoundError) as raised:
            (root / "none").read_bytes()
        assert raised.value.filename in (root / "none", str(root / "none"))
    assert found[0] == found[1]
    assert abs(time.time() - (root / "a.txt").stat().st_mtime) < 60


def test_lines_are_read_plain_and_compressed(bucket):
    text = "".join(f"line {number} ü\n" for number in range(30_000))
    for name, data in {"plain": text.encode(), "packed.gz": gzip.compress(text.encode(), 1)}.items():
        with whole_file(path_of(f"{bucket}/{name}")) as file:
            file.write(data)
    assert list(read_lines(f"{bucket}/plain")) == list(read_lines(f"{bucket}/packed")) == text.split("\n")[:-1]


def test_a_file_appears_when_it_is_complete(bucket):
    path = path_of(f"{bucket}/folder/file")
    with whole_file(path) as file:
        file.write(b"whole")
        assert not path.exists()
    with pytest.raises(TypeError), whole_file(path) as file:
        file.writelines([b"half", "not bytes"])
    assert path.read_bytes() == b"whole"
    with pytest.raises(OSError, match="not empty"), whole_folder(path.parent) as folder:
        (folder / "file").write_text("other")
    assert path.read_bytes() == b"whole"


def test_a_folder_is_complete_as_long_as_it_has_its_sums(tmp_path, bucket, monkeypatch):
    local, folder, other = tmp_path / "f", path_of(f"{bucket}/1"), path_of(f"{bucket}/1.replaced")
    (local / "deep").mkdir(parents=True)
    (local / "deep" / "x").write_text("x")
    (local / "zzz").write_text("z")
    write_sums(local / SUMS)
    order = []
    store = paths._file_system("s3")
    put, copy = store.put, store.cp_file
    monkeypatch.setattr(store, "put", lambda names, *rest: (order.extend(names), put(names, *rest)))
    monkeypatch.setattr(store, "cp_file", lambda name, to: (order.append(name), copy(name, to)))
    upload(local, folder)
    assert len(order) == 3
    assert order[-1].endswith(SUMS)
    assert is_complete(folder)
    with local_copy(folder) as found:
        assert sorted(path.name for path in found.rglob("*")) == ["deep", SUMS, "x", "zzz"]
    assert not found.exists()
    move_folder(folder, other)
    assert order[-1].endswith(SUMS)
    assert (folder.exists(), is_complete(other)) == (False, True)
    assert (other / "deep" / "x").read_text() == "x"
    monkeypatch.setattr(store, "rm", lambda *_, **__: None)  # killed while it is deleted
    remove_folder(other)
    assert (other.exists(), is_complete(other)) == (True, False)


def test_parts_of_an_output_are_joined(bucket):
    parts = Parts(path_of(f"{bucket}/out.txt"), {"beam": 5})
    parts.check()
    parts.start()
    for number, data in ((1, b"two\n"), (0, b"one\n")):
        parts.write(number, Part(data))
    assert parts.finished() == {0, 1}
    with pytest.raises(UserError, match="different beam"):
        Parts(parts.output, {"beam": 4}).check()
    parts.join(2)
    assert parts.output.read_bytes() == b"one\ntwo\n"
    assert not parts.folder.exists()
    with pytest.raises(UserError, match="exists and is complete"):
        parts.check()


def test_the_owner_of_a_workdir_shows_life(bucket, monkeypatch):
    monkeypatch.setattr(lock, "STALE_SECONDS", 2.5)  # the store knows full seconds
    monkeypatch.setattr(lock, "HEARTBEAT_SECONDS", 0.5)
    workdir = path_of(f"{bucket}/w")
    with WorkdirLock(workdir) as held:
        held.check()
        with pytest.raises(UserError, match="another training is running"), WorkdirLock(workdir):
            pass
        held.check()
        (workdir / lock.FILE).write_text('{"token": "of another process"}')
        with pytest.raises(UserError, match="replaced"):
            held.check()
    assert "another" in (workdir / lock.FILE).read_text()  # it keeps the lock
    (workdir / lock.FILE).unlink()
    with WorkdirLock(workdir):
        pass
    assert (workdir / lock.FILE).read_text() == ""


def test_mistakes_are_one_line_and_overwrite_nothing(bucket, mistake, tmp_path, monkeypatch):
    text = tmp_path / "text"
    text.write_text("one\n")
    error = mistake("score", text, "--reference=s3://no-such-bucket/text")
    assert error == "s3://no-such-bucket/text: no such file, plain or with .gz"
    options = ["--config=configs/quickstart.py:smoke=true", "--config.data.size=10"]
    error = mistake("train", *options, "--workdir=s3://no-such-bucket/run")
    assert error.startswith("s3://no-such-bucket/run: cannot write the workdir: The specified bucket does not exist")
    error = mistake("train", *options, f"--workdir={bucket}/run", f"--config.data.cache={bucket}/cache")
    assert error == f"config.data.cache={bucket}/cache: prepared data is mapped into memory; name a local folder"
    assert not path_of(f"{bucket}/run").exists()
    assert "must be a local path" in mistake("sweep", *options, f"--workdir={bucket}/sweep")
    assert "c.py: this must be a local path" in mistake("train", f"--config={bucket}/c.py", "--workdir=w")
    reference = f"--reference={bucket}/text"
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.delenv(name)
        patch.setattr(paths, "_file_system", paths._file_system.__wrapped__)
        forget_clients()
        error = mistake("score", text, reference)
        assert error.startswith(f"{bucket}/text: Unable to locate credentials; check the network")
    forget_clients()
    monkeypatch.setitem(sys.modules, "gcsfs", None)
    error = mistake("score", text, "--reference=gs://bucket/text")
    assert error.startswith("gs://bucket/text: gs:// paths need gcsfs")
    assert error.endswith("install it with: pip install 'nmt-jax[gs]'")
    path_of(f"{bucket}/test.en").write_text("old")
    corpus = ["corpus", "--config=configs/quickstart.py:smoke=true", "--split=test"]
    assert "already exists" in mistake(*corpus, f"--output={bucket}/test")
    assert {path.name: path.read_text() for path in path_of(bucket).glob("test*")} == {"test.en": "old"}


def forget_clients():
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()


def test_local_paths_do_not_load_fsspec(tmp_path):
    (tmp_path / "text").write_text("one two three four\n")
    program = (
        "import sys; from nmt_jax.__main__ import main; "
        f"code = main(['score', '{tmp_path}/text', '--reference={tmp_path}/text']); "
        "sys.exit(code or 'fsspec' in sys.modules or 'etils' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.DEVNULL).returncode == 0


# A run


def command(*arguments):
    return [sys.executable, "-m", "nmt_jax", *arguments]


def losses(workdir):
    return [{name: row[name] for name in row if "loss" in name} for row in Workdir(workdir).metrics()]


@pytest.mark.slow
def test_a_run_in_an_object_store_equals_a_local_one(tmp_path, bucket, nmt_jax):
    """Trained, killed, resumed, continued by two processes, translated and scored; all files are in the store."""

    def call(*arguments):
        done = nmt_jax(*arguments)
        assert done.code == 0, done.stderr
        return "".join(line + "\n" for line in done.lines)

    def start(*arguments):
        done = subprocess.run(command(*arguments), cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    corpus = ["corpus", "--config=configs/quickstart.py:smoke=true", "--config.data.size=300"]
    call(*corpus, "--split=train", f"--output={tmp_path}/train")
    call(*corpus, "--split=dev", "--lines=40", f"--output={tmp_path}/dev")
    upload(tmp_path, path_of(bucket))
    call(*corpus, "--split=train", f"--output={bucket}/copy")
    assert path_of(f"{bucket}/copy.de").read_bytes() == (tmp_path / "train.de").read_bytes()
    settings = {"steps": 16, "checkpoint_every": 2, "keep_last": 2, "keep_best": 1, "eval_every": 8, "log_every": 1}
    options = [
        "train",
        "--config=configs/quickstart.py:smoke=true",
        "--config.data.corpus=text",
        "--config.data.dev=dev",
    ]
    options += [f"--config.train.{name}={value}" for name, value in settings.items()]
    call(*options, f"--config.data.directory={tmp_path}", f"--workdir={tmp_path}/run")

    two = ["launch", "--processes=2", "--", "nmt-jax"]
    remote = [*options, f"--config.data.directory={bucket}", f"--workdir={bucket}/run"]
    process = subprocess.Popen(command(*remote), cwd=ROOT, stderr=subprocess.DEVNULL)
    while not is_complete(path_of(f"{bucket}/run/checkpoints/4")):  # the next ones are uploaded when it is killed
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert losses(f"{bucket}/run")[-1:] != losses(tmp_path / "run")[-1:]
    start(*remote)
    assert losses(f"{bucket}/run") == losses(tmp_path / "run")
    kept = sorted(path.name for path in path_of(f"{bucket}/run/checkpoints").iterdir())
    assert kept == sorted(os.listdir(tmp_path / "run" / "checkpoints"))

    call(*options, f"--config.data.directory={tmp_path}", f"--workdir={tmp_path}/run", "--config.train.steps=20")
    start(*two, *remote, "--config.train.steps=20")
    for ours, theirs in zip(losses(f"{bucket}/run"), losses(tmp_path / "run"), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4)

    translations = call("translate", f"--workdir={tmp_path}/run", f"--input={tmp_path}/dev.en", "--chunk=16")
    places = [f"--workdir={bucket}/run", f"--input={bucket}/dev.en", f"--output={bucket}/out"]
    start(*two, "translate", *places, "--chunk=16")
    assert path_of(f"{bucket}/out").read_text() == translations
    (tmp_path / "out").write_text(translations)
    scores = call("score", f"{tmp_path}/out", f"--reference={tmp_path}/dev.de")
    assert start("score", f"{bucket}/out", f"--reference={bucket}/dev.de") == scores.replace(str(tmp_path), bucket)
