"""`nmt-jax summarize`: reads a text per line, writes an extractive summary."""

from collections.abc import Iterator, Sequence
from typing import Any

from absl import flags

from nmt_jax.commands import streams
from nmt_jax.commands.output import define_output_flags, open_output
from nmt_jax.data.lines import num_lines
from nmt_jax.errors import UserError
from nmt_jax.pretrained.sentence_vectors import sentence_embedder
from nmt_jax.schema.number_flags import define_float, define_integer
from nmt_jax.summarization.summarizer import METHODS, summarize

CHUNK = 512


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax summarize`."""
    flags.DEFINE_enum("method", "lexrank", METHODS, "Method that ranks the sentences.", flag_values)
    help_text = "Maximum number of sentences in a summary."
    define_integer(flag_values, "sentences", 3, help_text, low=1)
    help_text = "Maximum number of words in a summary; 0: no limit."
    define_integer(flag_values, "words", 0, help_text, low=0)
    help_text = "lexrank, textrank: compare sentences by embeddings of this encoder instead of by words."
    flags.DEFINE_string("encoder", None, help_text, flag_values)
    help_text = "lexrank: minimum cosine of neighbouring sentences; default: 0.1, with --encoder 0.5."
    define_float(flag_values, "threshold", None, help_text, low=-1, high=1)
    streams.define_input_flag(flag_values, ", one text per line, with tabs between sentences or plain")
    streams.define_chunk_flag(flag_values, CHUNK)
    define_output_flags(flag_values)
    help_text = "Output format; json writes one object per line, with the numbers of the sentences."
    flags.DEFINE_enum("format", "text", ["text", "json"], help_text, flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Summarize the lines of the input."""
    streams.check_no_arguments("summarize", positional)
    method = flag_values.method
    if flag_values.encoder and method not in ("lexrank", "textrank"):
        raise UserError(f"--encoder: {method} compares no sentences; use --method=lexrank or --method=textrank")
    if flag_values.threshold is not None and method != "lexrank":
        raise UserError(f"--threshold: {method} has none; use --method=lexrank")
    name, total = flag_values.input, num_lines(flag_values.input)
    with open_output("summarize", flag_values, [name], streams.chunk_size(flag_values), total) as output:
        embed = sentence_embedder(flag_values.encoder) if flag_values.encoder else None
        options = {"method": method, "num_sentences": flag_values.sentences, "num_words": flag_values.words}
        options |= {"embed": embed, "threshold": flag_values.threshold}

        def answer(first: int, lines: Sequence[str]) -> Iterator[bytes]:
            return streams.encoded(_rows(lines, name or "stdin", first, flag_values.format == "json", **options))

        output.write(streams.open_lines(name), answer, "summarized", total)
    return 0


def _rows(lines: Sequence[str], name: str, first: int, as_json: bool, **options: Any) -> Iterator[str]:
    """Yield the summary of each line of a file, as text or JSON. Raises UserError, naming the line."""
    for number, line in enumerate(lines, start=first + 1):
        try:
            ((sentences, chosen),) = summarize([line], **options)
        except UserError as error:
            raise UserError(f"{name}:{number}: {error}") from None
        summary = " ".join(sentences[index] for index in chosen)
        numbers = [index + 1 for index in chosen]
        yield streams.json_row(line=number, summary=summary, sentences=numbers) if as_json else summary
