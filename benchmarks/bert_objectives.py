"""Objectives of BERT (Devlin et al., 2019, section 5.1 and appendix C.2): pretrained, then fine-tuned on four tasks.

    python -m benchmarks.bert_objectives FOLDER [--systems=80-10-10,left_to_right@4000] [--tasks=sst2,ner] [--seeds=0,1]

The first six systems differ in what becomes of the selected tokens: a-b-c means that a % are masked, b % stay the same,
and c % become a random piece. `no_next_sentence` and `left_to_right` learn without next sentences; `left_to_right`
predicts every next token; `left_to_right_bilstm` is the same encoder, with a biLSTM in fine-tuning. The model is that
of `configs/bert_tiny.py:ablation=true` with a learning rate of 0.001, trained for 2,000 steps, or for N with `@N` after
the name.

Prints one line of JSON per pretraining: perplexity and accuracy of masked (`left_to_right`: next) tokens on the
development text after each evaluation, and seconds. And one per fine-tuning: the measure of the task on its development
file; for the tasks of `configs/glue.py` with its 95 % bootstrap interval, and the p-value of a paired permutation test
against the first system with the same seed. `ner` is `configs/ner.py:task=wikigold` with 800 steps, and F1 of entities.
`--output=curves.png` draws the accuracy during pretraining, and the measure of each task by steps of pretraining.
Everything is kept in FOLDER; after an interruption, the same command goes on. Changes of the pretraining, which need
another FOLDER: `--change=train.batch_tokens=1024`.
"""

import itertools
import pathlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks import fine_tuning, measure, runs
from benchmarks.fine_tuning import DATA, LEARNING_RATE, LENGTH, interval, p_value, predictions, prepare, value
from nmt_jax.data.readers.labelled import open_labelled
from nmt_jax.workdir import Workdir

PAGE = "bert_tiny.py:ablation=true"
# With the learning rate of the page, 0.003, `100-0-0` learns nothing but word frequencies in 4,000 steps.
PRETRAINING = {"data.directory": DATA, "model.dtype": "float32", "optimizer.learning_rate": 1e-3}
STEPS, EVERY = 2000, 250  # of the pretraining, and between its evaluations
OBJECTIVES: dict[str, dict[str, Any]] = {
    "80-10-10": {},
    "100-0-0": {"corrupt.mask": 1.0, "corrupt.random": 0.0},
    "80-0-20": {"corrupt.mask": 0.8, "corrupt.random": 0.2},
    "80-20-0": {"corrupt.mask": 0.8, "corrupt.random": 0.0},
    "0-20-80": {"corrupt.mask": 0.0, "corrupt.random": 0.8},
    "0-0-100": {"corrupt.mask": 0.0, "corrupt.random": 1.0},
    "no_next_sentence": {"model.next_sentence": False},
    "left_to_right": {"model.next_sentence": False, "model.causal": True},
}
BILSTM = "_bilstm"
SYSTEMS = (*OBJECTIVES, f"left_to_right{BILSTM}")
NER = "ner"
# With the 200 steps of the page, a biLSTM learns no entities.
NER_STEPS = {"train.steps": 800, "train.eval_every": 400, "train.checkpoint_every": 400}
MEASURES = {**fine_tuning.MEASURES, NER: "f1"}


class System(NamedTuple):
    """A pretraining objective, its number of steps, and whether fine-tuning adds a biLSTM."""

    objective: str
    steps: int
    bilstm: bool

    @classmethod
    def named(cls, name: str) -> "System":
        """Read OBJECTIVE[_bilstm][@STEPS]."""
        name, _, steps = name.partition("@")
        objective = name.removesuffix(BILSTM)
        if objective not in OBJECTIVES:
            raise SystemExit(f"--systems: {objective} is none of {', '.join(OBJECTIVES)}")
        return cls(objective, int(steps or STEPS), objective != name)

    @property
    def encoder(self) -> str:
        """The name of the workdir of its encoder."""
        return self.objective if self.steps == STEPS else f"{self.objective}@{self.steps}"

    @property
    def label(self) -> str:
        """Its name in the legend of the curves."""
        return self.objective.replace("_", " ") + " + biLSTM" * self.bilstm


def pretrained(folder: pathlib.Path, system: System, changes: dict[str, Any]) -> dict[str, Any]:
    """Pretrain the encoder of a system, unless that is done; returns figures of its evaluations, and the seconds."""
    workdir = folder / system.encoder
    steps = {"train.steps": system.steps, "train.eval_every": EVERY, "train.checkpoint_every": EVERY}
    runs.train(workdir, PAGE, PRETRAINING | steps | OBJECTIVES[system.objective] | changes)
    rows = Workdir(workdir).metrics()
    evaluations = [row for row in rows if "dev/perplexity" in row]
    figures: dict[str, Any] = {"step": [row["step"] for row in evaluations]}
    figures |= {name: [round(row[f"dev/{name}"], 2) for row in evaluations] for name in ("perplexity", "mlm_accuracy")}
    return figures | {"seconds": round(max(row.get("seconds", 0) for row in rows))}


