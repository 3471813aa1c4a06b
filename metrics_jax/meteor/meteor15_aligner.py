"""METEOR 1.5's aligner (Denkowski and Lavie, 2014, section 2): candidate matches of all modules, then a beam search.

What the Java program does and the paper does not say is written beside the code; all of it changes scores.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from metrics_jax.meteor.meteor15_tables import LONGEST_PHRASE, Paraphrases

BEAM_SIZE = 40
Place = tuple[int, int]
Path = tuple[int, int, int]
Option = tuple[int, int, int, int, int]
MODULES = ("exact", "stem", "synonym", "paraphrase")


class Match(NamedTuple):
    """A phrase of the reference and a phrase of the hypothesis, by first word and length; module: its number."""

    reference_start: int
    reference_length: int
    start: int
    length: int
    module: int


@dataclasses.dataclass(frozen=True)
class Aligner:
    """Aligns the words of two texts by `modules`, of which the others are what three of them need.

    stem: word -> stem. synsets: word -> the sets of synonyms it is in.
    """

    modules: tuple[str, ...]
    stem: Callable[[str], str] | None = None
    synsets: Callable[[str], frozenset[str]] | None = None
    paraphrases: Paraphrases | None = None

    def align(self, hypothesis: Sequence[str], reference: Sequence[str]) -> list[Match]:
        """-> the matches, in the order of the reference; no word is in two of them."""
        return search(self.candidates(hypothesis, reference), len(hypothesis), len(reference), self.modules)

    def candidates(self, hypothesis: Sequence[str], reference: Sequence[str]) -> list[Match]:
        """Every match that a module allows, by module and in the order in which the search tries them.

        If the texts are the same, the first module decides alone.
        """
        keys, reference_keys = list(map(java_hash, hypothesis)), list(map(java_hash, reference))
        found: list[Match] = []
        for number, module in enumerate(self.modules[:1] if keys == reference_keys else self.modules):
            if module == "paraphrase":
                found += self._paraphrase_matches(hypothesis, reference, number)
                continue
            if module == "exact":
                pairs = _equal(keys, reference_keys)
            elif module == "stem":
                assert self.stem is not None
                stems = [[java_hash(self.stem(word)) for word in words] for words in (hypothesis, reference)]
                pairs = [(j, i) for j, i in _equal(*stems) if keys[i] != reference_keys[j]]
            else:
                pairs = [(j, i) for j, i in self._synonyms(hypothesis, reference) if keys[i] != reference_keys[j]]
            found += [Match(j, 1, i, 1, number) for j, i in pairs]
        return found

    def _synonyms(self, hypothesis: Sequence[str], reference: Sequence[str]) -> list[tuple[int, int]]:
        """Positions j, i of words that share a set of synonyms."""
        assert self.synsets is not None
        ours = [(i, sets) for i, word in enumerate(hypothesis) if (sets := self.synsets(word))]
        theirs = [(j, sets) for j, word in enumerate(reference) if (sets := self.synsets(word))]
        return [(j, i) for j, others in theirs for i, sets in ours if not others.isdisjoint(sets)]

    def _paraphrase_matches(self, hypothesis: Sequence[str], reference: Sequence[str], number: int) -> list[Match]:
        """Paraphrases of the reference's phrases, then of the hypothesis's; a pair may be in the table both ways."""
        assert self.paraphrases is not None
        ours, theirs = _Phrases(hypothesis), _Phrases(reference)
        backward = theirs.paraphrased(ours, self.paraphrases)
        forward = ours.paraphrased(theirs, self.paraphrases)
        return [
            *(Match(*place, *other, number) for place, other in backward),
            *(Match(*other, *place, number) for place, other in forward),
        ]


@functools.lru_cache(2**18)
def java_hash(word: str) -> int:
    """Java's String.hashCode, without its sign: METEOR compares words and stems by it, so "to" equals "v1"."""
    code = 0
    units = word.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = 31 * code + (high << 8 | low) & 0xFFFFFFFF
    return code


def _equal(keys: Sequence[int], reference_keys: Sequence[int]) -> list[tuple[int, int]]:
    """Positions j, i of equal keys, sorted."""
    places: dict[int, list[int]] = {}
    for i, key in enumerate(keys):
        places.setdefault(key, []).append(i)
    return [(j, i) for j, key in enumerate(reference_keys) for i in places.get(key, ())]


class _Phrases:
    """The phrases of a text: those of one word, of two words ... where they stand, words separated by one blank."""

    def __init__(self, words: Sequence[str]) -> None:
        self._by_length = [words]
        for length in range(1, LONGEST_PHRASE):
            pairs = zip(self._by_length[-1], words[length:], strict=False)
            self._by_length.append([f"{phrase} {word}" for phrase, word in pairs])
        self._all = set().union(*self._by_length)

    def paraphrased(self, other: "_Phrases", paraphrases: Paraphrases) -> list[tuple[Place, Place]]:
        """Places of a phrase and of a paraphrase of it in the other text, by place, then by rank in the table."""
        found = []
        for phrase in paraphrases.phrases & self._all:
            known = paraphrases.of(phrase)
            if not other._all.isdisjoint(known):
                targets = [place for one in known if one in other._all for place in other._places(one)]
                found += [(place, target) for place in self._places(phrase) for target in targets]
        return sorted(found, key=itemgetter(0))

    def _places(self, phrase: str) -> list[Place]:
        """Where a phrase stands: first word and length."""
        length = phrase.count(" ") + 1
        return [(start, length) for start, one in enumerate(self._by_length[length - 1]) if one == phrase]


