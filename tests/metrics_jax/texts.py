"""Texts to test metrics with: drawn at random, and odd ones."""

from hypothesis import strategies as st

ODD = ["", " ", "\n\n", "\ud800", "\x00", "a\u2028b", "\u0301", "!?", "\n a", "a" * 300, "a " * 300]

# Lines and words of several scripts, or anything at all.
lines = st.text(max_size=30) | st.lists(
    st.sampled_from(["a", "B", "cats", "the", "über", "中", "\n", " ", ", ", "-"])
).map("".join)


def spaced(*words: str, max_size: int = 7) -> st.SearchStrategy[str]:
    """These words and odd ones of up to three characters, lone surrogates included, with blanks between."""
    return st.lists(st.sampled_from(words) | st.text(st.characters(), max_size=3), max_size=max_size).map(" ".join)


def segments(texts: st.SearchStrategy[str], max_size: int = 5) -> st.SearchStrategy[list[tuple[str, list[str]]]]:
    """Hypotheses, each with one to three references."""
    return st.lists(st.tuples(texts, st.lists(texts, min_size=1, max_size=3)), min_size=1, max_size=max_size)
