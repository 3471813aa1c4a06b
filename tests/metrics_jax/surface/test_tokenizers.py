import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import _get_tokenizer

from metrics_jax.surface.tokenizers import tokenize

# All characters in the rules of the tokenizers, and some others.
ALPHABET = list("ab19 .,-\n&;!\"'`~{[(/)]<>#¡«»。、中日本語ー‐–—’٣²½€+=$\t\x0b\x1c\u2028\u2003\u3000🙂𠀀é")
pieces = st.sampled_from([*ALPHABET, ".", ",", "1", "&amp;", "&quot;", "&gt;", "<skipped>", "-\n", "&amp;lt;"])
texts = st.lists(st.lists(pieces, max_size=12).map("".join) | st.text(max_size=6), min_size=1, max_size=8)


@pytest.mark.parametrize("name", ["13a", "intl", "zh", "char", "none"])
@given(texts)
@settings(max_examples=150, deadline=None)
def test_equal_to_sacrebleu(name, corpus):
    reference = _get_tokenizer(name)()
    assert tokenize(corpus, name) == [reference(text.rstrip()).split() for text in corpus]


def test_texts_are_lower_cased_first():
    assert tokenize(["İ A"], "none", lowercase=True) == [["i̇", "a"]]


def test_points_between_digits_are_kept():
    assert tokenize(["1.5 1. a,b ...", "x."], "13a") == [["1.5", "1", ".", "a", ",", "b", ".", ".", "."], ["x", "."]]


def test_missing_package_or_model(monkeypatch, tmp_path):
    monkeypatch.setenv("SACREBLEU", str(tmp_path))
    with pytest.raises(ValueError, match="download it with `sacrebleu --tokenize flores200`"):
        tokenize(["a"], "flores200")
    with pytest.raises(ValueError, match=r"pip install 'sacrebleu\[ko\]'"):
        tokenize(["a"], "ko-mecab")
