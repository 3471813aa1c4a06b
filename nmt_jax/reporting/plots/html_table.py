"""An HTML page that needs nothing else: no script, no font, no picture from elsewhere."""

import html

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


def html_page(title: str, legend: str, body: str, style: str) -> str:
    """The HTML of a page; the title is text, legend and body are HTML, style is CSS, a rule a line."""
    return PAGE.format(title=html.escape(title), legend=legend, body=body, style=style)
