"""`nmt-jax translate`: reads source lines, writes translations, line N for line N."""

import itertools
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from nmt_jax.commands import streams
from nmt_jax.commands.output import define_output_flags, open_output
from nmt_jax.commands.shared_flags import (
    METRIC_FLAGS,
    SAMPLING,
    SEARCH,
    define_metric_flags,
    define_sampling_flags,
    define_search_flags,
    make_sampling,
    metric_options,
    search_options,
    values,
)
from nmt_jax.data.lines import chunks, num_lines
from nmt_jax.data.readers import sources
from nmt_jax.errors import UserError
from nmt_jax.schema.number_flags import define_float, define_integer
from nmt_jax.schema.phrase import NAME as PHRASE
from nmt_jax.schema.shared_keys import DECODE_DTYPES
from nmt_jax.storage.paths import path_of
from nmt_jax.training.phrase_model import open_phrases
from nmt_jax.training.trained import open_translator
from nmt_jax.translation.output_format import TranslationFormat
from nmt_jax.translation.requests import Hypothesis, Line, read_requests
from nmt_jax.translation.reranking import Gains, make_decision, rerank_samples
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.decoding.sampling import Sampling

CHUNK = 512  # lines that are sorted by length together


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax translate`; decoding flags default to `decode` in the workdir's config."""
    help_text = "Folder of a trained model; several, separated by commas, form an ensemble."
    flags.DEFINE_list("workdir", None, help_text, flag_values)
    parts = ": lines of text; those of data.max_length pieces or more are translated in parts"
    streams.define_input_flag(flag_values, parts)
    define_output_flags(flag_values)
    flags.DEFINE_string("prefixes", None, "File whose line N is the beginning of translation N.", flag_values)
    help_text = "File whose line N lists phrases that translation N must contain, separated by tabs."
    flags.DEFINE_string("constraints", None, help_text, flag_values)
    help_text = "File of translations to score instead of searching; writes rows with scores."
    flags.DEFINE_string("given", None, help_text, flag_values)
    define_search_flags(flag_values)
    help_text = "Number of samples to draw per line; 0: search for the best translation."
    define_integer(flag_values, "num_samples", 0, help_text, low=0)
    help_text = "Sample with replacement; --noreplacement makes the samples of a line distinct."
    flags.DEFINE_bool("replacement", True, help_text, flag_values)
    define_sampling_flags(flag_values)
    help_text = "Choose among the samples by minimum Bayes risk with these metrics and weights: chrf@2,bleu@1."
    flags.DEFINE_list("utility", None, help_text, flag_values)
    help_text = "With --utility: metric for the report on stderr, not one of those optimized."
    flags.DEFINE_string("evaluate", None, help_text, flag_values)
    define_metric_flags(flag_values)
    help_text = "Maximum length of a translation in pieces, per piece of the source."
    define_float(flag_values, "max_length_ratio", None, help_text, low=0, high=100)
    define_integer(
        flag_values, "max_length_offset", None, "Number of pieces added to that maximum.", low=0, high=10_000
    )
    help_text = "Type of the matrix products: that of the model, float32, bfloat16, or int8 for a Transformer."
    flags.DEFINE_enum("decode_dtype", None, DECODE_DTYPES, help_text, flag_values)
    streams.define_checkpoint_flags(flag_values)
    help_text = "Number of translations per line, up to --beam_size; above 1, text is rows LINE, SCORE, TEXT with tabs."
    define_integer(flag_values, "nbest", 1, help_text, low=1)
    help_text = "Output format; json writes one object per line, with scores and pieces."
    flags.DEFINE_enum("format", "text", ["text", "json"], help_text, flag_values)
    help_text = "Append a word alignment by attention after a tab: argmax, or the minimum weight of a link."
    flags.DEFINE_string("alignment", None, help_text, flag_values)
    flags.DEFINE_bool("attention", False, "With --format=json: include attention weights between words.", flag_values)
    help_text = "Replace each <unk> in the output by the source word with the highest attention weight."
    flags.DEFINE_bool("replace_unknown", False, help_text, flag_values)
    streams.define_chunk_flag(flag_values, CHUNK)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Translate the lines of the input."""
    streams.check_no_arguments("translate", positional)
    streams.required_workdir("translate", flag_values)
    checkpoint = streams.chosen_checkpoint(flag_values)
    _check_request(flag_values)
    several = flag_values.nbest > 1 or (flag_values.num_samples > 1 and not flag_values.utility)
    form = TranslationFormat.of(
        flag_values.format, several or bool(flag_values.given), flag_values.alignment, flag_values.attention
    )
    sampling, decide, gains = None, None, None
    if flag_values.num_samples:
        sampling = make_sampling(flag_values, **values(flag_values, "num_samples", "replacement"))
    if flag_values.utility:
        decide, evaluated = make_decision(
            flag_values.utility, flag_values.evaluate, {**metric_options(flag_values), "sources": True}
        )
        gains = Gains(evaluated)
    files = values(flag_values, "prefixes", "constraints", "given")
    name = flag_values.input
    inputs = [name, *filter(None, files.values())]
    total = num_lines(name)
    folders = streams.existing_folders(flag_values.workdir)
    with open_output(
        "translate", flag_values, inputs, streams.chunk_size(flag_values), total, workdirs=folders
    ) as output:
        translate, num_sources = open_translation(
            folders,
            sampling=sampling,
            checkpoint=checkpoint,
            n_best=flag_values.nbest,
            given=bool(flag_values.given),
            with_attention=form.needs_attention,
            **values(flag_values, "max_length_ratio", "max_length_offset", "replace_unknown", "decode_dtype"),
            **search_options(flag_values),
        )

        def answer(first: int, group: Sequence[Line]) -> Iterator[bytes]:
            results: Iterable[list[Hypothesis]] = translate(group)
            if decide and gains:
                results = rerank_samples(results, [line.text for line in group], decide, gains, flag_values.nbest)
            return itertools.starmap(form.show, enumerate(results, start=first + 1))

        lines = sources.checked(streams.open_lines(name), num_sources, name or "stdin")
        requests = read_requests(lines, name or "stdin", **files)
        summarize = gains.take if gains else lambda: None
        summaries = output.write(requests, answer, "translated", total, summarize=summarize)
    if gains and summaries:
        print(gains.report(summaries), file=sys.stderr)
    return 0


def _check_request(flag_values: flags.FlagValues) -> None:
    """Raise UserError for flags that exclude each other, or that have no effect without another."""
    if flag_values.given and any(
        (flag_values.num_samples, flag_values.nbest > 1, flag_values.prefixes, flag_values.constraints)
    ):
        raise UserError("--given scores translations: it excludes --num_samples, --nbest, --prefixes and --constraints")
    if flag_values.num_samples and flag_values.nbest > 1 and not flag_values.utility:
        raise UserError("--nbest and --num_samples exclude each other without --utility: all samples are written")
    if flag_values.utility and flag_values.num_samples < 2:
        raise UserError("--utility needs samples, such as --num_samples=64; for n-best lists use nmt-jax mbr")
    sampled, searched = bool(flag_values.num_samples), not (flag_values.num_samples or flag_values.given)
    streams.check_effect(flag_values, (*SAMPLING, "replacement"), sampled, "without --num_samples=N")
    streams.check_effect(flag_values, SEARCH, searched, "with --num_samples or --given")
    streams.check_effect(flag_values, ("max_length_ratio", "max_length_offset"), not flag_values.given, "with --given")
    streams.check_effect(flag_values, ("diversity",), (flag_values.num_groups or 1) > 1, "without --num_groups above 1")
    streams.check_effect(
        flag_values, ("evaluate", *METRIC_FLAGS), bool(flag_values.utility), "without --utility=METRIC"
    )


def open_translation(
    workdirs: pathlib.Path | str | Sequence[pathlib.Path],
    *,
    sampling: "Sampling | None" = None,
    given: bool = False,
    max_length_ratio: float | None = None,
    max_length_offset: int | None = None,
    checkpoint: str | int | None = None,
    with_attention: bool = False,
    replace_unknown: bool = False,
    decode_dtype: str | None = None,
    **search: Any,
) -> tuple[Callable[[Sequence[Line]], Sequence[list[Hypothesis]]], int]:
    """Open the models of `workdirs`; returns a function from lines to hypotheses, and the number of sources.

    search: options of `decoding.method.Search`, unless `sampling` is set. given: score the given translations instead.
    checkpoint: "best", "last", n for the mean of the last n, or None for `decode.average` of the config.
    with_attention: include attention weights. replace_unknown: for word vocabularies; <unk> becomes a source word.
    decode_dtype: of the matrix products, as in `decode.dtype`.

    Raises UserError, before any line is read, if a workdir has no trained translator; the function raises it for a
    line that cannot be translated as requested.
    """
    paths = [path_of(workdirs)] if isinstance(workdirs, str | pathlib.PurePath) else list(workdirs)
    folders = [Workdir(path) for path in paths]
    if folders[0].config().task == PHRASE:
        neural = (sampling, given, max_length_ratio, max_length_offset, checkpoint, with_attention, replace_unknown)
        return open_phrase_translation(folders, any(map(bool, (*neural, decode_dtype))), **search), 1
    configs = [folder.trained_config("translate") for folder in folders]
    algorithm = configs[0].vocab.algorithm
    if replace_unknown and algorithm != "word":
        raise UserError(
            f"--replace_unknown needs a vocabulary of words; {paths[0]} has pieces (vocab.algorithm={algorithm}), "
            "which can spell any word"
        )
    translator, params = open_translator(
        folders, checkpoint=checkpoint, allow_unknown=replace_unknown, dtype=decode_dtype
    )
    method = sampling or translator.search(**search)

    def translate(group: Sequence[Line]) -> Sequence[list[Hypothesis]]:
        if given:
            return translator.score_given(params, group, with_attention)
        found = translator.translate(
            params, group, method, max_length_ratio=max_length_ratio, max_length_offset=max_length_offset
        )
        if with_attention or replace_unknown:
            found = translator.add_attention(params, group, found, replace_unknown)
        return found

    return translate, translator.encoder.num_sources


def open_phrase_translation(
    folders: Sequence[Workdir], neural: bool, n_best: int = 1, beam_size: int | None = None, **search: Any
) -> Callable[[Sequence[Line]], list[list[Hypothesis]]]:
    """Open a phrase-based model; returns a function from lines to hypotheses.

    neural: whether an option is given that only neural models have. beam_size: size of the stacks. Raises UserError for
    such an option, for several models, and if the model is not trained; the function raises it for a line with
    constraints.
    """
    if len(folders) > 1:
        raise UserError(f"{folders[0].path}: a phrase-based model cannot be part of an ensemble; name one workdir")
    if neural or search:
        options = "--beam_size, which is the size of its stacks, and --nbest"
        raise UserError(f"{folders[0].path}: a phrase-based model only has {options}; the others need a neural model")
    model = open_phrases(folders[0], stack_size=beam_size)

    def translate(group: Sequence[Line]) -> list[list[Hypothesis]]:
        for line in group:
            if line.prefix or line.phrases:
                raise UserError(f"{line.location}a phrase-based model has no constraints; they need a neural model")
        found = model.translate([line.text for line in group], n_best)
        return [[Hypothesis(one.text, one.score, one.tokens, []) for one in translations] for translations in found]

    return translate


def run(
    workdirs: pathlib.Path | str | Sequence[pathlib.Path],
    lines: Iterable[str],
    *,
    name: str = "stdin",
    prefixes: str | None = None,
    constraints: str | None = None,
    given: str | None = None,
    chunk: int = CHUNK,
    **options: Any,
) -> Iterator[list[Hypothesis]]:
    """Translate lines with the models of `workdirs`; returns an iterator of the hypotheses of each line.

    lines: of the file `name`; several sources are separated by tabs, and a line of more than `data.max_length` pieces
    is translated in parts. prefixes, constraints, given: files as in `read_requests`; given translations are scored.
    chunk: number of lines that are sorted by length together. options, errors: as in `open_translation`.
    """
    translate, num_sources = open_translation(workdirs, given=bool(given), **options)
    requests = read_requests(sources.checked(lines, num_sources, name), name, prefixes, constraints, given)
    return itertools.chain.from_iterable(map(translate, chunks(requests, chunk)))
