"""The models and metrics that a server was started with."""

import itertools
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from metrics_jax.api import AdditiveMetric
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import open_metric
from nmt_jax.reporting.score_table import digits
from nmt_jax.serving.runs import RunFolder
from nmt_jax.serving.text_models import TASKS, TextModel, open_encoder, open_text_model
from nmt_jax.serving.translators import Model
from nmt_jax.workdir import Workdir

WARM_LENGTHS = (7, 15, 23)  # in pieces: the longest in batches of 8, 16 and 24
START = {  # how to start a server that can do it
    "generate": "--workdir=FOLDER of a language model",
    "fill": "--workdir=FOLDER of a pretrained BERT",
    "attention": "--workdir=FOLDER of a GPT or BERT, or --encoder=PLACE",
}


class Models:
    """All that a server shows: translators (`models`), models of one text (`text_models`), metrics, and runs."""

    def __init__(
        self,
        models: Sequence[Model],
        metrics: Mapping[str, AdditiveMetric],
        text_models: Sequence[TextModel] = (),
    ) -> None:
        self.models = {model.name: model for model in models}
        self.text_models = {model.name: model for model in text_models}
        self.metrics = dict(metrics)
        self.runs: RunFolder | None = None

    @classmethod
    def open(
        cls,
        workdirs: Sequence[Sequence[pathlib.Path]],
        metrics: Sequence[str],
        checkpoint: str | int | None = None,
        **options: Any,
    ) -> "Models":
        """Open the models of workdirs (several workdirs of one model are an ensemble) and metrics with their options.

        An encoder among the options is a text model, too. Raises UserError if a workdir has no trained model, or one
        that cannot be served, if two models have the same name, or as `open_metric`.
        """
        translators: list[Model] = []
        texts: list[TextModel] = []
        for folders in workdirs:
            task = Workdir(folders[0]).config().task
            if task == "translate" or len(folders) > 1:
                translators.append(Model(folders, checkpoint))
            elif task in TASKS:
                texts.append(open_text_model(Workdir(folders[0]), checkpoint))
            else:
                known = ", ".join(("translate", *TASKS))
                raise UserError(f"--workdir={folders[0]}: models of config.task={task} cannot be served, only {known}")
        encoder = options.get("encoder")
        served = [[str(folder) for folder in folders] for folders in workdirs]
        if encoder is not None and [str(pathlib.Path(encoder))] not in served:
            named = {name: options[name] for name in ("dtype", "download") if name in options}
            texts.append(open_encoder(encoder, **named))
        names = [*(model.name for model in translators), *(model.name for model in texts)]
        for first, second in itertools.combinations(names, 2):
            if first == second:
                raise UserError(f"--workdir: two models are called {first!r}; rename a folder")
        return cls(translators, {name: open_metric(name, **options) for name in metrics}, texts)

    def describe(self) -> dict[str, Any]:
        """Return the names of all models and metrics, and what clients need to know of them."""
        metrics = [
            {"name": name, "higher_is_better": metric.higher_is_better, "digits": digits(metric)}
            for name, metric in self.metrics.items()
        ]
        return {
            "models": [model.describe() for model in self.models.values()],
            "text_models": [model.describe() for model in self.text_models.values()],
            "metrics": metrics,
            "runs": self.runs is not None,
        }

    def show_runs(self, folder: pathlib.Path) -> None:
        """Let the page show the runs below a folder."""
        served = {model.folders[0].path: model.name for model in self.models.values() if len(model.folders) == 1}
        self.runs = RunFolder(folder, served)

    def warm_up(self) -> Iterator[None]:
        """Load or compile the programs of the page's requests, one at a time, so that no user waits for them."""
        for length in WARM_LENGTHS:
            for model in self.models.values():
                yield from model.warm_up(length)
        for text_model in self.text_models.values():
            text_model.warm_up()
            yield

    def model(self, name: str | None) -> Model:
        """Return the translator of a name, by default the first. Raises UserError if there is none."""
        if not self.models:
            raise UserError("the server has no translator; start it with --workdir=FOLDER")
        if not name:
            return next(iter(self.models.values()))
        if name not in self.models:
            raise UserError(f"model: {name!r:.80} is not one of {', '.join(self.models)}")
        return self.models[name]

    def text_model(self, name: str | None, ability: str) -> TextModel:
        """Return the text model of a name, by default the first with this ability. Raises UserError if it lacks it."""
        able = {one: model for one, model in self.text_models.items() if ability in model.abilities}
        if not able:
            raise UserError(f"the server has no model for this; start it with {START[ability]}")
        if not name:
            return next(iter(able.values()))
        if name not in able:
            raise UserError(f"model: {name!r:.80} is not one of {', '.join(able)}")
        return able[name]

    def chosen_metrics(self, names: Sequence[str] | None) -> tuple[str, ...]:
        """Return names of metrics without duplicates, by default all. Raises UserError if there is no such metric."""
        for name in names or ():
            if name not in self.metrics:
                raise UserError(f"metrics: {name!r:.80} is not one of {', '.join(self.metrics)}")
        return tuple(dict.fromkeys(names or self.metrics))
