"""Cases worked out by hand from the definitions of Och and Ney (2003) and Koehn et al. (2003)."""

import pytest

from nmt_jax.alignment.symmetrization import METHODS


def links(text):
    return {tuple(map(int, link.split("-"))) for link in text.split()}


CASES = [
    # method, forward, reverse, result
    ("intersection", "0-0 1-1 2-3", "0-0 1-2 2-3", "0-0 2-3"),
    ("union", "0-0 1-1", "0-0 1-2", "0-0 1-1 1-2"),
    ("forward", "0-0 1-1", "0-0 1-2", "0-0 1-1"),
    ("reverse", "0-0 1-1", "0-0 1-2", "0-0 1-2"),
    # 1-1 is beside 0-0 and has unaligned words; then 1-2 is beside 1-1, and target word 2 is unaligned.
    ("grow-diag", "0-0 1-1 4-4", "0-0 1-2", "0-0 1-1 1-2"),
    # 4-4 is not beside any link: only `final` adds it, because both of its words are unaligned.
    ("grow-diag-final-and", "0-0 1-1 4-4", "0-0 1-2", "0-0 1-1 1-2 4-4"),
    # Both words of 0-1 and 1-0 are aligned by 0-0 and 1-1, so nothing is added.
    ("grow-diag-final-and", "0-0 1-1 0-1", "0-0 1-1 1-0", "0-0 1-1"),
    # 3-0 has one aligned word: `final-and` does not add it.
    ("grow-diag-final-and", "0-0 3-0", "0-0", "0-0"),
    # The word of the forward direction comes first; then 3-4 has an aligned word.
    ("grow-diag-final-and", "0-0 3-3", "0-0 3-4", "0-0 3-3"),
    # 2-2 is reached by way of 1-1, which was added after 3-3 had been visited.
    ("grow-diag", "3-3 2-2 1-1", "3-3", "1-1 2-2 3-3"),
    ("grow-diag-final-and", "", "", ""),
]


@pytest.mark.parametrize(("method", "forward", "reverse", "result"), CASES)
def test_cases(method, forward, reverse, result):
    given = links(forward), links(reverse)
    assert METHODS[method](*given) == links(result)
    assert given == (links(forward), links(reverse))
