"""`nmt-jax perturb`: reads sentences, writes a table of perturbed copies with their scores by metrics.

Synthetic data for pretraining a learned metric (Sellam et al., 2020, section 4): sentences are references, perturbed
copies are candidates, and untrained metrics give the scores to predict.
"""

import functools
import itertools
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from absl import flags

from nmt_jax.commands import streams
from nmt_jax.commands.output import define_output_flags, open_output
from nmt_jax.commands.shared_flags import define_metric_flags, metric_options, values
from nmt_jax.data.lines import chunks
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import metric_error, open_metric
from nmt_jax.schema.number_flags import define_seed
from nmt_jax.training.trained import open_trained, open_translator
from nmt_jax.workdir import Workdir

METRICS = ("bleu|effective_order:true", "rougeL")
CHUNK = 512  # sentences perturbed together

Numbered = tuple[int, str]  # number of a sentence, its words
Perturbation = Callable[[Sequence[str], Sequence[np.random.Generator]], list[str]]


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax perturb`."""
    streams.define_input_flag(flag_values)
    define_output_flags(flag_values)
    help_text = "Workdir of a masked language model (configs/bert_tiny.py) that fills in masked pieces."
    flags.DEFINE_string("mlm", None, help_text, flag_values)
    help_text = "Workdir of a translator into another language, for back-translation; needs --back."
    flags.DEFINE_string("there", None, help_text, flag_values)
    flags.DEFINE_string("back", None, "Workdir of a translator back into the language of the input.", flag_values)
    flags.DEFINE_list("metrics", list(METRICS), "Metrics that score each pair, as in nmt-jax score.", flag_values)
    define_seed(flag_values, 0)
    define_metric_flags(flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Write the table as tab-separated rows."""
    streams.check_no_arguments("perturb", positional)
    name = flag_values.input
    with open_output("perturb", flag_values, [name], CHUNK) as output:
        header, perturb = open_perturbations(
            **values(flag_values, "mlm", "there", "back", "metrics", "seed"), **metric_options(flag_values)
        )

        def answer(first: int, group: Sequence[Numbered]) -> Iterator[bytes]:
            return streams.encoded(map("\t".join, perturb(group)))

        heading = ("\t".join(header) + "\n").encode()
        output.write(numbered(streams.open_lines(name)), answer, "pairs", heading=heading)
    return 0


def numbered(sentences: Iterable[str]) -> Iterator[Numbered]:
    """Yield each sentence that is not blank with its number."""
    return ((number, " ".join(text.split())) for number, text in enumerate(sentences) if text.strip())


def open_perturbations(
    *,
    mlm: pathlib.Path | str | None = None,
    there: pathlib.Path | str | None = None,
    back: pathlib.Path | str | None = None,
    metrics: Sequence[str] = METRICS,
    seed: int = 0,
    **options: Any,
) -> tuple[list[str], Callable[[Sequence[Numbered]], Iterator[list[str]]]]:
    """Return the header (reference, candidate, how, one or more columns per metric), and a function that yields rows.

    Each sentence has a candidate without some of its words ("drop"); with `mlm`, one whose masked pieces that model
    fills in ("mask"); with `there` and `back`, its back-translation ("back"). Candidates depend only on the sentence,
    its number and the seed. options: of `open_metric`. Raises UserError if something required is missing.
    """
    if bool(there) != bool(back):
        raise UserError("nmt-jax perturb needs both --there=WORKDIR and --back=WORKDIR, or neither")
    if not metrics:
        raise UserError("--metrics is empty: name at least one metric, such as --metrics=rougeL")
    opened = [open_metric(spec, **options) for spec in metrics]
    from nmt_jax.data.batching.masking import drop_words  # imports JAX, which takes seconds

    perturbations: dict[str, Perturbation] = {"drop": lambda texts, random: list(map(drop_words, texts, random))}
    if mlm:
        perturbations["mask"] = mask_perturbation(mlm)
    if there and back:
        perturbations["back"] = back_translation(there, back)

    def perturb(group: Sequence[Numbered]) -> Iterator[list[str]]:
        numbers, texts = zip(*group, strict=True)
        for kind, (name, change) in enumerate(perturbations.items()):
            changed = change(texts, [np.random.default_rng((seed, kind, number)) for number in numbers])
            candidates = [" ".join(text.split()) for text in changed]  # without tabs and line breaks
            try:
                values = np.column_stack([_values(metric, candidates, texts) for metric in opened])
            except (ValueError, MemoryError) as error:
                raise metric_error(error) from error
            for reference, candidate, row in zip(texts, candidates, values, strict=True):
                yield [reference, candidate, name, *(f"{value:.6g}" for value in row)]

    return ["reference", "candidate", "how", *(name for metric in opened for name in _columns(metric))], perturb


def run(sentences: Iterable[str], **options: Any) -> Iterator[list[str]]:
    """Yield the header and the rows of all sentences; options and errors as in `open_perturbations`."""
    header, perturb = open_perturbations(**options)
    return itertools.chain([header], itertools.chain.from_iterable(map(perturb, chunks(numbered(sentences), CHUNK))))


def _columns(metric: Any) -> list[str]:
    """Return the names of the columns of a metric: its score and, for embedding metrics, its parts."""
    return [metric.name, *(f"{metric.name}_{name}" for name in getattr(metric, "columns", ())[1:])]


def _values(metric: Any, candidates: Sequence[str], references: Sequence[str]) -> np.ndarray:
    """Return the columns of a metric, float[N, C]."""
    statistics = metric.statistics(list(candidates), list(references))
    return np.column_stack([metric.score(statistics), statistics[:, 1 : len(_columns(metric))]])


def mask_perturbation(workdir: pathlib.Path | str) -> Perturbation:
    """Return the perturbation that masks pieces and fills them in with the pretrained model of a workdir."""
    task, params = open_trained(Workdir(workdir), "pretrain")
    if task.model.causal:
        raise UserError(f"--mlm={workdir}: a left-to-right model (model.causal=true) cannot fill in masks")
    return functools.partial(task.fill_masks, params)


def back_translation(there: pathlib.Path | str, back: pathlib.Path | str) -> Perturbation:
    """Return the perturbation that translates there and back, each with the search of the workdir's config."""
    translators = [open_translator([Workdir(workdir)]) for workdir in (there, back)]

    def perturb(texts: Sequence[str], random: Sequence[np.random.Generator]) -> list[str]:
        for translator, params in translators:
            texts = [best[0].text for best in translator.translate(params, texts, translator.search())]
        return list(texts)

    return perturb
