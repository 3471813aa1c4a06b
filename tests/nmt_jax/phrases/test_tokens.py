"""Lines are split into words and punctuation, and restored."""

import unicodedata

import pytest

from nmt_jax.phrases import tokens


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("A man's T-shirt.", ["A", "man", "￭'s", "T-shirt", "￭."]),
        ('He says "no" (3.5 m)!', ["He", "says", '"￭', "no", '￭"', "(￭", "3.5", "m", "￭)", "￭!"]),
        ("Straße, grün", ["Straße", "￭,", "grün"]),
        ("हिन्दी, भाषा", ["हिन्दी", "￭,", "भाषा"]),
        (unicodedata.normalize("NFD", "Ein Café."), ["Ein", unicodedata.normalize("NFD", "Café"), "￭."]),
        ("2² ½\x1cx", ["2²", "½", "x"]),
        ("", []),
    ],
)
def test_a_word_is_the_same_token_beside_punctuation(line, expected):
    assert tokens.split(line) == expected
    assert tokens.join(expected) == line.replace("\x1c", " ")


def test_text_in_lower_case():
    assert tokens.split("Ein Mann", lowercase=True) == ["ein", "mann"]
