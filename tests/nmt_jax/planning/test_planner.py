"""Plans, for the peaks of an accelerator but compiled for the CPU of this machine."""

import json

import jax
import numpy as np
import pytest

import metrics_jax
from nmt_jax import config as configs
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.planning import planner, programs, table
from nmt_jax.planning.accelerators import Topology
from nmt_jax.planning.compilation import Compiled, TooLargeError
from nmt_jax.planning.estimate import Estimate, traced_for
from nmt_jax.planning.planner import Request, candidates
from nmt_jax.planning.roofline import Roofline
from nmt_jax.pretrained import load_encoder
from nmt_jax.pretrained.metrics import open_metric
from tests.conftest import ROOT
from tests.fixtures import comet_folders, tiny_encoder_folder

STEP = Estimate("train", (64, 8, 8), 512, devices=4, limit=10.0, peak=30.0, arguments=4.0, temporaries=26.0)


def config(**changes):
    overrides = {key.replace("__", "."): str(value) for key, value in changes.items()}
    return configs.load(str(ROOT / "configs" / "quickstart.py:smoke=true"), overrides)


def plan(topology, request, **changes):
    return planner.plan_config(config(**changes), topology, jax.devices()[:1], request)


def test_a_plan_is_remembered(capsys):
    """The second time nothing is compiled, and the values are the same."""
    topology, request = Topology.parse("v5e:1x1"), Request(["eval"])
    first, second = plan(topology, request), plan(topology, request)
    lines = capsys.readouterr().err.splitlines()
    assert "known" in lines[1]
    (one,), (other,) = first.estimates, second.estimates
    assert other == one.__class__(**{**vars(one), "compile_seconds": 0.0})
    assert one.fits
    assert one.peak >= one.arguments > 4 * first.num_parameters
    assert one.utilization <= 1
    assert one.tokens_per_second == one.tokens / max(one.roofline)
    (values,) = json.loads(table.as_json([first]))
    assert values["parameters"] == first.num_parameters
    assert values["programs"][0]["bound"] == one.bound
    heading, rows = table.as_text([first]).split("| ---")[0], table.as_text([first]).count("\n| ")
    assert "v5e:1x1: 1 device, each 197 TFLOP/s" in heading
    assert rows == 3


@pytest.mark.slow
def test_settings_that_fit():
    """A step that does not fit fits with its batch in parts, and the plan says so."""
    whole = plan(Topology.parse("h100:1"), Request(["train"], (64, 64, 64), tries=0)).estimates[0]
    small = Topology.parse("h100:1", {"memory": whole.arguments + whole.temporaries / 2})
    found = plan(small, Request(["train"], (64, 64, 64)))
    assert not found.estimates[0].fits
    assert found.options
    assert all(option.estimate.fits for option in found.options)
    assert found.excess == 0
    assert "train.accumulate" in found.options[0].changes
    tiny = Topology.parse("h100:1", {"memory": 1e5})
    nowhere = plan(tiny, Request(["train"], (64, 64, 64), tries=1))
    assert 0 < nowhere.excess < whole.peak
    assert not nowhere.options


def test_memory_is_that_of_the_compiler():
    program = jax.jit(lambda x, y: (x @ y, x + 1), donate_argnums=0).lower(*[np.ones((64, 64), np.float32)] * 2)
    memory, found = program.compile().memory_analysis(), Compiled.of(program.compile())
    assert found.arguments == memory.argument_size_in_bytes == 2 * 4 * 64**2
    assert found.temporaries == memory.temp_size_in_bytes
    assert found.donated == 4 * 64**2  # one of the two results takes the place of an argument
    assert found.peak == pytest.approx(3 * 4 * 64**2 + found.temporaries + found.code, abs=64)


def test_candidates_where_a_step_does_not_fit():
    found = [*candidates(config(), STEP)]
    assert found[0] == {"mesh.fsdp": "true"}
    assert found[1] == {"train.accumulate": "8"}
    assert found[-1].keys() == {"mesh.fsdp", "train.accumulate", "model.remat", "mesh.model"}
    assert len({str(changes) for changes in found}) == len(found)
    alone = Estimate(**{**vars(STEP), "devices": 1})
    assert all("mesh.fsdp" not in changes and "mesh.model" not in changes for changes in candidates(config(), alone))
    for changes in found:
        configs.override(config(), changes)


