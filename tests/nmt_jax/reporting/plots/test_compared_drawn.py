"""Plots and pages of two compared texts: labels do not overlap, and marks are in the right place."""

import html.parser
import itertools
import pathlib
import re

import numpy as np
import pytest

from metrics_jax.api import Result
from nmt_jax import __main__ as cli
from nmt_jax.errors import UserError
from nmt_jax.pretrained import metrics as metric
from nmt_jax.reporting.plot_kinds import plot_comparison
from nmt_jax.reporting.plots import flow, similarity
from nmt_jax.reporting.plots.compared import Plan, Similarities
from nmt_jax.reporting.plots.labels import fonts_for
from nmt_jax.reporting.plots.style import drawing, save
from tests.fixtures import tiny_encoder

pytest.importorskip("matplotlib")
STRANGE = ["彼は", "مرحبا", "🙂", "$x_1$", "<b>&amp;", "{x}", "\u2028", "w" * 90, "a\nb", "i"]


def make_similarities(rows, columns):
    matrix = np.random.default_rng(0).uniform(-1, 1, size=(len(rows), len(columns)))
    result = Result(0.5, np.array([0.5]), "s", {"precision": 0.5, "recall": 0.5})
    return Similarities(rows, columns, (np.ones(len(rows)), np.ones(len(columns))), matrix, True, "BERTScore", result)


def make_plan(left, right, seed=0):
    rng = np.random.default_rng(seed)
    a, b = rng.dirichlet(np.full(len(left), 4.0)), rng.dirichlet(np.full(len(right), 4.0))
    cost = rng.uniform(0, 2, size=(len(left), len(right)))
    return Plan(left, right, (a, b), cost, np.outer(a, b), "WMD", "", Result(1.0, np.array([1.0]), "s", {}))


