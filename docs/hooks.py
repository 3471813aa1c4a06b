"""Hooks of the documentation site: its navigation, and the files of the repository that pages of docs/ link to.

The pages of a folder form a section, in the order in which docs/README.md names them.
"""

import os
import pathlib
import re

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECTIONS = ("tutorials", "how-to", "reference", "results", "contributing")
OUTSIDE = {  # files of the repository that are pages of the site
    "README.md": "overview.md",
    "CONTRIBUTING.md": "contributing/conventions.md",
    "CHANGELOG.md": "contributing/changes.md",
}
LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")
CELL = re.compile(r"<td.*?</td>", re.DOTALL)
PREFIX = re.compile(r"^(Results: |Tutorial: |How to )")  # of titles, which the name of the section says


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files of the repository that are pages, and make the navigation."""
    for name, uri in OUTSIDE.items():
        files.append(File.generated(config, uri, abs_src_path=str(ROOT / name)))
    pages = {file.src_uri: file for file in files.documentation_pages()}
    targets = LINK.findall((ROOT / "docs" / "README.md").read_text(encoding="utf-8"))
    named = [OUTSIDE.get(target.removeprefix("../"), target) for target in targets]
    config.nav = [{"Documentation": "README.md"}, {"Overview": "overview.md"}]
    for folder in SECTIONS:
        inside = sorted(uri for uri in pages if uri.startswith(f"{folder}/"))
        inside.sort(key=lambda uri: named.index(uri) if uri in named else len(named))
        config.nav.append({folder.capitalize(): [{_title(pages[uri]): uri} for uri in inside]})
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to files outside docs/ to their pages on the site, or to copies of the files."""
    source = pathlib.Path(page.file.abs_src_path)

    def replaced(match: re.Match[str]) -> str:
        path = (source.parent / match[1]).resolve()
        if not path.is_file() or not path.is_relative_to(ROOT):
            return match[1]
        name = path.relative_to(ROOT).as_posix()
        uri = OUTSIDE.get(name) or (name.removeprefix("docs/") if name.startswith("docs/") else f"repository/{name}")
        if files.get_file_from_path(uri) is None:
            files.append(File.generated(config, uri, abs_src_path=str(path)))
        return os.path.relpath(uri, os.path.dirname(page.file.src_uri) or ".")

    return LINK.sub(replaced, markdown)


def on_page_content(html: str, **_: object) -> str:
    """Show `\\|` in the tables of a page as `|` in code, too, as code hosts do."""
    return CELL.sub(lambda cell: cell[0].replace(r"\|", "|"), html)


def _title(file: File) -> str:
    """Return the heading of a page, without what the section says."""
    heading = file.content_string.partition("\n")[0].removeprefix("# ")
    title = PREFIX.sub("", heading)
    return title[:1].upper() + title[1:]
