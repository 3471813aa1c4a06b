"""The page in headless Chromium, driven as a person would: typing, clicking, hovering, the keyboard, reloading."""

import shutil
import urllib.parse

import pytest

from nmt_jax.serving.models import Models
from tests.fixtures.chromium import opened
from tests.fixtures.serving import running
from tests.fixtures.workdirs import train_smoke

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: see CONTRIBUTING.md")
pytestmark = pytest.mark.slow
SENTENCES = ["Paul will not to the old", "They did this in a the"]  # of words that the model knows
SYSTEMS = {
    "A": ["der alte Mann schläft .", "das Mädchen sieht den Hund ."],
    "B": ["ein alter Mann schläft .", "das Mädchen hört die Katze ."],
}
REFERENCES = ["der alte Mann schläft .", "das Mädchen sieht den Hund ."]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    # A model of words, so that even without training its translations consist of words.
    changes = {"vocab.algorithm": "word", "vocab.size": "1000", "train.steps": "2"}
    first = train_smoke("quickstart", tmp_path_factory.mktemp("first"), changes)
    second = first.with_name("second")
    shutil.copytree(first, second)
    models = Models.open([[first], [second]], ["bleu", "chrf"])
    for _ in models.warm_up():
        pass
    with running(models) as client:
        yield client


@pytest.fixture
def page(browser, client):
    with opened(browser, client) as page:
        yield page


def type_text(page, lines):
    page.locator("#source").fill("\n".join(lines))
    playwright.expect(page.locator(".block")).to_have_count(len(lines))


def address(path, **fields):
    return f"{path}?{urllib.parse.urlencode(fields)}"


def test_typed_text_is_translated_and_the_address_keeps_it(page, client):
    page.goto("/translate")
    type_text(page, SENTENCES)
    expected = client.post("/api/translate", {"lines": SENTENCES, "n_best": 5, "beam_size": 5}).json["results"]
    for block, found in enumerate(expected):
        shown = page.locator(".block").nth(block)
        assert shown.locator(".source .word").all_inner_texts() == SENTENCES[block].split()
        items = shown.locator("ol.candidates li").all_inner_texts()
        assert len(items) == 5
        for item, one in zip(items, found, strict=True):
            assert item.split() == [*one["text"].split(), f"{one['score']:.2f}"]
    before = page.locator("#translations").inner_text()
    page.reload()
    page.wait_for_selector(".block")
    assert page.locator("#source").input_value() == "\n".join(SENTENCES)
    assert page.locator("#translations").inner_text() == before


def test_a_word_shows_alternatives_and_the_model_goes_on_from_one(page):
    page.goto(address("/translate", text=SENTENCES[0]))
    page.locator(".target button.word").nth(1).click()
    first = page.locator(".target button.word").nth(0).inner_text()
    choice = page.locator(".alternatives button").first
    word = choice.inner_text()
    choice.click()
    page.wait_for_selector(".word.forced")
    found = page.locator(".target button.word").all_inner_texts()
    assert found[0] == first
    assert found[1].startswith(word)
    assert page.locator(".word.forced").count() == 2
    page.reload()
    page.wait_for_selector(".word.forced")
    assert page.locator(".target button.word").all_inner_texts() == found
    page.get_by_role("button", name="Start again").click()
    playwright.expect(page.locator(".word.forced")).to_have_count(0)


def test_a_translation_contains_the_phrases_that_are_asked_for(page):
    page.goto(address("/translate", text="\n".join(SENTENCES)))
    page.wait_for_selector(".block")
    second, asked = page.locator(".block").nth(1), ["Paul", "old"]  # words of the joint vocabulary
    second.get_by_text("Phrases that the translation must contain").click()
    second.get_by_label("Phrases separated by ;").fill("; ".join(asked))
    page.keyboard.press("Enter")
    page.wait_for_url("**phrases=0.1.**")
    page.reload()
    page.wait_for_selector(".block")
    assert second.get_by_label("Phrases separated by ;").input_value() == "; ".join(asked)
    for candidate in second.locator("ol.candidates li").all_inner_texts():
        assert set(asked) <= set(candidate.split())


