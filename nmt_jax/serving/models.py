"""The models and metrics that a server was started with."""

import functools
import itertools
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from metrics_jax.api import AdditiveMetric
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import open_metric
from nmt_jax.reporting.score_table import digits
from nmt_jax.training.trained import open_trained, open_translator
from nmt_jax.translation.requests import Line
from nmt_jax.workdir import Workdir

WARM_LENGTHS = (7, 15, 23)  # in pieces: the longest in batches of 8, 16 and 24


class Model:
    """A translator: one workdir, or several as an ensemble."""

    def __init__(self, folders: Sequence[pathlib.Path], checkpoint: str | int | None) -> None:
        self.folders, self.checkpoint = [Workdir(folder) for folder in folders], checkpoint
        self.name = "+".join(folder.path.name for folder in self.folders)
        self.translator, self.params = open_translator(self.folders, checkpoint=checkpoint)
        self.config = self.translator.config

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
            "source": data.source,
            "target": data.target,
            "attention": self.has_attention,
            "beam_size": decode.beam_size,
            "length_penalty": decode.length_penalty,
        }


class Models:
    """All models and metrics of a server."""

    def __init__(self, models: Sequence[Model], metrics: Mapping[str, AdditiveMetric]) -> None:
        self.models = {model.name: model for model in models}
        self.metrics = dict(metrics)

    @classmethod
    def open(
        cls,
        workdirs: Sequence[Sequence[pathlib.Path]],
        metrics: Sequence[str],
        checkpoint: str | int | None = None,
        **options: Any,
    ) -> "Models":
        """Open the models of workdirs (several workdirs of one model are an ensemble) and metrics with their options.

        Raises UserError if a workdir has no trained translator, if two models have the same name, or as `open_metric`.
        """
        opened = [Model(folders, checkpoint) for folders in workdirs]
        for first, second in itertools.combinations(opened, 2):
            if first.name == second.name:
                raise UserError(f"--workdir: two models are called {first.name!r}; rename a folder")
        return cls(opened, {name: open_metric(name, **options) for name in metrics})

    def describe(self) -> dict[str, Any]:
        """Return the names of all models and metrics, and what clients need to know of them."""
        metrics = [
            {"name": name, "higher_is_better": metric.higher_is_better, "digits": digits(metric)}
            for name, metric in self.metrics.items()
        ]
        return {"models": [model.describe() for model in self.models.values()], "metrics": metrics}

    def warm_up(self, length: int = WARM_LENGTHS[0]) -> None:
        """Load or compile the programs of the page's requests for lines of a length, so that no user waits for them."""
        for model in self.models.values():
            line = "\t".join([" ".join(["."] * length)] * model.translator.num_sources)
            method = model.translator.search(n_best=min(5, model.config.decode.beam_size))
            found = model.translator.translate(model.params, [line], method)
            if model.has_attention:
                model.translator.add_attention(model.params, [Line(line)], found)

    def model(self, name: str | None) -> Model:
        """Return the model of a name, by default the first. Raises UserError if there is none."""
        if not self.models:
            raise UserError("the server has no model; start it with --workdir=FOLDER")
        if not name:
            return next(iter(self.models.values()))
        if name not in self.models:
            raise UserError(f"model: {name!r:.80} is not one of {', '.join(self.models)}")
        return self.models[name]

    def chosen_metrics(self, names: Sequence[str] | None) -> tuple[str, ...]:
        """Return names of metrics without duplicates, by default all. Raises UserError if there is no such metric."""
        for name in names or ():
            if name not in self.metrics:
                raise UserError(f"metrics: {name!r:.80} is not one of {', '.join(self.metrics)}")
        return tuple(dict.fromkeys(names or self.metrics))
