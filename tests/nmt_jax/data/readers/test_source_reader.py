"""Examples of sources of different kinds: read, stored, laid out in batches, and what is said about bad lines."""

import numpy as np
import pytest
from ml_collections import ConfigDict
from PIL import Image

from nmt_jax.data.batching.prediction import decoding_batches
from nmt_jax.data.readers.parallel_text import open_text
from nmt_jax.data.readers.source_reader import TEXT, SourceReader
from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.errors import UserError

PIXELS = np.random.default_rng(0).integers(256, size=(4, 4, 3), dtype=np.uint8)


def encode(text):
    return [ord(character) for character in text]


@pytest.fixture
def data(tmp_path):
    """Three pairs, of which the second lacks its image."""
    folder = tmp_path / "corpus"
    (folder / "images").mkdir(parents=True)
    Image.fromarray(PIXELS).save(folder / "images" / "a.png")
    np.save(folder / "f.npy", np.ones((3, 2)))
    (folder / "train.en").write_text("abc\nde\nf\n")
    (folder / "train.paths").write_text("images/a.png\n\nimages/a.png\n")
    (folder / "train.rows").write_text("f.npy\nf.npy\nf.npy\n")
    (folder / "train.de").write_text("x\ny\nz\n")
    keys = {"corpus": "text", "directory": str(folder), "train": "train", "image_size": 4, "patch_size": 2}
    keys |= {"feature_width": 2, "source": "en,paths,rows", "kind": "text,image,features", "target": "de"}
    return ConfigDict(keys)


@pytest.fixture
def reader(data):
    return SourceReader.of(data)


def test_a_corpus_names_files_from_the_folder_of_their_list(data):
    folder = data.directory
    expected = [f"abc\t{folder}/images/a.png\t{folder}/f.npy", f"de\t\t{folder}/f.npy"]
    assert [source for source, _ in open_text(data, "train")][:2] == expected
    before = open_text(data, "train").fingerprint()
    np.save(f"{folder}/f.npy", np.ones((4, 2)))
    assert open_text(data, "train").fingerprint() != before


def test_an_example_is_stored_and_laid_out(data, reader):
    lines = [source for source, _ in open_text(data, "train")]
    examples = [reader.load(reader.store(reader.read(lines[n], encode), "<u2"), "<u2") for n in (0, 2)]
    ids, patches, rows = examples[0]
    assert ids.tolist() == [*encode("abc"), EOS]
    assert patches.dtype == rows.dtype == np.float32
    np.testing.assert_array_equal(patches[0], PIXELS[:2, :2].ravel() / np.float32(127.5) - np.float32(1))
    assert reader.lengths(examples[0]).tolist() == [4, 4, 3]
    batch = reader.fill(examples, (3, 5))
    assert {name: array.shape for name, array in batch.items()} == {
        **{"source0": (3, 5), "source1": (3, 5, 12), "source1_lengths": (3,)},
        **{"source2": (3, 5, 2), "source2_lengths": (3,)},
    }
    assert batch["source0"].tolist() == [[*encode("abc"), EOS, PAD], [*encode("f"), EOS, PAD, PAD, PAD], [PAD] * 5]
    assert batch["source1_lengths"].tolist() == [4, 4, 0]
    np.testing.assert_array_equal(batch["source1"][1, :4], examples[1][1])
    assert {name: array.shape for name, array in reader.fill([reader.dummy(5)] * 3, (3, 5)).items()} == {
        name: array.shape for name, array in batch.items()
    }
    pieces = reader.pieces(examples[1], lambda ids: [chr(number) if number != EOS else "</s>" for number in ids])
    assert pieces == ["f", "</s>", "▁0", "▁1", "▁2", "▁3", "▁0", "▁1", "▁2"]
    (picture,) = reader.pictures(lines[0], [4, 4, 3])
    np.testing.assert_array_equal(picture.pixels, PIXELS)
    assert (picture.columns, picture.start) == (2, 4)
    ((indices, decoding),) = decoding_batches(examples, batch_tokens=300, reader=reader)
    assert sorted(indices.tolist()) == [0, 1]
    assert decoding["source1"].shape[1:] == (8, 12)


def test_an_empty_line_is_empty_and_a_missing_source_is_an_error(data, reader):
    assert reader.empty(reader.features(reader.read("", encode)))
    with pytest.raises(UserError, match="a source that is not text is empty; name its file"):
        reader.read("de\t\tf.npy", encode)
    with pytest.raises(UserError, match="2 of 3 sources: each line must have all sources"):
        reader.read("de\tf.npy", encode)
    assert not TEXT.empty(TEXT.read("a", encode))
    assert TEXT.empty(TEXT.read("", encode))
