"""`nmt-jax export`: writes a trained model as a folder for other programs."""

import contextlib
import pathlib
import shutil
import sys
from collections.abc import Iterator, Sequence

from absl import flags

from nmt_jax import config as configs
from nmt_jax.commands import streams
from nmt_jax.errors import UserError
from nmt_jax.storage import files
from nmt_jax.storage.paths import path_of
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

NEXT = {  # how to use the folder, by format
    "ctranslate2": "python {folder}/translate.py < source.txt > hypothesis.txt",
    "safetensors": "nmt_jax.export.safetensors.load({folder!r}), or safetensors.numpy.load_file in any program",
    "word2vec": "nmt-jax neighbours --vectors={folder}/vectors.bin",
    "huggingface": "transformers.AutoModel.from_pretrained({folder!r}); encoders also nmt_jax.pretrained.load_encoder",
}
QUANTIZATIONS = ("float32", "float16", "int16", "int8", "int8_float16")  # bfloat16 would need PyTorch

Checkpoint = str | int | None


def define_flags(flag_values: flags.FlagValues) -> None:
    """Define the flags of `nmt-jax export`."""
    streams.define_workdir_flag(flag_values)
    help_text = (
        "Format: ctranslate2 for Transformers, huggingface for a pretrained BERT or GPT, word2vec, safetensors for any."
    )
    flags.DEFINE_enum("to", None, list(NEXT), help_text, flag_values)
    flags.DEFINE_string("output", None, "Folder to create.", flag_values)
    streams.define_checkpoint_flags(flag_values)
    help_text = "Data type of the matrices, with --to=ctranslate2; default: float32."
    flags.DEFINE_enum("quantization", None, list(QUANTIZATIONS), help_text, flag_values)


def main(flag_values: flags.FlagValues, positional: Sequence[str]) -> int:
    """Write the folder, and on stderr how to use it."""
    form, output = flag_values.to, flag_values.output
    if positional or not flag_values.workdir or not form or not output:
        raise UserError(f"nmt-jax export needs --workdir=FOLDER, --to={'|'.join(NEXT)} and --output=FOLDER")
    checkpoint = streams.chosen_checkpoint(flag_values)
    if flag_values.quantization and form != "ctranslate2":
        raise UserError(f"--quantization needs --to=ctranslate2; --to={form} does not change the parameters")
    run(flag_values.workdir, form, output, checkpoint=checkpoint, quantization=flag_values.quantization or "float32")
    print(f"Next: {NEXT[form].format(folder=output)}", file=sys.stderr)
    return 0


def run(
    workdir: pathlib.Path | str,
    form: str,
    output: pathlib.Path | str,
    *,
    checkpoint: Checkpoint = None,
    quantization: str = "float32",
) -> None:
    """Write the model of `workdir` to the new folder `output`, completely or not at all.

    form: a key of NEXT. checkpoint: "best", "last", n for the mean of the last n, or None for `decode.average` of the
    config. Raises UserError if the model has no such format, and if the folder is not empty or cannot be written.
    """
    folder, output = Workdir(workdir), path_of(output).expanduser().absolute()
    folder.config()  # the first check: is it a workdir?
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UserError(f"{output}: already exists; name a new folder")
    if form == "ctranslate2":
        _to_ctranslate2(folder, output, checkpoint, quantization)
    else:
        writers = {"safetensors": _to_safetensors, "huggingface": _to_huggingface, "word2vec": _to_word2vec}
        writers[form](folder, output, checkpoint)


@contextlib.contextmanager
def _whole_folder(output: pathlib.Path) -> Iterator[pathlib.Path]:
    """Provide a temporary folder that becomes `output` at the end. Raises UserError if it cannot be written."""
    try:
        with files.whole_folder(output) as folder:
            yield folder
    except OSError as error:
        raise UserError(f"{output}: cannot be written: {error.strerror or error}") from error


# The formats are imported late: their programs need JAX, and some are optional.


def _to_safetensors(folder: Workdir, output: pathlib.Path, checkpoint: Checkpoint) -> None:
    from nmt_jax.export import safetensors

    config = folder.config()
    _, params = open_trained(folder, config.task, checkpoint=checkpoint)
    with _whole_folder(output) as unfinished:
        safetensors.write(params, unfinished)
        configs.save(config, unfinished / "config.json")
        with files.local_copy(folder.vocab) as vocab:
            shutil.copytree(vocab, unfinished / "vocab")


def _to_huggingface(folder: Workdir, output: pathlib.Path, checkpoint: Checkpoint) -> None:
    if folder.trained_config("pretrain", "language_model").task == "language_model":
        from nmt_jax.pretrained.causal_encoders import load_gpt_workdir
        from nmt_jax.pretrained.gpt import save_gpt

        gpt = load_gpt_workdir(folder.path, checkpoint)
        with _whole_folder(output) as unfinished:
            save_gpt(gpt, unfinished)
        return
    from nmt_jax.pretrained import save
    from nmt_jax.pretrained.loading import load_workdir

    loaded = load_workdir(folder.path, checkpoint=checkpoint)
    with _whole_folder(output) as unfinished:
        save(loaded, unfinished)


def _to_word2vec(folder: Workdir, output: pathlib.Path, checkpoint: Checkpoint) -> None:
    from metrics_jax.embedding import vector_files

    task, params = open_trained(folder, "word_vectors", checkpoint=checkpoint)
    with _whole_folder(output) as unfinished:
        vectors = task.vectors(params)
        vector_files.write(vectors.words, vectors.matrix, unfinished)


def _to_ctranslate2(folder: Workdir, output: pathlib.Path, checkpoint: Checkpoint, quantization: str) -> None:
    config = folder.trained_config("translate")
    if config.model_name != "transformer":
        raise UserError(
            f"{folder.path}: --to=ctranslate2 needs model_name='transformer', but this is {config.model_name!r}; "
            "--to=safetensors takes any model"
        )
    if config.data.kind != "text":
        raise UserError(
            f"{folder.path}: --to=ctranslate2 needs a source of text, but config.data.kind={config.data.kind!r}"
        )
    if "," in config.data.source:
        raise UserError(f"{folder.path}: --to=ctranslate2 needs one source, but this is {config.data.source!r}")
    if config.model.copying != "none":
        raise UserError(
            f"{folder.path}: --to=ctranslate2 cannot copy source words, but config.model.copying="
            f"{config.model.copying!r}; --to=safetensors takes any model"
        )
    from nmt_jax.export import ctranslate2

    task, params = open_trained(folder, "translate", checkpoint=checkpoint)
    with _whole_folder(output) as unfinished:
        options = {"beam_size": config.decode.beam_size, "length_penalty": config.decode.length_penalty}
        ctranslate2.write(task.model, params, task.vocabularies, unfinished, quantization=quantization, **options)
