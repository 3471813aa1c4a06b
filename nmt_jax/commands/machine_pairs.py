"""The kinds of `nmt-jax augment` that translate: back-translation, and forward translation (self-training)."""

import contextlib
import functools
import json
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from absl import flags

from nmt_jax.augmentation import noise
from nmt_jax.augmentation.machine_pairs import SourceEdit, make_pairs
from nmt_jax.commands import streams
from nmt_jax.commands.shared_flags import values
from nmt_jax.data.lines import chunks, find, num_lines, read_lines, sha256_of
from nmt_jax.data.readers import sources
from nmt_jax.distributed.parts import JOB, Part, Parts, digest
from nmt_jax.errors import UserError
from nmt_jax.progress import track
from nmt_jax.schema.number_flags import define_float, define_integer
from nmt_jax.storage.files import whole_file
from nmt_jax.storage.paths import path_of
from nmt_jax.translation.requests import Hypothesis
from nmt_jax.workdir import Workdir

FLAGS = ("workdir", "checkpoint", "average", "search", "beam_size", "temperature", "top_k", "noise", "tag")
SEARCHES = ("beam", "greedy", "sampling", "top_k")
CHUNK = 512  # lines that are translated together; what a kill can lose
WITH_NOISE = ("rate", "window", "mask_token")
SETTINGS = ("kind", "source", "target", *FLAGS, *WITH_NOISE, "copies", "seed", "first_line")  # that decide the output

