"""Score the runs of a sweep of translation models on a test set: one CSV row per run.

    python -m benchmarks.ablation_table FOLDER --source=FILE --reference=FILE [--metrics=SPEC,SPEC] > runs.csv

Every finished run translates the source with the search settings of its config into WORKDIR/NAME.translated, unless the
file exists; NAME is that of the source. Columns: the changes of the run, seed, parameters, steps, dev measures at the
best step, minutes, one score per metric, and its p-value: 1,000 trials of paired approximate randomization against the
base run (`--base`) with the same seed.
"""

import argparse
import csv
import pathlib
import sys

from benchmarks import measure, runs

METRICS = "bleu,chrf,meteor15|language:de|modules:exact+stem"


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
    source = pathlib.Path(options.source).absolute()
    finished = [run for run in find_runs(options.folder.absolute()) if has_finished(run)]
    texts = {run.workdir.path.name: runs.translated(run.workdir.path, source) for run in finished}
    measures = ("parameters", "steps", main_measure(finished), "dev/loss", "minutes")
    keys = list(dict.fromkeys(key for run in finished for key in run.setting))
    names = [name for metric in metrics for name in (metric.name, f"{metric.name}_p")]
    table = csv.DictWriter(sys.stdout, [*keys, "seed", *measures, *names], lineterminator="\n")
    table.writeheader()
    for run in finished:
        seed = run.point.get("seed", "")
        row = {**run.setting, "seed": seed}
        log = read_log(run)
        row |= {name: f"{measured(run, log, name):.7g}" for name in measures}
        beside = next((one for one in finished if one.setting == base and one.point.get("seed", "") == seed), None)
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
