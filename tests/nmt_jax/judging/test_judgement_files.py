import pytest

from nmt_jax.data.readers.judgements import Columns
from nmt_jax.errors import UserError
from nmt_jax.judging.judgement_files import Protocol, read_judged_files
from tests.fixtures.judged_texts import rows, write

COLUMNS = Columns(human=("human",), system="system", item="item")


def read(*arguments):
    return read_judged_files(arguments, COLUMNS, Protocol(), "")


def test_options_override_columns_and_protocol(tmp_path):
    path = write(tmp_path / "a.tsv", rows(), "sys\titem\ttext\treference\thuman")
    options = "name:other|system:sys|hypothesis:text|level:system|correlation:pearson+spa|outliers:false"
    (entry,) = read(f"{path}|{options}")
    assert entry.protocol == Protocol(("pearson", "spa"), "system", "none", outliers=False)
    assert entry.name == entry.files[0].name == "other"
    assert entry.files[0].systems[:2] == ["s0", "s0"]
    assert len(entry.files[0].hypotheses) == 32


def test_a_folder_is_one_entry_with_several_files(tmp_path):
    for seed, name in enumerate("ba"):
        write(tmp_path / f"{name}.tsv", rows(seed=seed))
    (entry,) = read(f"{tmp_path}/|name:all")
    assert (entry.name, [judged.name for judged in entry.files]) == ("all", ["a", "b"])
    assert read(str(tmp_path))[0].name == tmp_path.name


def test_outliers_are_dropped_only_at_the_level_of_systems(tmp_path):
    far = [(*row[:4], row[4] - 50 * (row[0] == "s9")) for row in rows(10)]
    (judged,) = read(write(tmp_path / "a.tsv", far))[0].files
    for level, outliers, count in (("system", False, 72), ("system", True, 80), ("segment", False, 80)):
        _, texts = Protocol(level=level, outliers=outliers).judgements(judged, "human")
        assert texts.sum() == count


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("levels:system", "'levels:system' is not option:value with one of the options correlation"),
        ("level", "'level' is not option:value"),
        ("level:words", "choose one of segment, system"),
        ("scores:x", "'scores:x' is not option:value"),
    ],
)
def test_invalid_options(tmp_path, option, message):
    path = write(tmp_path / "a.tsv", rows())
    with pytest.raises(UserError, match=message):
        read(f"{path}|{option}")


def test_names_must_be_different(tmp_path):
    path = write(tmp_path / "a.tsv", rows())
    with pytest.raises(UserError, match=r"two files have the name a in the table: rename one with FILE\|name:NAME"):
        read(path, path)
