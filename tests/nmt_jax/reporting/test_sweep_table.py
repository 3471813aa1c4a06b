import csv
import io
import json

import numpy as np
import pytest

from nmt_jax.errors import UserError
from nmt_jax.reporting.sweep_table import WRITERS, best, collect
from nmt_jax.sweeps.runs import find_runs, has_finished
from tests.fixtures.sweep_folders import make_run


@pytest.fixture
def runs(tmp_path):
    """Two widths with three seeds each, of which one has not ended, and one run that has measured nothing."""
    values = {8: [[90, 50, 60], [80, 56, 70], [70, 65, 62]], 16: [[60, 40, 45], [50, 44, 43], [90, 80, 77]]}
    for width, seeds in values.items():
        for seed, perplexities in enumerate(seeds):
            steps = 10 if (width, seed) == (16, 2) else 20
            make_run(tmp_path, {"model.d_model": width, "seed": seed}, perplexities, steps)
    make_run(tmp_path, {"model.d_model": 64, "seed": 0}, log="nmt-jax: error: too wide\n")
    return find_runs(tmp_path)


def test_a_row_is_the_mean_and_the_deviation_of_its_seeds(runs):
    table = collect(runs)
    assert table.keys == ["model.d_model"]
    assert table.measures == ["steps", "dev/perplexity", "tokens_per_second", "minutes"]
    first, second, third = table.rows
    assert first.values["dev/perplexity"] == [50, 56, 62]  # the best, not the last
    assert first.mean("dev/perplexity") == pytest.approx(56)
    assert first.deviation("dev/perplexity") == pytest.approx(np.std([50, 56, 62], ddof=1))
    assert second.values["steps"] == [20, 20, 10]
    assert first.values["tokens_per_second"] == [200, 200, 200]
    assert first.values["minutes"] == [1.5, 1.5, 1.5]
    assert third.mean("dev/perplexity") is third.deviation("dev/perplexity") is None
    assert best(table, "dev/perplexity") == [second]
    assert best(table, "minutes") == []


def test_other_measures_are_those_of_the_best_step(runs):
    row = collect(runs, ["dev/loss", "learning_rate", "parameters", "loss"]).rows[0]
    assert row.values["dev/loss"] == [2.5, 2.8, 3.1]
    assert row.values["learning_rate"] == pytest.approx([0.05, 0.05, 0.1 / 3])
    assert row.values["parameters"] == [25, 25, 25]
    assert row.values["loss"] == [5.0, 5.6, 6.2]


def test_a_measure_that_no_run_logged_is_an_error(runs):
    with pytest.raises(UserError, match=r"--measures=dev/perplexty: .*did you mean dev/perplexity\?"):
        collect(runs, ["dev/perplexty"])
    with pytest.raises(UserError, match=r"use one of dev/loss, dev/perplexity, learning_rate"):
        collect(runs, ["xyz"])


def test_which_runs_ended(runs):
    ended = {run.workdir.path.name: has_finished(run) for run in runs}
    assert not ended["d_model=16,seed=2"]
    assert not ended["d_model=64,seed=0"]
    assert sum(ended.values()) == 5


def test_markdown(runs):
    assert WRITERS["markdown"](collect(runs)).splitlines() == [
        "| model.d_model | n | steps | dev/perplexity | tokens/s | minutes |",
        "| --- | --- | --- | --- | --- | --- |",
        "| 8 | 3 | 20 | 56.00 ± 6.00 | 200 | 1.5 |",
        "| 16 | 3 | 10–20 | 53.33 ± 20.55 | 200 | 1.5 |",
        "| 64 | 0 of 1 | 0 |  |  |  |",
    ]


def test_single_runs_have_no_deviation_and_no_n(tmp_path):
    runs = [make_run(tmp_path, {"model.d_model": width}, [0.5 / width]) for width in (8, 16)]
    lines = WRITERS["markdown"](collect(runs, ["dev/perplexity"])).splitlines()
    assert lines == ["| model.d_model | dev/perplexity |", "| --- | --- |", "| 8 | 0.0625 |", "| 16 | 0.0312 |"]


def test_csv_and_json_hold_every_digit(runs):
    table = collect(runs)
    rows = list(csv.DictReader(io.StringIO(WRITERS["csv"](table))))
    objects = json.loads(WRITERS["json"](table))
    for row, own, item in zip(rows, table.rows, objects, strict=True):
        assert row["model.d_model"] == own.point["model.d_model"] == item["point"]["model.d_model"]
        assert int(row["n"]) == item["n"] == len(own.runs)
        for measure in table.measures:
            mean, deviation = own.mean(measure), own.deviation(measure)
            assert row[measure] == ("" if mean is None else repr(mean))
            assert row[f"{measure}_std"] == ("" if deviation is None else repr(deviation))
            assert item["measures"][measure] == {"mean": mean, "std": deviation, "values": own.values[measure]}
    assert [run["seed"] for run in objects[0]["runs"]] == ["0", "1", "2"]
    assert [run["finished"] for run in objects[1]["runs"]] == [True, True, False]


def test_latex(runs):
    lines = WRITERS["latex"](collect(runs, ["dev/perplexity", "steps"])).splitlines()
    assert lines[0] == r"\begin{tabular}{llrr}"
    assert lines[2] == r"model.d\_model & n & dev/perplexity $\downarrow$ & steps \\"
    assert lines[4] == r"8 & 3 & 56.00 {\scriptsize $\pm$ 6.00} & 20 \\"
    assert lines[5] == r"16 & 3 & \textbf{53.33} {\scriptsize $\pm$ 20.55} & 10--20 \\"
    assert lines[-1] == r"\end{tabular}"


def test_a_value_with_a_bar_stays_in_its_column(tmp_path):
    run = make_run(tmp_path, {"model.score": "a|b_c"}, [3.0])
    assert r"| a\|b_c |" in WRITERS["markdown"](collect([run]))
    assert r"a\textbar{}b\_c &" in WRITERS["latex"](collect([run]))
