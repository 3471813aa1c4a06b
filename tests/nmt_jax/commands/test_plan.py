"""`nmt-jax plan`: what it prints without a compiler, and its errors of one line."""

import importlib.util

import pytest

from nmt_jax.planning.accelerators import ACCELERATORS

PAGE = "configs/quickstart.py"


def test_list(nmt_jax):
    finished = nmt_jax("plan", "--topology=list")
    assert finished.code == 0
    assert [line.split()[0] for line in finished.lines[1:]] == [*ACCELERATORS]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([f"--config={PAGE}"], "needs --topology=NAME:SIZE, such as v5e:4x4"),
        (["--topology=h100:8"], "needs --config=FILE"),
        (["--metrics=bertscore", "--topology=h100:8"], "--metrics=bertscore needs --encoder=PLACE"),
        (["--metrics=bleu", "--encoder=x", "--topology=h100:8"], "--metrics=bleu: nothing of it is planned"),
        (["--metrics=bertscore", "--encoder=x", "--tries=2", "--topology=h100:8"], "--tries has no effect"),
        (
            ["--config=x", "--topology=h100:8", "--programs=eval", "--batch=8x8x8"],
            "--batch has no effect without train",
        ),
        (["--config=x", "--topology=h100:8", "--encoder=x"], "--encoder has no effect without --metrics"),
        ([f"--config={PAGE}", "--topology=h200x:8"], "did you mean h200?"),
        ([f"--config={PAGE}", "--topology=v5e:2x2", "--programs=train,test"], "--programs=test: use some of train"),
        ([f"--config={PAGE}", "--topology=v5e:2x2", "--batch=512"], "--batch=512: write the number of rows"),
        ([f"--config={PAGE}", "--topology=v5e:2x2", "--config.mesh.modle=2"], "mesh.modle"),
    ],
)
def test_mistakes(mistake, arguments, message):
    assert message in mistake("plan", *arguments)


@pytest.mark.parametrize(("topology", "module"), [("v5e:2x2", "libtpu"), ("h100:8", "jax_plugins")])
def test_a_missing_extra(mistake, monkeypatch, topology, module):
    if importlib.util.find_spec(module):
        pytest.skip(f"{module} is installed")
    for name in ("JAX_PLATFORMS", "TPU_SKIP_MDS_QUERY"):
        monkeypatch.setenv(name, "cpu")  # restored after the test
    line = mistake("plan", f"--config={PAGE}", f"--topology={topology}")
    assert line == f"--topology={topology}: the compiler for it is not installed; pip install 'nmt-jax[plan]'"
