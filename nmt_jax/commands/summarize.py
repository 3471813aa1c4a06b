"""`nmt-jax summarize`: texts on stdin, one a line, sentences of theirs that stand for the whole on stdout."""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from absl import flags

from metrics_jax.surface.tokenizers import tokenize
from nmt_jax.data.lines import decode_lines, num_lines, read_lines
from nmt_jax.errors import UserError
from nmt_jax.progress import track
from nmt_jax.summarization import extraction

METHODS = ("lead", "sumbasic", "lexrank", "textrank")
END = re.compile(r"(?<=[.!?…。！？])[\"'”’»)\]]*\s+(?=[\"'“‘«(\[]*[^\W\d_a-z])")  # of a sentence: then no small letter


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax summarize`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_enum("method", "lexrank", METHODS, "How sentences are chosen.", **given)
    flags.DEFINE_integer("sentences", 3, "At most so many.", lower_bound=1, **given)
    flags.DEFINE_integer("words", 0, "At most so many words; 0 = any number.", lower_bound=0, **given)
    flags.DEFINE_string("encoder", None, "lexrank, textrank: compare vectors of this encoder, not words.", **given)
    flags.DEFINE_float("threshold", None, "lexrank: cosine of neighbours [0.1; --encoder: 0.5].", **given)
    flags.DEFINE_string("input", None, "Read this file instead of stdin; .gz is unpacked.", **given)
    flags.DEFINE_enum("format", "text", ["text", "json"], "json: an object a line, with sentences' numbers.", **given)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, lines through."""
    if positional:
        raise UserError(f"nmt-jax summarize reads stdin: … < {positional[0]}, or --input={positional[0]}")
    graph = flag_values.method in ("lexrank", "textrank")
    if flag_values.encoder and not graph:
        raise UserError(f"--encoder: {flag_values.method} compares no sentences; take --method=lexrank or textrank")
    if flag_values.threshold is not None and flag_values.method != "lexrank":
        raise UserError(f"--threshold: {flag_values.method} has none; take --method=lexrank")
    lines = read_lines(flag_values.input) if flag_values.input else decode_lines(sys.stdin.buffer, "stdin")
    results = run(
        lines,
        method=flag_values.method,
        num_sentences=flag_values.sentences,
        num_words=flag_values.words,
        encoder=flag_values.encoder,
        threshold=flag_values.threshold,
    )
    if not sys.stdout.isatty():
        results = track(results, "summarized", total=num_lines(flag_values.input))
    for sentences, chosen in results:
        row = " ".join(sentences[number] for number in chosen)
        if flag_values.format == "json":
            row = json.dumps({"summary": row, "sentences": [number + 1 for number in chosen]}, ensure_ascii=False)
        sys.stdout.buffer.write(f"{row}\n".encode())
        sys.stdout.buffer.flush()
    return 0


def run(
    lines: Iterable[str],
    *,
    method: str = "lexrank",
    num_sentences: int = 3,
    num_words: int = 0,
    encoder: str | None = None,
    threshold: float | None = None,
) -> Iterator[tuple[list[str], list[int]]]:
    """For each line its sentences, and the numbers of those chosen, in text order.

    Sentences stand between tabs; a line without a tab is cut where a sentence seems to end. encoder: a folder, package
    or workdir, see `pretrained.load_encoder`; a sentence is then the mean of its tokens' last states.
    """
    embed = _embedder(encoder) if encoder else None
    for line in lines:
        sentences = split(line)
        words = tokenize(sentences, "13a", True)
        order = rank(sentences, words, method, embed, threshold)
        yield sentences, extraction.choose(order, [len(one.split()) for one in sentences], num_sentences, num_words)


def rank(
    sentences: Sequence[str], words: extraction.Words, method: str, embed: Any, threshold: float | None
) -> list[int]:
    """The numbers of the sentences, best first."""
    if method == "lead":
        return extraction.lead(words)
    if method == "sumbasic":
        return extraction.sum_basic(words)
    if method == "lexrank":
        alike = extraction.cosines(embed(sentences)) if embed else extraction.tf_idf(words)
        return extraction.lex_rank(
            alike, threshold if threshold is not None else 0.5 if embed else extraction.THRESHOLD
        )
    return extraction.text_rank(extraction.cosines(embed(sentences)) if embed else extraction.shared_words(words))


def split(line: str) -> list[str]:
    """The sentences of a text: between tabs, else between what ends one and a letter that begins one."""
    parts = line.split("\t") if "\t" in line else END.split(line)
    return [part.strip() for part in parts if part.strip()]


def _embedder(place: str) -> Any:
    from metrics_jax.embedding.ruse import sentence_vectors
    from nmt_jax import platforms
    from nmt_jax.pretrained import load_encoder

    platforms.configure_compilation()
    encoder = load_encoder(place)

    def embed(sentences: Sequence[str]) -> np.ndarray:
        return sentence_vectors(encoder, sentences)[0] if sentences else np.zeros((0, 1))

    return embed
