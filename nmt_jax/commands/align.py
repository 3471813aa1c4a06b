"""`nmt-jax align`: aligns the words of sentence pairs, with a model trained on these pairs, or a neural one."""

import functools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from metrics_jax.prediction.alignments import alignment_scores, alignment_statistics
from nmt_jax import platforms
from nmt_jax.alignment import similarity
from nmt_jax.alignment.attention import AttentionAligner
from nmt_jax.alignment.links import Alignment, Gold, format_links, read_gold
from nmt_jax.alignment.sentence_pairs import SentencePairs, lengths, read_files, read_pairs
from nmt_jax.alignment.symmetrization import METHODS
from nmt_jax.commands import streams
from nmt_jax.commands.output import define_output_flags, open_output
from nmt_jax.commands.shared_flags import ENCODER_FLAGS, define_encoder_flags, define_gold_flags, values
from nmt_jax.errors import UserError
from nmt_jax.progress import track
from nmt_jax.schema.number_flags import define_float, define_integer, define_seed
from nmt_jax.storage.files import whole_file
from nmt_jax.storage.paths import path_of
from nmt_jax.training.trained import open_translator
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.alignment.aligner import Aligner
    from nmt_jax.alignment.embeddings import EmbeddingAligner
    from nmt_jax.alignment.sampler import Sampler

