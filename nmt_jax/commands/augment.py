"""`nmt-jax augment`: makes training text: lines with noise or other words, translations, or questions."""

import contextlib
import dataclasses
import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from absl import flags

from metrics_jax.embedding.vectors import Vectors
from metrics_jax.surface.wordnet import WordNet
from nmt_jax.alignment.links import parse_links
from nmt_jax.augmentation import noise
from nmt_jax.augmentation.augmenter import Change, Copy, Pair, augment
from nmt_jax.augmentation.known_forms import count_forms, frequent
from nmt_jax.augmentation.machine_pairs import KINDS as TRANSLATIONS
from nmt_jax.augmentation.neighbours import VectorNeighbours
from nmt_jax.augmentation.substitution import substitute
from nmt_jax.augmentation.synonyms import Synonyms
from nmt_jax.augmentation.target_side import Lexicon, read_lexicon
from nmt_jax.commands import cloze_questions, machine_pairs, streams
from nmt_jax.commands.shared_flags import values
from nmt_jax.data.lines import num_lines, parallel_lines, read_lines
from nmt_jax.errors import UserError
from nmt_jax.progress import track
from nmt_jax.schema.number_flags import define_float, define_integer, define_seed
from nmt_jax.storage.files import whole_file
from nmt_jax.storage.paths import path_of

