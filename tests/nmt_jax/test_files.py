import pytest

from nmt_jax.files import whole_file


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
