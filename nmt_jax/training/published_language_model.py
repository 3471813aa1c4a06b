"""Opening of published language models: a folder of GPT-2 as a language-modelling task with its parameters."""

from pathlib import Path
from typing import Any

import jax
from ml_collections import ConfigDict

from nmt_jax import platforms, schema
from nmt_jax.distributed import sharding
from nmt_jax.pretrained.gpt import load_gpt
from nmt_jax.pretrained.piece_vocabulary import PieceVocabulary
from nmt_jax.tasks.language_model import LanguageModel


def open_published(folder: Path) -> tuple[LanguageModel, Any]:
    """Return the task and the parameters of a GPT-2 in Hugging Face's format, as `open_trained` does of a workdir.

    Texts are read in windows of all positions; every token is predicted after at least half as many, where available.
    Raises UserError as `load_gpt` and `PieceVocabulary` do.
    """
    platforms.configure_compilation()
    found = load_gpt(folder)
    vocab = PieceVocabulary(found.tokenizer, found.model.vocab_size, str(folder))
    config = ConfigDict(schema.defaults("gpt", "language_model"))
    config.model.update({name: getattr(found.model, name) for name in config.model})
    config.data.block_length, config.eval.context = found.max_length, found.max_length // 2
    config.eval.batch_tokens = max(config.eval.batch_tokens, found.max_length)
    mesh = sharding.make_mesh(1, jax.devices() if jax.distributed.is_initialized() else jax.local_devices())
    task = LanguageModel(config, folder, mesh)
    task.vocab = vocab  # type: ignore[assignment]  # a cached property: the folder's in place of a workdir's
    table = found.params["embedding"]["table"][vocab.order]
    params = {**found.params, "embedding": {"table": table}}
    return task, jax.device_put(params, sharding.replicated(mesh))