def search(candidates: Sequence[Match], length: int, reference_length: int, modules: Sequence[str]) -> list[Match]:
    """The best of the alignments that can be made of `candidates`, as METEOR's beam search finds it.

    A match without a rival for any of its words is certain. Over the others the search goes from left to right in the
    reference and takes or leaves each. Of two paths that is better which covers more words: in an exact match each
    counts, in others half of a phrase's words, rounded down (so a single stem or synonym counts nothing, and taking it
    may cost a chunk). Then counts which has fewer chunks, where a gap in the reference closes a chunk; then which has
    less distance, which adds up |i - j| not of the matches in a path, but of those tried after it. Ties keep their
    order, and the last chunk is closed after the last sort.
    """
    rivals, reference_rivals = [0] * length, [0] * reference_length  # candidates that cover each word
    for reference_start, reference_words, start, words, _ in candidates:
        for j in range(reference_start, reference_start + reference_words):
            reference_rivals[j] += 1
        for i in range(start, start + words):
            rivals[i] += 1
    certain: dict[int, Match] = {}
    contested = []
    for match in candidates:
        j, reference_words, i, words, _ = match
        if max(reference_rivals[j : j + reference_words]) == max(rivals[i : i + words]) == 1:
            certain[j] = match
        else:
            contested.append(match)
    taken = _beam(contested, certain, reference_length, modules) if contested else []
    return sorted([*certain.values(), *taken])


def _beam(
    candidates: Sequence[Match], certain: Mapping[int, Match], reference_length: int, modules: Sequence[str]
) -> list[Match]:
    """The matches of `candidates` that the best path takes, between those that are certain."""
    chunk = 1 + sum(abs(match[2] - match[0]) for match in candidates)  # more than any distance
    word = chunk * (reference_length + 2)  # more than any number of chunks
    starting: dict[int, list[Match]] = {}
    for match in candidates:
        starting.setdefault(match.reference_start, []).append(match)
    # What a path uses is one number: for each j the number of the match that it takes there, then a bit for each
    # contested word, under the reference's place j or the hypothesis's ~i.
    numbers: dict[int, int] = {}
    size = 0
    for j, matches in starting.items():
        numbers[j] = size
        size += len(matches).bit_length()
    bits: dict[int, int] = {}
    options: dict[int, list[Option]] = {}
    for j, matches in starting.items():
        options[j] = []
        for number, (_, reference_words, i, words, module) in enumerate(matches, 1):
            mask = number << numbers[j]
            for place in (*range(j, j + reference_words), *range(~i, ~(i + words), -1)):
                mask |= bits.setdefault(place, 1 << size + len(bits))
            gain = reference_words + words if modules[module] == "exact" else reference_words // 2 + words // 2
            options[j].append((mask, i, i + words, gain * word, abs(i - j)))

    # A path: its rank (least is best), the word of the hypothesis that would continue its chunk (-1: none is open), and
    # what it uses. What is the same for all paths is not counted.
    paths: list[Path] = [(0, -1, 0)]
    run: tuple[int, int] | None = None  # of words that none competes for: what continues a chunk into it, and out of it
    busy = 0  # where the last certain match ends
    for j in range(reference_length + 1):
        if j not in bits and j < reference_length:
            if j in certain:
                _, reference_words, i, words, _ = certain[j]
                busy = j + reference_words
                run = (run[0] if run else i, i + words)
            elif j >= busy:
                run = (run[0] if run else -1, -1)
            continue
        if run:
            first, last = run
            paths = [
                (rank + chunk if end >= 0 and end != first else rank, last, used) for rank, end, used in _best(paths)
            ]
            run = None
        if j < reference_length:
            paths = _branch(_best(paths), options.get(j, ()), bits[j], chunk)
    _, _, used = min(_best(paths), key=lambda path: path[0] + chunk * (path[1] >= 0))
    taken = {j: (used >> numbers[j]) % (1 << len(matches).bit_length()) for j, matches in starting.items()}
    return [starting[j][number - 1] for j, number in taken.items() if number]


def _best(paths: list[Path]) -> list[Path]:
    return sorted(paths, key=itemgetter(0))[:BEAM_SIZE]


def _branch(paths: Sequence[Path], options: Sequence[Option], here: int, chunk: int) -> list[Path]:
    """Paths, continued by each of the matches that start here, and by none; here: the bit of this word."""
    following: list[Path] = []
    for path in paths:
        rank, end, used = path
        if used & here:
            following.append(path)
            continue
        for mask, start, stop, gain, distance in options:
            if not used & mask:
                jump = chunk if end >= 0 and end != start else 0
                following.append((rank - gain + jump, stop, used | mask))
                rank += distance  # this match's distance goes to the paths made after it
        following.append((rank + chunk if end >= 0 else rank, -1, used))
    return following
