"""`nmt-jax perturb`: sentences on stdin, a table of them and of what is left of them on stdout, with other metrics.

What a learned metric is pretrained on (Sellam et al., 2020, section 4): sentences as references, perturbed copies as
candidates, and what metrics that learn nothing say of them.
"""

import functools
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from absl import flags

from nmt_jax.data.batching.encoder_rows import RowReader
from nmt_jax.data.batching.perturbations import MAX_MASKS, Masked, choose_masked, drop_words
from nmt_jax.data.lines import chunks, decode_lines, read_lines
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import define_metric_flags, metric_options, open_metric
from nmt_jax.progress import track
from nmt_jax.training.trained import open_trained, open_translator
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.tasks.pretrain import Pretrain

METRICS = ("bleu|effective_order:true", "rougeL")
CHUNK = 512  # sentences perturbed together
ROWS = 16  # of one batch of masked sentences

Perturbation = Callable[[Sequence[str], Sequence[np.random.Generator]], list[str]]


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax perturb`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("input", None, "Read this file instead of stdin; .gz is unpacked.", **given)
    flags.DEFINE_string("mlm", None, "A workdir of pretraining (configs/bert_tiny.py) that fills in masks.", **given)
    flags.DEFINE_string("there", None, "A workdir that translates, for back-translation; with --back.", **given)
    flags.DEFINE_string("back", None, "A workdir that translates back.", **given)
    flags.DEFINE_list("metrics", list(METRICS), "What is said of each pair, as in `nmt-jax score`.", **given)
    flags.DEFINE_integer("seed", 0, "Of what is dropped, masked and drawn.", **given)
    define_metric_flags(flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, lines through."""
    if positional:
        raise UserError(f"nmt-jax perturb reads stdin: … < {positional[0]}, or --input={positional[0]}")
    path = flag_values.input
    rows = run(
        read_lines(path) if path else decode_lines(sys.stdin.buffer, "stdin"),
        mlm=flag_values.mlm,
        there=flag_values.there,
        back=flag_values.back,
        metrics=flag_values.metrics,
        seed=flag_values.seed,
        **metric_options(flag_values),
    )
    for row in rows if sys.stdout.isatty() else track(rows, "pairs"):
        sys.stdout.buffer.write(("\t".join(row) + "\n").encode())
    return 0


def run(
    sentences: Iterable[str],
    *,
    mlm: pathlib.Path | str | None = None,
    there: pathlib.Path | str | None = None,
    back: pathlib.Path | str | None = None,
    metrics: Sequence[str] = METRICS,
    seed: int = 0,
    **options: Any,
) -> Iterator[list[str]]:
    """Rows of a table: its header (reference, candidate, how, a column or more a metric), then a row a candidate.

    Of every sentence that is not empty: without some of its words ("drop"); with `mlm`, some of its pieces masked and
    filled in by that model ("mask"); with `there` and `back`, translated there and back ("back"). What comes of a
    sentence hangs on it, its number and the seed. options: as of `open_metric`. UserError for what is needed and not
    given, before any sentence is read.
    """
    if bool(there) != bool(back):
        raise UserError("nmt-jax perturb needs both --there=WORKDIR and --back=WORKDIR, or neither")
    measures = [open_metric(spec, **options) for spec in metrics]
    ways: dict[str, Perturbation] = {"drop": lambda texts, random: list(map(drop_words, texts, random))}
    if mlm:
        task, params = open_trained(Workdir(pathlib.Path(mlm)), "pretrain")
        if task.model.causal:
            raise UserError(f"--mlm={mlm}: trained from left to right (model.causal=true): it fills in no masks")
        ways["mask"] = functools.partial(fill_in, task, params)
    if there and back:
        ways["back"] = functools.partial(translate_back, _translating(there), _translating(back))
    yield ["reference", "candidate", "how", *(name for measure in measures for name in _columns(measure))]
    filled = ((number, " ".join(text.split())) for number, text in enumerate(sentences) if text.strip())
    for group in chunks(filled, CHUNK):
        numbers, texts = zip(*group, strict=True)
        for kind, (how, perturb) in enumerate(ways.items()):
            candidates = perturb(texts, [np.random.default_rng((seed, kind, number)) for number in numbers])
            values = np.column_stack([_values(measure, candidates, texts) for measure in measures])
            for reference, candidate, row in zip(texts, candidates, values, strict=True):
                yield [reference, candidate, how, *(f"{value:.6g}" for value in row)]


def _columns(metric: Any) -> list[str]:
    """What is written of a metric: its score, and of embedding metrics what it is made of."""
    return [metric.name, *(f"{metric.name}_{name}" for name in getattr(metric, "columns", ())[1:])]


def _values(metric: Any, candidates: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """-> float[N, C], the columns."""
    statistics = metric.statistics(list(candidates), list(references))
    return np.column_stack([metric.score(statistics), statistics[:, 1 : len(_columns(metric))]])


# Masks


def fill_in(
    task: "Pretrain", params: Any, sentences: Sequence[str], random: Sequence[np.random.Generator]
) -> list[str]:
    """Sentences with some pieces masked and drawn anew from a masked language model, all masks at once.

    The end of a sentence that is too long for the model is not masked.
    """
    reader = RowReader(task.tokenizer.model, task.config.data.max_length, segments=True)
    masked = []
    for sentence, pieces, chance in zip(sentences, reader.pieces(sentences), random, strict=True):
        length = min(len(pieces.ids), reader.capacity(1))
        masked.append(Masked(sentence, pieces, choose_masked(length, chance) if length else np.zeros(0, int)))
    texts = []
    for first in range(0, len(masked), ROWS):
        some = masked[first : first + ROWS]
        logits = _ask(task, params, reader, some)
        for one, scores, chance in zip(some, logits, random[first : first + ROWS], strict=True):
            drawn = (scores + chance.gumbel(size=scores.shape)).argmax(axis=-1)[: len(one.places)]
            texts.append(one.filled(task.tokenizer.pieces(drawn)))
    return texts


def _ask(task: "Pretrain", params: Any, reader: RowReader, some: Sequence[Masked]) -> np.ndarray:
    """Masked sentences -> float32[B, P, V], what the model expects in their masks; special pieces never."""
    shape = (ROWS, task.config.data.max_length)  # one shape: what is drawn does not hang on neighbours
    ids, positions = np.zeros(shape, np.int32), np.zeros((ROWS, MAX_MASKS), np.int32)
    special = np.flatnonzero(task.masking().special)
    for row, one in enumerate(some):
        item, (begin,) = reader.row(*reader.fit([one.pieces.ids]))
        ids[row, : len(item["ids"])] = item["ids"]
        positions[row, : len(one.places)] = begin + one.places
        ids[row, begin + one.places] = task.masking().mask_id
    logits = np.array(_program(task)(params, ids, positions), np.float64)
    logits[:, :, special] = -np.inf
    return logits[: len(some)]


@functools.cache
def _program(task: "Pretrain") -> Any:
    """The compiled logits of a task's model."""
    import jax
    import jax.numpy as jnp

    def logits(params: Any, ids: jax.Array, positions: jax.Array) -> jax.Array:
        return task.model.apply({"params": params}, ids, ids != 0, jnp.zeros_like(ids), positions)[0]

    return jax.jit(logits)


# Back-translation


def _translating(workdir: pathlib.Path | str) -> Callable[[Sequence[str]], list[str]]:
    """Lines into translations, by the search that the workdir's config describes."""
    translator, params = open_translator([Workdir(pathlib.Path(workdir))])

    def translate(lines: Sequence[str]) -> list[str]:
        return [best[0].text for best in translator.translate(params, lines, translator.search())]

    return translate


def translate_back(
    there: Callable[[Sequence[str]], list[str]],
    back: Callable[[Sequence[str]], list[str]],
    sentences: Sequence[str],
    random: Sequence[np.random.Generator],
) -> list[str]:
    """Sentences, translated there and back; nothing is drawn."""
    return back(there(sentences))
