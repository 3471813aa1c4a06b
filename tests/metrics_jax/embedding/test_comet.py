import numpy as np
import pytest

from metrics_jax.embedding.comet import check_long
from metrics_jax.embedding.contextual import TextTooLongError


def test_the_first_input_that_is_too_long():
    pieces, owner = np.array([3, 9, 7, 8]), np.array([0, 1, 1, 2])
    assert check_long("truncate", pieces, owner, 7).tolist() == [False, True, False, True]
    with pytest.raises(TextTooLongError, match=r"^segment 1 is too long: an input of 9 pieces, but .* at most 7; choo"):
        check_long("error", pieces, owner, 7)
    check_long("error", pieces, owner, 9)
