"""The view Language in headless Chromium: continuations, masks and attention, by pointer and by keyboard."""

import re
import urllib.parse

import pytest

from nmt_jax.serving.models import Models
from tests.fixtures import tiny_encoder_folder
from tests.fixtures.chromium import opened
from tests.fixtures.serving import running

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: see CONTRIBUTING.md")
pytestmark = pytest.mark.slow
TEXT = "der alte Mann"
MASKED = "the old [MASK] sees [MASK] ."


@pytest.fixture(scope="module")
def client(gpt_workdir, pretraining_workdir, tmp_path_factory):
    folder = tmp_path_factory.mktemp("named")
    for name, workdir in (("gpt", gpt_workdir), ("bert", pretraining_workdir)):
        (folder / name).symlink_to(workdir)
    encoder = tiny_encoder_folder.write(folder / "tiny", pooler=False)
    with running(Models.open([[folder / "gpt"], [folder / "bert"]], ["bleu"], encoder=str(encoder))) as client:
        yield client


@pytest.fixture
def page(browser, client):
    with opened(browser, client) as page:
        yield page


def go(page, **fields):
    page.goto(f"/language?{urllib.parse.urlencode(fields)}")
    page.wait_for_selector("#language section")


def generated(client, text, **fields):
    body = {"model": "gpt", "text": text, "length": 12, "temperature": 0.8, **fields}
    return client.post("/api/generate", body).json["pieces"]


def shown(pieces):
    return [one["piece"].removeprefix("▁") or "▁" for one in pieces]


def test_a_continuation_is_coloured_and_the_address_keeps_it(page, client):
    go(page, text=TEXT, length=12)
    expected = generated(client, TEXT)
    pieces = page.locator(".continuation .piece")
    assert pieces.all_inner_texts() == shown(expected)
    weights = pieces.evaluate_all("nodes => nodes.map((node) => Number(node.style.getPropertyValue('--weight')))")
    assert weights == pytest.approx([0.6 * one["probability"] ** 0.5 for one in expected], abs=0.006)
    page.locator("#seed").fill("5")
    page.wait_for_url("**seed=5**")
    playwright.expect(pieces).to_have_text(shown(generated(client, TEXT, seed=5)))
    page.reload()
    page.wait_for_selector(".continuation .piece")
    assert pieces.all_inner_texts() == shown(generated(client, TEXT, seed=5))


def test_the_model_goes_on_from_an_alternative_that_is_clicked(page, client):
    go(page, text=TEXT, length=12)
    expected = generated(client, TEXT)
    place = len(expected) - 3
    page.locator(".continuation .piece").nth(place).hover()
    listed = page.locator(".place .bars button")
    playwright.expect(listed).to_have_count(8)
    assert [text.split("\n")[0] for text in listed.all_inner_texts()] == shown(expected[place]["alternatives"])
    page.locator(".continuation .piece").nth(place).click()
    page.locator(".continuation .piece").first.hover()  # the list is kept
    assert [text.split("\n")[0] for text in listed.all_inner_texts()] == shown(expected[place]["alternatives"])
    before = page.url
    listed.nth(1).click()
    page.wait_for_url(lambda url: url != before)
    page.wait_for_selector(".continuation .piece:not(.given):focus")
    assert page.locator("#text").input_value().startswith(TEXT)


def test_words_are_masked_and_candidates_put_in(page, client):
    go(page, model="bert", text=MASKED.replace("[MASK]", "man", 1))
    page.locator(".masks .word").nth(2).click()
    page.wait_for_selector("text=Mask 2")
    assert page.locator("#text").input_value() == MASKED
    masks = client.post("/api/fill", {"text": MASKED}).json["masks"]
    for number, candidates in enumerate(masks):
        bars = page.locator(".masks section").nth(number).locator(".bars button")
        assert [text.split("\n")[0] for text in bars.all_inner_texts()] == [one["piece"] for one in candidates]
        shares = bars.evaluate_all("nodes => nodes.map((node) => Number(node.style.getPropertyValue('--share')))")
        assert shares == [one["probability"] for one in candidates]
    page.locator(".masks .word").nth(2).click()  # back to the word
    page.wait_for_selector(".masks h3:has-text('Candidates')")
    assert page.locator("#text").input_value() == MASKED.replace("[MASK]", "man", 1)
    page.locator(".masks .bars button").first.focus()
    page.keyboard.press("Enter")
    playwright.expect(page.locator("#text")).not_to_have_value(re.compile(r"\[MASK\]"))
    playwright.expect(page.locator(".masks .bars")).to_have_count(0)  # once the new text is answered


def test_a_piece_shows_what_it_looks_at(page, client):
    go(page, model="tiny", text="the good film", layer=2, head=1)
    answer = client.post("/api/text_attention", {"model": "tiny", "text": "the good film"}).json
    row = answer["weights"][1][0][2]
    page.locator(".looks .word").nth(2).hover()
    weights = page.locator(".looks .word").evaluate_all(
        "nodes => nodes.map((node) => Number(node.style.getPropertyValue('--weight')))"
    )
    assert weights == pytest.approx([0.8 * weight for weight in row], abs=0.006)
    page.locator(".arcs g").nth(2).focus()
    grounds = page.locator(".arcs rect").evaluate_all(
        "nodes => nodes.map((node) => Number(node.getAttribute('fill-opacity')))"
    )
    length = len(row)
    assert grounds[:length] == [0] * length
    assert grounds[length:] == pytest.approx([0.6 * weight if weight >= 0.01 else 0 for weight in row], abs=1e-3)
    page.get_by_text("All layers and heads").click()
    playwright.expect(page.locator(".heads svg")).to_have_count(len(answer["weights"]) * len(answer["weights"][0]))
    page.locator("#special").uncheck()
    page.locator("select[name=head]").select_option("mean")
    assert page.locator(".looks .word").all_inner_texts() == answer["pieces"][1:-1]
    address = page.url
    assert "layer=2" in address
    assert "head" not in address
    page.reload()
    page.wait_for_selector(".looks .word")
    assert page.url == address
    assert page.locator(".looks .word").all_inner_texts() == answer["pieces"][1:-1]


def test_without_a_model_the_view_says_how_to_start_one(browser):
    with running(Models.open([], ["bleu"])) as client, opened(browser, client) as page:
        page.goto("/language")
        page.get_by_text("start it with --workdir=FOLDER of a language model").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1600])
def test_nothing_is_wider_than_the_window(width, scheme, browser, client):
    with opened(browser, client, viewport={"width": width, "height": 900}, color_scheme=scheme) as page:
        for fields in (
            {"text": TEXT, "length": 40},
            {"model": "bert", "text": MASKED},
            {"model": "tiny", "text": "x" * 30},
        ):
            go(page, **fields)
            page.get_by_text("All layers and heads").click()
            assert page.evaluate("document.documentElement.scrollWidth") == width