def test_a_word_shows_what_it_attends_to(page):
    page.goto(address("/translate", text=SENTENCES[0]))
    page.locator(".target button.word").first.hover()
    weights = page.locator(".source .word.linked").evaluate_all(
        "nodes => nodes.map((node) => Number(node.style.getPropertyValue('--weight')))"
    )
    assert len(weights) == len(SENTENCES[0].split())
    assert 0 < max(weights) <= 1
    strongest = page.locator(".source .word").nth(weights.index(max(weights)))
    assert strongest.evaluate("node => getComputedStyle(node).backgroundColor") != "rgba(0, 0, 0, 0)"
    page.locator(".source .word").first.focus()
    assert page.locator(".target .word.linked").count() == page.locator(".target .word").count()
    assert page.locator(".source .word.linked").count() == 0


def test_all_heads_are_drawn_and_one_is_enlarged(page):
    page.goto(address("/translate", text=SENTENCES[0]))
    page.get_by_text("Attention of all layers and heads").click()
    page.wait_for_selector(".heads svg")
    many = page.locator(".heads svg").count()
    assert many > 1
    page.locator(".heads figcaption button").nth(1).click()
    playwright.expect(page.locator(".heads svg")).to_have_count(1)
    pieces = page.locator(".heads svg text").all_text_contents()
    assert "</s>" in pieces
    page.get_by_role("button", name="back to all").click()
    page.locator(".attention select[name=kind]").select_option("encoder")
    playwright.expect(page.locator(".heads svg")).to_have_count(many)


def test_candidates_form_a_tree_and_samples_are_drawn(page):
    page.goto(address("/translate", text=SENTENCES[0]))
    page.get_by_text("Candidates as a tree").click()
    playwright.expect(page.locator(".tree li").nth(4)).to_be_visible()
    page.locator("#sampling").check()
    page.wait_for_url("**temperature=1**")
    playwright.expect(page.locator("ol.candidates li")).to_have_count(5)
    assert page.locator("#beam_size").is_disabled()


def test_several_models_stand_side_by_side(page):
    page.goto(address("/translate", text=SENTENCES[0]))
    page.wait_for_selector(".block")
    page.get_by_label("second").check()
    playwright.expect(page.locator("section.panel")).to_have_count(2)
    assert "model=second" in page.url
    texts = page.locator(".target").all_inner_texts()
    assert texts[0] == texts[1]


def test_the_view_can_be_used_by_keyboard(page):
    page.goto("/translate")
    page.wait_for_selector("#source:focus")
    page.keyboard.type(SENTENCES[0])
    page.wait_for_selector(".target button.word")
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.matches('.target button.word')"):
            break
    page.keyboard.press("Enter")
    page.wait_for_selector(".alternatives button:focus")
    page.keyboard.press("Enter")
    page.wait_for_selector(".word.forced")


def compare(page):
    page.goto("/compare")
    for index, lines in enumerate([REFERENCES, *SYSTEMS.values()]):
        page.locator("textarea").nth(index).fill("\n".join(lines) + "\n")
    page.locator("#compare").click()
    page.wait_for_selector(".sentences table")


def test_two_systems_are_compared_and_the_address_keeps_it(page, client):
    compare(page)
    rows = client.post("/api/score", {"systems": SYSTEMS, "references": REFERENCES, "paired": True}).json
    table = page.locator("#results table").first.locator("tbody tr")
    assert table.count() == len(rows)
    for index, row in enumerate(rows):
        cells = table.nth(index).locator("td").all_inner_texts()
        assert cells[:3] == [f"{row['metric']} ↑", row["system"], f"{row['score']:.2f}"]
    # The line with the largest difference comes first; what differs from the reference is marked.
    first = page.locator(".sentences tbody tr").first
    assert first.locator("mark").all_inner_texts() in (["ein", "alter"], ["hört", "die", "Katze"])
    shown = page.locator("#results").inner_text()
    page.reload()
    page.wait_for_selector(".sentences table")
    assert page.locator("#results").inner_text() == shown


