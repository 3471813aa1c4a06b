"""`nmt-jax align_sentences`: aligns the sentences of a document and its translation by their lengths."""

import collections
import contextlib
import sys
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from absl import flags

from nmt_jax.alignment.gale_church import CHARACTERS, VARIANCE, Bead, align
from nmt_jax.alignment.paragraphs import Paragraph, Sentence, read_documents
from nmt_jax.commands import streams
from nmt_jax.commands.shared_flags import values
from nmt_jax.errors import UserError
from nmt_jax.progress import track
from nmt_jax.schema.number_flags import define_float
from nmt_jax.storage.files import whole_file
from nmt_jax.storage.paths import path_of


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax align_sentences`."""
    help_text = "File with one sentence per line and an empty line after each paragraph or document, such as book.en."
    flags.DEFINE_string("source", None, help_text, flag_values)
    help_text = "File of its translation, with the same number of paragraphs, such as book.de."
    flags.DEFINE_string("target", None, help_text, flag_values)
    help_text = "Line that ends a paragraph, such as <P>; by default, empty lines do."
    flags.DEFINE_string("boundary", "", help_text, flag_values)
    help_text = "Prefix of the two files of aligned sentences, which end as the input files: PREFIX.en, PREFIX.de."
    flags.DEFINE_string("output", None, help_text, flag_values)
    help_text = "Write this file of SOURCE_LINES, TARGET_LINES, COST rows, also of sentences without counterpart."
    flags.DEFINE_string("beads", None, help_text, flag_values)
    help_text = "Expected number of target characters per source character: c of Gale and Church (1993)."
    define_float(flag_values, "characters", CHARACTERS, help_text, above=0, high=100)
    help_text = "Variance of this number: s^2 of Gale and Church."
    define_float(flag_values, "variance", VARIANCE, help_text, above=0, high=10_000)
    streams.define_overwrite_flag(flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Write the aligned sentences, print the names of the files, and on stderr the numbers of beads."""
    source, target, output, beads = (flag_values[name].value for name in ("source", "target", "output", "beads"))
    if positional or not (source and target and output):
        raise UserError("nmt-jax align_sentences needs --source=FILE, --target=FILE and --output=PREFIX, nothing else")
    paths = streams.parallel_files(output, source, target)
    written = [*paths, *([beads] if beads else [])]
    streams.check_distinct([source, target], written)
    streams.check_new(flag_values, *written)
    documents = read_documents(source, target, flag_values.boundary)
    counts = run(documents, paths, beads, **values(flag_values, "characters", "variance"))
    print(*written, sep="\n")
    found = ", ".join(f"{count:,} {a}-{b}" for (a, b), count in sorted(counts.items(), key=lambda item: -item[1]))
    number = f"{len(documents):,} paragraph{'s' * (len(documents) != 1)}"
    print(f"nmt-jax: {number}: {found}", file=sys.stderr)
    return 0


def run(
    documents: Sequence[tuple[Paragraph, Paragraph]],
    paths: Sequence[str],
    beads: str | None = None,
    *,
    characters: float = CHARACTERS,
    variance: float = VARIANCE,
) -> dict[tuple[int, int], int]:
    """Align paragraph by paragraph, and write the two files and the file `beads`, if it is named.

    Returns the number of beads of each shape, such as (2, 1).
    """
    counts: collections.Counter[tuple[int, int]] = collections.Counter()
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(whole_file(path_of(path))) for path in (*paths, *([beads] if beads else []))]
        whole = len(documents) == 1
        progress = _show_sentences if whole else iter  # one display at a time
        for paragraphs in documents if whole else track(documents, "paragraphs", len(documents)):
            lengths = [[len(sentence.text) for sentence in side.sentences] for side in paragraphs]
            for bead in align(*lengths, characters=characters, variance=variance, progress=progress):
                sides = [side.sentences[slice(*span)] for side, span in zip(paragraphs, bead[:2], strict=True)]
                counts[len(sides[0]), len(sides[1])] += 1
                _write(files, sides, bead)
    return counts


def _show_sentences(numbers: range) -> Iterator[int]:
    """Yield the numbers, and display how many sentences of both sides are done."""
    return track(numbers, "sentences", len(numbers))


def _write(files: Sequence[BinaryIO], sides: Sequence[Sequence[Sentence]], bead: Bead) -> None:
    """Write a bead to the files of the two sides, unless one is empty, and to the file of beads if there is one."""
    if all(sides):
        for file, side in zip(files, sides, strict=False):
            file.write((" ".join(sentence.text for sentence in side) + "\n").encode())
    for file in files[2:]:
        lines = [",".join(str(sentence.line) for sentence in side) for side in sides]
        file.write(("\t".join([*lines, f"{bead.cost:.4f}"]) + "\n").encode())
