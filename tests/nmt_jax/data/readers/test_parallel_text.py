"""Parallel corpora: pairs stay aligned, and errors name the file and the line."""

import contextlib
import gzip
import io
import re

import pytest
import tensorflow_datasets as tfds
from ml_collections import ConfigDict

from nmt_jax.data.readers.parallel_text import HELD_OUT, open_text
from nmt_jax.errors import UserError


def data_config(**changes) -> ConfigDict:
    values = {"corpus": "text", "directory": "", "name": "", "source": "en", "target": "de", "size": 40}
    return ConfigDict(values | {"train": "train", "dev": "val", "test": "test"} | changes)


def test_text_files_can_be_read_repeatedly(tmp_path):
    (tmp_path / "val.en").write_text("one\ntwo\n")
    (tmp_path / "val.de.gz").write_bytes(gzip.compress(b"eins\nzwei\n"))
    corpus = open_text(data_config(directory=str(tmp_path)), "dev")
    assert list(corpus) == list(corpus) == [("one", "eins"), ("two", "zwei")]


@pytest.mark.parametrize(("english", "german", "longer"), [(3, 5, "de"), (4, 1, "en"), (3, 2, "en")])
def test_unequal_files_are_reported_with_their_line_counts(english, german, longer, tmp_path):
    (tmp_path / "train.en").write_text("x\n" * english)
    (tmp_path / "train.de").write_text("y\n" * german)
    with pytest.raises(UserError) as caught:
        list(open_text(data_config(directory=str(tmp_path)), "train"))
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}/train.{longer}:{min(english, german) + 1}: ")
    assert f"train.en has {english} lines and {tmp_path}/train.de has {german}" in message


def test_a_missing_file_is_reported_before_reading(tmp_path):
    (tmp_path / "train.en").write_text("x\n")
    with pytest.raises(UserError, match=re.escape(f"{tmp_path}/train.de: no such file")):
        open_text(data_config(directory=str(tmp_path)), "train")


def test_the_fingerprint_depends_on_the_content(tmp_path):
    (tmp_path / "train.en").write_text("x\n")
    (tmp_path / "train.de").write_text("y\n")
    data = data_config(directory=str(tmp_path))
    before = open_text(data, "train").fingerprint()
    assert open_text(data, "train").fingerprint() == before
    assert open_text(data_config(directory=str(tmp_path), source="de", target="en"), "train").fingerprint() != before
    (tmp_path / "train.de").write_text("z\n")
    assert open_text(data, "train").fingerprint() != before


def test_unknown_kind_and_missing_folder():
    with pytest.raises(UserError, match=r"config\.data\.corpus: 'hub' is not one of grammar, text, tfds"):
        open_text(data_config(corpus="hub"), "train")
    with pytest.raises(UserError, match=r"config\.data\.directory"):
        open_text(data_config(), "train")


def test_unusual_characters_of_multi30k_are_preserved(shared):
    directory = shared / "data" / "multi30k"
    if not directory.is_dir():
        pytest.skip(f"{directory} not found")
    pairs = list(open_text(data_config(directory=str(directory)), "train"))
    assert len(pairs) == 29_000
    assert "\t" in pairs[7365][1]
    assert sum("\xa0" in german for _, german in pairs) > 10


def test_the_embedded_grammar_has_two_directions():
    english = open_text(data_config(corpus="grammar"), "train")
    german = open_text(data_config(corpus="grammar", source="de", target="en"), "train")
    assert [(target, source) for source, target in german] == list(english)
    assert german.fingerprint() != english.fingerprint()


@pytest.mark.slow
def test_the_embedded_grammar_needs_no_files():
    train, dev, test = (list(open_text(data_config(corpus="grammar"), split)) for split in ("train", "dev", "test"))
    assert (len(train), len(dev), len(test)) == (40, HELD_OUT, HELD_OUT)
    english = [{pair[0] for pair in split} for split in (train, dev, test)]
    assert not english[0] & english[1]
    assert not english[1] & english[2]
    first, second = (open_text(data_config(corpus="grammar", size=size), "train").fingerprint() for size in (40, 41))
    assert first != second


