"""The view Runs in headless Chromium: the table, the curves, and both while runs train, change and disappear."""

import json
import re
import shutil

import pytest

from nmt_jax.serving.models import Models
from tests.fixtures.chromium import opened
from tests.fixtures.serving import running
from tests.fixtures.sweep_folders import make_run

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: see CONTRIBUTING.md")
pytestmark = pytest.mark.slow
DOT, GENERAL = "sweep/score=dot", "sweep/score=general"
BOTH = f"/runs?run={DOT}&run={GENERAL}&measure=dev/perplexity".replace("=dot", "%3Ddot").replace(
    "=general", "%3Dgeneral"
)


@pytest.fixture
def folder(tmp_path):
    root = tmp_path / "runs"
    make_run(root / "sweep", {"model.score": "dot"}, [40.0, 30.0, 35.0])
    make_run(root / "sweep", {"model.score": "general"}, [50.0, 20.0], steps=12)
    make_run(root, {"model.d_model": 64}, [9.0, 1000.0])
    return root


@pytest.fixture
def client(folder):
    models = Models([], {})
    models.show_runs(folder)
    with running(models) as client:
        yield client


@pytest.fixture
def page(browser, client):
    with opened(browser, client) as page:
        yield page


def columns(page):
    return page.locator("table.runs thead th").all_inner_texts()[1:]


def column(page, name):
    at = columns(page).index(name) + 2
    return page.locator(f"table.runs tbody td:nth-child({at})").all_inner_texts()


def points(page):
    """The number of points of each line."""
    return page.locator("svg.chart .line").evaluate_all(
        "nodes => nodes.map((node) => node.getAttribute('d').split('L').length)"
    )


def first_line_has(page, count):
    """Wait until the first line has this many points."""
    line = re.compile(rf"^[^L]*(L[^L]*){{{count - 1}}}$")
    playwright.expect(page.locator("svg.chart .line").first).to_have_attribute("d", line, timeout=20_000)


def test_a_sweep_shows_what_differs(page):
    page.goto("/runs")
    page.wait_for_selector("table.runs")
    assert column(page, "run") == ["d_model=64", DOT, GENERAL]
    assert column(page, "d_model") == ["64", "32", "32"]
    assert column(page, "score") == ["dot", "dot", "general"]
    page.locator("#filter").fill("sweep")
    assert column(page, "run") == [DOT, GENERAL]
    assert "d_model" not in columns(page)
    assert column(page, "best") == ["30 perplexity", "20 perplexity"]
    page.get_by_role("button", name="best").click()
    assert column(page, "run") == [GENERAL, DOT]
    page.get_by_role("button", name="best").click()
    assert column(page, "run") == [DOT, GENERAL]
    page.locator("#filter").fill("score=general")
    assert column(page, "run") == [GENERAL]


def test_a_run_that_trains_adds_points(page, folder):
    page.goto(BOTH)
    page.wait_for_selector("svg.chart .line")
    assert points(page) == [3, 2]
    requests = []
    page.on("request", lambda request: requests.append(request.post_data) if "curves" in request.url else None)
    with (folder / DOT / "metrics.jsonl").open("a") as log:
        log.write(json.dumps({"step": 21, "dev/perplexity": 22.0}) + '\n{"step": 22, "dev/perp')
    first_line_has(page, 4)
    playwright.expect(page.locator("table.runs tbody tr").nth(1)).to_contain_text("22 perplexity")
    assert all(all(json.loads(body)["since"]) for body in requests)  # only new rows are asked for
    with (folder / DOT / "metrics.jsonl").open("a") as log:
        log.write('lexity": 21.0}\n')
    first_line_has(page, 5)


def test_runs_are_deleted_damaged_and_begun_while_the_page_is_open(page, folder):
    page.goto(BOTH)
    page.wait_for_selector("svg.chart .line")
    shutil.rmtree(folder / DOT)
    (folder / GENERAL / "config.json").write_text("{")
    with (folder / GENERAL / "metrics.jsonl").open("a") as log:
        log.write("\x00\x00\n")
    make_run(folder / "sweep", {"model.score": "concat"}, [7.0])
    page.get_by_text("deleted, was deleted").wait_for()
    playwright.expect(page.locator("table.runs .state.damaged")).to_have_count(1)
    assert column(page, "run") == ["d_model=64", "sweep/score=concat", GENERAL]
    assert points(page) == [3, 2]
    page.reload()
    page.wait_for_selector("svg.chart .line")
    assert points(page) == [2]
    assert page.locator(".legend li").count() == 2


