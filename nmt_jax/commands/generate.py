"""`nmt-jax generate`: writes lines of text sampled from a trained language model."""

import itertools
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from absl import flags

from nmt_jax.commands import streams
from nmt_jax.commands.output import define_output_flags, open_output
from nmt_jax.commands.shared_flags import define_sampling_flags, make_sampling
from nmt_jax.data.lines import chunks
from nmt_jax.schema.number_flags import define_integer
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.decoding.sampling import Sampling

LANGUAGE_MODEL = "a trained language model, or folder of GPT-2"
NUM_SAMPLES = 10  # if there are no prompts
CHUNK = 32  # lines sampled together

Request = tuple[str, int, int]  # prompt, its number, number of the sample


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax generate`."""
    streams.define_workdir_flag(flag_values, LANGUAGE_MODEL)
    help_text = "File with a prompt per line, to be continued; plain or .gz, - for stdin."
    flags.DEFINE_string("prompts", None, help_text, flag_values)
    help_text = f"Number of lines to sample; default: {NUM_SAMPLES}, or 1 per prompt."
    define_integer(flag_values, "num_samples", None, help_text, low=1)
    define_sampling_flags(flag_values)
    help_text = "Maximum number of pieces to sample per line."
    define_integer(flag_values, "length", 100, help_text, low=1, high=10_000)
    streams.define_checkpoint_flags(flag_values, average=False)
    define_output_flags(flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Write one line per sample."""
    streams.check_no_arguments("generate", positional, f"--prompts={positional[0]}" if positional else "")
    workdir = streams.required_workdir("generate", flag_values, LANGUAGE_MODEL)
    path, sampling = flag_values.prompts, make_sampling(flag_values)
    prompts = streams.open_lines(None if path == "-" else path) if path else None
    chunk = 1 if path == "-" and sys.stdin.isatty() else CHUNK
    with open_output("generate", flag_values, [path] if path else [], chunk, workdirs=[workdir]) as output:
        sample = open_sampler(workdir, sampling, flag_values.length, flag_values.checkpoint)

        def answer(first: int, group: Sequence[Request]) -> Iterator[bytes]:
            # A byte-fallback model can spell a line break, but a sample is one line.
            return streams.encoded(" ".join(text.split("\n")) for text in sample(group))

        output.write(requests(prompts, flag_values.num_samples), answer, "sampled")
    return 0


def requests(prompts: Iterable[str] | None, num_samples: int | None) -> Iterator[Request]:
    """Yield (prompt, n, k) for each sample k of prompt n; `prompts` None means one empty prompt."""
    count = num_samples or (NUM_SAMPLES if prompts is None else 1)
    for number, prompt in enumerate([""] if prompts is None else prompts):
        for k in range(count):
            yield prompt, number, k


def open_sampler(
    workdir: pathlib.Path | str,
    sampling: "Sampling | None" = None,
    length: int = 100,
    checkpoint: str | None = None,
) -> Callable[[Sequence[Request]], list[str]]:
    """Return a function from requests to samples, by the language model of `workdir`.

    Sample k of prompt n is a pure function of (model, prompt, n, k, sampling, length), so further samples and prompts
    change nothing. Raises UserError if the workdir has no trained language model.
    """
    task, params = open_trained(Workdir(workdir), "language_model", checkpoint=checkpoint)
    # Imported late: JAX takes seconds, and a wrong workdir is reported before.
    from nmt_jax.decoding.sampling import Sampling, sample_keys

    sampling = sampling or Sampling()

    def sample(group: Sequence[Request]) -> list[str]:
        texts, numbers, ks = zip(*group, strict=True)
        keys = sample_keys(sampling.seed, np.array(numbers), np.array(ks))
        return list(task.sample(params, texts, keys, sampling, length=length))

    return sample


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
    """Sample lines from the model of `workdir`: `num_samples` per prompt, in order; None means one empty prompt.

    sampling, length, errors: as in `open_sampler`.
    """
    sample = open_sampler(workdir, sampling, length, checkpoint)
    return itertools.chain.from_iterable(map(sample, chunks(requests(prompts, num_samples), chunk)))
