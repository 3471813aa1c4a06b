"""Choices by processor: every implementation computes the same function, and only one is traced."""

import dataclasses
import functools
import os
import platform
import subprocess
import sys

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest

from nmt_jax import config as configs
from nmt_jax import platforms
from nmt_jax.decoding.topk import top_k
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.losses.cross_entropy import cross_entropy
from nmt_jax.losses.sampled import negative_sampling
from nmt_jax.losses.step import Step
from nmt_jax.models.registry import model_class
from nmt_jax.tasks.registry import make_task
from tests.conftest import ROOT


def test_cpus_are_the_platform_of_these_tests_unless_another_is_used():
    assert platforms.current() is platforms.CPU
    with platforms.use(platforms.ACCELERATOR):
        assert platforms.current() is platforms.ACCELERATOR
    assert platforms.current() is platforms.CPU


def test_other_backends_are_accelerators(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    assert platforms.current() is platforms.ACCELERATOR


def test_a_traced_function_is_traced_again_for_another_platform():
    traced = []

    @jax.jit
    def function(x):
        traced.append(platforms.current().name)
        return x + 1

    for _ in range(2):
        function(1.0)
        with platforms.use(platforms.ACCELERATOR):
            function(1.0)
    assert traced == ["cpu", "accelerator"]


def transformer(key, dtype):
    model = model_class("transformer")(
        9, 9, num_encoder_layers=1, num_decoder_layers=1, d_model=8, d_ff=8, num_heads=2, dropout=0.0, dtype=dtype
    )
    source, target = jnp.array([[4, 5, 6, 2]]), jnp.array([[7, 8, 2]])
    params = model.init(key, source, target)["params"]

    def loss(params):
        _, out = model.apply({"params": params}, source, target)
        return cross_entropy(out["hidden"], out["output_kernel"], target, jnp.ones(target.shape), dtype=dtype)[0]

    return jax.value_and_grad(loss)(params)


def decoding(key):
    model = model_class("transformer")(
        9, 9, num_encoder_layers=1, num_decoder_layers=2, d_model=8, d_ff=8, num_heads=2, dropout=0.0
    )
    source = jnp.array([[4, 5, 6, 2]])
    params = model.init(key, source, source)

    def run(model):
        cache = model.init_cache(model.encode(source), source, 2, 3)
        logits = []
        for tokens in ([1, 1], [4, 7], [5, 3]):
            found, cache = model.decode_step(jnp.array(tokens), cache)
            logits.append(found)
        return jnp.stack(logits)

    return model.apply(params, method=run, mutable=["attention"])[0]


def bert(key):
    sizes = {"vocab_size": 11, "num_layers": 1, "d_model": 8, "d_ff": 8, "num_heads": 2, "max_positions": 4}
    model = model_class("bert")(**sizes, dropout=0.0, attention_dropout=0.0, init_stddev=1.0)
    ids, positions = jnp.array([[4, 5, 6, 2]]), jnp.array([[1]])
    given = (ids, ids > 0, jnp.zeros_like(ids), positions)
    params = model.init(key, *given)
    return model.apply(params, *given)


def word_vectors(key, algorithm):
    model = model_class("word_vectors")(7, d_model=4, algorithm=algorithm, window=1, num_buckets=5)
    words, negatives = jnp.array([[3, 4, 5, 6]]), jnp.array([[1, 2]])
    subwords = np.array([0, 1, 1, 6]), np.array([4, 0, 4, 3])
    given = (words, jnp.ones((1, 2)), negatives, subwords)
    params = jax.tree.map(jnp.cos, model.init(key, *given))

    def loss(params):
        scores, pairs = model.apply(params, *given)
        return negative_sampling(scores, pairs, 2)

    return jax.value_and_grad(loss)(params)


def best(key):
    x = jax.random.normal(key, (2, 3, 300))
    return tuple(top_k(x, jnp.array([[0.0, 1.0, -1.0]] * 2), 4))


PROGRAMS = {
    "transformer": functools.partial(transformer, dtype="float32"),
    "decoding": decoding,
    "bert": bert,
    "skip_gram": functools.partial(word_vectors, algorithm="skip_gram"),
    "cbow": functools.partial(word_vectors, algorithm="cbow"),
    "top_k": best,
}


def both(program):
    """What a program computes with the implementations for CPUs, and with those for accelerators."""
    run = jax.jit(program)
    ours = run(jax.random.key(0))
    with platforms.use(platforms.ACCELERATOR):
        return ours, run(jax.random.key(0))


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_both_implementations_compute_the_same(name):
    cpu, accelerator = both(PROGRAMS[name])
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5), cpu, accelerator)


@pytest.mark.slow
def test_both_implementations_compute_the_same_in_bfloat16():
    cpu, accelerator = both(functools.partial(transformer, dtype="bfloat16"))
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=0.05, atol=0.02), cpu, accelerator)


def test_every_choice_for_cpus_differs_from_that_for_accelerators():
    fields = dataclasses.fields(platforms.Platform)[1:]
    same = [field.name for field in fields if getattr(platforms.CPU, field.name) == field.default]
    of_gpus = [field.name for field in fields if getattr(platforms.GPU, field.name) != field.default]
    assert same == [*of_gpus, "host"]  # plans alone omit functions of the host