SENTENCES = [(f"the dog {n}\u2028 sees\x00", f"der Hund {n} sieht\xa0es") for n in range(2500)]


class TinyTranslate(tfds.core.GeneratorBasedBuilder):
    """A data set like those in tensorflow_datasets.translate."""

    BUILDER_CONFIGS = [tfds.core.BuilderConfig(name="de-en", version=version) for version in ("1.9.0",)]  # noqa: RUF012

    def _info(self):
        features = tfds.features.Translation(languages=("de", "en"))
        return tfds.core.DatasetInfo(builder=self, features=features, disable_shuffling=True)

    def _split_generators(self, dl_manager):
        return {"train": self._generate_examples(SENTENCES), "validation": self._generate_examples(SENTENCES[:3])}

    def _generate_examples(self, pairs):
        for key, (english, german) in enumerate(pairs):
            yield key, {"en": english, "de": german}


def prepare_tiny(directory, file_format="array_record"):
    builder = TinyTranslate(data_dir=directory, file_format=file_format)
    tfds.display_progress_bar(False)
    with contextlib.redirect_stdout(io.StringIO()):
        builder.download_and_prepare(download_config=tfds.download.DownloadConfig(try_download_gcs=False))


def tiny_config(directory, **changes) -> ConfigDict:
    return data_config(corpus="tfds", directory=str(directory), **({"name": "tiny_translate/de-en"} | changes))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    directory = tmp_path_factory.mktemp("tfds")
    prepare_tiny(directory)
    return directory


def test_a_tfds_data_set_is_read_in_order(tiny):
    corpus = open_text(tiny_config(tiny), "train")
    assert list(corpus) == list(corpus) == SENTENCES
    assert list(open_text(tiny_config(tiny, dev="validation"), "dev")) == SENTENCES[:3]
    assert list(open_text(tiny_config(tiny, name="tiny_translate/de-en/1.9.0"), "train")) == SENTENCES
    swapped = open_text(tiny_config(tiny, source="de", target="en"), "train")
    assert next(iter(swapped)) == SENTENCES[0][::-1]
    assert swapped.fingerprint() != corpus.fingerprint() == open_text(tiny_config(tiny), "train").fingerprint()


@pytest.mark.slow
def test_slices_of_a_tfds_data_set_are_the_data_set(tiny, tmp_path):
    parts = open_text(tiny_config(tiny), "train").slices(2, tmp_path)
    assert [list(part) for part in reversed(parts)][::-1] == [
        SENTENCES[start : start + 2] for start in range(0, len(SENTENCES), 2)
    ]


def test_the_newest_version_is_read(tiny, tmp_path):
    (tmp_path / "tiny_translate").symlink_to(tiny / "tiny_translate")
    assert open_text(tiny_config(tmp_path), "train").folder.name == "1.9.0"
    newer = tmp_path / "other" / "de-en"
    for version in ("1.9.0", "1.10.0"):
        (newer / version).mkdir(parents=True)
        (newer / version / "dataset_info.json").touch()
        (newer / version / "other-train.array_record-00000-of-00001").touch()
    assert open_text(tiny_config(tmp_path, name="other/de-en"), "train").folder.name == "1.10.0"


def test_missing_parts_of_a_tfds_data_set_are_reported(tiny, tmp_path):
    with pytest.raises(UserError, match="no split 'val'; it has train, validation"):
        list(open_text(tiny_config(tiny), "dev"))
    with pytest.raises(UserError, match="no language 'fr'; it has de, en"):
        list(open_text(tiny_config(tiny, source="fr"), "train"))
    with pytest.raises(UserError, match=r"config\.data\.name"):
        open_text(tiny_config(tiny, name=""), "train")
    with pytest.raises(UserError, match=r"wmt14_translate/de-en: not prepared .*download_and_prepare\(\)") as caught:
        open_text(tiny_config(tmp_path, name="wmt14_translate/de-en"), "train")
    assert "\n" not in str(caught.value)
