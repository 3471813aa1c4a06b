"""Transport problems to test solvers with: ties, costs of 0, a single unit, weights of very different sizes."""

import numpy as np
from hypothesis import strategies as st

SIZE = 6  # of both sides, padding included, so that one compiled program solves them all

weights = st.lists(st.sampled_from([0.0, 1e-6, 0.1, 0.5, 1.0, 3.0]), min_size=SIZE, max_size=SIZE).filter(any)
costs = st.lists(
    st.sampled_from([0.0, 1e-3, 0.5, 1.0, 1.0, 7.0]) | st.floats(0, 10), min_size=SIZE**2, max_size=SIZE**2
)


@st.composite
def problems(draw) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weights float[SIZE] each of sum 1 and costs float[SIZE, SIZE]."""
    a, b, cost = (np.array(draw(values)) for values in (weights, weights, costs))
    return a / a.sum(), b / b.sum(), cost.reshape(SIZE, SIZE)


def word_like(number: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As of pairs of texts: half of the second's 25 units are near some of the first's 25."""
    generator = np.random.default_rng(seed)
    first = generator.normal(size=(number, 25, 50))
    second = generator.normal(size=(number, 25, 50))
    second[:, ::2] = 0.1 * second[:, ::2] + first[:, 12::-1]
    a, b = (generator.dirichlet(np.full(25, 2.0), number) for _ in range(2))
    return a, b, np.linalg.norm(first[:, :, None] - second[:, None], axis=-1)
