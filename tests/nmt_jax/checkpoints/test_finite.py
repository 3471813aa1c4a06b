import numpy as np
import pytest

from nmt_jax.checkpoints.finite import check_outputs
from nmt_jax.errors import UserError


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_are_errors(value):
    with pytest.raises(UserError, match="the outputs of the model are not finite"):
        check_outputs(np.array([0.0, value], np.float32))


@pytest.mark.parametrize("outputs", [[], [0.0], np.array([-np.inf, 3e38]), 1.5])
def test_other_values_are_not(outputs):
    check_outputs(outputs)
