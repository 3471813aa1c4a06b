"""The view Metrics in headless Chromium: what is matched is shown, marked and kept in the address."""

import urllib.parse

import pytest

from metrics_jax import parse
from nmt_jax.serving.models import Models
from tests.fixtures import tiny_encoder
from tests.fixtures.chromium import opened
from tests.fixtures.serving import running

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: see CONTRIBUTING.md")
pytestmark = pytest.mark.slow
METRICS = ["bleu", "chrf", "ter", "rougeL", "meteor|modules:exact+stem", "bertscore", "moverscore", "twmd"]
PAIR = {"hypothesis": "on the mat the cats sat", "reference": "the cat sat on the mat"}


@pytest.fixture(scope="module")
def client():
    encoder = tiny_encoder.make()
    metrics = {name: parse(name, **({"encoder": encoder} if name in METRICS[-3:] else {})) for name in METRICS}
    with running(Models([], metrics)) as client:
        yield client


@pytest.fixture
def page(browser, client):
    with opened(browser, client) as page:
        yield page


def show(page, metric="bleu", **pair):
    page.goto(f"/explain?{urllib.parse.urlencode(PAIR | pair | {'metric': metric})}")
    page.wait_for_selector("#explanation h2")


def marked(page):
    """The marked words of both texts, or characters where characters are marked."""
    return [page.locator(".sentence").nth(side).locator(".linked").all_inner_texts() for side in (0, 1)]


def test_typed_texts_are_scored_and_the_address_keeps_them(page, client):
    page.goto("/explain")
    for name, text in PAIR.items():
        page.locator(f"#{name}").fill(text)
    page.wait_for_selector("#explanation h2")
    page.locator("button.metric", has_text="ter").click()
    expected = {one["metric"]: one["score"] for one in client.post("/api/explain", PAIR).json}
    digits = {one["name"]: one["digits"] for one in client.get("/api/models").json["metrics"]}
    written = [f"{name} {expected[name]:.{digits[name]}f}" for name in METRICS]
    playwright.expect(page.locator("button.metric")).to_have_text(written)
    before = page.locator("main").inner_text()
    page.reload()
    page.wait_for_selector("#explanation h2")
    assert page.locator("#hypothesis").input_value() == PAIR["hypothesis"]
    assert page.locator("button.metric[aria-pressed=true]").inner_text() == written[2]
    assert page.locator("main").inner_text() == before


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_is_explained(metric, page, client):
    show(page, metric)
    (one,) = client.post("/api/explain", PAIR | {"metrics": [metric]}).json
    assert page.locator(".equation").all_inner_texts() == one["equation"]
    for side, name in enumerate(("hypothesis", "reference")):
        assert page.locator(".sentence").nth(side).locator(".word").all_inner_texts() == one[name]
    assert one["signature"] in page.locator("#explanation").inner_text()
    tables = {
        "ngrams": ("table.orders tbody tr", len(one.get("orders", []))),
        "edits": (
            ".edit:not(.match)",
            sum(one.get("counts", {"shift": 0}).values()) - one.get("counts", {"shift": 0})["shift"],
        ),
        "alignment": ("table.alignment tbody tr", len(one.get("matches", []))),
        "similarity": ("table.similarity td.cell", len(one["hypothesis"]) * len(one["reference"])),
        "transport": ("svg.flow path", sum(mass > 1e-6 for row in one.get("moved", []) for mass in row)),
        "score": ("table", 0),
    }
    selector, count = tables[one["kind"]]
    assert page.locator(selector).count() == count


def test_an_ngram_is_marked_where_it_stands(page):
    show(page)
    page.get_by_text("2 words: 2 matched").click()
    page.locator(".chip.matched", has_text="the\u00a0mat").hover()
    assert marked(page) == [["the", "mat"], ["the", "mat"]]
    page.locator(".sentence").nth(0).locator(".word").nth(1).focus()
    assert marked(page) == [["the"], ["the", "the"]]
    page.locator("#hypothesis").focus()
    assert marked(page) == [[], []]


def test_characters_are_marked_for_chrf(page):
    show(page, "chrf")
    page.locator(".sentence").nth(0).locator(".word", has_text="cats").hover()
    assert "".join(marked(page)[1]) == "cats"  # of "cat sat", since white space does not count
    page.get_by_text("3 characters:").click()
    page.locator(".chip.matched", has_text="mat").hover()
    assert [side[-3:] for side in marked(page)] == [["m", "a", "t"]] * 2


def test_words_are_marked_by_hovering_and_by_the_keyboard(page):
    show(page, "meteor|modules:exact+stem")
    cats = page.locator(".sentence").nth(0).locator(".word", has_text="cats")
    cats.hover()
    assert marked(page) == [["cats"], ["cat"]]
    assert cats.get_attribute("title").startswith("stem, chunk")
    page.mouse.move(0, 0)
    page.locator("button.metric").last.focus()
    page.keyboard.press("Tab")
    assert marked(page) == [["on"], ["on"]]
    show(page, "bertscore")
    word = page.locator(".sentence").nth(0).locator(".word").nth(3)
    word.focus()
    assert len(marked(page)[1]) >= 1
    show(page, "moverscore")
    page.locator(".sentence").nth(1).locator(".word").nth(1).focus()
    assert len(marked(page)[0]) >= 1


def test_metrics_are_chosen_by_the_keyboard(page):
    show(page)
    page.locator("button.metric").nth(0).focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url("**metric=chrf")
    playwright.expect(page.locator("#explanation h2")).to_contain_text("chrf")
    assert page.evaluate("document.activeElement.textContent").startswith("chrf")


@pytest.mark.parametrize(
    "pair", [("", "the cat"), ("the cat", "the cat"), ("abc", "xyz"), ("<b>a</b> <script>", "<b>a</b>")]
)
def test_extreme_texts(pair, page):
    show(page, hypothesis=pair[0], reference=pair[1])
    for button in page.locator("button.metric").all():
        button.click()
        assert page.locator("#explanation b, #explanation script").count() == 0
        assert "NaN" not in page.locator("#explanation").inner_text()


def test_what_is_refused_is_shown(browser, client):
    with opened(browser, client, refused=1) as page:
        page.goto(f"/explain?hypothesis={'a' * 2100}&reference=b")
        page.get_by_text("at most 2,000 can be explained").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1600])
def test_nothing_is_wider_than_the_window(width, scheme, browser, client):
    with opened(browser, client, viewport={"width": width, "height": 900}, color_scheme=scheme) as page:
        show(page, hypothesis="the old cat " * 8 + "x" * 80)
        for button in page.locator("button.metric").all():
            button.click()
            assert page.evaluate("document.documentElement.scrollWidth") == width, button.inner_text()
