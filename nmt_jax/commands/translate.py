"""`nmt-jax translate`: source lines on stdin, translations on stdout, line N for line N."""

import contextlib
import itertools
import pathlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from absl import flags

from nmt_jax.commands.decoding_flags import (
    define_sampling_flags,
    define_search_flags,
    given_flags,
    make_sampling,
    search_options,
)
from nmt_jax.commands.mbr import CHUNK as CANDIDATE_LINES
from nmt_jax.commands.mbr import Gains, make_decision
from nmt_jax.data.lines import chunks, decode_lines, num_lines, read_lines
from nmt_jax.data.readers import sources
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import define_metric_flags, metric_options
from nmt_jax.progress import track
from nmt_jax.training.trained import open_translator
from nmt_jax.translation.output_format import TranslationFormat
from nmt_jax.translation.resumable import ResumableFile
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.decoding.minimum_bayes_risk import MinimumBayesRisk
    from nmt_jax.decoding.sampling import Sampling
    from nmt_jax.translation.translator import Hypothesis, Line

CHUNK = 512  # lines sorted by length together: enough for full batches, few enough to see output soon
NOT_THE_JOB = ("output", "chunk")  # flags that change nothing in what comes out


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax translate`; what is left out is what the workdir's config says under `decode`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_list("workdir", None, "The folder of a trained model; several, with commas: an ensemble.", **given)
    flags.DEFINE_string("input", None, "Read this file instead of stdin; .gz is unpacked.", **given)
    flags.DEFINE_string("output", None, "Write this file; after a crash the same command goes on with it.", **given)
    flags.DEFINE_string("prefixes", None, "A file: line N is what translation N begins with.", **given)
    flags.DEFINE_string("constraints", None, "A file: line N is phrases of translation N, parted by tabs.", **given)
    flags.DEFINE_string("given", None, "A file of translations: score these, do not search; rows with scores.", **given)
    define_search_flags(flag_values)
    flags.DEFINE_integer("num_samples", 0, "Draw so many samples a line instead of searching.", **given)
    flags.DEFINE_bool("replacement", True, "Off: the samples of a line are different ones.", **given)
    define_sampling_flags(flag_values)
    flags.DEFINE_list(
        "utility", None, "Of the samples, the one that these metrics expect to be best: chrf@2,bleu@1.", **given
    )
    flags.DEFINE_string("evaluate", None, "With --utility: a metric that is not optimised, for the report.", **given)
    define_metric_flags(flag_values)
    flags.DEFINE_float("max_length_ratio", None, "Longest translation, in pieces per source piece.", **given)
    flags.DEFINE_integer("max_length_offset", None, "And so many pieces more.", **given)
    flags.DEFINE_integer("average", None, "Translate with the mean of the last n checkpoints.", lower_bound=1, **given)
    flags.DEFINE_enum("checkpoint", None, ["best", "last"], "Translate with one checkpoint.", **given)
    flags.DEFINE_integer(
        "nbest", 1, "Results a line; more than one: rows of LINE, SCORE, TEXT, tab-separated.", lower_bound=1, **given
    )
    flags.DEFINE_enum("format", "text", ["text", "json"], "json: one object a line, with scores and pieces.", **given)
    flags.DEFINE_string(
        "alignment", None, "Words aligned by attention, behind a tab: argmax, or the least weight of a link.", **given
    )
    flags.DEFINE_bool("attention", False, "With --format=json: the weights between words.", **given)
    flags.DEFINE_bool("replace_unknown", False, "Let <unk> be said, and put the word it looks at there.", **given)
    flags.DEFINE_integer(
        "chunk", CHUNK, "Lines translated together; on a terminal each at once.", lower_bound=1, **given
    )


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, lines through."""
    if positional:
        raise UserError(f"nmt-jax translate reads stdin: … < {positional[0]}, or --input={positional[0]}")
    if not flag_values.workdir:
        raise UserError("nmt-jax translate needs --workdir=FOLDER of a trained model")
    if flag_values.checkpoint and flag_values.average:
        raise UserError("--checkpoint and --average exclude each other: one checkpoint, or the mean of several")
    asked = flag_values.num_samples or flag_values.nbest > 1 or flag_values.prefixes or flag_values.constraints
    if flag_values.given and asked:
        raise UserError("--given scores translations: without --num_samples, --nbest, --prefixes and --constraints")
    if flag_values.num_samples and flag_values.nbest > 1 and not flag_values.utility:
        raise UserError("--nbest is of a search, or of --utility: samples are all written")
    if flag_values.num_samples < 0:
        raise UserError(f"--num_samples={flag_values.num_samples}: at least 1, or 0 for a search")
    form = TranslationFormat.of(
        flag_values.format,
        flag_values.nbest > 1 or bool(flag_values.given) or (flag_values.num_samples > 1 and not flag_values.utility),
        flag_values.alignment,
        flag_values.attention,
    )
    sampling = None
    if flag_values.num_samples:
        sampling = make_sampling(flag_values, flag_values.num_samples, flag_values.replacement)
    decide, gains = None, None
    if flag_values.utility:
        if flag_values.num_samples < 2:
            raise UserError("--utility chooses among samples: --num_samples=64, say; n-best lists go to nmt-jax mbr")
        decide, spec = make_decision(flag_values.utility, flag_values.evaluate, metric_options(flag_values))
        gains = Gains(spec)
    interactive = not flag_values.input and sys.stdin.isatty()
    chunk = 1 if interactive else flag_values.chunk
    output = None
    if flag_values.output:
        job = {name: value for name, value in given_flags(flag_values).items() if name not in NOT_THE_JOB}
        output = ResumableFile(pathlib.Path(flag_values.output), job)
    with output or contextlib.nullcontext():
        done = output.num_inputs if output else 0
        results: Iterable[list[Hypothesis]] = run(
            _folders(flag_values.workdir),
            read_lines(flag_values.input) if flag_values.input else decode_lines(sys.stdin.buffer, "stdin"),
            name=flag_values.input or "stdin",
            prefixes=flag_values.prefixes,
            constraints=flag_values.constraints,
            given=flag_values.given,
            skip=done,
            sampling=sampling,
            max_length_ratio=flag_values.max_length_ratio,
            max_length_offset=flag_values.max_length_offset,
            checkpoint=flag_values.checkpoint or flag_values.average,
            n_best=flag_values.nbest,
            chunk=chunk,
            watched=form.watched,
            replace_unknown=flag_values.replace_unknown,
            **search_options(flag_values),
        )
        if decide and gains:
            results = _decided(results, decide, gains, flag_values.nbest)
        if output or not sys.stdout.isatty():  # on a terminal the translations themselves show how far it is
            total = num_lines(flag_values.input)
            results = track(results, "translated", total=total and max(total - done, 1))
        for number, hypotheses in enumerate(results, start=done + 1):
            data = form.show(number, hypotheses)
            if not output:
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
                continue
            output.write(data)
            if (number - done) % chunk == 0:
                output.save()
    if gains and gains.num_lines:
        print(gains, file=sys.stderr)
    return 0


def _folders(parts: Sequence[str]) -> list[pathlib.Path]:
    """The workdirs of a list that was split at commas, of which a sweep's folders have some in their own names."""
    folders: list[pathlib.Path] = []
    start = 0
    while start < len(parts):
        joined = [",".join(parts[start:stop]) for stop in range(len(parts), start, -1)]
        name = next((one for one in joined if pathlib.Path(one).is_dir()), parts[start])
        folders.append(pathlib.Path(name))
        start += name.count(",") + 1
    return folders


def _decided(
    results: Iterable[list["Hypothesis"]], decide: "MinimumBayesRisk", gains: Gains, count: int
) -> Iterator[list["Hypothesis"]]:
    """The samples of each line as `count` hypotheses, those of the highest expected utility, which is their score."""
    for group in chunks(results, CANDIDATE_LINES):
        for own, choice in zip(group, decide([[one.text for one in own] for own in group]), strict=True):
            gains.add(choice)
            order = [choice.index, *(n for n in np.argsort(-choice.utilities, kind="stable") if n != choice.index)]
            ranked = {own[n].text: own[n]._replace(score=float(choice.utilities[n])) for n in order}
            yield list(ranked.values())[:count]


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
    watched: bool = False,
    replace_unknown: bool = False,
    **search: Any,
) -> Iterator[list["Hypothesis"]]:
    """Translate `lines` with the models of `workdirs` -> the hypotheses of each, in order, while lines come in.

    As many as `n_best` of search, the options of `decoding.search.Search`, or as `sampling` draws. checkpoint: "best",
    "last", or n for the mean of the last n; None is what `decode.average` says, and "best" where that is 1. A line of
    more than `data.max_length` pieces is translated in parts. A model of several sources reads lines of as many texts,
    parted by tabs. prefixes, constraints: files with as many lines; given: a file of translations, of which only the
    log-probabilities are wanted. skip: begin after so many lines. watched: with what the models look at.
    replace_unknown: for vocabularies of words; <unk> may be said, and is the word looked at.
    UserError for a workdir with nothing to translate with, before any line is read, and for a line of `name` that
    cannot be translated as asked.
    """
    folders = [pathlib.Path(workdirs)] if isinstance(workdirs, str | pathlib.Path) else list(workdirs)
    opened = [Workdir(folder) for folder in folders]
    configs = [folder.trained_config("translate") for folder in opened]
    if replace_unknown and configs[0].vocab.algorithm != "word":
        raise UserError(
            f"--replace_unknown is for vocabularies of words; {folders[0]} has pieces (vocab.algorithm="
            f"{configs[0].vocab.algorithm}), which spell any word"
        )
    translator, params = open_translator(opened, checkpoint=checkpoint, say_unknown=replace_unknown)
    how = sampling or translator.search(**search)

    def results() -> Iterator[list["Hypothesis"]]:
        asked = _asked(sources.checked(lines, translator.num_sources, name), name, prefixes, constraints, given)
        for group in chunks(itertools.islice(asked, skip, None), chunk):
            if given:
                yield from translator.judge(params, group, watched)
                continue
            found = translator.translate(
                params, group, how, max_length_ratio=max_length_ratio, max_length_offset=max_length_offset
            )
            if watched or replace_unknown:
                found = translator.watch(params, group, found, replace_unknown)
            yield from found

    return results()


def _asked(lines: Iterable[str], name: str, *files: str | None) -> Iterator["Line"]:
    """The lines with prefix, phrases and translation beside them; UserError where a file has fewer or more."""
    from nmt_jax.translation.translator import Line

    others = [(path, read_lines(path) if path else itertools.repeat("")) for path in files]
    named = [path for path in files if path]
    for number, line in enumerate(lines, start=1):
        beside = []
        for path, texts in others:
            text = next(iter(texts), None)
            if text is None:
                raise UserError(f"{path}:{number}: no such line; {name} has more")
            beside.append(text)
        prefix, phrases, given = beside
        where = f"{' and '.join(named)}:{number}: " if named else ""
        yield Line(line, prefix, tuple(filter(None, phrases.split("\t"))), where, given)
    for path, texts in others:
        if path and next(iter(texts), None) is not None:
            raise UserError(f"{path}: has more lines than {name}")
