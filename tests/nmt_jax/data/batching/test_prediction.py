"""Batches for decoding: every input once, longest first, in few shapes."""

import numpy as np
import pytest

from nmt_jax.data.batching.prediction import decoding_batches
from nmt_jax.data.vocabulary.vocab import EOS, PAD


@pytest.mark.parametrize("multiple_of", [1, 3, 8])
def test_decoding_batches_hold_every_input_once_in_few_shapes(multiple_of):
    random = np.random.default_rng(1)
    sources = [random.integers(4, 100, length).tolist() for length in random.geometric(0.06, 700)]
    shapes, seen = [], []
    for indices, batch in decoding_batches(sources, batch_tokens=1024, multiple_of=multiple_of):
        rows, length = batch["source"].shape
        shapes.append((rows, length))
        assert rows % multiple_of == 0
        assert rows * length <= 1024 or rows == multiple_of
        for index, row in zip(indices, batch["source"], strict=False):
            assert row[row != PAD].tolist() == [*sources[index], EOS]
        assert (batch["source"][len(indices) :] == PAD).all()
        seen += indices.tolist()
    assert sorted(seen) == list(range(700))
    assert len(set(shapes)) <= 2 * len({length for _, length in shapes})
    assert [length for _, length in shapes] == sorted((length for _, length in shapes), reverse=True)
    assert {length for _, length in shapes} <= {8, 16, 24, 32, 48, 64, 96, 128, 192, 256}


def test_the_padded_length_of_an_input_depends_on_it_alone():
    inputs = [[5] * length for length in (3, 30, 9, 3)]
    shapes = {}
    for indices, batch in decoding_batches(inputs, batch_tokens=1024, kinds=["a", "a", "a", "b"]):
        shapes |= dict.fromkeys(indices.tolist(), batch["source"].shape)
    assert shapes == {0: (1, 8), 1: (1, 32), 2: (1, 16), 3: (1, 8)}


def test_small_inputs_get_small_batches():
    assert list(decoding_batches([], batch_tokens=100)) == []
    ((indices, batch),) = decoding_batches([[], [7, 7]], batch_tokens=4096)
    assert indices.tolist() == [1, 0]
    assert batch["source"].tolist() == [[7, 7, EOS, *[PAD] * 5], [EOS, *[PAD] * 7]]
    ((indices, batch),) = decoding_batches([[5] * 10_000], batch_tokens=4096)
    assert batch["source"].shape == (1, 12_288)
