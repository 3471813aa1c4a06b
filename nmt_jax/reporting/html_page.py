"""HTML pages in one file, without scripts, fonts or images from elsewhere, and the parts of reports.

Reports adapt to dark mode, small screens and paper.
"""

import base64
import html
import io
from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from nmt_jax.reporting.plots.style import Figure

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light; }}
body {{ margin: 2rem auto; max-width: 60rem; padding: 0 1rem; background: #fff; color: #212529;
  font: 15px/1.6 system-ui, sans-serif; print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
h1 {{ font-size: 1.3rem; margin: 0; }}
p, caption {{ color: #5c677d; margin: .4rem 0 1.2rem; text-align: left; }}
{style}</style>
</head>
<body>
<h1>{title}</h1>
<p>{legend}</p>
{body}
</body>
</html>
"""
WIDE = """\
body { max-width: none; width: fit-content; min-width: 30rem; }
p { max-width: 46rem; }
"""
REPORT = """\
:root { color-scheme: light dark; --quiet: #5c677d; --line: #dee2e6; --more: #ffd8d8; --less: #d3f0dc; }
* { box-sizing: border-box; }
body { overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .6rem; border-top: 1px solid var(--line); padding-top: 1rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
p { color: var(--quiet); }
nav ul { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none; padding: 0; margin: 0; }
a { color: #1864ab; }
figure { margin: .6rem 0; }
img { display: block; max-width: 100%; height: auto; }
.scroll { overflow-x: auto; margin: .4rem 0 1rem; }
.scroll img { max-width: none; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .2rem 1.2rem .2rem 0; overflow-wrap: normal; }
thead th { border-bottom: 1px solid var(--line); }
tbody th { font-weight: 400; }
td.number, th.number { text-align: right; white-space: nowrap; }
td code { overflow-wrap: anywhere; }
code { font-size: .9em; }
tr.best td, tr.best th { font-weight: 600; }
article { border-left: 3px solid var(--line); padding-left: .9rem; margin: 0 0 1.2rem; }
h4 { font-size: .95rem; margin: .2rem 0; }
dl { margin: .4rem 0; }
dt { color: var(--quiet); font-size: .85em; }
dd { margin: 0 0 .3rem; }
dl.facts { display: grid; grid-template-columns: fit-content(12rem) 1fr; gap: .2rem 1.2rem; }
dl.facts dt { font-size: 1em; }
ul.signatures { color: var(--quiet); font-size: .85em; padding-left: 1.2rem; }
ins { background: var(--more); color: inherit; text-decoration: underline; border-radius: 3px; padding: 0 2px; }
del { background: var(--less); color: inherit; text-decoration: underline dotted; border-radius: 3px; padding: 0 2px; }
summary { cursor: pointer; color: #1864ab; }
@media (prefers-color-scheme: dark) {
  :root { color-scheme: dark; --quiet: #a3adba; --line: #3b434c; --more: #6b2a31; --less: #1f5133; }
  body { background: #15191e; color: #e3e6ea; }
  a, summary { color: #74b3f0; }
  img { filter: invert(.91) hue-rotate(180deg); }
}
@media print {
  :root { color-scheme: light; }
  body { max-width: none; margin: 0; background: #fff; color: #000; font-size: 10pt; }
  nav, summary, details[name] { display: none; }
  details::details-content { content-visibility: visible; display: block; }
  img { filter: none; }
  h2, h3 { break-after: avoid; }
  figure, article, tr { break-inside: avoid; }
  .scroll { overflow: visible; }
  .scroll img { max-width: 100%; }
}
"""


def html_page(title: str, legend: str, body: str, style: str) -> str:
    """Returns a whole page. The title is text, legend and body are HTML, style is CSS with one rule per line."""
    return PAGE.format(title=html.escape(title), legend=legend, body=body, style=style)


class Section(NamedTuple):
    """A section of a report: heading, anchor for links, and HTML."""

    title: str
    anchor: str
    body: str


def report_page(title: str, legend: str, sections: Sequence[Section]) -> str:
    """Returns the page of a report with links to its sections. The title is text, the legend HTML."""
    links = "".join(f'<li><a href="#{section.anchor}">{html.escape(section.title)}</a></li>' for section in sections)
    bodies = "\n".join(
        f'<section id="{section.anchor}">\n<h2>{html.escape(section.title)}</h2>\n{section.body}\n</section>'
        for section in sections
    )
    nav = f'<nav aria-label="Contents"><ul>{links}</ul></nav>'
    return html_page(title, legend, f"{nav}\n<main>\n{bodies}\n</main>", REPORT)


def table(
    name: str,
    heading: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: int = 0,
    best: Container[int] = (),
    anchors: Mapping[int, str] | None = None,
) -> str:
    """Returns a table that scrolls if it is too wide; cells are HTML, the first of a row is its heading.

    name: label for screen readers. numbers: how many of the last columns are numbers. best: rows in bold. anchors:
    anchors of rows, for links.
    """
    first = len(heading) - numbers

    def css_class(column: int) -> str:
        return ' class="number"' if column >= first else ""

    head = "".join(f'<th scope="col"{css_class(k)}>{html.escape(text)}</th>' for k, text in enumerate(heading))
    lines = []
    for number, row in enumerate(rows):
        cells = "".join(f"<td{css_class(k)}>{text}</td>" for k, text in enumerate(row[1:], start=1))
        emphasis = ' class="best"' if number in best else ""
        anchor = f' id="{html.escape(anchors[number])}"' if anchors and number in anchors else ""
        lines.append(f'<tr{anchor}{emphasis}><th scope="row">{row[0]}</th>{cells}</tr>')
    body = "\n".join(lines)
    return _scroll(name, f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>")


def facts(rows: Sequence[tuple[str, str]]) -> str:
    """Returns a list of names and values, both HTML."""
    return f'<dl class="facts">{"".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows)}</dl>'


def picture(figure: Figure, alt: str, wide: bool = False) -> str:
    """Returns a figure as an embedded image with the description `alt`; a `wide` one scrolls if it is too wide."""
    file = io.BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None}, facecolor="white")
    data = base64.b64encode(file.getvalue()).decode()
    image = f'<img alt="{html.escape(alt)}" src="data:image/svg+xml;base64,{data}">'
    return _scroll(alt, image) if wide else f"<figure>{image}</figure>"


def code(text: str) -> str:
    """Returns text in a monospaced font."""
    return f"<code>{html.escape(text)}</code>"


def _scroll(name: str, content: str) -> str:
    """Returns a region that scrolls horizontally, also by keyboard."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{html.escape(name)}">{content}</div>'
