"""Models of one text: language models that continue it, BERT that fills its masks, encoders that attend within it."""

import functools
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from nmt_jax.training.text_attention import ENCODERS, Attention, open_encoder_attention, open_text_attention
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir

if TYPE_CHECKING:
    from nmt_jax.decoding.sampling import Sampling
    from nmt_jax.models.layers.text_attention import TextAttention
    from nmt_jax.tasks.predictions import Filling, Prediction

TASKS = ("language_model", *ENCODERS)  # of workdirs that are text models


class TextModel:
    """A named model and what it can do; abilities: of "generate", "fill" and "attention"."""

    abilities: tuple[str, ...] = ("attention",)

    def __init__(self, name: str, attention: Attention | None) -> None:
        self.name, self._attention = name, attention

    def attention(self, text: str) -> "TextAttention":
        """Return the pieces of a text and their attention weights. Raises UserError if the text is too long."""
        assert self._attention is not None
        return self._attention(text)

    def describe(self) -> dict[str, Any]:
        """Return what a client needs to know of the model."""
        return {"name": self.name, "can": list(self.abilities)}

    def warm_up(self) -> None:
        """Load or compile the programs of the most common request."""
        if "attention" in self.abilities:
            self.attention(".")


class LanguageModel(TextModel):
    """A language model."""

    def __init__(self, folder: Workdir, checkpoint: str | int | None) -> None:
        self._task, self._params = open_trained(folder, "language_model", checkpoint=checkpoint)
        has_attention = self._task.has_attention
        attention = functools.partial(self._task.attention, self._params) if has_attention else None
        super().__init__(folder.path.name, attention)
        self.abilities = ("generate", "attention") if has_attention else ("generate",)

    def generate(self, texts: Sequence[str], sampling: "Sampling", length: int) -> list[np.ndarray]:
        """Return the tokens int32[T] of each text and its continuation: the first sample of a first prompt."""
        from nmt_jax.decoding.sampling import sample_keys

        zeros = np.zeros(len(texts), int)
        keys = sample_keys(sampling.seed, zeros, zeros)
        return list(self._task.draw(self._params, texts, keys, sampling, length=length))

    def text_of(self, ids: np.ndarray) -> str:
        """Return the line of tokens int[T]."""
        return str(self._task.text_of(ids))

    def num_pieces(self, text: str) -> int:
        """Return the number of pieces of a text."""
        return len(self._task.encode([text])) - 1

    def predictions(self, ids: np.ndarray, count: int) -> list["Prediction"]:
        """Return the pieces of tokens int[T] with their probabilities and the `count` best at each place."""
        return list(self._task.predictions(self._params, ids, count)[0])

    def warm_up(self) -> None:
        from nmt_jax.decoding.sampling import Sampling

        super().warm_up()
        self.predictions(self.generate(["."], Sampling(), 1)[0], 1)


class MaskedModel(TextModel):
    """A BERT with the head that fills masks."""

    abilities = ("fill", "attention")

    def __init__(self, folder: Workdir, checkpoint: str | int | None) -> None:
        self._task, self._params = open_trained(folder, "pretrain", checkpoint=checkpoint)
        super().__init__(folder.path.name, open_text_attention(folder, checkpoint))
        self.mask = str(self._task.mask)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "mask": self.mask}

    def fill(self, text: str, count: int) -> list[list["Filling"]]:
        """Return the `count` best pieces for each mask of a text. Raises UserError if there is none."""
        return list(self._task.fill(self._params, text, count))

    def warm_up(self) -> None:
        super().warm_up()
        self.fill(self.mask, 1)


def open_text_model(folder: Workdir, checkpoint: str | int | None = None) -> TextModel:
    """Return the model of a workdir of one of TASKS. Raises UserError if it is not trained."""
    task = folder.config().task
    if task == "language_model":
        return LanguageModel(folder, checkpoint)
    if task == "pretrain":
        return MaskedModel(folder, checkpoint)
    return TextModel(folder.path.name, open_text_attention(folder, checkpoint))


def open_encoder(place: str, dtype: str = "float32", download: bool = False) -> TextModel:
    """Return a pretrained encoder, which has attention only. Arguments and errors as for `nmt_jax.pretrained.load`."""
    return TextModel(pathlib.Path(place).name, open_encoder_attention(place, dtype, download))
