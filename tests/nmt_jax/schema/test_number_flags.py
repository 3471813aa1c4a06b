"""Every flag of every verb that takes a number refuses what is out of range, before anything is loaded."""

import importlib

import pytest
from absl import flags

from nmt_jax.__main__ import VERBS
from nmt_jax.schema.number_flags import NumberParser, define_float, define_integer, define_seed


def verb_flags(verb):
    values = flags.FlagValues()
    importlib.import_module(f"nmt_jax.commands.{verb}").define_flags(values)
    return {name: values[name] for name in values}


NUMBERS = {
    (verb, name): flag.parser
    for verb in VERBS
    for name, flag in verb_flags(verb).items()
    if flag.flag_type() in ("int", "float")
}


def out_of_range(key):
    """Texts that the flag must refuse."""
    low = [key.above, key.above - 1] if key.low is None else [key.low - 1]
    high = [key.high + 1] if key.below is None else [key.below, key.below + 1]
    return [*map(str, low + high), "nan", "inf", "-inf", "1e999", "", "x", "9" * 500]


@pytest.mark.parametrize(("verb", "name"), NUMBERS)
def test_a_number_out_of_range_is_refused_before_anything_is_read(verb, name, mistake):
    parser = NUMBERS[verb, name]
    assert isinstance(parser, NumberParser)
    for text in out_of_range(parser.key):
        assert f"--{name}={text}: must be " in mistake(verb, f"--{name}={text}", "--workdir=/nowhere")


def test_seeds_have_one_range_in_all_verbs():
    seeds = {verb: (parser.key.low, parser.key.high) for (verb, name), parser in NUMBERS.items() if name == "seed"}
    assert {
        "align",
        "translate",
        "augment",
        "generate",
        "perturb",
        "mbr",
        "rerank",
        "score",
        "judge",
        "choose_pairs",
        "calibrate",
    } == seeds.keys()
    assert all(bounds == (0, 2**63 - 1) for bounds in seeds.values())


def test_values_within_the_range_and_at_its_ends():
    values = flags.FlagValues()
    define_integer(values, "count", None, "", low=1, high=9)
    define_float(values, "share", 0.5, "", above=0, high=1)
    define_seed(values, 0)
    values(["", "--count=9", "--share=1", f"--seed={2**63 - 1}"])
    assert (values.count, values.share, values.seed) == (9, 1.0, 2**63 - 1)
    assert isinstance(values.share, float)