def fine_tuned(folder: pathlib.Path, name: str, task: str, seed: int) -> pathlib.Path:
    """Fine-tune the encoder of a system on a task, unless that is done; returns the workdir."""
    system, workdir = System.named(name), folder / f"{name}-{task}-{seed}"
    page = "ner.py:task=wikigold" if task == NER else f"glue.py:task={task}"
    keys = {"data.directory": DATA / "wikigold" if task == NER else folder / "data", "data.max_length": LENGTH}
    keys |= {"encoder.place": folder / system.encoder, "model.bilstm_layers": int(system.bilstm)}
    keys |= NER_STEPS if task == NER else {}
    runs.train(workdir, page, keys | {"optimizer.learning_rate": LEARNING_RATE, "seed": seed})
    return workdir


def measured(folder: pathlib.Path, systems: list[str], task: str, seed: int) -> Iterator[dict[str, Any]]:
    """Fine-tune every system on a task, and yield its figures."""
    first: np.ndarray | None = None
    for system in systems:
        workdir = fine_tuned(folder, system, task, seed)
        figures: dict[str, Any] = {"system": system, "task": task, "seed": seed}
        if task == NER:
            scores = [row["dev/f1"] for row in Workdir(workdir).metrics() if "dev/f1" in row]
            yield figures | {MEASURES[task]: scores[-1]}
            continue
        texts = list(open_labelled(Workdir(workdir).config().data, "dev"))
        labels = np.array([text.label for text in texts], float)
        found = np.array(predictions(workdir, texts), float)
        figures |= {MEASURES[task]: value(task, found, labels), "interval": interval(task, found, labels)}
        if first is None:
            first = found
        else:
            figures["p"] = p_value(task, first, found, labels)
        yield figures


def drawn(encoders: dict[str, dict[str, Any]], rows: list[dict[str, Any]]) -> Any:
    """Return the figure: accuracy during pretraining, and each task's mean over seeds by steps of pretraining."""
    from nmt_jax.reporting.plots.style import new_figure

    tasks = list(dict.fromkeys(row["task"] for row in rows))
    colors = {System.named(name).label: f"C{number}" for number, name in enumerate(SYSTEMS)}
    figure = new_figure(12.0, 6.0, layout="constrained")
    pretraining, *panels = figure.subplots(2, (len(tasks) + 3) // 2, squeeze=False).ravel()
    for objective in [name for name in OBJECTIVES if name in encoders]:
        found, label = encoders[objective], System.named(objective).label
        style = "--" if objective == "left_to_right" else "-"
        pretraining.plot(found["step"], found["mlm_accuracy"], style, color=colors[label])
    pretraining.set_title("accuracy of masked (dashed: next) pieces, %")
    pretraining.set_xlabel("step")
    for panel, task in zip(panels, tasks, strict=False):
        points: dict[str, dict[int, list[float]]] = {}
        for row in rows:
            if row["task"] == task:
                system = System.named(row["system"])
                points.setdefault(system.label, {}).setdefault(system.steps, []).append(row[MEASURES[task]])
        for label, by_steps in points.items():
            steps = sorted(by_steps)
            panel.plot(steps, [np.mean(by_steps[step]) for step in steps], "o-", color=colors[label])
        panel.set_title(f"{task}: {MEASURES[task]}, %")
        panel.set_xlabel("steps of pretraining")
    for panel in panels[len(tasks) :]:
        panel.set_axis_off()
    for label, color in colors.items():
        panels[-1].plot([], [], color=color, label=label)
    panels[-1].legend(frameon=False, loc="center")
    return figure


def main() -> None:
    parser = runs.parser()
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--tasks", default=f"sst2,stsb,cola,{NER}")
    parser.add_argument("--output", type=pathlib.Path, help="Picture of the curves.")
    options = parser.parse_args()

    from nmt_jax.reporting.plots.style import check_output, drawing, save

    output = options.output and check_output(options.output)
    folder, systems = options.folder, options.systems.split(",")
    if not (folder / "data").exists():
        prepare(folder / "data")
    encoders: dict[str, dict[str, Any]] = {}
    for system in map(System.named, systems):
        if system.encoder not in encoders:
            encoders[system.encoder] = pretrained(folder, system, dict(options.change))
            measure.report(benchmark="bert_objectives", objective=system.encoder, **encoders[system.encoder])
    rows: list[dict[str, Any]] = []
    for task, seed in itertools.product(options.tasks.split(","), options.seeds):
        for row in measured(folder, systems, task, seed):
            measure.report(benchmark="bert_objectives", **row)
            rows.append(row)
    if output:
        with drawing():
            save(drawn(encoders, rows), output)


if __name__ == "__main__":
    main()