def test_the_address_keeps_the_state(page):
    page.goto("/runs")
    page.get_by_label(f"Show {DOT}").check()
    page.get_by_label("Show d_model=64").check()
    page.locator("#measure").select_option("dev/loss")
    page.locator("#log").check()
    page.get_by_role("button", name="step").click()
    playwright.expect(page.locator("svg.chart .line")).to_have_count(2)
    shown = [column(page, "run"), page.locator(".legend").inner_text()]
    ticks = page.locator("svg.chart text").all_text_contents()
    page.reload()
    playwright.expect(page.locator("svg.chart .line")).to_have_count(2)
    assert [column(page, "run"), page.locator(".legend").inner_text()] == shown
    assert page.locator("svg.chart text").all_text_contents() == ticks
    assert {"1", "10", "50"} & set(ticks)  # of a logarithmic axis
    assert page.locator("#measure").input_value() == "dev/loss"


def test_values_are_shown_by_pointer_and_keyboard(page):
    page.goto(BOTH)
    page.wait_for_selector("svg.chart .line")
    box = page.locator("svg.chart").bounding_box()
    page.mouse.move(box["x"] + 70, box["y"] + 100)
    playwright.expect(page.locator(".readout")).to_have_text(f"step 6{DOT}: 40{GENERAL}: 50")
    page.locator("svg.chart").focus()
    page.keyboard.press("End")
    playwright.expect(page.locator(".readout")).to_have_text(f"step 20{DOT}: 35{GENERAL}: 20 at 12")
    page.keyboard.press("ArrowLeft")
    playwright.expect(page.locator(".readout")).to_have_text(f"step 13{DOT}: 30{GENERAL}: 20 at 12")


def test_the_view_can_be_used_by_keyboard(page):
    page.goto("/runs")
    page.wait_for_selector("table.runs")
    page.get_by_role("button", name="best").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.dataset.name") == "sort best"
    page.get_by_label(f"Show {GENERAL}").focus()
    page.keyboard.press("Space")
    page.wait_for_selector("svg.chart .line")
    assert page.evaluate("document.activeElement.dataset.name") == f"run {GENERAL}"
    page.wait_for_timeout(4000)  # the table is asked for again
    assert page.evaluate("document.activeElement.dataset.name") == f"run {GENERAL}"


def test_text_of_a_folder_is_not_html(page, folder):
    name = "<img src=x onerror=alert(1)>"
    shutil.copytree(folder / "d_model=64", folder / name)
    page.goto("/runs")
    page.get_by_label(f"Show {name}").check()
    page.wait_for_selector("svg.chart .line")
    assert page.locator("img").count() == 0
    assert name in column(page, "run")


def test_a_served_model_links_to_its_translations(browser, translator_workdir):
    models = Models.open([[translator_workdir]], ["chrf"])
    models.show_runs(translator_workdir.parent)
    with running(models) as client, opened(browser, client) as page:
        page.goto("/runs")
        page.get_by_role("link", name="w", exact=True).click()
        page.wait_for_selector("#source")


def test_a_server_without_runs_says_so(browser):
    with running(Models([], {})) as client, opened(browser, client) as page:
        page.goto("/runs")
        page.get_by_text("start it with --runs=FOLDER").wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1600])
def test_nothing_is_wider_than_the_window(width, scheme, browser, client, folder):
    shutil.copytree(folder / DOT, folder / ("x" * 120))
    with opened(browser, client, viewport={"width": width, "height": 900}, color_scheme=scheme) as page:
        page.goto(f"{BOTH}&run={'x' * 120}")
        page.wait_for_selector("svg.chart .line")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.locator("svg.chart").bounding_box()["width"] < width