def test_sentences_are_filtered_and_sorted(page):
    compare(page)
    page.locator("#filter").fill("katze")
    playwright.expect(page.locator(".sentences tbody tr")).to_have_count(1)
    page.locator("#filter").fill("")
    page.get_by_role("button", name="line").click()
    assert page.locator(".sentences tbody tr td").first.inner_text() == "1"
    page.get_by_role("button", name="line").click()
    assert page.locator(".sentences tbody tr td").first.inner_text() == "2"


def test_settings_and_long_texts_are_in_the_address(page):
    page.goto("/compare")
    lines = [f"line {number} of a long text" for number in range(1000)]
    for index, text in enumerate([lines, lines[::-1]]):
        page.locator("textarea").nth(index).fill("\n".join(text))
    page.locator("#compare").click()
    page.wait_for_selector(".sentences table")
    page.locator("#metric").select_option("bleu")
    page.locator("#filter").fill("line 99")
    page.get_by_role("button", name="line", exact=True).click()
    page.get_by_role("button", name="line", exact=True).click()
    shown = page.locator("#results").inner_text()
    page.reload()
    page.wait_for_selector(".sentences table")
    assert page.locator("#metric").input_value() == "bleu"
    assert page.locator("#results").inner_text() == shown


def test_words_are_counted_by_their_frequency(page):
    compare(page)
    rows = [row.split("\t") for row in page.locator("#frequencies tbody").inner_text().splitlines()]
    # "." occurs twice, nine words once. B has four of them, in their sentences, and five words that no reference has.
    assert [row[:3] for row in rows] == [["1", "9", "100.0"], ["2–4", "2", "100.0"]]
    assert [row[3] for row in rows] == [f"{200 * 4 / (9 + 4):.1f}", "100.0"]


def test_the_comparison_is_downloaded(page, browser):
    compare(page)
    with page.expect_download() as started:
        page.get_by_role("button", name="Download TSV").click()
    rows = [line.split("\t") for line in started.value.path().read_text().splitlines()]
    texts = map(list, zip(REFERENCES, *SYSTEMS.values(), strict=True))
    assert [row[-3:] for row in rows] == [["reference", "A", "B"], *texts]
    with page.expect_download() as started:
        page.get_by_role("button", name="Download HTML").click()
    text = started.value.path().read_text()
    assert text.startswith("<!doctype html>")
    assert "<script" not in text
    assert all(word in text for word in ("chrf", "Katze", "<mark>"))


def test_files_are_chosen_and_mistakes_are_named(browser, client, tmp_path):
    (tmp_path / "mine.txt").write_text("one line\n")
    with opened(browser, client, refused=1) as page:
        page.goto("/compare")
        page.locator("#compare").click()
        page.get_by_text("Give references and at least one system.").wait_for()
        page.locator("input[type=file]").nth(1).set_input_files(tmp_path / "mine.txt")
        playwright.expect(page.locator("textarea").nth(1)).to_have_value("one line\n")
        assert page.get_by_label("Name of the system").first.input_value() == "mine.txt"
        page.locator("textarea").first.fill("two\nlines")
        page.locator("#compare").click()
        page.get_by_text("'mine.txt' has 1 lines, but references has 2").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1600])
def test_nothing_is_wider_than_the_window(width, scheme, browser, client):
    with opened(browser, client, viewport={"width": width, "height": 900}, color_scheme=scheme) as page:
        page.goto(address("/translate", text="\n".join([*SENTENCES, "the old " * 20])))
        page.wait_for_selector(".block")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        colours = page.evaluate(
            "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
        )
        brightness = [sum(map(int, colour[4:-1].split(", "))) for colour in colours]
        assert (brightness[0] < brightness[1]) == (scheme == "light")
        compare(page)
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_a_token_is_asked_for(browser, translator_workdir):
    models = Models.open([[translator_workdir]], ["chrf"])
    with running(models, token="secret") as client, opened(browser, client, refused=1) as page:
        page.goto("/translate")
        page.get_by_label("Token").fill("secret")
        page.get_by_role("button", name="Continue").click()
        page.wait_for_selector("#source")
