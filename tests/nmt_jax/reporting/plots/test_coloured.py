"""Coloured text: order and colours of words, escaping of HTML, and top words."""

import html.parser
import re

import pytest

from nmt_jax.reporting.plots.coloured import OFTEN, Coloured, page, top_words

VOID = {"meta"}


class Reader(html.parser.HTMLParser):
    """What a browser sees: the text, the styles and titles of words, and whether every element is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.words, self.bars = [], "", [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "span" and "title" in attributes:
            shade = float(re.fullmatch(r"background: rgba\(\d+, \d+, \d+, ([\d.]+)\)", attributes["style"])[1])
            self.words.append(["", float(attributes["title"]), shade])
        if tag == "i":
            self.bars.append(int(re.fullmatch(r"width: (\d+)%", attributes["style"])[1]))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open[-1:] == ["span"] and self.words and not self.words[-1][0]:
            self.words[-1][0] = data


def text(truth="pos", **changes):
    values = {
        "words": [["a", "film", "great"], ["fun", "."]],
        "word_weights": [[0.1, 0.1, 0.8], [0.9, 0.1]],
        "sentence_weights": [0.81, 0.19],
        "predicted": "pos",
        "probability": 0.97,
    }
    return Coloured(**(values | changes), truth=truth)


def test_words_have_colours_and_sentences_bars():
    read = Reader(page("run", [text()]))
    assert read.open == []
    assert [word for word, _, _ in read.words] == ["a", "film", "great", "fun", "."]
    assert [weight for _, weight, _ in read.words] == [0.1, 0.1, 0.8, 0.9, 0.1]
    assert read.bars == [100, round(100 * 0.19 / 0.81)]
    # Blue is the weight in the sentence times the square root of the weight of the sentence.
    shades = [shade for _, _, shade in read.words]
    assert shades[2] == max(shades) == 0.75
    assert shades[3] == pytest.approx(0.75 * (0.9 * 0.19**0.5) / (0.8 * 0.81**0.5), abs=0.006)


@pytest.mark.parametrize(("truth", "verdict"), [("pos", "right"), ("neg", "wrong"), (None, "label")])
def test_the_verdict(truth, verdict):
    shown = page("run", [text(truth)])
    labels = re.findall(r'<span class="([^"]*)">pos</span>', shown)
    assert [names.split()[-1] for names in labels] == [verdict]
    assert ("true label" in Reader(shown).text) == (truth is not None)
    assert "97.0%" in shown


@pytest.mark.parametrize(
    "word", ["<script>alert(1)</script>", "&lt;", '"quoted"', "'", "</article>", "{x}", "\u2028", "🙂"]
)
def test_words_are_escaped_in_html(word):
    shown = page(word, [text(words=[[word, "b", "c"], ["d", "e"]], predicted=word)], {word: [word]})
    read = Reader(shown)
    assert read.open == []
    assert "script" not in re.findall(r"<(\w+)", shown)
    assert read.words[0][0] == word
    assert read.text.count(word) == 6  # in both titles, twice in the table, in the verdict and the text


def test_nothing_comes_from_elsewhere():
    assert not re.findall(r"https?:|src=|@import|<link|url\(", page("run", [text()], {"pos": ["great"]}))


def test_a_text_of_equal_or_no_weights_is_drawn():
    assert Reader(page("run", [text(word_weights=[[0, 0, 0], [0, 0]], sentence_weights=[0, 0])])).bars == [0, 0]
    assert Reader(page("run", [text(words=[], word_weights=[], sentence_weights=[])])).words == []
    assert Reader(page("run", [])).open == []


def test_top_words_weigh_more_in_texts_of_their_label():
    good = text()
    bad = text(predicted="neg", words=[["a", "film", "bad"], ["dull", "."]])
    rare = text(words=[["unique", "film", "great"], ["fun", "."]], word_weights=[[0.9, 0.05, 0.05], [0.9, 0.1]])
    top = top_words([good, bad] * OFTEN + [rare])
    assert list(top) == ["neg", "pos"]
    assert top["pos"][:2] == ["great", "fun"]
    assert top["neg"][:2] == ["bad", "dull"]
    assert "unique" not in top["pos"]
    assert "." not in top["pos"]
    assert top_words([]) == {}
