"""Tutorials can be followed literally: their commands succeed in a clean clone, and end in something to look at."""

import pathlib
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest

from nmt_jax import config as configs
from tests.conftest import ROOT
from tests.fixtures import judged_texts, small_runs, tutorials

FOLDER = ROOT / "docs" / "tutorials"
CONTRIBUTING = tutorials.read(ROOT / "docs" / "contributing" / "tutorial.md")


class Tutorial(NamedTuple):
    """What a page ends in, values of config keys for its trainings, and what the reader brings into the clone."""

    shows: tuple[str, ...]
    small: Mapping[str, Any] = {}
    bring: Callable[[pathlib.Path], None] = lambda folder: None


PAGES = {
    "first-translator": Tutorial(("runs/quickstart/curves.png", "runs/quickstart/attention.png")),
    "your-own-data": Tutorial(("runs/mine/report.html",)),
    "reproducing-table-3": Tutorial(("runs/table3/sweep.png", "runs/table3/report.html")),
    "which-metric": Tutorial(
        ("pictures/wmt17.de-en.human_z.pearson.png", "pictures/wmt21.de-en.human_z.png"), bring=judged_texts.bring_wmt
    ),
    "attention": Tutorial(("attention_steps.png", "runs/reverse_50/attention.png")),
    "captions": Tutorial(("drawings.png", "runs/captions/attention.png")),
    "speech": Tutorial(("listening.png",)),
    "bert": Tutorial(("runs/bert/curves.png", "words.png")),
    "laptop-to-cluster": Tutorial(("losses.png", "job.sbatch", "job.json", "pod.sh")),
}


@pytest.fixture
def clone(tmp_path):
    """A copy of the repository."""
    tutorials.clone(tmp_path)
    return tmp_path


def test_every_tutorial_is_tested():
    assert {page.stem for page in FOLDER.glob("*.md")} == {*PAGES}


@pytest.mark.parametrize("name", PAGES)
def test_the_python_of_a_tutorial_can_be_compiled(name):
    steps = tutorials.read(FOLDER / f"{name}.md")
    assert steps
    for step in steps:
        if step.kind == "python" or step.path.endswith(".py"):
            compile(step.text, step.section, "exec")


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_a_tutorial_can_be_followed(name, clone):
    page = PAGES[name]
    page.bring(clone)
    tutorials.follow(tutorials.read(FOLDER / f"{name}.md"), clone, page.small)
    for path in page.shows:
        least = 500 if path.endswith(".sbatch") else 1000  # a complete job file is shorter than a picture
        assert (clone / path).stat().st_size > least, path


def test_a_page_is_read_by_its_rules(tmp_path):
    page = tmp_path / "page.md"
    blocks = ["```sh\nbefore\n```", "## 1. Install", "```sh\npip\n```", "## 2. Do"]
    blocks += ["Create `a.py`:", "```python\nx = 1\n```", "```sh\nls\n```", "```\noutput\n```"]
    blocks += ["<!-- not executed: why -->\n```sh\nskipped\n```", "```python\nprint()\n```"]
    page.write_text("\n\n".join(blocks) + "\n")
    assert tutorials.read(page) == [
        ("2. Do", "Create", "a.py", "x = 1\n"),
        ("2. Do", "sh", "", "ls\n"),
        ("2. Do", "python", "", "print()\n"),
    ]


@pytest.mark.parametrize("command", ["false", "false\ntrue", "false | true", "for i in 1 2; do false; done; true"])
def test_a_failing_command_is_seen(tmp_path, command):
    with pytest.raises(AssertionError, match="exit code 1"):
        tutorials.follow([tutorials.Step("", "sh", "", command + "\n")], tmp_path)


def test_a_pipe_may_end_early(tmp_path):
    tutorials.follow([tutorials.Step("", "sh", "", "yes | head -n 1 > a\ntouch b\nyes | head -n 1\n")], tmp_path)
    assert (tmp_path / "b").exists()


def test_small_values_keep_the_data_and_change_sizes():
    command = ["train", f"--config={ROOT}/configs/multi30k.py", "--config.data.directory=data", "--workdir=runs/a"]
    for launcher in ([], ["launch", "--processes=2", "--", "nmt-jax"]):
        small = small_runs.shrunk([*launcher, *command])
        keys = dict(re.fullmatch(r"--config\.([^=]+)=(.*)", word).groups() for word in small if ".m" in word[8:18])
        assert small[: len(launcher) + 4] == [*launcher, *command]
        assert keys["model.d_model"] == "16"
    changes = dict(word.removeprefix("--config.").split("=", 1) for word in small if word.startswith("--config."))
    config = configs.load(f"{ROOT}/configs/multi30k.py", changes)
    assert (config.data.corpus, config.data.directory, config.vocab.size) == ("text", "data", 400)
    assert (config.train.steps, config.train.checkpoint_every) == (8, 4)


def test_small_corpora():
    assert small_runs.shrunk(["corpus", "--lines=500", "--output=a"]) == ["corpus", "--lines=200", "--output=a"]
    assert small_runs.shrunk(["corpus", "--lines=20"]) == ["corpus", "--lines=20"]


@pytest.mark.parametrize(
    "command", ["launch --on=slurm --dry_run -- nmt-jax train --config=a", "score a", "sweep --collect"]
)
def test_other_commands_stay_as_they_are(command):
    assert small_runs.shrunk(command.split()) == command.split()


# The tutorial for contributors, docs/contributing/tutorial.md


def test_no_section_touches_more_than_four_files_beside_its_test():
    titles = list(dict.fromkeys(step.section for step in CONTRIBUTING if step.path))
    assert titles == ["Add a metric", "Add an attention score", "Add a task", "Add a config"]
    for title in titles:
        changed = {step.path for step in CONTRIBUTING if step.section == title and step.path}
        assert len({path for path in changed if not path.startswith("tests/")}) <= 4, title


def test_all_changes_can_be_made(clone):
    changes = [step for step in CONTRIBUTING if step.path]
    for step in changes:
        tutorials.apply(step, clone)
    for path in {step.path for step in changes if step.path.endswith(".py")}:
        compile((clone / path).read_text(encoding="utf-8"), path, "exec")


@pytest.mark.slow
def test_the_tutorial_for_contributors_can_be_followed(clone):
    tutorials.follow(CONTRIBUTING, clone)
