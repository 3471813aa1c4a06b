"""`nmt-jax translate`: reads source lines, writes translations, line N for line N."""

import itertools
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from absl import flags

from nmt_jax.commands import streams
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
from nmt_jax.data.lines import chunks, find, num_lines
from nmt_jax.data.readers import sources
from nmt_jax.errors import UserError
from nmt_jax.progress import track
from nmt_jax.schema.number_flags import define_float, define_integer
from nmt_jax.training.trained import open_translator
from nmt_jax.translation.output_format import TranslationFormat
from nmt_jax.translation.requests import Hypothesis, read_requests
from nmt_jax.translation.reranking import Gains, make_decision, rerank_samples
from nmt_jax.translation.resumable import ResumableFile
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.decoding.sampling import Sampling

CHUNK = 512  # lines that are sorted by length together
NOT_IN_JOB = ("output", "overwrite", "chunk")  # flags that do not change what is written
INPUTS = ("input", "prefixes", "constraints", "given")  # flags of files that have a line for each line of the output


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax translate`; decoding flags default to `decode` in the workdir's config."""
    help_text = "Folder of a trained model; several, separated by commas, form an ensemble."
    flags.DEFINE_list("workdir", None, help_text, flag_values)
    parts = ": lines of text; those of data.max_length pieces or more are translated in parts"
    streams.define_input_flag(flag_values, parts)
    help_text = "Write this file instead of stdout; after an interruption, the same command continues it."
    flags.DEFINE_string("output", None, help_text, flag_values)
    streams.define_overwrite_flag(flag_values)
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
    streams.define_checkpoint_flags(flag_values)
    help_text = "Number of translations per line; above 1, writes tab-separated rows LINE, SCORE, TEXT."
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
        decide, evaluated = make_decision(flag_values.utility, flag_values.evaluate, metric_options(flag_values))
        gains = Gains(evaluated)

    def blocks(skip: int = 0) -> Iterator[bytes]:
        results = run(
            existing_folders(flag_values.workdir),
            streams.open_lines(flag_values.input),
            name=flag_values.input or "stdin",
            skip=skip,
            sampling=sampling,
            checkpoint=checkpoint,
            n_best=flag_values.nbest,
            chunk=streams.chunk_size(flag_values),
            with_attention=form.needs_attention,
            **values(flag_values, "prefixes", "constraints", "given"),
            **values(flag_values, "max_length_ratio", "max_length_offset", "replace_unknown"),
            **search_options(flag_values),
        )
        if decide and gains:
            results = rerank_samples(results, decide, gains, flag_values.nbest)
        return itertools.starmap(form.show, enumerate(results, start=skip + 1))

    if flag_values.output:
        _write_resumable(flag_values, blocks)
    else:
        streams.write_blocks(blocks(), "translated", num_lines(flag_values.input))
    if gains and gains.num_lines:
        print(gains, file=sys.stderr)
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


def _write_resumable(flag_values: flags.FlagValues, blocks: Callable[[int], Iterator[bytes]]) -> None:
    """Write the blocks to `--output`, saving the progress after each chunk of the input."""
    job = values(flag_values, *(name for name in flag_values if flag_values[name].present and name not in NOT_IN_JOB))
    files = [str(name) for name in values(flag_values, *INPUTS).values() if name]
    regular = [file for file in files if find(file).is_file()]  # others can be read only once
    chunk = streams.chunk_size(flag_values)
    with ResumableFile(pathlib.Path(flag_values.output), job, flag_values.overwrite, regular) as output:
        done = output.num_inputs
        total = num_lines(flag_values.input)
        rest = track(blocks(done), "translated", total=total and max(total - done, 1))
        for count, block in enumerate(rest, start=1):
            output.write(block)
            if count % chunk == 0:
                output.save()


def existing_folders(parts: Sequence[str]) -> list[pathlib.Path]:
    """Return the workdirs of a list that was split at commas, which may occur in the name of a sweep's workdir."""
    folders: list[pathlib.Path] = []
    start = 0
    while start < len(parts):
        joined = (",".join(parts[start:stop]) for stop in range(len(parts), start, -1))
        name = next((one for one in joined if pathlib.Path(one).is_dir()), parts[start])
        folders.append(pathlib.Path(name))
        start += name.count(",") + 1
    return folders


def run(
    workdirs: pathlib.Path | str | Sequence[pathlib.Path],
    lines: Iterable[str],
    *,
    name: str = "stdin",
    prefixes: str | None = None,
    constraints: str | None = None,
    given: str | None = None,
    skip: int = 0,
    sampling: "Sampling | None" = None,
    max_length_ratio: float | None = None,
    max_length_offset: int | None = None,
    checkpoint: str | int | None = None,
    chunk: int = CHUNK,
    with_attention: bool = False,
    replace_unknown: bool = False,
    **search: Any,
) -> Iterator[list[Hypothesis]]:
    """Translate lines with the models of `workdirs`; returns an iterator of the hypotheses of each line.

    lines: of the file `name`; several sources are separated by tabs, and a line of more than `data.max_length` pieces
    is translated in parts. prefixes, constraints, given: files as in `read_requests`; given translations are scored.
    skip: number of lines to leave out at the beginning. search: options of `decoding.method.Search`, unless `sampling`
    is set. checkpoint: "best", "last", n for the mean of the last n, or None for `decode.average` of the config.
    with_attention: include attention weights. replace_unknown: for word vocabularies; <unk> becomes a source word.

    Raises UserError, before any line is read, if a workdir has no trained translator, and while reading if a line
    cannot be translated as requested.
    """
    paths = [pathlib.Path(workdirs)] if isinstance(workdirs, str | pathlib.Path) else list(workdirs)
    folders = [Workdir(path) for path in paths]
    configs = [folder.trained_config("translate") for folder in folders]
    algorithm = configs[0].vocab.algorithm
    if replace_unknown and algorithm != "word":
        raise UserError(
            f"--replace_unknown needs a vocabulary of words; {paths[0]} has pieces (vocab.algorithm={algorithm}), "
            "which can spell any word"
        )
    translator, params = open_translator(folders, checkpoint=checkpoint, allow_unknown=replace_unknown)
    method = sampling or translator.search(**search)

    def results() -> Iterator[list[Hypothesis]]:
        checked = sources.checked(lines, translator.num_sources, name)
        requests = read_requests(checked, name, prefixes, constraints, given)
        for group in chunks(itertools.islice(requests, skip, None), chunk):
            if given:
                yield from translator.score_given(params, group, with_attention)
                continue
            found = translator.translate(
                params, group, method, max_length_ratio=max_length_ratio, max_length_offset=max_length_offset
            )
            if with_attention or replace_unknown:
                found = translator.add_attention(params, group, found, replace_unknown)
            yield from found

    return results()
