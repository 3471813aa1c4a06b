"""METEOR 1.5's aligner (Denkowski and Lavie, 2014, section 2): candidate matches of all modules, then a beam search.

Behaviour of the Java program that the paper does not mention is documented beside the code; all of it affects scores.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from metrics_jax.meteor.meteor15_tables import LONGEST_PHRASE, Paraphrases

BEAM_SIZE = 40
Span = tuple[int, int]
Path = tuple[int, int, int]
Option = tuple[int, int, int, int, int]
MODULES = ("exact", "stem", "synonym", "paraphrase")


class Match(NamedTuple):
    """A phrase of the reference and one of the hypothesis, by first word and length, and the module's number."""

    reference_start: int
    reference_length: int
    start: int
    length: int
    module: int


@dataclasses.dataclass(frozen=True)
class Aligner:
    """Aligns the words of two texts by `modules`; the other fields are resources of single modules.

    stem: function from word to stem. synsets: function from word to the synsets it is in.
    """

    modules: tuple[str, ...]
    stem: Callable[[str], str] | None = None
    synsets: Callable[[str], frozenset[str]] | None = None
    paraphrases: Paraphrases | None = None

    def align(self, hypothesis: Sequence[str], reference: Sequence[str]) -> list[Match]:
        """The matches, in the order of the reference; no word is in two of them."""
        return search(self.candidates(hypothesis, reference), len(hypothesis), len(reference), self.modules)

    def candidates(self, hypothesis: Sequence[str], reference: Sequence[str]) -> list[Match]:
        """Every match that a module allows (for equal texts, only the first), in the order in which they are tried."""
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
        """Positions j, i of words that share a synset."""
        assert self.synsets is not None
        words = [(i, sets) for i, word in enumerate(hypothesis) if (sets := self.synsets(word))]
        reference_words = [(j, sets) for j, word in enumerate(reference) if (sets := self.synsets(word))]
        return [(j, i) for j, others in reference_words for i, sets in words if not others.isdisjoint(sets)]

    def _paraphrase_matches(self, hypothesis: Sequence[str], reference: Sequence[str], number: int) -> list[Match]:
        """Paraphrases of reference phrases, then of hypothesis phrases; a pair may be found in both directions."""
        assert self.paraphrases is not None
        phrases, reference_phrases = _Phrases(hypothesis), _Phrases(reference)
        backward = reference_phrases.paraphrased(phrases, self.paraphrases)
        forward = phrases.paraphrased(reference_phrases, self.paraphrases)
        pairs = [*backward, *((other, span) for span, other in forward)]
        return [Match(*reference_span, *span, number) for reference_span, span in pairs]


@functools.lru_cache(2**18)
def java_hash(word: str) -> int:
    """Java's String.hashCode, unsigned: METEOR compares words and stems by it, so that "to" equals "v1"."""
    code = 0
    units = word.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = 31 * code + (high << 8 | low) & 0xFFFFFFFF
    return code


def _equal(keys: Sequence[int], reference_keys: Sequence[int]) -> list[tuple[int, int]]:
    """Positions j, i of equal keys, sorted."""
    positions: dict[int, list[int]] = {}
    for i, key in enumerate(keys):
        positions.setdefault(key, []).append(i)
    return [(j, i) for j, key in enumerate(reference_keys) for i in positions.get(key, ())]


class _Phrases:
    """The phrases of a text by length, with words separated by one space."""

    def __init__(self, words: Sequence[str]) -> None:
        self._by_length = [words]
        for length in range(1, LONGEST_PHRASE):
            pairs = zip(self._by_length[-1], words[length:], strict=False)
            self._by_length.append([f"{phrase} {word}" for phrase, word in pairs])
        self._all = set().union(*self._by_length)

    def paraphrased(self, other: "_Phrases", paraphrases: Paraphrases) -> list[tuple[Span, Span]]:
        """Spans of phrases and of their paraphrases in the other text, by span, then by rank in the table."""
        found = []
        for phrase in paraphrases.phrases & self._all:
            known = paraphrases.of(phrase)
            if not other._all.isdisjoint(known):
                targets = [span for one in known if one in other._all for span in other._spans(one)]
                found += [(span, target) for span in self._spans(phrase) for target in targets]
        return sorted(found, key=itemgetter(0))

    def _spans(self, phrase: str) -> list[Span]:
        """The occurrences of a phrase: first word and length."""
        length = phrase.count(" ") + 1
        return [(start, length) for start, one in enumerate(self._by_length[length - 1]) if one == phrase]


def search(candidates: Sequence[Match], length: int, reference_length: int, modules: Sequence[str]) -> list[Match]:
    """The best alignment that can be made of `candidates`, by METEOR's beam search.

    A match is certain if no other candidate covers any of its words. The search processes the other matches from left
    to right in the reference, and takes or leaves each. Paths are compared by the number of words they cover: all words
    of an exact match, but only half of a phrase's words, rounded down, for other matches. Single stems and synonyms
    therefore count 0, and taking one may cost a chunk. Ties are resolved by fewer chunks, where a gap in the reference
    closes a chunk; then by smaller distance, which sums |i - j|, not of the matches in the path, but of those tried
    after it. Remaining ties keep their order. The last chunk is closed after the last sort.
    """
    rivals, reference_rivals = [0] * length, [0] * reference_length  # number of candidates that cover each word
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
    """The matches of `candidates` in the best path, given the certain matches."""
    chunk = 1 + sum(abs(match[2] - match[0]) for match in candidates)  # cost of a chunk; exceeds all distances
    word = chunk * (reference_length + 2)  # gain of a word; exceeds the cost of all chunks
    starting: dict[int, list[Match]] = {}
    for match in candidates:
        starting.setdefault(match.reference_start, []).append(match)
    # What a path uses is encoded in one integer: for each j, the number of the match that it takes there, followed by a
    # bit for each contested word, with key j for reference words and ~i for hypothesis words.
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
            for key in (*range(j, j + reference_words), *range(~i, ~(i + words), -1)):
                mask |= bits.setdefault(key, 1 << size + len(bits))
            gain = reference_words + words if modules[module] == "exact" else reference_words // 2 + words // 2
            options[j].append((mask, i, i + words, gain * word, abs(i - j)))

    # A path: its rank (lowest is best), the hypothesis word that would continue its chunk (-1: no open chunk), and what
    # it uses. Terms that are equal for all paths are left out.
    paths: list[Path] = [(0, -1, 0)]
    # For a run of uncontested words: the hypothesis word that continues a chunk into it, and the one after it.
    run: tuple[int, int] | None = None
    busy = 0  # end of the last certain match
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
            paths = [(rank + chunk * (-1 != end != first), last, used) for rank, end, used in _best(paths)]
            run = None
        if j < reference_length:
            paths = _branch(_best(paths), options.get(j, ()), bits[j], chunk)
    _, _, used = min(_best(paths), key=lambda path: path[0] + chunk * (path[1] >= 0))
    taken = {j: (used >> numbers[j]) % (1 << len(matches).bit_length()) for j, matches in starting.items()}
    return [starting[j][number - 1] for j, number in taken.items() if number]


def _best(paths: list[Path]) -> list[Path]:
    """The best paths, at most BEAM_SIZE; ties keep their order."""
    return sorted(paths, key=itemgetter(0))[:BEAM_SIZE]


def _branch(paths: Sequence[Path], options: Sequence[Option], here: int, chunk: int) -> list[Path]:
    """Continue paths by each match that starts at this word, and by none; here: the bit of this word."""
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
                rank += distance  # the distance of this match is added to later paths
        following.append((rank + chunk if end >= 0 else rank, -1, used))
    return following