def test_candidates_where_memory_binds():
    fitting = Estimate(**{**vars(STEP), "limit": 40.0, "roofline": Roofline(1.0, 2.0, 1.5)})
    assert [*candidates(config(train__batch_tokens=100), fitting)] == [
        {"train.batch_tokens": "200"},
        {"train.batch_tokens": "400"},
    ]


def test_a_mesh_that_does_not_divide_the_devices():
    with pytest.raises(UserError, match=r"--topology=h100:1: mesh\.model=2 does not divide"):
        plan(Topology.parse("h100:1"), Request(), mesh__model=2)


@pytest.mark.parametrize(
    ("message", "needed"),
    [
        ("Ran out of memory in memory space hbm. Used 20.50G of 15.75G hbm. Exceeded by 4.75G.", 20.5 * 2**30),
        ("the total memory required for HLO temporaries (395.89G) exceeds available HBM (15.75G).", 395.89 * 2**30),
        ("no number", float("inf")),
    ],
)
def test_programs_that_the_compiler_refuses(message, needed):
    assert TooLargeError(message).needed == needed
    text = table.row(Estimate("train", (8, 8), 64, 1, 16e9, TooLargeError(message).needed), "train")
    assert text[6].startswith("no")


@pytest.mark.slow
def test_metrics(tmp_path):
    """A program has the arithmetic of the encoder's layers up to the selected one, and that of the comparison."""
    encoder = load_encoder(tiny_encoder_folder.write(tmp_path / "encoder"))
    metrics = [metrics_jax.parse(spec, encoder=encoder) for spec in ("bertscore|layer:1", "moverscore|layers:1+2")]
    found = planner.plan_metrics(metrics, Topology.parse("v5e:1x1"), jax.devices()[:1], (8, 32))
    one, two = found.estimates
    layer = 8 * 32 * (8 * 16**2 + 4 * 16 * 32 + 4 * 32 * 16)
    assert (one.program, one.shape, one.flops) == ("bertscore", (8, 32), layer + 4 * 2 * 32**2 * 16)
    assert two.flops == 2 * layer + 4 * 2 * 32**2 * 3 * 16  # minimum, mean and maximum
    with pytest.raises(UserError, match="an encoder needs two numbers"):
        planner.plan_metrics(metrics, Topology.parse("v5e:1x1"), jax.devices()[:1], (8, 32, 32))
    with pytest.raises(UserError, match=r"--batch=7x32: 7 rows .* 1 devices; use a multiple of 2"):
        planner.plan_metrics(metrics, Topology.parse("v5e:1x1"), jax.devices()[:1], (7, 32))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "metric"), [("regression", "comet"), ("xcomet", "xcomet")])
def test_estimators(tmp_path, name, metric):
    """A program has the arithmetic of all layers of the encoder, and little more."""
    place = comet_folders.write(tmp_path / "model", name)
    opened = open_metric(metric, sources=True, **{metric: str(place)})
    found = planner.plan_metrics([opened], Topology.parse("v5e:1x1"), jax.devices()[:1], (8, 16))
    (one,) = found.estimates
    fields = json.loads((place / "config.json").read_text())
    layers, width, inner = (fields[key] for key in ("num_hidden_layers", "hidden_size", "intermediate_size"))
    least = layers * 8 * 16 * (8 * width**2 + 4 * width * 16 + 4 * width * inner)
    assert (one.program, one.shape) == (metric, (8, 16))
    assert least <= one.flops < 1.1 * least
    with pytest.raises(UserError, match=r"--batch=8x32: the encoder reads up to \d+ tokens; use shorter rows"):
        planner.plan_metrics([opened], Topology.parse("v5e:1x1"), jax.devices()[:1], (8, 32))


def test_functions_of_the_host_are_omitted():
    """A plan of minimum-risk training calls no function of the host, and says so."""
    settings = {"loss.risk.metric": "chrf", "loss.risk.num_samples": "2"}
    risk = configs.load(str(ROOT / "configs" / "quickstart.py:smoke=true"), settings)
    mesh = sharding.make_mesh(devices=jax.devices()[:1])
    task = programs.prepare_task(risk, mesh, None)
    with traced_for(mesh):
        traced = programs.training_step(task, risk, (8, 6, 6)).trace()
    assert "callback" not in str(traced.jaxpr)
    found = table.Plan(Topology.parse("v5e:1x1"), 1, "--batch", (), omitted=task.on_host)
    assert "loss.risk.metric runs on the host" in table.as_text([found])
    assert json.loads(table.as_json([found]))[0]["omitted"] == ["loss.risk.metric"]
