"""`nmt-jax plot --kind=alignment`: the matrix of a sentence pair, its marks, and wrong input."""

import json

import numpy as np
import pytest

from nmt_jax.alignment.links import Alignment, Gold

pytest.importorskip("matplotlib")

from nmt_jax.reporting.plots.alignment_matrix import draw_alignment

SOURCE, TARGET = ["the", "old", "man"], ["der", "alte", "$x_1$", "彼"]
FOUND = Alignment([(0, 0), (2, 1)], [0.9, 0.25])
GOLD = Gold(frozenset({(0, 0)}), frozenset({(0, 0), (2, 3)}))


def texts(figure):
    return [text.get_text() for text in figure.texts]


def test_cells_are_posteriors_and_frames_are_gold_links():
    figure = draw_alignment(SOURCE, TARGET, FOUND, GOLD)
    axes = figure.axes[0]
    shares = axes.images[0].get_array()
    assert shares.shape == (4, 3)
    assert {(i, j): shares[j, i] for j, i in np.argwhere(~np.ma.getmaskarray(shares))} == {(0, 0): 0.9, (2, 1): 0.25}
    frames = {tuple(np.round(one.get_center()).astype(int)): one.get_linestyle() for one in axes.patches}
    assert set(frames) == {(0, 0), (2, 3)}
    assert frames[0, 0] != frames[2, 3]
    assert [label.get_text() for label in axes.get_xticklabels()] == SOURCE
    assert [label.get_text() for label in axes.get_yticklabels()] == TARGET
    assert "2 links: AER 0.33, precision 0.50, recall 1.00" in texts(figure)
    assert {"sure gold link", "possible gold link"} <= set(texts(figure))
    assert "link" not in texts(figure)


def test_links_without_posteriors_have_one_shade():
    figure = draw_alignment(SOURCE, TARGET, FOUND._replace(posteriors=[]))
    shares = figure.axes[0].images[0].get_array()
    assert len(set(shares.compressed().tolist())) == 1
    assert {"2 links", "link"} <= set(texts(figure))
    assert not figure.axes[0].patches


@pytest.fixture
def files(tmp_path):
    """Three pairs, the second with an empty side."""
    contents = {
        "pairs": "a b ||| x y\n ||| x\na\tx\n",
        "json": "".join(json.dumps({"line": n, "links": [[0, 0, 0.5]] * (n != 2)}) + "\n" for n in (1, 2, 3)),
        "pharaoh": "0-0 1-1\n",
        "gold": "1-1 2p2\n\n",
        "no_posteriors": '{"line": 1, "links": [[0, 0]]}\n',
        "too_large": '{"line": 1, "links": [[0, 0, 1.5]]}\n',
        "absent": '{"line": 1, "links": [[0, 2, 0.5]]}\n',
        "broken": '{"line": 1\n',
    }
    for name, text in contents.items():
        (tmp_path / name).write_text(text)
    return {name: tmp_path / name for name in contents}


def test_a_line_is_drawn(nmt_jax, mistake, files, tmp_path):
    output = tmp_path / "x.png"
    flags = ["plot", "--kind=alignment", files["json"], f"--pairs={files['pairs']}", f"--output={output}"]
    assert nmt_jax(*flags, f"--gold={files['gold']}").lines == [str(output)]
    assert output.read_bytes().startswith(b"\x89PNG")
    assert "already exists" in mistake(*flags)
    assert nmt_jax(*flags, "--line=3", "--overwrite").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{pharaoh}"], "needs one file of links and its text: LINKS --pairs=FILE"),
        (["--pairs={pairs}"], "needs one file of links"),
        (["{json}", "--pairs={pairs}", "--line=4"], "pairs:4: no such line; the file has 3"),
        (["{pharaoh}", "--pairs={pairs}", "--line=3"], "pharaoh:3: no such line; the file has 1"),
        (["{json}", "--pairs={pairs}", "--line=3", "--gold={gold}"], "gold:3: no such line; the file has 2"),
        (["{json}", "--pairs={pairs}", "--line=2"], "pairs:2: a side has no words"),
        (["{json}", "--pairs={gold}"], "gold:1: not a sentence pair"),
        (["{gold}", "--pairs={pairs}"], "gold:1: the link 2p2 names a word that is not there"),
        (["{json}", "--pairs={pairs}", "--gold={gold}", "--gold_first=0"], "gold:1: the link 2p2 names a word"),
        (["{no_posteriors}", "--pairs={pairs}"], "no_posteriors:1: not {{"),
        (["{broken}", "--pairs={pairs}"], "broken:1: not {{"),
        (["{too_large}", "--pairs={pairs}"], "too_large:1: the link 0-0 has the posterior 1.5"),
        (["{absent}", "--pairs={pairs}"], "absent:1: the link 0-2 names a word that is not there"),
        (["{json}", "--pairs={pairs}", "--gold_first=0"], "--gold_first has no effect without --gold=FILE"),
        (["{json}", "--pairs={pairs}", "--workdir=x"], "--workdir has no effect with --kind=alignment"),
        (["{json}", "--pairs={pairs}", "--output=x.html"], "must end in .png, .svg, .pdf"),
        (["--kind=curves", "--line=2"], "--line has no effect without --kind=alignment"),
    ],
)
def test_mistakes(mistake, files, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message.format() in mistake("plot", "--kind=alignment", *(one.format(**files) for one in arguments))
