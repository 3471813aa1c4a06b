"""Word alignment of the embedded grammar: parallel text, and the error rate of links of nouns.

    python -m benchmarks.grammar_alignment FOLDER                   # writes train, val and test, .en and .de
    python -m benchmarks.grammar_alignment FOLDER LINKS [LINKS …]   # scores links of test.en and test.de

The text is lower-cased, with punctuation split off. The links of nouns that occur once on both sides follow from the
lexicon of the grammar; links without any of these words are ignored. Prints one line of JSON for each file.
"""

import argparse
import json
import pathlib
import re
from collections.abc import Iterator, Sequence

from metrics_jax.prediction.alignments import AlignmentScores, alignment_scores, alignment_statistics
from nmt_jax.alignment.links import Link, parse_links
from nmt_jax.data import grammar
from nmt_jax.data.grammar.inflection import Case
from nmt_jax.data.grammar.lexicon import NOUNS

SIZES = {"train": 20_000, "val": 300, "test": 300}
WORD = re.compile(r"\w+|[^\w\s]")
Pair = Sequence[Sequence[str]]  # the words of both sides


def noun_links(pairs: Sequence[Pair], lower: bool = False) -> Iterator[set[Link]]:
    """Yield the links between the nouns of each English-German pair; lower: whether the text is lower-cased."""
    fold = str.lower if lower else str
    german: dict[str, set[str]] = {}
    for noun in (noun for nouns in NOUNS.values() for noun in nouns):
        for english, plural in ((noun.english, False), (noun.english_plural, True)):
            if not plural or noun.german_plural:
                forms = (fold(noun.inflect(case, plural)) for case in Case)
                german.setdefault(fold(english), set()).update(forms)
    for source, target in pairs:
        places = {
            i: [j for j, word in enumerate(target) if word in german.get(one, ())] for i, one in enumerate(source)
        }
        yield {(i, j[0]) for i, j in places.items() if len(j) == 1 and list(source).count(source[i]) == 1}


def noun_scores(found: Sequence[set[Link]], gold: Sequence[set[Link]]) -> AlignmentScores:
    """Return the scores of the links that have a word of a gold link."""
    judged = []
    for links, right in zip(found, gold, strict=True):
        sources, targets = {i for i, _ in right}, {j for _, j in right}
        judged.append({(i, j) for i, j in links if i in sources or j in targets})
    return alignment_scores(alignment_statistics(judged, gold, gold))


def _write(folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, size in SIZES.items():
        pairs = [*grammar.pairs({"val": "dev"}.get(name, name), size)]
        for side, language in enumerate(("en", "de")):
            lines = (" ".join(WORD.findall(pair[side].lower())) for pair in pairs)
            (folder / f"{name}.{language}").write_text("".join(f"{line}\n" for line in lines))


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the text, or score files of links."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("links", nargs="*", type=pathlib.Path)
    options = parser.parse_args(arguments)
    if not options.links:
        _write(options.folder)
        return
    sides = ((options.folder / f"test.{language}").read_text().splitlines() for language in ("en", "de"))
    pairs = [[line.split() for line in pair] for pair in zip(*sides, strict=True)]
    gold = [*noun_links(pairs, lower=True)]
    for path in options.links:
        rows = zip(path.read_text().splitlines(), pairs, strict=True)
        found = [set(parse_links(row, (len(pair[0]), len(pair[1])), str(path)).possible) for row, pair in rows]
        print(json.dumps({"links": str(path), **noun_scores(found, gold)._asdict()}))


if __name__ == "__main__":
    main()
