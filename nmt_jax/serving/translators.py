"""Translators of a server."""

import functools
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from nmt_jax.errors import UserError
from nmt_jax.training.trained import open_trained, open_translator
from nmt_jax.translation.requests import Line
from nmt_jax.workdir import Workdir


class Model:
    """A translator: one workdir, or several as an ensemble."""

    def __init__(self, folders: Sequence[pathlib.Path], checkpoint: str | int | None) -> None:
        self.folders, self.checkpoint = [Workdir(folder) for folder in folders], checkpoint
        self.name = "+".join(folder.path.name for folder in self.folders)
        self.translator, self.params = open_translator(self.folders, checkpoint=checkpoint)
        self.config = self.translator.config
        if not self.translator.encoder.reader.only_text:
            raise UserError(f"{folders[0]}: its source is not text; use nmt-jax translate, which reads paths of files")

    @functools.cached_property
    def task(self) -> tuple[Any, Any]:
        """The task of the first workdir and its parameters."""
        return open_trained(self.folders[0], "translate", checkpoint=self.checkpoint)

    @property
    def has_attention(self) -> bool:
        """Whether every model has attention."""
        return all(getattr(model, "attention", "") != "none" for model in self.translator.models)

    def describe(self) -> dict[str, Any]:
        """Return what a client needs to know of the model."""
        data, decode = self.config.data, self.config.decode
        return {
            "name": self.name,
            "can": ["translate", *(["attention"] if self.has_attention else [])],
            "source": data.source,
            "target": data.target,
            "attention": self.has_attention,
            "beam_size": decode.beam_size,
            "length_penalty": decode.length_penalty,
        }

    def warm_up(self, length: int) -> Iterator[None]:
        """Load or compile the programs of the page's requests for a line of a length in pieces, one at a time."""
        line = "\t".join([" ".join(["."] * length)] * self.translator.encoder.num_sources)
        method = self.translator.search(n_best=min(5, self.config.decode.beam_size))
        found = self.translator.translate(self.params, [line], method)
        yield
        if self.has_attention:
            self.translator.add_attention(self.params, [Line(line)], found)
            yield