CHUNK = 1 << 16  # large, so that blocks are padded to the shapes of training
MODELS = ("ibm1", "diagonal", "hmm", "fertility")
SAMPLER = ("sweeps", "chains", "seed")  # flags of fertility only
EM = ("iterations", "alpha", "fit_tension")  # flags of the other models only
TRAINING = ("model", "symmetrize", "null_probability", *SAMPLER, *EM, "lexicon", "lexicon_minimum")


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax align`."""
    streams.define_input_flag(
        flag_values, ": lines SOURCE ||| TARGET, or separated by a tab, of words separated by blanks"
    )
    flags.DEFINE_string("source", None, "Instead of pairs: file of source sentences.", flag_values)
    flags.DEFINE_string("target", None, "File of their translations, line by line.", flag_values)
    help_text = (
        "IBM model 1, fast_align's model with a diagonal prior, the HMM after five iterations of model 1, or a "
        "Bayesian HMM with fertilities, whose links are sampled. Not with --encoder or --workdir."
    )
    flags.DEFINE_enum("model", "fertility", MODELS, help_text, flag_values)
    help_text = (
        "How the two directions are combined. forward: only source words generate target words; reverse: only the "
        "opposite."
    )
    flags.DEFINE_enum("symmetrize", "grow-diag-final-and", list(METHODS), help_text, flag_values)
    help_text = "Number of EM iterations of each model; not for fertility."
    define_integer(flag_values, "iterations", 5, help_text, low=1, high=1000)
    help_text = (
        "Prior of the translation table in variational Bayes, such as 0.01. 0: maximum likelihood. Not for fertility."
    )
    define_float(flag_values, "alpha", 0.0, help_text, low=0, high=100)
    help_text = (
        "For diagonal: fit the tension, how strongly the prior prefers the diagonal, in training. Default: it stays 4."
    )
    flags.DEFINE_bool("fit_tension", False, help_text, flag_values)
    help_text = (
        "Prior probability that a word has no counterpart; not for ibm1. Default: 0.2 for fertility, otherwise 0.08."
    )
    define_float(flag_values, "null_probability", None, help_text, above=0, below=1)
    help_text = "For fertility: number of sweeps of the sampler over the text. Default: 5 to 100, fewer for more lines."
    define_integer(flag_values, "sweeps", None, help_text, low=1, high=100_000)
    help_text = "For fertility: number of independent samplers whose posteriors are averaged."
    define_integer(flag_values, "chains", 3, help_text, low=1, high=1000)
    define_seed(flag_values, 0, "For fertility: random seed.")
    help_text = "Instead of training: align by vectors of this encoder, a model folder, workdir or installed package."
    define_encoder_flags(flag_values, help_text)
    help_text = "With --encoder: argmax, itermax or match (Jalili Sabet et al., 2020), or entropic optimal transport."
    flags.DEFINE_enum("method", "argmax", similarity.METHODS, help_text, flag_values)
    help_text = "With --encoder: layer of the vectors, 0 for the embeddings. Default: at two thirds, 8 of 12."
    define_integer(flag_values, "layer", None, help_text, low=0)
    help_text = "Instead of training: folder of a translator, whose attention aligns the pairs."
    flags.DEFINE_string("workdir", None, help_text, flag_values)
    streams.define_checkpoint_flags(flag_values)
    help_text = (
        "Smallest attention weight of a link; default: each target word is linked to the source word with the largest. "
        "For transport, the smallest share of a piece; default: 0.5."
    )
    define_float(flag_values, "threshold", None, help_text, above=0, high=1)
    help_text = "Write this file of SOURCE, TARGET, PROBABILITY rows, which config.vocab.lexicon can read."
    flags.DEFINE_string("lexicon", None, help_text, flag_values)
    define_float(flag_values, "lexicon_minimum", 0.01, "Smallest probability in the lexicon.", above=0, high=1)
    help_text = "File of alignments made by people, i-j if sure, ipj if possible; prints AER to stderr."
    define_gold_flags(flag_values, help_text)
    help_text = (
        "Output format. json: one object per line, with posterior probabilities. score: how well the words of a pair "
        "are aligned, 0 to 1, to find bad pairs."
    )
    flags.DEFINE_enum("format", "pharaoh", ["pharaoh", "json", "score"], help_text, flag_values)
    streams.define_chunk_flag(flag_values, CHUNK)
    define_output_flags(flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Train on the pairs, write the links of each, and on stderr the scores against gold links."""
    streams.check_no_arguments("align", positional)
    _check_request(flag_values)
    inputs = _inputs(flag_values)
    streams.check_distinct(inputs, [flag_values.output, flag_values.lexicon])
    if flag_values.lexicon:
        streams.check_new(flag_values, flag_values.lexicon)
    workdirs = [flag_values.workdir] if flag_values.workdir else []
    with open_output("align", flag_values, inputs, streams.chunk_size(flag_values), workdirs=workdirs) as output:
        text = _read(flag_values)
        gold = read_gold(flag_values.gold, lengths(text), flag_values.gold_first) if flag_values.gold else None
        aligner, align_lines = _open_aligner(flag_values, text)
        counts = Counts(gold)

        def answer(first: int, pairs: Sequence[tuple[list[str], list[str]]]) -> Iterator[bytes]:
            aligned = counts.added(first, align_lines(first, len(pairs)))
            return streams.encoded(_rows(aligned, pairs, flag_values.format, first))

        total = len(text.source)
        summaries = output.write(zip(*text, strict=True), answer, "aligned", total, summarize=counts.take)
    if gold and summaries:
        print(counts.report(summaries), file=sys.stderr)
    if flag_values.lexicon and summaries:
        rows = (f"{source}\t{target}\t{p:.6g}\n" for source, target, p in aligner.lexicon(flag_values.lexicon_minimum))
        with whole_file(path_of(flag_values.lexicon)) as file:
            file.writelines(row.encode() for row in rows)
    return 0


def _check_request(flag_values: flags.FlagValues) -> None:
    """Raise UserError for flags that exclude each other, or that have no effect with or without another."""
    encoder, workdir = flag_values.encoder is not None, flag_values.workdir is not None
    if encoder and workdir:
        raise UserError(
            "--encoder and --workdir exclude each other: align by the vectors of an encoder or by attention"
        )
    neural = encoder or workdir
    streams.check_effect(flag_values, TRAINING, not neural, f"with --{'encoder' if encoder else 'workdir'}")
    streams.check_effect(flag_values, (*ENCODER_FLAGS, "method", "layer"), encoder, "without --encoder=PLACE")
    streams.check_effect(flag_values, ("checkpoint", "average"), workdir, "without --workdir=FOLDER")
    transported = encoder and flag_values.method == similarity.TRANSPORT
    because = "without --workdir=FOLDER, or --encoder=PLACE --method=transport"
    streams.check_effect(flag_values, ["threshold"], workdir or transported, because)
    streams.check_effect(flag_values, ["null_probability"], flag_values.model != "ibm1", "with --model=ibm1")
    streams.check_effect(flag_values, ["fit_tension"], flag_values.model == "diagonal", "without --model=diagonal")
    sampled = flag_values.model == "fertility"
    streams.check_effect(flag_values, SAMPLER, sampled, "without --model=fertility")
    streams.check_effect(flag_values, EM, not sampled, "with --model=fertility; see --sweeps")
    streams.check_effect(flag_values, ["lexicon_minimum"], bool(flag_values.lexicon), "without --lexicon=FILE")
    streams.check_effect(flag_values, ["gold_first"], bool(flag_values.gold), "without --gold=FILE")


def _open_aligner(
    flag_values: flags.FlagValues, text: SentencePairs
) -> tuple[Any, Callable[[int, int], Iterable[Alignment]]]:
    """Return the aligner that the flags describe, and a function from the first line and a number to alignments."""
    aligner: Any
    if flag_values.encoder is not None:
        aligner = open_encoder(text, **values(flag_values, *ENCODER_FLAGS, "method", "layer", "threshold"))
    elif flag_values.workdir is not None:
        name = flag_values.source or flag_values.input or "stdin"
        checkpoint = streams.chosen_checkpoint(flag_values)
        aligner = open_attention(text, flag_values.workdir, checkpoint, flag_values.threshold, name)
    else:
        options = SAMPLER if flag_values.model == "fertility" else EM
        aligner = train(text, flag_values.model, flag_values.null_probability, **values(flag_values, *options))
        return aligner, functools.partial(aligner.align_lines, method=flag_values.symmetrize)
    return aligner, aligner.align_lines


def open_encoder(
    text: SentencePairs,
    encoder: str,
    dtype: str,
    download: bool,
    method: str,
    layer: int | None,
    threshold: float | None,
) -> "EmbeddingAligner":
    """Open an encoder that aligns; the options are those of `pretrained.load` and `EmbeddingAligner`."""
    platforms.configure_compilation()
    platforms.keep_freed_memory()
    from nmt_jax.alignment.embeddings import THRESHOLD, EmbeddingAligner
    from nmt_jax.pretrained import load

    return EmbeddingAligner(load(encoder, dtype, download), text, method, layer, threshold or THRESHOLD)


def open_attention(
    text: SentencePairs, workdir: str, checkpoint: str | int | None, threshold: float | None, name: str
) -> AttentionAligner:
    """Open a translator whose attention aligns; the options are those of `open_translator` and `AttentionAligner`."""
    translator, params = open_translator([Workdir(workdir)], checkpoint=checkpoint)
    try:
        return AttentionAligner(translator, params, text, threshold, name)
    except UserError as error:
        raise UserError(f"{workdir}: {error}") from None


def train(
    text: SentencePairs, model: str, null_probability: float | None = None, **options: Any
) -> "Aligner | Sampler":
    """Train a model on all devices; the options are those of `Aligner`, or for fertility of `Sampler`."""
    platforms.configure_compilation()
    from nmt_jax.alignment.aligner import Aligner
    from nmt_jax.alignment.sampler import Sampler
    from nmt_jax.distributed.sharding import make_mesh

    def progress(batches: Iterable[Any], total: int) -> Iterable[Any]:
        return track(batches, "batches", total)

    if null_probability is not None:
        options["null_probability"] = null_probability
    if model == "fertility":
        return Sampler(*text, make_mesh(), progress=progress, **options)
    return Aligner(*text, make_mesh(), model=model, progress=progress, **options)


class Counts:
    """What the scores of lines against gold links are computed from."""

    def __init__(self, gold: list[Gold] | None):
        self._gold = gold
        self._rows: list[list[int]] = []

    def added(self, first: int, aligned: Iterable[Alignment]) -> Iterator[Alignment]:
        """Yield the alignments of lines, and count them; first: number of lines before them."""
        for number, one in enumerate(aligned, start=first):
            if self._gold:
                gold = self._gold[number]
                self._rows += alignment_statistics([set(one.links)], [gold.sure], [gold.possible]).tolist()
            yield one

    def take(self) -> list[list[int]]:
        """Return the counts of each line since the last call."""
        rows, self._rows = self._rows, []
        return rows

    @staticmethod
    def report(blocks: Sequence[list[list[int]]]) -> str:
        """Describe the scores of all blocks."""
        scores = alignment_scores([row for block in blocks for row in block])
        rates = f"AER {scores.error_rate:.4f}, precision {scores.precision:.4f}, recall {scores.recall:.4f}"
        return f"nmt-jax: {sum(map(len, blocks)):,} lines: {rates}"


def _inputs(flag_values: flags.FlagValues) -> list[str | None]:
    """Return the files to read: the source and the target, or one file of pairs, None for stdin."""
    source, target = flag_values.source, flag_values.target
    if bool(source) != bool(target):
        raise UserError("--source and --target belong together: name both files, or give pairs to stdin or --input")
    if source and flag_values.input:
        raise UserError("--input excludes --source and --target: use a file of pairs, or two files")
    return [source, target] if source else [flag_values.input]


def _read(flag_values: flags.FlagValues) -> SentencePairs:
    if flag_values.source:
        return read_files(flag_values.source, flag_values.target)
    return read_pairs(streams.open_lines(flag_values.input), flag_values.input or "stdin")


def _rows(
    aligned: Iterable[Alignment], pairs: Iterable[tuple[list[str], list[str]]], output_format: str, first: int
) -> Iterator[str]:
    """Yield the output of each line; first: number of lines before."""
    for number, (one, (source, target)) in enumerate(zip(aligned, pairs, strict=True), start=first + 1):
        if output_format == "json":
            rounded = [[*link, round(p, 6)] for link, p in zip(one.links, one.posteriors, strict=True)]
            yield streams.json_row(line=number, links=rounded)
        elif output_format == "score":
            yield f"{one.score((len(source), len(target))):.4f}"
        else:
            yield format_links(one.links)
