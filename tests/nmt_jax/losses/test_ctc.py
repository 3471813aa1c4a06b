"""CTC: the sum over all alignments, padding, and targets that are too long."""

import itertools

import jax
import numpy as np
import pytest

from nmt_jax.data.vocabulary.vocab import EOS, PAD
from nmt_jax.losses.ctc import BLANK, ctc_loss

S, V = 4, 6
LOGITS = np.random.default_rng(0).normal(size=(3, S, V)).astype(np.float32)
TARGET = np.array([[4, 5, EOS, PAD], [5, 5, EOS, PAD], [4, EOS, PAD, PAD]])
LENGTHS = np.array([4, 3, 2])
MASK = np.arange(S) < LENGTHS[:, None]
loss = jax.jit(ctc_loss)


def collapsed(path):
    """A path without repetitions, then without blanks (Graves et al., 2006, section 3.1)."""
    return [label for label, _ in itertools.groupby(path) if label != BLANK]


def oracle(logits, labels):
    log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    paths = itertools.product(range(V), repeat=len(logits))
    return -np.log(sum(np.exp(log_probs[range(len(path)), path].sum()) for path in paths if collapsed(path) == labels))


def test_the_loss_sums_over_all_alignments():
    expected = [
        oracle(logits[:length], [label for label in row if label > EOS])
        for logits, length, row in zip(LOGITS.astype(float), LENGTHS, TARGET, strict=True)
    ]
    np.testing.assert_allclose(loss(LOGITS, MASK, TARGET), expected, rtol=1e-5)


def test_padding_has_no_influence():
    filled = np.where(MASK[..., None], LOGITS, 50).astype(np.float32)
    np.testing.assert_array_equal(loss(filled, MASK, TARGET), loss(LOGITS, MASK, TARGET))
    gradient = jax.jit(jax.grad(lambda logits: loss(logits, MASK, TARGET).sum()))(LOGITS)
    assert (gradient[~MASK] == 0).all()
    assert (gradient[MASK] != 0).all()


@pytest.mark.parametrize(("length", "possible"), [(3, True), (2, False), (0, False)])
def test_a_target_without_alignment_has_no_loss(length, possible):
    mask = np.arange(S)[None] < length  # two equal labels need three states
    value, gradient = jax.jit(jax.value_and_grad(lambda logits: loss(logits, mask, TARGET[1:2])[0]))(LOGITS[1:2])
    assert (value > 0) == possible
    assert np.isfinite(gradient).all()
    assert (gradient != 0).any() == possible
