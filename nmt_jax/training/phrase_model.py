"""Opening of the phrase-based model of a trained workdir."""

from nmt_jax import config as configs
from nmt_jax.errors import UserError
from nmt_jax.phrases.model import Files, PhraseModel
from nmt_jax.phrases.stack_decoder import Limits
from nmt_jax.workdir import Workdir


def open_phrases(folder: Workdir, **limits: int | None) -> PhraseModel:
    """Returns the model of a workdir; limits: changes to `config.decode`. Raises UserError if it is not trained."""
    config, files = folder.config(), Files(folder.phrases)
    if not files.weights.is_file():
        raise UserError(f"{folder.path}: not trained yet; train first: nmt-jax train --workdir={folder.path}")
    changed = configs.flatten(config.decode) | {name: value for name, value in limits.items() if value is not None}
    return PhraseModel.load(files, Limits(**changed), config.model.lowercase)
