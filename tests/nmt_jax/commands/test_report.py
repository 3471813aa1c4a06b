import html.parser
import itertools
import json
import pathlib
import re
import shutil
import subprocess

import numpy as np
import pytest

from metrics_jax import BLEU
from metrics_jax.significance import bootstrap
from nmt_jax import __main__ as cli
from nmt_jax.errors import UserError
from nmt_jax.reporting import translation_report as translation
from nmt_jax.reporting.html_page import Section, report_page, table
from nmt_jax.reporting.report import run_failures, write_report
from nmt_jax.reporting.translation_report import Translated, differences
from tests.conftest import ROOT
from tests.fixtures.sweep_folders import make_run

pytest.importorskip("matplotlib")
QUICKSTART = str(ROOT / "configs" / "quickstart.py")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
VOID = ("meta", "img", "br", "link")


class Read(html.parser.HTMLParser):
    """Tags and text of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


def check(text: str) -> Read:
    """Checks that a page is complete, self-contained and accessible, and that its links have targets."""
    read = Read(text)
    assert read.open == []
    for _, attributes in read.tags:
        for name in ("src", "href"):
            if name in attributes:
                assert attributes[name].startswith(("#", "data:")) or attributes[name].endswith("/report.html")
        assert not [name for name in attributes if name.startswith("on")]
    assert not re.findall(r"@import|url\(|<script|<link", text)
    assert all(image["alt"] for image in read.all("img"))
    assert [name["name"] for name in read.all("meta") if "name" in name] == ["viewport"]
    headings = [int(tag[1]) for tag, _ in read.tags if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(headings))
    names = [attributes["id"] for _, attributes in read.tags if "id" in attributes]
    assert len(names) == len(set(names))
    linked = {link["href"][1:] for link in read.all("a") if link["href"].startswith("#")}
    assert linked <= set(names)
    return read


@pytest.fixture(scope="module")
def workdir(translator_workdir, tmp_path_factory) -> pathlib.Path:
    """A tiny translator with a report of four short translations."""
    folder = tmp_path_factory.mktemp("report") / "w"
    shutil.copytree(translator_workdir, folder)
    config = json.loads((folder / "config.json").read_text())
    config["seed"] = 5
    config["decode"] |= {"beam_size": 2, "max_length_ratio": 0.5}
    (folder / "config.json").write_text(json.dumps(config))
    write_report(folder, config_file=QUICKSTART + ":smoke=true", lines=4, samples=1)
    return folder


@pytest.fixture
def sweep(tmp_path) -> pathlib.Path:
    """A sweep of two points with two seeds each, and a run that failed."""
    for width in (8, 16):
        for seed in range(2):
            make_run(tmp_path, {"model.d_model": width, "seed": seed}, [9.0, width + seed])
    failed = tmp_path / "d_model=7"
    failed.mkdir()
    (failed / "log.txt").write_text("nmt-jax: error: d_model=7 is <odd>\n")
    (tmp_path / "d_model=8,seed=0" / "report.html").write_text("")
    return tmp_path


@pytest.mark.slow
def test_a_translator_is_reported_with_scores_samples_and_attention(workdir):
    read = check((workdir / "report.html").read_text())
    assert [read.text.count(name) for name in ("Best", "Median", "Worst")] == [1, 1, 1]
    assert len(read.all("article")) == 3
    maps = [one for one in read.all("details") if "name" in one]
    assert 1 <= len(maps) <= 3  # an empty translation has none
    assert len(read.all("img")) == 1 + len(maps)
    assert "The first 4 lines of the dev set; beam 2" in read.text
    assert "bleu|nrefs:1|tokenize:13a|" in read.text
    assert re.search(r"seed\s*5\s*0", read.text)  # differs from the config file
    assert "no step was skipped" in read.text


def test_scores_are_those_of_the_metric_with_its_interval():
    rng = np.random.default_rng(0)
    words = np.array(["a", "dog", "sees", "the", "cat"])
    references = [" ".join(rng.choice(words, 9)) for _ in range(30)]
    translations = [text if k % 2 else text.replace("dog", "cow") for k, text in enumerate(references)]
    shown = translation.scores(Translated("x", references, references, translations), "beam 4").body
    metric = BLEU()
    interval = bootstrap(metric, metric.statistics(translations, references))
    assert f">{metric(translations, references).score:.2f}<" in shown
    assert f"{interval.lower:.2f} – {interval.upper:.2f}" in shown


@pytest.mark.parametrize(
    ("translation_text", "reference", "marked", "marked_reference"),
    [
        ("a b c", "a b c", "a b c", "a b c"),
        ("a x c", "a b b c", "a <ins>x</ins> c", "a <del>b b</del> c"),
        ("", "a b", "", "<del>a b</del>"),
        ("我们好", "你们好", "<ins>我</ins>们好", "<del>你</del>们好"),
        ("<i> &", "<i> b", "&lt;i&gt; <ins>&amp;</ins>", "&lt;i&gt; <del>b</del>"),
    ],
)
def test_differences_are_marked_on_both_sides(translation_text, reference, marked, marked_reference):
    assert differences(translation_text, reference) == (marked, marked_reference)


@pytest.mark.parametrize("lines", [1, 2, 5, 9, 40])
def test_samples_are_distinct_and_ordered_by_score(lines):
    values = np.random.default_rng(lines).permutation(lines).astype(float)
    texts = ["x"] * lines
    chosen = translation._chosen(Translated("", texts, texts, texts), values, 3)
    shown = [line for group in chosen.values() for line in group]
    assert len(shown) == len(set(shown)) == min(lines, 9)
    assert values[chosen["Best"][0]] == lines - 1
    if lines == 40:
        assert sorted(values[chosen["Median"]]) == [19, 20, 21] or sorted(values[chosen["Median"]]) == [18, 19, 20]
        assert sorted(values[chosen["Worst"]]) == [0, 1, 2]


@pytest.mark.slow
def test_given_texts_are_translated(workdir, tmp_path, capsys):
    source, reference = tmp_path / "s.txt", tmp_path / "r.txt"
    source.write_text("the dog sleeps .\n\nthe cat <b> sees .\n")
    reference.write_text("der Hund schläft .\n\ndie Katze sieht .\n")
    output = tmp_path / "page.html"
    texts = [f"--source={source}", f"--reference={reference}"]
    assert cli.main(["report", f"--workdir={workdir}", *texts, f"--output={output}"]) == 0
    assert capsys.readouterr().out.strip() == str(output)
    read = check(output.read_text())
    assert "All 3 lines of s.txt" in read.text
    assert "the cat <b> sees ." in read.text
    reference.write_text("der Hund schläft .\n")
    assert cli.main(["report", f"--workdir={workdir}", *texts]) == 2
    assert "s.txt has 3 lines but" in capsys.readouterr().err
    assert cli.main(["report", f"--workdir={workdir}", texts[0]]) == 2
    assert "--source and --reference must be given together" in capsys.readouterr().err


@pytest.mark.slow
def test_a_missing_dev_set_is_reported_in_place_of_the_scores(workdir, tmp_path, capsys):
    shutil.copytree(workdir, tmp_path / "w")
    config = json.loads((tmp_path / "w" / "config.json").read_text())
    config["data"] |= {"corpus": "text", "directory": str(tmp_path / "gone")}
    (tmp_path / "w" / "config.json").write_text(json.dumps(config))
    assert cli.main(["report", f"--workdir={tmp_path / 'w'}"]) == 0
    read = check((tmp_path / "w" / "report.html").read_text())
    assert "Nothing was translated: " in read.text
    assert "val.en: no such file" in capsys.readouterr().err


def test_a_run_of_another_task_has_all_other_sections(tmp_path):
    run = make_run(tmp_path, {}, [9.0, 5.0, 7.0])
    output = write_report(run.workdir.path)
    assert output == run.workdir.path / "report.html"
    read = check(output.read_text())
    assert "best dev/perplexity5 at step 13" in read.text
    assert "best, step 13" in read.text
    assert "last, step 20" in read.text
    assert "Translations" not in read.text
    with pytest.raises(UserError, match="not a trained translator"):
        write_report(run.workdir.path, texts=("a", "b"))


def test_skipped_steps_and_unfinished_runs_are_reported(tmp_path):
    run = make_run(tmp_path, {}, [9.0, 5.0], steps=10, log="step 9\nOut of luck <x>\n")
    rows = [
        {"step": 5, "skipped": 0},
        {"step": 10, "skipped": 3},
        {"step": 15, "skipped": 3},
        {"step": 20, "skipped": 4},
    ]
    shown = run_failures(run.workdir, rows).body
    assert "4 steps were skipped" in shown
    assert "3 between 5 and 10, 1 between 15 and 20" in shown
    assert "has not finished" in shown
    assert "Out of luck &lt;x&gt;" in shown


def test_a_sweep_is_reported_with_table_plots_and_failures(sweep):
    read = check(write_report(sweep).read_text())
    assert "8.5000 ± 0.7071" in read.text
    assert "d_model=7 is <odd>" in read.text
    assert len(read.all("img")) == 2
    assert [link["href"] for link in read.all("a") if not link["href"].startswith("#")] == [
        "d_model%3D8%2Cseed%3D0/report.html"
    ]
    rows = [attributes for attributes in read.all("tr") if attributes.get("class") == "best"]
    assert len(rows) == 1
    assert "best dev/perplexityd_model=8: 8.5000" in read.text
    read = check(write_report(sweep, measure="dev/loss").read_text())
    assert "At the step with the best dev/perplexity, ±" in read.text
    assert "dev/loss" in read.text


def test_a_run_that_was_interrupted_before_its_first_evaluation_is_in_the_report_of_its_sweep(sweep):
    run = make_run(sweep, {"model.d_model": 32, "seed": 0})
    run.workdir.metrics_file.write_text('{"step": 1, "loss": 9.0}\n')
    assert "d_model=32,seed=0not finished1" in check(write_report(sweep).read_text()).text


def test_invalid_requests_are_errors(tmp_path, capsys):
    for arguments, line in (
        ([], "needs --workdir=FOLDER"),
        ([f"--workdir={tmp_path}"], "not the folder of a sweep"),
        ([f"--workdir={tmp_path / 'x'}"], "no such workdir"),
        ([f"--workdir={tmp_path}", "--output=x.pdf"], "must end in .html"),
        (["x"], "unexpected argument 'x'"),
    ):
        assert cli.main(["report", *arguments]) == 2
        assert line in capsys.readouterr().err


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "&lt;", '"', "'", "{x}", "\u2028"])
def test_text_is_escaped_in_html(text):
    read = Read(report_page(text, "x", [Section(text, "a", table(text, [text], [["x"]]))]))
    assert read.open == []
    assert "script" not in [tag for tag, _ in read.tags]
    assert read.text.count(text) >= 4


def browse(page: pathlib.Path, folder: pathlib.Path) -> tuple[str, list[str], list[str]]:
    """Opens a page in a browser; returns its document, console messages and requests to the network."""
    if CHROMIUM is None:
        pytest.skip("install the package chromium: no chromium, chromium-browser or google-chrome on the PATH")
    log = folder / "net.json"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
    flags += ["--disable-background-networking", "--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND"]
    flags += ["--enable-logging=stderr", "--v=0", f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}"]
    command = [CHROMIUM, *flags, "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    events = [event.get("params") or {} for event in json.loads(log.read_text())["events"]]
    # Requests of the browser itself have no origin as initiator.
    requests = [event["url"] for event in events if event.get("initiator", "not an origin") != "not an origin"]
    return done.stdout, console, [url for url in requests if not url.startswith(("file:", "data:"))]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["run", "sweep"])
def test_a_browser_shows_a_report_without_errors_and_requests(what, workdir, sweep, tmp_path):
    page = workdir / "report.html" if what == "run" else write_report(sweep)
    document, console, requests = browse(page, tmp_path)
    assert console == []
    assert requests == []
    assert "Summary" in Read(document).text
    assert document.rstrip().endswith("</body></html>")


@pytest.mark.slow
def test_errors_and_requests_of_a_browser_are_noticed(tmp_path):
    page = tmp_path / "bad.html"
    page.write_text("<body><img src='http://127.0.0.1:9/x.png'><script>console.error('boom')</script></body>")
    _, console, requests = browse(page, tmp_path)
    assert "boom" in console[0]
    assert requests
    assert set(requests) == {"http://127.0.0.1:9/x.png"}
