"""README and docs name only files, names and pages that exist, and every page can be found from the index.

Their commands are in tests/test_docs_commands.py.
"""

import ast
import importlib
import importlib.util
import re

import pytest

from tests.conftest import ROOT

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
# A path in the repository, as pages and docstrings write it; `configs/glue.py:task=cola` has an argument.
PATH = re.compile(r"(?<![\w/.-])((?:nmt_jax|metrics_jax|configs|benchmarks|tests|docs|launch)/[\w./-]+\w)")
TUTORIAL = ROOT / "docs" / "contributing" / "tutorial.md"  # names modules that the reader creates


def links(text):
    """Targets of the Markdown links and pictures of a text that are no web addresses."""
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if not re.match(r"https?:|mailto:", target)]


def anchors(text):
    """The anchors of the headings of a text, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def missing_paths(text):
    created = re.findall(r"^Create `([^`]+)`:$", text, re.MULTILINE)  # by the reader of a tutorial
    return sorted({path for path in PATH.findall(text) if path not in created and not (ROOT / path).exists()})


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_link_leads_somewhere(page):
    for target in links(page.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path.read_text(encoding="utf-8")), target


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_path_exists(page):
    assert missing_paths(page.read_text(encoding="utf-8")) == []


def test_docstrings_name_pages_that_exist():
    files = [
        path for folder in ("configs", "benchmarks", "nmt_jax", "metrics_jax") for path in (ROOT / folder).rglob("*.py")
    ]
    for path in files:
        pages = re.findall(r"docs/[\w./-]+\.md", path.read_text(encoding="utf-8"))
        assert [page for page in pages if not (ROOT / page).is_file()] == [], path


def resolve(name):
    """The object of a dotted name. Raises ImportError or AttributeError if there is none."""
    module, _, attribute = name.rpartition(".")
    if importlib.util.find_spec(name.partition(".")[0]) and not attribute[0].isupper():
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            pass
    return getattr(resolve(module), attribute)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_python_name_exists(page):
    text = page.read_text(encoding="utf-8")
    names = set(re.findall(r"(?<![\w/.])((?:nmt_jax|metrics_jax)(?:\.\w+)+)(?!\.?\*)", text)) - {
        "nmt_jax.log"
    }  # a file
    for block in re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith(("nmt_jax", "metrics_jax")):
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
    for name in names if page != TUTORIAL else ():
        resolve(name)


def test_every_page_can_be_found():
    found, new = set(), {ROOT / "README.md", ROOT / "docs" / "README.md"}
    while new:
        found |= new
        targets = {
            (page.parent / target.partition("#")[0]).resolve() for page in new for target in links(page.read_text())
        }
        new = {target for target in targets if target.suffix == ".md"} - found
    assert set(PAGES) - found == set()


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_a_wrong_page_is_seen():
    with pytest.raises(AttributeError):
        resolve("nmt_jax.models.transformer.NoSuchModel")
    assert missing_paths("Create `configs/mine.py`:\n\n`nmt-jax train --config=configs/mine.py`") == []
    assert missing_paths("see `nmt_jax/models/no_such.py` and configs/glue.py:task=cola") == [
        "nmt_jax/models/no_such.py"
    ]
    assert links("[a](b.md#c) ![d](e.png) [f](https://g.h)") == ["b.md#c", "e.png"]
    assert anchors("## Samples and minimum Bayes risk\n# A: `b`, c") == {"samples-and-minimum-bayes-risk", "a-b-c"}