Translate = Callable[[Sequence[str]], Sequence[Sequence[Hypothesis]]]


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags that only these kinds have."""
    kinds = "back_translation, forward_translation"
    help_text = f"{kinds}: folder of the trained model that translates."
    flags.DEFINE_string("workdir", None, help_text, flag_values)
    streams.define_checkpoint_flags(flag_values)
    help_text = (
        f"{kinds}: beam, the best by beam search; greedy; sampling, from all pieces; top_k, from the --top_k best."
    )
    flags.DEFINE_enum("search", "beam", SEARCHES, help_text, flag_values)
    help_text = "--search=beam: beam size; default: decode.beam_size of the workdir's config."
    define_integer(flag_values, "beam_size", None, help_text, low=1)
    help_text = "--search=sampling, top_k: softmax temperature."
    define_float(flag_values, "temperature", 1.0, help_text, above=0)
    help_text = "--search=top_k: number of most likely pieces to sample from."
    define_integer(flag_values, "top_k", 10, help_text, low=1)
    help_text = (
        f"{kinds}: noise on the source, by Edunov et al. (2018): words are left out and masked, each at --rate, and "
        "move by at most --window places."
    )
    flags.DEFINE_boolean("noise", False, help_text, flag_values)
    help_text = f"{kinds}: word at the beginning of each source line, such as <BT>."
    flags.DEFINE_string("tag", "", help_text, flag_values)


def main(flag_values: flags.FlagValues) -> int:
    """Write the pairs and a manifest, print the names of the files, and on stderr the counts."""
    _check_flags(flag_values)
    back, name = flag_values.kind == "back_translation", flag_values.target or flag_values.source
    prefix, total = flag_values.output, num_lines(name)
    languages = _languages(flag_values, name, back)
    paths = [f"{prefix}.{language}" for language in languages]
    parts = Parts(path_of(f"{prefix}.json"), values(flag_values, *SETTINGS))
    if not (parts.folder / JOB).exists():
        streams.check_new(flag_values, *paths)
    streams.check_distinct([name], paths)
    parts.check(flag_values.overwrite)
    parts.start()
    try:
        counts, blocks = _translate(flag_values, parts, name, total, back)
    except BaseException:
        if not parts.finished():
            parts.discard()  # nothing to resume
        raise
    if not counts["pairs"]:
        parts.discard()
        raise UserError(
            f"{name}: no pair was made: of {counts['lines']:,} lines, {counts['empty']:,} are empty, and the "
            f"others have empty translations; test the model: nmt-jax translate --workdir={flag_values.workdir}"
        )
    _join(parts, blocks, paths)
    with whole_file(parts.output) as file:
        record = {**parts.job, "sha256": sha256_of(find(name)), **counts, "files": paths}
        file.write(f"{json.dumps(record, ensure_ascii=False, indent=1)}\n".encode())
    parts.discard()
    print(*paths, parts.output, sep="\n")
    dropped = f"{counts['empty']:,} empty lines, {counts['untranslated']:,} empty translations"
    print(f"nmt-jax: {counts['lines']:,} lines: {counts['pairs']:,} pairs; left out: {dropped}", file=sys.stderr)
    return 0


def _check_flags(flag_values: flags.FlagValues) -> None:
    """Raise UserError for flags that are missing, exclude each other, or have no effect."""
    kind, search = flag_values.kind, flag_values.search
    real, made = ("target", "source") if kind == "back_translation" else ("source", "target")
    if not flag_values[real].value:
        raise UserError(f"--kind={kind} needs --{real}=FILE of real text; the model of --workdir makes the {made}")
    streams.check_effect(flag_values, [made], False, f"with --kind={kind}: the model makes it")
    if not flag_values.workdir:
        raise UserError(f"--kind={kind} needs --workdir=FOLDER of a trained model that makes the {made}")
    because = f"with --search={search}"
    sampled = search in ("sampling", "top_k")
    streams.check_effect(flag_values, ["beam_size"], search == "beam", because)
    streams.check_effect(flag_values, ["temperature"], sampled, because)
    streams.check_effect(flag_values, ["top_k"], search == "top_k", because)
    streams.check_effect(flag_values, [*WITH_NOISE, "first_line"], flag_values.noise, "without --noise")
    streams.check_effect(flag_values, ["seed"], sampled or flag_values.noise, f"{because} and without --noise")
    if search == "greedy" and flag_values.copies > 1:
        raise UserError(f"--copies={flag_values.copies}: greedy search finds one translation; use another --search")
    if flag_values.tag and flag_values.tag.split() != [flag_values.tag]:
        raise UserError(f"--tag={flag_values.tag!r} must be one word without blanks")


def _languages(flag_values: flags.FlagValues, name: str, back: bool) -> tuple[str, str]:
    """Return the languages of the source and the target of the pairs, those that the model translates between.

    Raises UserError if the workdir has no trained translator of one source, or one of the opposite direction.
    """
    data = Workdir(flag_values.workdir).trained_config("translate").data
    if len(sources.languages(data.source)) > 1:
        raise UserError(f"--workdir={flag_values.workdir}: the model reads several sources; use one that reads one")
    if pathlib.PurePath(name.removesuffix(".gz")).suffix == f".{data.target}":
        raise UserError(
            f"--workdir={flag_values.workdir}: the model translates from {data.source} into {data.target}, and {name} "
            f"is {data.target} already; use a model of the opposite direction"
        )
    return (data.target, data.source) if back else (data.source, data.target)


def _translate(
    flag_values: flags.FlagValues, parts: Parts, name: str, total: int | None, back: bool
) -> tuple[dict[str, int], int]:
    """Write a part of pairs for each block of lines that has none; returns counts of all, and the number of blocks."""
    edit = SourceEdit(_noise(flag_values), flag_values.tag, flag_values.seed)
    finished, translate = parts.finished(), functools.cache(functools.partial(_open, flag_values))
    counts, blocks = dict.fromkeys(("lines", "empty", "untranslated", "pairs"), 0), 0
    for blocks, lines in enumerate(track(chunks(read_lines(name), CHUNK), "translated", total, CHUNK), start=1):
        block = blocks - 1
        if block in finished:
            parts.check_input(block, digest(lines))
        else:
            first = block * CHUNK + flag_values.first_line - 1
            pairs = list(make_pairs(lines, translate()(lines), back, edit, first))
            data = "".join(f"{source}\n{target}\n" for source, target, _ in pairs).encode()
            parts.write(block, Part(data, digest(lines), len(pairs)))
        made, empty = parts.read(block).summary, sum(not line.strip() for line in lines)
        counts["lines"] += len(lines)
        counts["empty"] += empty
        counts["untranslated"] += (len(lines) - empty) * flag_values.copies - made
        counts["pairs"] += made
    return counts, blocks


def _noise(flag_values: flags.FlagValues) -> Any:
    """Return the function that changes the words of a source, or None."""
    if not flag_values.noise:
        return None
    options = {"token": flag_values.mask_token, **values(flag_values, "rate", "window")}
    return functools.partial(noise.corrupt, **options)


def _open(flag_values: flags.FlagValues) -> Translate:
    """Open the model of the workdir; returns a function from lines to their translations."""
    from nmt_jax.decoding.sampling import Sampling  # this and the next import JAX, which takes seconds
    from nmt_jax.training.trained import open_translator

    checkpoint = streams.chosen_checkpoint(flag_values)
    translator, params = open_translator([Workdir(flag_values.workdir)], checkpoint=checkpoint)
    search, copies = flag_values.search, flag_values.copies
    method: Any
    if search in ("beam", "greedy"):
        beam_size = 1 if search == "greedy" else flag_values.beam_size
        method = translator.search(beam_size=beam_size, n_best=copies)
    else:
        top_k = flag_values.top_k if search == "top_k" else 0
        method = Sampling(copies, top_k=top_k, **values(flag_values, "temperature", "seed"))
    return functools.partial(translator.translate, params, method=method)


def _join(parts: Parts, blocks: int, paths: Sequence[str]) -> None:
    """Write the files of sources and of targets, whose lines alternate in the parts."""
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(whole_file(path_of(path))) for path in paths]
        for block in range(blocks):
            lines = parts.read(block).data.split(b"\n")[:-1]
            for side, file in enumerate(files):
                file.writelines(line + b"\n" for line in lines[side::2])
