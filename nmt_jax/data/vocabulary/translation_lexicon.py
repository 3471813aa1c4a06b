"""Translation lexicons: probabilities p(e | f) of target words e given source words f, read from a file."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections import defaultdict

import numpy as np

from nmt_jax.data.lines import read_lines
from nmt_jax.data.vocabulary.vocab import UNK, Vocab
from nmt_jax.errors import UserError
from nmt_jax.storage.files import whole_file

ENTRIES = 32  # translations kept per source word; tables from word alignments have thousands for "the"


@dataclasses.dataclass(frozen=True, eq=False)
class Lexicon:
    """p(e | f) for the words of two vocabularies; row f holds up to ENTRIES target words and their probabilities.

    targets: int32[V, k]. probabilities: float32[V, k], 0 after the last entry. listed: number of lines of the file.
    """

    targets: np.ndarray = dataclasses.field(repr=False)
    probabilities: np.ndarray = dataclasses.field(repr=False)
    listed: int

    @classmethod
    def read(cls, path: str | os.PathLike[str], source: Vocab, target: Vocab) -> Lexicon:
        """Reads a file, plain or .gz, of lines SOURCE<TAB>TARGET<TAB>PROBABILITY.

        Keeps entries whose words are single tokens of their vocabularies, and the ENTRIES most probable ones of each
        source word. Raises UserError `FILE:LINE` for an invalid line, a probability outside (0, 1] or a duplicate
        entry; and UserError if the file is empty or no entry is kept.
        """
        rows: dict[int, dict[int, float]] = defaultdict(dict)
        listed = 0
        for listed, line in enumerate(read_lines(path), start=1):
            f, e, p = parse_entry(line, f"{path}:{listed}")
            f_id, e_id = _single(source, f), _single(target, e)
            if f_id is None or e_id is None:
                continue
            if e_id in rows[f_id]:
                raise UserError(f"{path}:{listed}: duplicate entry {f!r}, {e!r}; keep one of the lines")
            rows[f_id][e_id] = p
        if not any(rows.values()):
            raise UserError(
                f"{path}: none of the {listed:,} entries consists of single tokens of the two vocabularies; "
                "spell words as in the vocabularies, or use config.vocab.algorithm=word"
            )
        best = {f: sorted(row.items(), key=lambda entry: (-entry[1], entry[0]))[:ENTRIES] for f, row in rows.items()}
        shape = (len(source), max(map(len, best.values())))
        targets, probabilities = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
        for f_id, row in best.items():
            targets[f_id, : len(row)], probabilities[f_id, : len(row)] = zip(*row, strict=True)
        return cls(targets, probabilities, listed)

    def save(self, path: pathlib.Path, source: Vocab, target: Vocab) -> None:
        """Writes the entries in the format of `read`, the whole file or nothing."""
        lines = [
            f"{source.decode([f])}\t{target.decode([self.targets[f, n]])}\t{self.probabilities[f, n]}\n"
            for f, n in np.argwhere(self.probabilities)
        ]
        with whole_file(path) as file:
            file.write("".join(lines).encode())

    @property
    def report(self) -> str:
        """Summary in one line: number of entries kept."""
        kept = np.count_nonzero(self.probabilities)
        line = f"{kept:,} of {self.listed:,} entries, for {np.count_nonzero(self.probabilities[:, 0]):,} words"
        if kept == self.listed:
            return line
        return f"{line}; skipped: words of several tokens, and all but the {ENTRIES} most probable entries of a word"


def parse_entry(line: str, where: str) -> tuple[str, str, float]:
    """Parses a line SOURCE<TAB>TARGET<TAB>PROBABILITY. Raises UserError with `where` if it is invalid."""
    fields = line.split("\t")
    if len(fields) != 3 or not (fields[0].strip() and fields[1].strip()):
        advice = "write SOURCE, TARGET and PROBABILITY, separated by tabs"
        raise UserError(f"{where}: not an entry ({line[:60]!r}); {advice}")
    try:
        probability = float(fields[2])
    except ValueError:
        raise UserError(f"{where}: {fields[2]!r} is not a number; write the probability as in 0.25") from None
    if not 0.0 < probability <= 1.0:
        raise UserError(f"{where}: the probability {fields[2]} is not in (0, 1]")
    return fields[0], fields[1], probability


def _single(vocab: Vocab, word: str) -> int | None:
    """The id of a word that is a single token, else None."""
    ids = vocab.encode(word)
    return ids[0] if len(ids) == 1 and ids[0] != UNK else None
