import pytest

from nmt_jax import __main__ as cli
from nmt_jax.errors import UserError
from nmt_jax.reporting.plots.style import drawing
from nmt_jax.reporting.plots.sweep_panels import draw_progress, draw_sweep, together
from nmt_jax.reporting.sweep_table import collect
from nmt_jax.sweeps.runs import base_values
from tests.fixtures.sweep_folders import make_run

pytest.importorskip("matplotlib")
MEASURE = "dev/perplexity"


def drawn(runs):
    with drawing():
        return draw_sweep(collect(runs, [MEASURE]), base_values(runs), MEASURE)


def panels(figure):
    return {axes.get_title(loc="left"): axes for axes in figure.axes if axes.axison}


def points(axes):
    """The points of each colour, by its label."""
    return {
        bars.get_label(): [tuple(map(float, xy)) for xy in zip(*bars.lines[0].get_data(), strict=True)]
        for bars in axes.containers
    }


def ablation(folder):
    """A base with d_model 32, num_layers 2, score dot, and runs that change one or two keys."""
    changes = [
        {"model.tied": True},
        {"model.d_model": 8},
        {"model.d_model": 64, "optimizer.learning_rate": 0.01},
        {"model.score": "general"},
    ]
    return [
        make_run(folder, change | {"seed": seed}, [20.0 + 4 * number + seed])
        for number, change in enumerate(changes)
        for seed in range(2)
    ]


def test_each_key_has_a_panel_with_the_rows_that_change_it_and_the_base(tmp_path):
    axes = panels(drawn(ablation(tmp_path)))
    assert list(axes) == ["d_model", "learning_rate", "score"]  # tied has the same value everywhere
    assert points(axes["d_model"]) == {"_container0": [(8, 24.5), (32, 20.5)], "learning_rate=0.01": [(64, 28.5)]}
    assert points(axes["score"]) == {"_container0": [(0, 20.5), (1, 32.5)]}
    assert [label.get_text() for label in axes["score"].get_xticklabels()] == ["dot", "general"]
    assert axes["learning_rate"].get_xscale() == axes["d_model"].get_xscale() == "log"


def test_bars_are_standard_deviations_over_seeds_and_the_base_has_a_ring(tmp_path):
    axes = panels(drawn(ablation(tmp_path)))["d_model"]
    low, high = axes.containers[0].lines[1]
    assert high.get_ydata() - low.get_ydata() == pytest.approx([2 * 0.5**0.5] * 2)
    rings = [line for line in axes.lines if line.get_markersize() == 10]
    assert [(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in rings] == [(32, 20.5)]


def test_a_grid_is_drawn_as_lines_of_rows_that_agree_in_all_other_keys(tmp_path):
    runs = [
        make_run(tmp_path, {"model.d_model": width, "model.score": score}, [float(width + len(score))])
        for width in (8, 16, 32)
        for score in ("dot", "general")
    ]
    axes = panels(drawn(runs))
    assert points(axes["d_model"]) == {
        "score=dot": [(8, 11), (16, 19), (32, 35)],
        "score=general": [(8, 15), (16, 23), (32, 39)],
    }
    assert len(points(axes["score"])) == 3
    assert not [line for line in axes["d_model"].lines if line.get_markersize() == 10]  # none is the base


def test_keys_that_only_change_together_share_a_panel():
    settings = [{"a": "1", "b": "x", "c": "1"}, {"a": "2", "b": "y", "c": "1"}, {"a": "2", "b": "y", "c": "2"}]
    assert together(["a", "b", "c"], settings) == [("a", "b"), ("c",)]


def test_progress_of_all_points_and_their_seeds(tmp_path):
    runs = [make_run(tmp_path, {"model.d_model": 8, "seed": seed}, [30.0, 20.0 + seed]) for seed in range(2)]
    axes = draw_progress(collect(runs, [MEASURE]), MEASURE).axes[0]
    thin, other, mean = axes.lines
    assert list(thin.get_ydata()) == [30, 20]
    assert list(other.get_ydata()) == [30, 21]
    assert list(mean.get_ydata()) == [30, 20.5]
    assert list(mean.get_xdata()) == [10, 20]


def test_nothing_to_draw_is_an_error(tmp_path):
    nothing = [make_run(tmp_path / "a", {"model.d_model": 8})]
    with pytest.raises(UserError, match="no run has measured it yet"):
        drawn(nothing)
    with pytest.raises(UserError, match="differ only in the seed"):
        drawn([make_run(tmp_path / "b", {"seed": 1}, [3.0])])


def test_plot_kind_sweep_writes_the_file(tmp_path, capsys):
    ablation(tmp_path)
    output = tmp_path / "x.svg"
    assert cli.main(["plot", "--kind=sweep", f"--workdir={tmp_path}", "--measure=dev/loss", f"--output={output}"]) == 0
    assert capsys.readouterr().out.strip() == str(output)
    assert output.read_bytes().startswith(b"<?xml")
    assert cli.main(["plot", "--kind=sweep", f"--workdir={tmp_path / 'none'}"]) == 2
    assert "no such folder" in capsys.readouterr().err