def products(jaxpr):
    """The operand types of all products in a program."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            yield tuple(operand.aval.dtype.name for operand in equation.invars)
        for inner in jax.extend.core.jaxprs_in_params(equation.params):
            yield from products(inner)


def test_all_products_of_a_bfloat16_model_are_bfloat16_on_accelerators():
    with platforms.use(platforms.ACCELERATOR):
        program = jax.make_jaxpr(functools.partial(transformer, dtype="bfloat16"))(jax.random.key(0))
    assert set(products(program.jaxpr)) == {("bfloat16", "bfloat16")}


MALLOC = """
import resource, sys
import numpy as np
from nmt_jax import platforms

assert "jax" not in sys.modules

def faults(repeats=5, size=64 << 20):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(repeats):
        np.ones(size, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

assert platforms.keep_freed_memory()
first, again = faults(1), faults()
assert again < first / 10, (first, again)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="not the GNU C library: its allocator is not set")
def test_large_blocks_are_reused_without_new_pages():
    finished = subprocess.run([sys.executable, "-c", MALLOC], cwd=ROOT, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr


COMPILE = """
import jax
import jax.extend
from nmt_jax import platforms
platforms.configure_compilation()
print(jax.jit(lambda x: x + 1)(1.0))
"""


@pytest.mark.parametrize(("flag", "level"), [("", 2), ("--xla_backend_optimization_level=1", 1)])
def test_programs_are_compiled_at_that_level(tmp_path, flag, level):
    environment = os.environ | {
        "XLA_FLAGS": f"{flag} --xla_dump_to={tmp_path}",
        "JAX_PLATFORMS": "cpu",
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"),
    }
    finished = subprocess.run(
        [sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True, check=True
    )
    assert finished.stdout == "2.0\n"
    options = [path.read_text() for path in tmp_path.glob("*lambda*debug_options")]
    assert len(options) == 1
    assert f"xla_backend_optimization_level: {level}\n" in options[0]


@pytest.mark.parametrize(
    ("names", "plugin", "expected"),
    [("cpu", "jax_plugins", True), ("cuda,cpu", "", False), (None, "jax_plugins", False), (None, "libtpu", False)],
)
def test_the_level_is_left_alone_where_there_are_accelerators(monkeypatch, names, plugin, expected):
    usual = jax.config.values["jax_platforms"]
    monkeypatch.setattr(platforms.importlib.util, "find_spec", lambda name: name == plugin or None)
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=somewhere")
    jax.config.update("jax_platforms", names)
    try:
        platforms.configure_compilation()
    finally:
        jax.config.update("jax_platforms", usual)
    assert os.environ["XLA_FLAGS"] == "--xla_dump_to=somewhere" + " --xla_backend_optimization_level=2" * expected


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--xla_nonsense=1", "XLA_FLAGS: Unknown flag in XLA_FLAGS: --xla_nonsense=1; correct it, or unset XLA_FLAGS"),
        ("--xla_cpu_enable_fast_math=maybe", "XLA_FLAGS: Couldn't interpret value maybe for flag xla_cpu_enable_"),
        ("no_file", 'XLA_FLAGS: Could not open file "no_file"'),
        ("--xla_force_host_platform_device_count=2", ""),
    ],
)
def test_flags_that_xla_refuses_are_an_error(flags, words):
    # In a new process, since XLA reads its flags once.
    program = (
        "from nmt_jax import errors, platforms\n"
        "try: platforms.check_environment()\n"
        "except errors.UserError as error: print(error)\n"
    )
    environment = os.environ | {"XLA_FLAGS": flags}
    command = [sys.executable, "-c", program]
    finished = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=True)
    assert finished.stdout.startswith(words)
    assert finished.stdout or not words
    assert finished.stderr == ""


@pytest.mark.parametrize("names", ["cuda", "cpu,gpu"])
def test_a_platform_without_its_plugin_is_an_error(monkeypatch, names):
    monkeypatch.setattr(platforms.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("JAX_PLATFORMS", names)
    with pytest.raises(UserError, match=f"JAX_PLATFORMS={names[-4:].strip(',')}: JAX is installed without support"):
        platforms.check_environment()


@pytest.mark.parametrize(
    "changes",
    [{"loss.r_drop": 1.0}, {"model.copying": "pointer", "loss.label_smoothing": 0.0}, {"loss.risk.metric": "chrf"}],
)
def test_a_shared_word_table_has_one_type_of_gradient_in_bfloat16(changes, tmp_path):
    config = configs.load(f"{ROOT}/configs/quickstart.py:smoke=true", {"model.dtype": "bfloat16", **changes})
    task = make_task(config, tmp_path / "workdir", sharding.make_mesh())
    batch, step = task.batches(1)[0], Step(0, jax.random.key(0), ())
    with platforms.use(platforms.ACCELERATOR):
        params = jax.eval_shape(task.init, jax.random.key(0))
        gradient = jax.eval_shape(jax.grad(lambda params: task.loss_fn(params, batch, step)[0]), params)
    assert {array.dtype.name for array in jax.tree.leaves(gradient)} == {"float32"}
