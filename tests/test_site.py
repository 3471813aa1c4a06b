"""The documentation site: its packages, its pages, and what a reader's browser loads."""

import html.parser
import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.conftest import ROOT

DOCS = ROOT / "docs"
PINNED = re.compile(r"^([\w.-]+)==(\S+)(?: ; (.*?))? \\$", re.MULTILINE)
LOADING = {  # attributes whose file a browser loads by itself; `a href` waits for a click
    *(("img", name) for name in ("src", "srcset")),
    *((tag, "src") for tag in ("script", "iframe", "audio", "video", "source", "embed")),
    *(("link", "href"), ("form", "action"), ("object", "data")),
}


def pinned(*files):
    """The set of pinned versions by package and marker."""
    found = {}
    for file in files:
        for package, version, marker in PINNED.findall(file.read_text(encoding="utf-8")):
            found.setdefault((package, marker), set()).add(version)
    return found


def test_its_packages_agree_with_those_of_the_project_and_of_the_tests():
    files = (ROOT / "requirements.lock", ROOT / "tests" / "requirements.txt", DOCS / "requirements.txt")
    assert {key: versions for key, versions in pinned(*files).items() if len(versions) > 1} == {}
    assert ("mkdocs-material", "") in pinned(files[-1])


def build(folder, site):
    """Build the site of a copy of the repository in `folder`."""
    command = [sys.executable, "-m", "mkdocs", "build", "--site-dir", str(site)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8")


class Page(html.parser.HTMLParser):
    """The links of a page and what it loads."""

    def __init__(self, path):
        super().__init__()
        self.loaded, self.links = [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if (tag, name) in LOADING:
                self.loaded.append(value)
            elif (tag, name) == ("a", "href"):
                self.links.append(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    built = build(ROOT, folder)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return folder


@pytest.mark.slow
def test_it_has_every_page_and_picture_and_loads_nothing_from_a_network(site):
    pages = {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.rglob("*.md")}
    pages = pages - {"README.html"} | {"index.html", "overview.html", "contributing/conventions.html"}
    files = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.png")} | pages
    assert sorted(name for name in files if not (site / name).is_file()) == []
    assert not list(site.rglob("hooks.py"))

    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    assert pages <= {entry["location"].partition("#")[0] or "index.html" for entry in index["docs"]}

    menu = {(site / link).resolve() for link in Page(site / "index.html").links}
    assert sorted(name for name in pages if (site / name).resolve() not in menu) == []
    for path in site.rglob("*.html"):
        page = Page(path)
        for target in page.loaded:
            assert not re.match(r"\w*:?//", target), (path, target)
            assert path.name == "404.html" or (path.parent / target.partition("?")[0]).exists(), (path, target)
        text = path.read_text(encoding="utf-8")
        assert 'class="mermaid"' not in text  # drawn by a script from a network
        assert not re.search(r"<td[^\n]*\\\|", text)  # the escape of Markdown tables
    for path in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*[\"']?(https?:)?//", path.read_text(encoding="utf-8")), path


@pytest.mark.slow
def test_a_wrong_link_fails(tmp_path):
    for name in ("mkdocs.yml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(DOCS, tmp_path / "docs")
    shutil.copytree(ROOT / "configs", tmp_path / "configs")  # to which pages link
    page = tmp_path / "docs" / "how-to" / "plan.md"
    with page.open("a", encoding="utf-8") as file:
        file.write("\n[No page](no-such-page.md), [no heading](mbr.md#no-such-heading), [a file](../../mkdocs.yml)\n")
    built = build(tmp_path, tmp_path / "site")
    assert built.returncode == 1
    warnings = [line for line in built.stderr.splitlines() if line.startswith("WARNING")]
    assert len(warnings) == 2
    assert "no-such-page.md" in built.stderr
    assert "#no-such-heading" in built.stderr
    assert (tmp_path / "site" / "repository" / "mkdocs.yml").is_file()
