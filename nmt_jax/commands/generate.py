"""`nmt-jax generate`: new lines of text, drawn from a trained language model, on stdout."""

import pathlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from absl import flags

from nmt_jax.commands.decoding_flags import define_sampling_flags, make_sampling
from nmt_jax.data.lines import chunks, decode_lines, read_lines
from nmt_jax.errors import UserError
from nmt_jax.progress import track
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.decoding.sampling import Sampling

NUM_SAMPLES = 10  # where there are no prompts
CHUNK = 32  # lines drawn together


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax generate`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("workdir", None, "The folder of a trained language model.", **given)
    flags.DEFINE_string(
        "prompts", None, "Beginnings to go on from, a line each: a file, plain or .gz; - is stdin.", **given
    )
    flags.DEFINE_integer(
        "num_samples",
        None,
        f"Lines to draw: {NUM_SAMPLES}, or with prompts 1 for each of them.",
        lower_bound=1,
        **given,
    )
    define_sampling_flags(flag_values)
    flags.DEFINE_integer("length", 100, "Draw at most so many pieces a line.", lower_bound=1, **given)
    flags.DEFINE_enum(
        "checkpoint", None, ["best", "last"], "Which checkpoint to draw from; best if not given.", **given
    )


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, lines out, each when it is drawn."""
    if positional:
        raise UserError(f"nmt-jax generate takes no {positional[0]!r}: beginnings are --prompts={positional[0]}")
    if not flag_values.workdir:
        raise UserError("nmt-jax generate needs --workdir=FOLDER of a trained language model")
    prompts: Iterable[str] | None = None
    from_stdin = flag_values.prompts == "-"
    if flag_values.prompts:
        prompts = decode_lines(sys.stdin.buffer, "stdin") if from_stdin else read_lines(flag_values.prompts)
    texts = run(
        pathlib.Path(flag_values.workdir),
        prompts,
        num_samples=flag_values.num_samples,
        sampling=make_sampling(flag_values),
        length=flag_values.length,
        checkpoint=flag_values.checkpoint,
        chunk=1 if from_stdin and sys.stdin.isatty() else CHUNK,
    )
    for text in texts if sys.stdout.isatty() else track(texts, "drawn"):
        # A byte-fallback model can spell a line break; a sample must stay a line.
        sys.stdout.buffer.write(" ".join(text.split("\n")).encode() + b"\n")
        sys.stdout.buffer.flush()
    return 0


def run(
    workdir: pathlib.Path | str,
    prompts: Iterable[str] | None = None,
    *,
    num_samples: int | None = None,
    sampling: "Sampling | None" = None,
    length: int = 100,
    checkpoint: str | None = None,
    chunk: int = CHUNK,
) -> Iterator[str]:
    """Lines drawn from the model of `workdir`: `num_samples` for each prompt, in order; without prompts, from nothing.

    Sample k of prompt n is a pure function of (model, prompt, n, k, sampling, length): more samples or prompts
    behind it change nothing. UserError for a workdir without a trained language model, before any prompt is read.
    """
    task, params = open_trained(Workdir(pathlib.Path(workdir)), "language_model", checkpoint=checkpoint)
    # Below, not above: a mistake is told before the seconds that importing JAX takes.
    import jax

    from nmt_jax.decoding.sampling import Sampling

    sampling = sampling or Sampling()
    count = num_samples or (NUM_SAMPLES if prompts is None else 1)

    beginnings = [""] if prompts is None else prompts

    @jax.vmap
    def keys(number: Any, k: Any) -> jax.Array:
        return jax.random.fold_in(jax.random.fold_in(jax.random.key(sampling.seed), number), k)

    def results() -> Iterator[str]:
        wanted = ((text, number, k) for number, text in enumerate(beginnings) for k in range(count))
        for group in chunks(wanted, chunk):
            texts, numbers, ks = zip(*group, strict=True)
            drawn = keys(np.array(numbers), np.array(ks))
            yield from task.sample(params, texts, drawn, sampling, length=length)

    return results()
