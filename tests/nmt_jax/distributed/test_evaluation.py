"""Evaluation gives the same scores on any number of devices and processes, and no device ever holds the whole model.

python -m tests.nmt_jax.distributed.test_evaluation FOLDER PAGES CHANGES [COORDINATOR N I] evaluates pages in FOLDER,
with changed config keys, as process I of N.
"""

import json
import math
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from nmt_jax import config as configs
from nmt_jax.data.readers.parallel_text import open_text
from nmt_jax.distributed.process_spec import ProcessSpec, free_port
from nmt_jax.distributed.processes import Processes
from nmt_jax.distributed.sharding import make_mesh, shard_state
from nmt_jax.planning import programs
from nmt_jax.tasks.registry import TASKS, make_task
from tests.conftest import ROOT, with_devices

PAGES = ("quickstart", "han_movie_reviews", "ner", "elmo_tagger", "squad", "glue", "ruse")
PAGES += ("gpt", "bert_tiny", "elmo", "fasttext", "retrieval")
SHORTER = {"data.size": 40, "decode.max_length_ratio": 0.2, "decode.max_length_offset": 2, "eval.max_segments": 4}
FSDP, MODEL = {"mesh.fsdp": True}, {"mesh.model": 2}
DEEP = {"model.d_model": 256, "model.d_ff": 1024, "model.num_encoder_layers": 3, "model.num_decoder_layers": 3}
DEEP |= {"eval.batch_tokens": 64, "data.max_length": 32, "decode.beam_size": 2, "model.dtype": "float32"}


def load(page: str, changes: dict[str, Any]) -> Any:
    config = configs.load(f"{ROOT}/configs/{page}.py:smoke=true")
    known = {name: value for name, value in (SHORTER | changes).items() if name in configs.flatten(config)}
    return configs.override(config, {name: str(value) for name, value in known.items()})


def parameters(task: Any) -> Any:
    """Random parameters, sharded as in training."""
    abstract = jax.eval_shape(task.init, jax.random.key(0))
    shardings = shard_state(abstract, task.mesh, task.config.mesh.fsdp)
    return jax.jit(task.init, out_shardings=shardings)(jax.random.key(0))


def held(arrays: Iterable[jax.Array]) -> int:
    """Bytes of arrays on the first device of this process."""
    device = jax.local_devices()[0]
    here = [array for array in arrays if device in array.sharding.device_set]
    return sum(math.prod(array.sharding.shard_shape(array.shape)) * array.dtype.itemsize for array in here)


def evaluate_page(page: str, folder: Path, changes: dict[str, Any], processes: Processes) -> dict[str, Any]:
    """The measures, translations of a few sentences, and the bytes that a device holds meanwhile."""
    config = load(page, changes)
    task = make_task(config, folder / page, make_mesh(config.mesh.model))
    processes.in_turn(lambda: (task.batches(1), task.summary()))
    before, params = held(jax.live_arrays()), parameters(task)
    live = [0]
    task.evaluator.before_batch = lambda: live.append(held(jax.live_arrays()) - before)
    found: dict[str, Any] = dict(task.evaluate(params))
    if config.task == "translate":
        sources = [source for source, _ in open_text(config.data, "dev")][:3]
        best = [hypotheses[0] for hypotheses in task.translate(params, sources, beam_size=3)]
        found |= {"texts": [one.text for one in best], "scores": [one.score for one in best]}
        found["forced"] = [sum(one.log_probs) for one in task.translator.score((params,), sources, sources[::-1])]
    processes.check_same(f"evaluation of {page}", found)
    leaves = jax.tree.leaves(params)
    layer = jax.tree.leaves(params.get("decoder_0", {}))
    sizes = {"whole": sum(leaf.nbytes for leaf in leaves), "layer": sum(leaf.nbytes for leaf in layer)}
    return found | {"bytes": {"live": max(live), "share": held(leaves), **sizes}}


def temporaries(page: str, folder: Path, changes: dict[str, Any]) -> dict[str, int]:
    """Bytes per device that the programs of the evaluation need besides their arguments."""
    config = load(page, changes)
    task = make_task(config, folder / page, make_mesh(config.mesh.model))
    built = (programs.evaluation_loss(task, config), programs.beam_search(task, config))
    compiled = {one.kind: one.function.lower(*one.arguments, **one.options).compile() for one in built}
    return {kind: program.memory_analysis().temp_size_in_bytes for kind, program in compiled.items()}


if __name__ == "__main__":
    folder, pages, changes = Path(sys.argv[1]), sys.argv[2].split(","), json.loads(sys.argv[3])
    spec = ProcessSpec(sys.argv[4], int(sys.argv[5]), int(sys.argv[6])) if sys.argv[4:] else None
    with Processes(spec, load(pages[0], changes), folder) as processes:
        results = {page: evaluate_page(page, folder, changes, processes) for page in pages}
        if changes.items() >= DEEP.items():
            results[pages[0]]["temporaries"] = temporaries(pages[0], folder, changes)
        if processes.first:
            print(json.dumps(results))


def evaluate(
    folder: Path, processes: int, devices: int, changes: dict[str, Any], pages: Sequence[str] = PAGES
) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.nmt_jax.distributed.test_evaluation", str(folder)]
    command += [",".join(pages), json.dumps(changes)]
    address = f"127.0.0.1:{free_port()}"
    specs = [[address, str(processes), str(process)] for process in range(processes)] if processes > 1 else [[]]
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT}
    started = [subprocess.Popen([*command, *spec], env=with_devices(devices), **options) for spec in specs]
    try:
        outputs = [process.communicate(timeout=500) for process in started]
    finally:
        for process in started:
            process.kill()
    assert [process.returncode for process in started] == [0] * processes, outputs
    return json.loads(outputs[0][0].splitlines()[-1])  # Gloo prints, too


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("workdirs")


@pytest.fixture(scope="module")
def alone(folder):
    """The scores on one device."""
    return evaluate(folder, 1, 1, {})


def test_every_task_is_evaluated():
    assert {load(page, {}).task for page in PAGES} == set(TASKS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processes", "devices", "changes", "pages"),
    [
        (1, 8, FSDP, ("ner",)),
        (2, 2, FSDP | MODEL, PAGES),
        (2, 1, {}, ("quickstart",)),
        (4, 1, FSDP | MODEL, ("ner",)),
    ],
)
def test_scores_are_those_of_one_device(alone, folder, processes, devices, changes, pages):
    found = evaluate(folder, processes, devices, changes, pages)
    for page in pages:
        one, other = alone[page], found[page]
        assert other.pop("texts", []) == one.get("texts", [])
        del other["bytes"]
        for name in other:
            np.testing.assert_allclose(other[name], one[name], rtol=2e-5, atol=2e-5, err_msg=f"{page}: {name}")


@pytest.mark.slow
@pytest.mark.parametrize("changes", [FSDP, {"mesh.model": 8}])
def test_no_device_holds_more_than_its_share_and_a_layer(tmp_path, changes):
    found = evaluate(tmp_path, 1, 8, DEEP | changes, ("quickstart",))["quickstart"]
    size, share = found["bytes"], 1 / 8
    assert size["share"] <= (share + 0.02) * size["whole"]
    assert size["live"] <= size["share"] + size["layer"]
    for program, needed in found["temporaries"].items():
        assert needed <= size["layer"], program  # activations included