SUBSTITUTIONS = ("synonyms", "embedding")
NOISE = ("dropout", "swap", "mask", "infill")
KINDS = (*SUBSTITUTIONS, *NOISE, *TRANSLATIONS, cloze_questions.KIND)


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax augment`."""
    help_text = (
        "How text is made. synonyms: WordNet synonyms in the same form; embedding: nearest neighbours among word "
        "vectors; dropout: words are left out; swap: nearby words change places; mask: words become --mask_token; "
        "infill: spans of words become one --mask_token each. back_translation: the source is a translation of "
        "--target; forward_translation: the target is one of --source; cloze_questions: questions about the paragraphs "
        "of --source, for config.task=span."
    )
    flags.DEFINE_enum("kind", None, KINDS, help_text, flag_values)
    help_text = "File of lines to change or to translate, such as train.en; cloze_questions: a paragraph per line."
    flags.DEFINE_string("source", None, help_text, flag_values)
    help_text = (
        "File of their translations, line by line, such as train.de; without it, only --source is augmented. "
        "back_translation: file of lines to translate, without --source."
    )
    flags.DEFINE_string("target", None, help_text, flag_values)
    help_text = (
        "Prefix of the output files, which end as the input files: PREFIX.en, PREFIX.de. back_translation, "
        "forward_translation: the languages of the model; cloze_questions: PREFIX.json. After an interruption, "
        "the same command continues these kinds."
    )
    flags.DEFINE_string("output", None, help_text, flag_values)
    help_text = "Share of the words of a line that change, on average; cloze_questions: of a question, left out."
    define_float(flag_values, "rate", 0.1, help_text, above=0, high=1)
    help_text = "Number of changed copies or translations per line, or largest number of questions."
    define_integer(flag_values, "copies", 1, help_text, low=1, high=1000)
    help_text = "Write each line, as it is, before its changed copies."
    flags.DEFINE_boolean("keep_original", False, help_text, flag_values)
    help_text = "Also write copies in which no word changed; by default, they are left out."
    flags.DEFINE_boolean("keep_unchanged", False, help_text, flag_values)
    define_seed(flag_values, 0)
    help_text = "Number of the first line, if the files are a part of larger ones: a line changes as it does there."
    define_integer(flag_values, "first_line", 1, help_text, low=1)
    help_text = "swap, --noise: largest number of places that a word moves by."
    define_integer(flag_values, "window", 3, help_text, low=1)
    flags.DEFINE_string("mask_token", "<mask>", "mask, infill, --noise: what replaces words.", flag_values)
    help_text = (
        "Folder of a WordNet database, plain or .gz. synonyms: default $WNSEARCHDIR or /usr/share/wordnet; embedding: "
        "replacements must have the same part of speech in it, if given."
    )
    flags.DEFINE_string("wordnet", None, help_text, flag_values)
    help_text = "synonyms: number of senses of a word that are used, the most frequent first."
    define_integer(flag_values, "senses", 1, help_text, low=1)
    help_text = "embedding: file of word vectors, word2vec or GloVe format, plain or .gz."
    flags.DEFINE_string("vectors", None, help_text, flag_values)
    help_text = "embedding: smallest cosine of a word and its replacement."
    define_float(flag_values, "min_similarity", 0.75, help_text, low=-1, high=1)
    help_text = "synonyms, embedding: number of best replacements among which one is drawn."
    define_integer(flag_values, "choices", 3, help_text, low=1)
    help_text = "synonyms, embedding: text in which replacements must occur; default: --source."
    flags.DEFINE_string("lexicon_text", None, help_text, flag_values)
    help_text = "synonyms, embedding: number of times that a replacement must occur there."
    define_integer(flag_values, "min_count", 2, help_text, low=1)
    help_text = (
        "synonyms, embedding: file of SOURCE, TARGET, PROBABILITY rows, from nmt-jax align --lexicon; translations of "
        "replaced words change, too. Needs --links."
    )
    flags.DEFINE_string("lexicon", None, help_text, flag_values)
    help_text = (
        "File of the links of each pair, as nmt-jax align writes them: i-j, counted from 0. Needs --lexicon and "
        "--target."
    )
    flags.DEFINE_string("links", None, help_text, flag_values)
    help_text = "Smallest probability of a translation from --lexicon."
    define_float(flag_values, "min_probability", 0.3, help_text, above=0, high=1)
    machine_pairs.define_flags(flag_values)
    cloze_questions.define_flags(flag_values)
    streams.define_overwrite_flag(flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Write the new text, print the names of the files, and on stderr what was made."""
    translates = flag_values.kind in TRANSLATIONS
    if positional or not (flag_values.kind and flag_values.output and (flag_values.source or translates)):
        raise UserError("nmt-jax augment needs --kind=KIND, --source=FILE and --output=PREFIX, nothing but flags")
    _check_flags(flag_values)
    if flag_values.kind == cloze_questions.KIND:
        return cloze_questions.main(flag_values)
    return (machine_pairs.main if translates else change_words)(flag_values)


def change_words(flag_values: flags.FlagValues) -> int:
    """Write the changed copies, print the names of the files, and on stderr what was changed."""
    kind, source, target, output = flag_values.kind, flag_values.source, flag_values.target, flag_values.output
    paths = streams.parallel_files(output, source, target)
    inputs = (source, target, flag_values.links, flag_values.lexicon)
    streams.check_distinct(inputs, paths)
    streams.check_new(flag_values, *paths)
    forms: dict[str, int] = {}
    if kind in SUBSTITUTIONS:
        text = flag_values.lexicon_text or source
        forms = count_forms(track(read_lines(text), "lines read", num_lines(text)))
    change = _change(flag_values, frequent(forms, flag_values.min_count))
    lexicon = None
    if flag_values.lexicon:
        lexicon = read_lexicon(flag_values.lexicon, flag_values.min_probability, forms)
    counts = run(
        track(_pairs(source, target, flag_values.links), "lines", num_lines(source)),
        change,
        paths,
        lexicon,
        functools.partial(_why_none, flag_values),
        **values(flag_values, "copies", "seed", "first_line", "keep_original", "keep_unchanged"),
    )
    print(*paths, sep="\n")
    print(f"nmt-jax: {counts.report(kind, lexicon is not None)}", file=sys.stderr)
    return 0


def _check_flags(flag_values: flags.FlagValues) -> None:
    """Raise UserError for flags that have no effect, and for flags that miss another."""
    for kinds, names in (
        (("swap", *TRANSLATIONS), ("window",)),
        (("mask", "infill", *TRANSLATIONS), ("mask_token",)),
        ((*SUBSTITUTIONS, *NOISE), ("keep_original", "keep_unchanged")),
        (TRANSLATIONS, machine_pairs.FLAGS),
        ((cloze_questions.KIND,), cloze_questions.FLAGS),
        ((*SUBSTITUTIONS, *NOISE, *TRANSLATIONS), ("target", "first_line")),
        (("synonyms",), ("senses",)),
        (("embedding",), ("vectors", "min_similarity")),
        (SUBSTITUTIONS, ("wordnet", "choices", "lexicon_text", "min_count", "lexicon", "links")),
    ):
        streams.check_effect(flag_values, names, flag_values.kind in kinds, f"with --kind={flag_values.kind}")
    streams.check_effect(flag_values, ["min_probability"], bool(flag_values.lexicon), "without --lexicon=FILE")
    if bool(flag_values.lexicon) != bool(flag_values.links) or (flag_values.links and not flag_values.target):
        raise UserError("--lexicon, --links and --target belong together: name all three, or the target is not changed")
    if flag_values.kind == "embedding" and not flag_values.vectors:
        raise UserError("--kind=embedding needs --vectors=FILE of word vectors")
    token = flag_values.mask_token
    if token.split() != [token]:
        raise UserError(f"--mask_token={token!r} must be one word without blanks")


def _change(flag_values: flags.FlagValues, known: Mapping[str, int]) -> Change:
    """Return the function that changes the words of a line. Raises UserError if its files are missing or do not fit."""
    kind, rate = flag_values.kind, flag_values.rate
    if kind == "dropout":
        return functools.partial(noise.drop, rate=rate)
    if kind == "swap":
        return functools.partial(noise.swap, rate=rate, window=flag_values.window)
    if kind == "mask":
        return functools.partial(noise.mask, rate=rate, token=flag_values.mask_token)
    if kind == "infill":
        return functools.partial(noise.infill, rate=rate, token=flag_values.mask_token)
    candidates: Synonyms | VectorNeighbours
    try:
        if kind == "synonyms":
            candidates = Synonyms(WordNet(flag_values.wordnet or ""), known, flag_values.senses)
        else:
            wordnet = WordNet(flag_values.wordnet) if flag_values.wordnet else None
            vectors = Vectors.load(flag_values.vectors)
            candidates = VectorNeighbours(
                vectors, known, flag_values.min_similarity, flag_values.choices, wordnet=wordnet
            )
    except ValueError as error:
        advice = "; or name its folder by --wordnet=FOLDER" if "no WordNet database" in str(error) else ""
        raise UserError(f"{error}{advice}") from None
    if isinstance(candidates, VectorNeighbours) and not candidates:
        raise UserError(
            f"{flag_values.vectors}: no word of {flag_values.lexicon_text or flag_values.source} that may be replaced "
            "has a vector; use vectors of its language, trained on text in lower case"
        )
    return functools.partial(substitute, rate=rate, candidates=candidates, choices=flag_values.choices)


def _pairs(source: str, target: str | None, links: str | None) -> Iterator[Pair]:
    """Yield the pairs. Raises UserError if the numbers of lines differ, and for links of absent words."""
    for number, lines in enumerate(parallel_lines([name for name in (source, target, links) if name]), start=1):
        if links:
            lengths = (len(lines[0].split()), len(lines[1].split()))
            yield Pair(lines[0], lines[1], parse_links(lines[2], lengths, f"{links}:{number}").sure)
        else:
            yield Pair(lines[0], lines[1] if target else "")


@dataclasses.dataclass
class Counts:
    """What was read, changed and written."""

    lines: int = 0
    tokens: int = 0
    changed: int = 0
    unchanged: int = 0
    written: int = 0
    words: int = 0
    target_changed: int = 0
    target_left: int = 0

    def add(self, copy: Copy) -> None:
        """Count a copy."""
        self.changed += copy.num_changed > 0
        self.unchanged += not copy.num_changed
        self.words += copy.num_changed
        self.target_changed += copy.target_changed
        self.target_left += copy.target_left

    def report(self, kind: str, with_target: bool) -> str:
        """Describe the counts in one line."""
        parts = [f"{self.lines:,} lines: {self.changed:,} changed copies, {self.words:,} words changed by {kind}"]
        if with_target:
            parts.append(f"{self.target_changed:,} target words changed, {self.target_left:,} left as they were")
        return "; ".join([*parts, f"{self.unchanged:,} copies without any change; {self.written:,} lines written"])


def run(
    pairs: Iterable[Pair],
    change: Change,
    paths: Sequence[str],
    lexicon: Lexicon | None,
    why_none: Callable[[Counts], str],
    *,
    copies: int,
    seed: int,
    first_line: int,
    keep_original: bool,
    keep_unchanged: bool,
) -> Counts:
    """Write the copies of each pair to the files `paths`, of the source and of the target if there is one.

    Raises UserError with the text of `why_none`, and leaves no file, if there would be no copy.
    """
    counts = Counts()
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(whole_file(path_of(path))) for path in paths]

        def write(source: str, target: str) -> None:
            counts.written += 1
            for file, line in zip(files, (source, target), strict=False):
                file.write(f"{line}\n".encode())

        for number, pair in enumerate(pairs, start=first_line - 1):
            counts.lines += 1
            counts.tokens += len(pair.source.split())
            if keep_original:
                write(pair.source, pair.target)
            for n in range(copies):
                copy = augment(pair, change, seed, number, n, lexicon)
                counts.add(copy)
                if copy.num_changed or keep_unchanged:
                    write(copy.source, copy.target)
        if not counts.changed and not keep_unchanged:
            raise UserError(why_none(counts))
    return counts


def _why_none(flag_values: flags.FlagValues, counts: Counts) -> str:
    """Say why no copy has changed, and what to do."""
    kind, rate, where = flag_values.kind, flag_values.rate, f"{flag_values.source}: no line was changed"
    if not counts.tokens:
        return f"{where}: it has no words"
    if rate * counts.tokens * flag_values.copies < 10:
        return f"{where}: --rate={rate:g} of {counts.tokens:,} words is too little; raise --rate or --copies"
    if kind == "synonyms":
        return (
            f"{where}: no word has a WordNet synonym that occurs --min_count={flag_values.min_count} times in the "
            "text; name a larger English text by --lexicon_text=FILE, or raise --senses"
        )
    if kind == "embedding":
        return (
            f"{where}: no word has a neighbour of similarity {flag_values.min_similarity:g} that occurs "
            f"--min_count={flag_values.min_count} times in the text; lower --min_similarity, or use --lexicon_text=FILE"
        )
    return f"{where}: no line has two different words" if kind != "mask" else f"{where}: all words are masked"
