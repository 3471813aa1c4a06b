"""One way to the attention of a text, for all models that have it: language models, BERT and what is built on it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from nmt_jax.errors import UserError
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.models.layers.text_attention import TextAttention

ENCODERS = ("pretrain", "sentences", "tag", "span")  # tasks whose model is an encoder
INSTEAD = {  # what models of other tasks have
    "translate": "a translator attends from a translation to its source; give a line and its translation",
    "bidirectional_language_model": "ELMo has no attention: each of its layers reads the words with two LSTMs",
    "feature_tagger": "a tagger on features has no attention: it reads them with a recurrent network",
    "word_vectors": "word vectors have no attention: the vector of a word is the same in every sentence",
}

Attention = Callable[[str], "TextAttention"]


def open_text_attention(folder: Workdir, checkpoint: str | int | None = None) -> Attention:
    """Return a function from a text to its pieces and their attention weights, by the model of a workdir.

    checkpoint: as for `open_trained`. Raises UserError if the model has no attention within a text, and says what it
    has instead; the function raises UserError for a text that is too long.
    """
    task = folder.config().task
    if task == "language_model":
        trained, params = open_trained(folder, task, checkpoint=checkpoint)
        trained.check_attention()
        return lambda text: trained.attention(params, text)
    if task not in ENCODERS:
        instead = INSTEAD.get(task, f"models of config.task={task} have no attention between the pieces of a text")
        raise UserError(f"{folder.path}: {instead}")
    folder.trained_config(task)
    from nmt_jax import platforms
    from nmt_jax.pretrained.encoder_attention import EncoderAttention
    from nmt_jax.pretrained.loading import load_workdir

    platforms.configure_compilation()
    return EncoderAttention(load_workdir(folder.path, checkpoint=checkpoint))


def open_encoder_attention(place: str, dtype: str = "float32", download: bool = False) -> Attention:
    """The same for a pretrained encoder; arguments and errors as for `nmt_jax.pretrained.load`."""
    from nmt_jax import platforms
    from nmt_jax.pretrained import load
    from nmt_jax.pretrained.encoder_attention import EncoderAttention

    platforms.configure_compilation()
    return EncoderAttention(load(place, dtype, download))
