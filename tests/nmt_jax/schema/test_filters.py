"""Filters in a config: names, thresholds, and what is wrong with others."""

import pytest

from nmt_jax import config as configs
from nmt_jax.errors import UserError
from nmt_jax.schema.filters import parse_filter, problem_of_filters
from tests.conftest import ROOT


def test_a_filter_has_a_threshold_where_it_needs_one():
    texts = ["duplicates", "length_ratio", "length_ratio:2.5", "letters:0"]
    assert [tuple(parse_filter(text)) for text in texts] == [
        ("duplicates", 0),
        ("length_ratio", 4),
        ("length_ratio", 2.5),
        ("letters", 0),
    ]
    assert [str(parse_filter(text)) for text in texts] == [
        "duplicates",
        "length_ratio:4",
        "length_ratio:2.5",
        "letters:0",
    ]


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        (["duplicate"], "'duplicate' is not a filter; did you mean duplicates"),
        (["xyz"], "'xyz' is not a filter; the filters are duplicates, identical, length_ratio, letters"),
        (["identical:2"], "identical has no threshold"),
        (["length_ratio:half"], "the threshold must be from 1 to"),
        (["length_ratio:0.5"], "the threshold must be from 1 to"),
        (["letters:nan"], "the threshold must be from 0 to 1"),
        (["letters:0.5", "letters:0.6"], "letters is there twice"),
    ],
)
def test_other_filters_are_refused(filters, message):
    assert message in problem_of_filters(filters)


def test_a_config_with_an_unknown_filter_is_refused():
    with pytest.raises(UserError, match=r"config\.data\.filters: 'leters' is not a filter; did you mean letters"):
        configs.load(f"{ROOT}/configs/quickstart.py", {"data.filters": '["leters"]'})
