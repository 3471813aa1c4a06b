"""LaTeX tables in the style of the booktabs package."""

from collections.abc import Sequence


def latex_text(text: str) -> str:
    """Returns text with special characters of LaTeX escaped."""
    escapes = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "|": r"\textbar{}"}
    return "".join(escapes.get(c, rf"\{c}" if c in "&%$#_{}" else c) for c in text)


def latex_table(alignment: str, heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns the lines of a table; cells are LaTeX, `alignment` has one letter per column."""
    return [
        *(rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", _row(heading), r"\midrule"),
        *(_row(row) for row in rows),
        *(r"\bottomrule", r"\end{tabular}"),
    ]


def latex_arrow(higher_is_better: bool) -> str:
    """Returns an arrow in the direction of better values."""
    return r"$\uparrow$" if higher_is_better else r"$\downarrow$"


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
