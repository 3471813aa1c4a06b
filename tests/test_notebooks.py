"""Notebooks run from top to bottom in a clone, and are stored with the outputs of such a run."""

import json

import pytest

from tests.conftest import ROOT
from tests.fixtures import tutorials
from tests.test_docs import links

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
LARGEST = 150_000  # bytes


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    """The path of a notebook."""
    return request.param


def cells(path, kind):
    """The cells of a notebook that are "code" or "markdown"."""
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == kind]


def test_a_notebook_is_stored_with_the_outputs_of_one_run(notebook):
    code = cells(notebook, "code")
    assert [cell["execution_count"] for cell in code] == [*range(1, len(code) + 1)]
    outputs = [output for cell in code for output in cell["outputs"]]
    assert {output["output_type"] for output in outputs} <= {"stream", "display_data", "execute_result"}
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert str(ROOT.parent) not in notebook.read_text(encoding="utf-8")
    assert notebook.stat().st_size < LARGEST


def test_every_link_of_a_notebook_leads_somewhere(notebook):
    targets = [target for cell in cells(notebook, "markdown") for target in links("".join(cell["source"]))]
    assert targets
    for target in targets:
        assert (notebook.parent / target).exists(), target


@pytest.mark.slow
def test_a_notebook_can_be_run(notebook, tmp_path):
    import nbclient
    import nbformat

    tutorials.clone(tmp_path)
    folder = tmp_path / "docs" / "notebooks"
    client = nbclient.NotebookClient(
        nbformat.read(notebook, as_version=4), timeout=600, resources={"metadata": {"path": str(folder)}}
    )
    client.execute(env=tutorials.environment(tmp_path))
    assert any("image/png" in output.get("data", {}) for cell in client.nb.cells for output in cell.get("outputs", []))
