import itertools
import warnings

import pytest

from nmt_jax.data.readers.annotations import Annotation, Error
from nmt_jax.judging.annotated import make_ratings, parse_weights


def annotation(*errors):
    """A text with errors, each a severity and a category."""
    found = tuple(Error(*error, (), (), f"a.tsv:{number}") for number, error in enumerate(errors, start=2))
    return Annotation("s", "1", "r", "text", "source", found, {}, "a.tsv:2")


def score(one, *weights):
    return make_ratings([one], "mqm", parse_weights(weights))["mqm"].scores[0]


def test_the_order_of_errors_does_not_matter():
    errors = [("minor", "Fluency/Punctuation"), ("minor", "Fluency/Punctuation"), ("minor", "Style")]
    assert {score(annotation(*order)) for order in itertools.permutations(errors)} == {-1.2}


@pytest.mark.parametrize("key", ["Major/Non-translation!", " major / non-translation "])
def test_weights_are_written_like_the_errors(key):
    assert score(annotation(("Major", "Non-translation!")), f"{key}=10") == -10


def test_weights_of_errors_that_do_not_occur():
    one = annotation(("Major", "Accuracy/Omission"))
    with pytest.warns(UserWarning, match=r"--weights: there are no errors majr, major/accur$"):
        assert score(one, "majr=3", "major/accur=4", "major/accuracy=7", "minor=2") == -7
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert score(one, "major/accuracy=7", "major/accuracy/omission=8") == -8
