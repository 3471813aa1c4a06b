"""Extractive summaries of texts by one of several methods."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from metrics_jax.surface.tokenizers import tokenize
from nmt_jax.summarization import extraction

METHODS = ("lead", "sumbasic", "lexrank", "textrank")
EMBEDDING_THRESHOLD = 0.5  # cosine of neighbours for lexrank with an encoder
# A sentence ends at a full stop or the like, if no lower-case letter follows.
SENTENCE_END = re.compile(r"(?<=[.!?…。！？])[\"'”’»)\]]*\s+(?=[\"'“‘«(\[]*[^\W\d_a-z])")

Embed = Callable[[Sequence[str]], np.ndarray]  # N sentences -> float[N, D]


def summarize(
    lines: Iterable[str],
    *,
    method: str = "lexrank",
    num_sentences: int = 3,
    num_words: int = 0,
    encoder: str | None = None,
    threshold: float | None = None,
) -> Iterator[tuple[list[str], list[int]]]:
    """Yield the sentences of each line and the indices of those chosen, in text order.

    num_sentences: maximum number of sentences; num_words: maximum number of words, 0 for any number. encoder: what
    `pretrained.load_encoder` opens; sentences are then compared by the means of their token embeddings instead of their
    words. threshold: cosine from which on lexrank treats sentences as neighbours.
    """
    embed = sentence_embedder(encoder) if encoder else None
    for line in lines:
        sentences = split_sentences(line)
        order = rank_sentences(sentences, method, embed, threshold)
        lengths = [len(sentence.split()) for sentence in sentences]
        yield sentences, extraction.choose(order, lengths, num_sentences, num_words)


def split_sentences(line: str) -> list[str]:
    """Split a text at tabs if it has any, else where a sentence appears to end."""
    parts = line.split("\t") if "\t" in line else SENTENCE_END.split(line)
    return [part.strip() for part in parts if part.strip()]


def rank_sentences(
    sentences: Sequence[str], method: str, embed: Embed | None = None, threshold: float | None = None
) -> list[int]:
    """Return the indices of the sentences, best first."""
    words = tokenize(sentences, "13a", True)
    if method == "lead":
        return extraction.lead(words)
    if method == "sumbasic":
        return extraction.sum_basic(words)
    cosines = extraction.cosines(embed(sentences)) if embed else None
    if method == "lexrank":
        default = extraction.THRESHOLD if cosines is None else EMBEDDING_THRESHOLD
        similarity = extraction.tf_idf(words) if cosines is None else cosines
        return extraction.lex_rank(similarity, default if threshold is None else threshold)
    return extraction.text_rank(extraction.shared_words(words) if cosines is None else cosines)


def sentence_embedder(place: str) -> Embed:
    """Return a function that maps sentences to vectors with the encoder of a folder, package or workdir."""
    from metrics_jax.embedding.ruse import sentence_vectors
    from nmt_jax import platforms
    from nmt_jax.pretrained import load_encoder

    platforms.configure_compilation()
    encoder = load_encoder(place)

    def embed(sentences: Sequence[str]) -> np.ndarray:
        return sentence_vectors(encoder, sentences)[0] if sentences else np.zeros((0, 1))

    return embed
