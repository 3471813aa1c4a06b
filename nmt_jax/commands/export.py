"""`nmt-jax export`: a trained model as a folder for other programs."""

import contextlib
import os
import pathlib
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from absl import flags

from nmt_jax import config as configs
from nmt_jax.errors import UserError
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

FORMATS = {  # and what comes next
    "ctranslate2": "python {folder}/translate.py < source.txt > hypothesis.txt",
    "safetensors": "nmt_jax.export.safetensors.load({folder!r}), or safetensors.numpy.load_file in any program",
    "word2vec": "nmt-jax neighbours --vectors={folder}/vectors.bin",
    "huggingface": "nmt_jax.pretrained.load_encoder({folder!r}), or transformers.AutoModel.from_pretrained",
}
QUANTIZATIONS = ("float32", "float16", "int16", "int8", "int8_float16")  # bfloat16 would need PyTorch


def define_flags(flag_values: flags.FlagValues) -> None:
    """The flags of `nmt-jax export`."""
    given: dict[str, Any] = {"flag_values": flag_values}
    flags.DEFINE_string("workdir", None, "The folder of a trained model.", **given)
    explained = "ctranslate2: Transformers; huggingface: pretrained encoders; word2vec: vectors; safetensors: any."
    flags.DEFINE_enum("to", None, list(FORMATS), explained, **given)
    flags.DEFINE_string("output", None, "A new folder for all that is written.", **given)
    flags.DEFINE_integer("average", None, "Export the mean of the last n checkpoints.", lower_bound=1, **given)
    flags.DEFINE_enum("checkpoint", None, ["best", "last"], "Export one checkpoint.", **given)
    flags.DEFINE_enum("quantization", None, list(QUANTIZATIONS), "Of CTranslate2's matrices; else float32.", **given)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Flags in, a folder out; what to do with it on stderr."""
    form, output = flag_values.to, flag_values.output
    if positional or not flag_values.workdir or not form or not output:
        raise UserError(f"nmt-jax export needs --workdir=FOLDER, --to={'|'.join(FORMATS)} and --output=FOLDER")
    if flag_values.checkpoint and flag_values.average:
        raise UserError("--checkpoint and --average exclude each other: one checkpoint, or the mean of several")
    if flag_values.quantization and form != "ctranslate2":
        raise UserError(f"--quantization is for --to=ctranslate2; --to={form} writes the parameters as they are")
    run(
        flag_values.workdir,
        form,
        output,
        checkpoint=flag_values.checkpoint or flag_values.average,
        quantization=flag_values.quantization or "float32",
    )
    print(f"Next: {FORMATS[form].format(folder=output)}", file=sys.stderr)
    return 0


def run(
    workdir: pathlib.Path | str,
    form: str,
    output: pathlib.Path | str,
    *,
    checkpoint: str | int | None = None,
    quantization: str = "float32",
) -> None:
    """Writes the model of `workdir` into the new folder `output`, whole or not at all.

    form: one of FORMATS. checkpoint: "best", "last", or n for the mean of the last n; None is what `decode.average`
    says, and "best" where that is 1 or nothing. UserError for a model that the form does not know, and for a folder
    that has something in it or cannot be written.
    """
    folder, output = Workdir(pathlib.Path(workdir)), pathlib.Path(output).expanduser().absolute()
    config = folder.config()
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UserError(f"{output}: there is something already: name a new folder")
    if form == "safetensors":
        from nmt_jax.export import safetensors

        _, params = open_trained(folder, config.task, checkpoint=checkpoint)
        with _whole(output) as unfinished:
            safetensors.write(params, unfinished)
            configs.save(config, unfinished / "config.json")
            shutil.copytree(folder.vocab, unfinished / "vocab")
        return
    if form == "huggingface":
        folder.trained_config("pretrain")
        from nmt_jax.pretrained import save
        from nmt_jax.pretrained.pretraining_workdir import load_workdir

        loaded = load_workdir(folder.path, checkpoint=checkpoint)
        with _whole(output) as unfinished:
            save(loaded, unfinished)
        return
    if form == "word2vec":
        from nmt_jax.export import word2vec

        task, params = open_trained(folder, "word_vectors", checkpoint=checkpoint)
        with _whole(output) as unfinished:
            word2vec.write(task.vectors(params), unfinished)
        return
    if folder.trained_config("translate").model_name != "transformer":
        raise UserError(
            f"{folder.path}: --to=ctranslate2 takes model_name='transformer', this is {config.model_name!r}; "
            "--to=safetensors takes any model"
        )
    from nmt_jax.export import ctranslate2

    task, params = open_trained(folder, "translate", checkpoint=checkpoint)
    with _whole(output) as unfinished:
        ctranslate2.write(
            task.model,
            params,
            task.vocabularies,
            unfinished,
            quantization=quantization,
            beam_size=config.decode.beam_size,
            length_penalty=config.decode.length_penalty,
        )


@contextlib.contextmanager
def _whole(output: pathlib.Path) -> Iterator[pathlib.Path]:
    """A folder that becomes `output` once all is written, and vanishes otherwise."""
    unfinished = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        unfinished.mkdir(parents=True)
        yield unfinished
        unfinished.replace(output)
    except OSError as error:
        raise UserError(f"{output}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