class Reader(html.parser.HTMLParser):
    """The text and the tags of a page; fails if elements are not closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.text, self.tags = [], "", []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.mark.slow
@pytest.mark.parametrize("draw", [similarity.draw_similarity, flow.draw_flow])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 30), (30, 8)])
def test_labels_are_neither_cut_off_nor_overlap(draw, rows, columns):
    maker = make_similarities if draw is similarity.draw_similarity else make_plan
    with drawing():
        figure = draw(
            maker(["word" * (n % 5 + 1) for n in range(rows)], ["彼は" * (n % 5 + 1) for n in range(columns)])
        )
        figure.canvas.draw()
        texts = [text for axes in figure.axes for text in axes.texts]
        ticks = [axes for axes in figure.axes if axes.axison]
        texts += [text for axes in ticks for text in [*axes.get_xticklabels(), *axes.get_yticklabels()]]
        texts = [text for text in [*texts, *figure.texts] if text.get_text() and text.get_visible()]
        boxes = {text.get_text(): text.get_window_extent() for text in texts}
        cut = [t for t, b in boxes.items() if b.x0 < 0 or b.y0 < 0 or b.x1 > figure.bbox.x1 or b.y1 > figure.bbox.y1]
        assert not cut
        if draw is flow.draw_flow:
            for one, other in itertools.combinations([text.get_window_extent() for text in figure.axes[0].texts], 2):
                assert not one.overlaps(other)


def test_any_label_can_be_drawn_without_a_warning(tmp_path):
    with drawing():
        save(similarity.draw_similarity(make_similarities(STRANGE, STRANGE)), tmp_path / "x.png")
        save(flow.draw_flow(make_plan(STRANGE, STRANGE)), tmp_path / "y.png")


@pytest.mark.parametrize("label", STRANGE)
def test_labels_are_escaped_in_html(label):
    for page in (
        similarity.similarity_page(make_similarities([label, "b"], ["a", label])),
        flow.flow_page(make_plan([label, "b"], ["a", label])),
    ):
        read = Reader(page)
        assert label in read.text
        assert not {tag for tag, _ in read.tags} & {"b", "script", "link", "img", "iframe"}
        assert not re.findall(r"https?:|src=|@import|url\(", page)


def test_the_marks_of_a_page_are_row_and_column_maxima():
    found = make_similarities(["a", "b", "c"], ["x", "y"])
    cells = [attributes for tag, attributes in Reader(similarity.similarity_page(found)).tags if tag == "td"]
    cells = [attributes for attributes in cells if "background" in attributes.get("style", "")]
    marks = np.array([attributes["class"] for attributes in cells]).reshape(3, 2)
    for row, column in np.ndindex(3, 2):
        assert ("row" in marks[row, column].split()) == (found.matrix[row].argmax() == column)
        assert ("column" in marks[row, column].split()) == (found.matrix[:, column].argmax() == row)


def test_ribbons_fill_the_bars_of_both_sides():
    found = make_plan(["a", "b", "c"], ["x", "y", "z", "u", "v"])
    _, sides, ribbons = flow.layout(found)
    assert len(ribbons) == 15
    scale = sides[0][0].thickness / found.weights[0][0]
    for number, side in enumerate(sides):
        for word, share in enumerate(side):
            ribbons_of_word = sorted(
                (getattr(one, ("left", "right")[number]), one.thickness) for one in ribbons if one[number] == word
            )
            assert ribbons_of_word[0][0] == pytest.approx(share.top)
            assert ribbons_of_word[-1][0] + ribbons_of_word[-1][1] == pytest.approx(share.top + share.thickness)
            assert all(y + t == pytest.approx(after) for (y, t), (after, _) in itertools.pairwise(ribbons_of_word))
            assert share.thickness == pytest.approx(scale * found.weights[number][word])


def test_fonts_of_placeholder_boxes_are_not_used():
    assert not any("resort" in family.lower() for family in fonts_for(["彼は", "\U0001f642", "\ue000"]))


@pytest.mark.parametrize("kind", ["similarity", "flow"])
def test_two_texts_are_drawn_as_png_and_html(kind, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(metric, "_encoder", lambda *_: tiny_encoder.make())
    command = ["plot", f"--kind={kind}", "--encoder=tiny", "a coat", "the coat"]
    assert cli.main(command) == 0
    assert capsys.readouterr().out.strip() == f"{kind}.png"
    assert (tmp_path / f"{kind}.png").read_bytes().startswith(b"\x89PNG")
    assert cli.main([*command, "--output=x.html"]) == 0
    Reader((tmp_path / "x.html").read_text(encoding="utf-8"))


def test_the_flow_of_word_vectors_is_that_of_wmd(tmp_path):
    (tmp_path / "v.txt").write_text("coat 1 0\na 0 1\nred 1 1\n")
    written = plot_comparison(["a coat", "red"], "flow", vectors=str(tmp_path / "v.txt"), output=tmp_path / "x.html")
    assert "<h1>WMD " in written.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("texts", "options", "message"),
    [
        (["a"], {}, "needs two texts.*got 1"),
        (["a", " "], {}, "one of them is empty"),
        (["a", "b"], {}, "needs --encoder=PLACE"),
        (["a", "b"], {"encoder": "x", "output": "x.jpeg"}, r"must end in \.png"),
        (["a", "b"], {"encoder": "x", "output": "no/x.png"}, "no such folder"),
        (["a", "b"], {"encoder": "x", "metric": "bleu"}, "bleu does not match tokens"),
        (["a", "b"], {"encoder": "x", "output": "folder.html"}, "folder.html: cannot be written"),
        (["a", "b"], {"encoder": "x", "output": "folder.png"}, "folder.png: cannot be written"),
    ],
)
def test_invalid_requests_are_errors(texts, options, message, tmp_path, monkeypatch):
    monkeypatch.setattr(metric, "_encoder", lambda *_: tiny_encoder.make())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "folder.png").mkdir()
    if "output" in options:
        options = options | {"output": pathlib.Path(options["output"])}
    with pytest.raises(UserError, match=message):
        plot_comparison(texts, "similarity", **options)
