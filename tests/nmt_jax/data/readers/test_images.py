"""Images as rows: patches in reading order, orientation and modes, and what is said about bad files."""

import numpy as np
import pytest
from ml_collections import ConfigDict
from PIL import Image

from nmt_jax.data.readers.images import ImageFiles
from nmt_jax.data.readers.rows import row_reader
from nmt_jax.errors import UserError

READER = ImageFiles(8, 4)
PIXELS = np.random.default_rng(0).integers(256, size=(8, 8, 3), dtype=np.uint8)


def test_patches_are_read_like_text(tmp_path):
    Image.fromarray(PIXELS).save(tmp_path / "a.png")
    stored = READER.read(str(tmp_path / "a.png"))
    assert stored.dtype == np.uint8
    assert stored.shape == (4, READER.width) == (4, 48)
    for number, (top, left) in enumerate([(0, 0), (0, 4), (4, 0), (4, 4)]):
        np.testing.assert_array_equal(stored[number], PIXELS[top : top + 4, left : left + 4].ravel())
    np.testing.assert_array_equal(READER.pixels(stored), PIXELS)
    features = READER.features(np.array([0, 255], np.uint8))
    assert features.dtype == np.float32
    assert features.tolist() == [-1, 1]
    assert READER.columns == 2


def test_images_of_any_size_and_mode_become_square_and_rgb(tmp_path):
    white = {"L": 255, "1": 1, "RGBA": (255, 255, 255, 0), "P": 255, "CMYK": (0, 0, 0, 0)}
    for mode, colour in white.items():
        path = tmp_path / f"{mode}.tiff"
        Image.new(mode, (20, 5), colour).convert("RGB" if mode == "P" else mode).save(path)
        assert READER.read(str(path)).shape == (4, 48)
    assert (READER.read(str(tmp_path / "L.tiff")) == 255).all()


def test_an_image_is_turned_as_its_metadata_say(tmp_path):
    image = Image.fromarray(PIXELS)
    exif = Image.Exif()
    exif[0x0112] = 3  # orientation: by 180 degrees
    image.save(tmp_path / "turned.png", exif=exif)
    image.rotate(180).save(tmp_path / "plain.png")
    turned, plain = (READER.read(str(tmp_path / name)) for name in ("turned.png", "plain.png"))
    np.testing.assert_array_equal(turned, plain)


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "gif"])
def test_a_bad_image_is_one_clear_line(suffix, tmp_path):
    path = tmp_path / f"bad.{suffix}"
    Image.fromarray(np.tile(PIXELS, (8, 8, 1))).save(path)
    whole = path.read_bytes()
    for count in (len(whole) - 200, len(whole) // 2, 40):
        path.write_bytes(whole[:count])
        with pytest.raises(UserError, match=rf"^{path}: (cannot decode the image: .+|not an image that Pillow .+)$"):
            READER.read(str(path))
    for content in (b"", b"one two three\n"):
        path.write_bytes(content)
        with pytest.raises(UserError, match=rf"^{path}: not an image that Pillow can read"):
            READER.read(str(path))
    path.unlink()
    with pytest.raises(UserError, match=rf"^{path}: no such file"):
        READER.read(str(path))
    with pytest.raises(UserError, match=rf"^{tmp_path}: cannot decode the image: Is a directory"):
        READER.read(str(tmp_path))


def test_an_enormous_image_is_an_error(tmp_path, monkeypatch):
    Image.fromarray(PIXELS).save(tmp_path / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 20)
    with pytest.raises(UserError, match="more than 40 pixels; make it smaller"):
        READER.read(str(tmp_path / "a.png"))


def test_the_reader_is_that_of_the_config():
    assert row_reader("image", ConfigDict({"corpus": "text", "image_size": 8, "patch_size": 4})) == READER
