import pytest

from nmt_jax.storage.files import naming, whole_file, whole_folder


def test_a_file_is_written_completely_or_not_at_all(tmp_path):
    path = tmp_path / "folder" / "file"
    with whole_file(path) as file:
        file.write(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"
    with pytest.raises(TypeError), whole_file(path) as file:
        file.writelines([b"half", "not bytes"])
    assert path.read_bytes() == b"whole"
    assert [child.name for child in path.parent.iterdir()] == ["file"]


def test_a_folder_is_written_completely_or_not_at_all(tmp_path):
    path = tmp_path / "parent" / "folder"
    with pytest.raises(TypeError), whole_folder(path) as folder:
        (folder / "file").write_text(b"not text")
    assert list(path.parent.iterdir()) == []
    with whole_folder(path) as folder:
        (folder / "file").write_text("whole")
        assert not path.exists()
    with pytest.raises(OSError, match="not empty"), whole_folder(path) as folder:
        (folder / "file").write_text("other")
    assert (path / "file").read_text() == "whole"
    assert [child.name for child in path.parent.iterdir()] == ["folder"]
    assert path.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("context", [naming, whole_file, whole_folder])
def test_errors_while_writing_have_the_path_and_leave_nothing(context, tmp_path):
    with pytest.raises(OSError, match="No space") as raised, context(tmp_path / "x"):
        raise OSError(28, "No space left on device")
    assert raised.value.filename == str(tmp_path / "x")
    assert not list(tmp_path.iterdir())
