"""Score the runs of a sweep of translation models on a test set: one CSV row per run.

    python -m benchmarks.ablation_table FOLDER --source=FILE --reference=FILE [--metrics=SPEC,SPEC] > runs.csv

Every finished run translates the source with the search settings of its config into WORKDIR/test.hypothesis, unless the
file exists. Columns: the changes of the run, seed, parameters, steps, dev measures at the best step, minutes, one score
per metric, and its p-value: 1,000 trials of paired approximate randomization against the base run (`--base`) with the
same seed.
"""

import argparse
import csv
import pathlib
import subprocess
import sys

from benchmarks import measure

METRICS = "bleu,chrf,meteor15|language:de|modules:exact+stem"


def translated(workdir: pathlib.Path, source: str) -> list[str]:
    """Return the translations of a run; translates if the file does not exist."""
    output = workdir / "test.hypothesis"
    if not output.is_file():
        command = [sys.executable, "-m", "nmt_jax", "translate", f"--workdir={workdir}", f"--input={source}"]
        part = output.with_suffix(".part")
        with part.open("w") as file:
            subprocess.run(command, stdout=file, check=True)
        part.rename(output)
    return output.read_text().splitlines()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--source", required=True)
    parser.add_argument("--reference", required=True)
    parser.add_argument("--metrics", default=METRICS)
    parser.add_argument("--base", default="", help="Changes of the base run, such as model.num_heads=4.")
    options = parser.parse_args()
    measure.one_thread()

    from metrics_jax.significance import paired_randomisation
    from nmt_jax.data.lines import read_lines
    from nmt_jax.pretrained.metrics import open_metric
    from nmt_jax.sweeps.runs import find_runs, has_finished, main_measure, measured, read_log

    references = [*read_lines(pathlib.Path(options.reference))]
    metrics = [open_metric(spec) for spec in options.metrics.split(",")]
    base = dict(change.split("=") for change in options.base.split(",") if change)
    runs = [run for run in find_runs(options.folder) if has_finished(run)]
    texts = {run.workdir.path.name: translated(run.workdir.path, options.source) for run in runs}
    measures = ("parameters", "steps", main_measure(runs), "dev/loss", "minutes")
    keys = list(dict.fromkeys(key for run in runs for key in run.setting))
    names = [name for metric in metrics for name in (metric.name, f"{metric.name}_p")]
    table = csv.DictWriter(sys.stdout, [*keys, "seed", *measures, *names], lineterminator="\n")
    table.writeheader()
    for run in runs:
        seed = run.point.get("seed", "")
        row = {**run.setting, "seed": seed}
        log = read_log(run)
        row |= {name: f"{measured(run, log, name):.7g}" for name in measures}
        beside = next((one for one in runs if one.setting == base and one.point.get("seed", "") == seed), None)
        for metric in metrics:
            own = metric.statistics(texts[run.workdir.path.name], references)
            row[metric.name] = f"{float(metric.score(own.sum(axis=0))):.4f}"
            if beside and beside is not run:
                other = metric.statistics(texts[beside.workdir.path.name], references)
                found = paired_randomisation(metric, {"base": other, "run": own}, "base", trials=1000)
                row[f"{metric.name}_p"] = f"{found[1].p_value:.3f}"
        table.writerow(row)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
