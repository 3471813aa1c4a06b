"""Commands in README, docs and configs are parsed as the programs would: flags, values, config keys, metrics."""

import argparse
import contextlib
import functools
import importlib
import importlib.util
import io
import pathlib
import re
import sys
import textwrap
import tomllib
from collections.abc import Collection

import pytest

from metrics_jax import registry
from nmt_jax import config as configs
from nmt_jax import schema
from nmt_jax.__main__ import VERBS, parse_flags, verb_flags
from nmt_jax.commands.shared_flags import overrides, search_options
from nmt_jax.decoding.search_options import SearchOptions
from nmt_jax.errors import UserError
from nmt_jax.schema.models import MODELS
from nmt_jax.schema.tasks import TASKS
from tests.conftest import ROOT
from tests.shell import Command, commands

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
CONFIGS = sorted((ROOT / "configs").glob("*.py"))
CREATED = re.compile(r"^Create `([^`]+)`:$", re.MULTILINE)  # by the reader of a tutorial
PROGRAMS = r"(?:nmt-jax|python3?|make|pip) "
OMITTED = ("…", "...")  # "and so on"
OPTIONAL = re.compile(r"^\[?(-[^\[\]]*)\]?$")  # a flag in brackets, or one of several
PLACEHOLDER = re.compile(r"…|\.\.\.|[A-Z][A-Z_]*")  # of a value
METRIC_FLAGS = ("metrics", "utility", "evaluate")


def blocks(text: str) -> list[str]:
    """The ```sh blocks of a text, and the indented blocks that begin with one of our programs."""
    indented = re.findall(rf"^(?:    {PROGRAMS}.*\n(?:    .*\n)*)", text, re.MULTILINE)
    fenced = re.findall(r"^( *)```sh\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block) for block in (*indented, *(block for _, block in fenced))]


def mentions(text: str) -> list[str]:
    """The commands within lines of text."""
    prose = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return [" ".join(code.split()) for code in re.findall(rf"`({PROGRAMS}[^`]+)`", prose)]


@functools.cache
def flags_of(verb: str) -> dict[str, object]:
    """The parsers of the flags of a verb by name; those that are true or false also with `no`."""
    flags = verb_flags(verb)
    parsers = {name: flags[name].parser for name in flags}
    return {**parsers, **{f"no{name}": None for name in flags if flags[name].boolean}, "help": None}


@functools.cache
def all_keys() -> set[str]:
    """The keys of the configs of all models and tasks."""
    neural = {key for model in MODELS for task in TASKS for key in schema.schema(model, task)}
    return neural | set(schema.schema("phrase", "phrase"))


def problems(command: Command, created: Collection[str] = ()) -> list[str]:
    """What is wrong with a command of one of our programs."""
    program, *arguments = [word for word in command.words if word not in OMITTED]
    arguments = [OPTIONAL.sub(r"\1", word) for word in arguments]
    program = pathlib.PurePath(program).name
    if program == "nmt-jax":
        return [*verb_problems(arguments, created), *flag_problems(arguments[0], command.comment)]
    if program in ("python", "python3") and arguments[:1] == ["-m"]:
        return module_problems(arguments[1], arguments[2:], partial=any(word in OMITTED for word in command.words))
    if program == "make":
        return make_problems(arguments)
    if program == "pip":
        known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
        extras = re.findall(r"(?:nmt-jax|\.)\[([\w,]+)\]", " ".join(arguments))
        return [f"no extra {extra}" for part in extras for extra in part.split(",") if extra not in known]
    return []


def verb_problems(arguments: list[str], created: Collection[str]) -> list[str]:
    """What is wrong with `nmt-jax VERB …`."""
    verb, *rest = arguments
    if verb in ("--help", "--version"):
        return []
    if verb not in VERBS:
        return [f"no verb {verb}"]
    if unnamed := flag_problems(verb, " ".join(rest[: rest.index("--")] if "--" in rest else rest)):
        return unnamed
    parsers, kept = flags_of(verb), []
    for word in rest:
        name, equals, value = word.removeprefix("--").partition("=")
        placeholder = word.startswith("--") and equals and PLACEHOLDER.fullmatch(value)
        free = type(parsers.get(name)).__name__ in ("ArgumentParser", "ListParser") and value not in OMITTED
        if word != "--help" and (free or not placeholder):
            kept.append(word)
    flag_values = verb_flags(verb)
    try:
        positional = parse_flags(verb, flag_values, kept)
        if "length_penalty" in flag_values:
            SearchOptions(**search_options(flag_values))
    except (UserError, ValueError) as error:
        return [str(error)]
    found = config_problems(verb, flag_values, created)
    for name in METRIC_FLAGS:
        if name in flag_values and flag_values[name].present:
            listed = flag_values[name].value
            found += [
                wrong for one in ([listed] if isinstance(listed, str) else listed) for wrong in metric_problems(one)
            ]
    if verb == "launch" and positional:
        found += problems(Command(positional), created)
    return found


def flag_problems(verb: str, text: str) -> list[str]:
    """Flags in a text that a verb does not have."""
    known = flags_of(verb) if verb in VERBS else ()
    names = re.findall(r"(?<![\w-])--([a-z]\w*)(?![\w.-])", text)
    return [f"{verb} has no flag --{name}" for name in names if verb in VERBS and name not in known]


def config_problems(verb: str, flag_values, created: Collection[str]) -> list[str]:
    """What is wrong with the config, its overrides, and the points of a sweep."""
    changed = overrides(flag_values) if "override" in flag_values else {}
    changed = {key: value for key, value in changed.items() if value not in OMITTED}
    spec = flag_values["config"].value if "config" in flag_values else None
    try:
        if not spec:
            return [f"no config has the key {key}" for key in changed if key not in all_keys()]
        if spec.partition(":")[0] in created:
            return []
        configs.load(str(ROOT / spec), changed)
        if verb != "sweep":
            return []
        points = configs.load_sweep(str(ROOT / spec))
        only = dict(configs.split_override(text) for text in flag_values.only)
        return [] if any(only.items() <= point.items() for point in points) else [f"{spec} has no point {only}"]
    except UserError as error:
        return [str(error)]


def metric_problems(spec: str) -> list[str]:
    """What is wrong with a metric and its options, as `bleu|tokenize:zh`, or `chrf@2` with a weight."""
    spec = re.sub(r"@[\d.]+$", "", spec)
    if PLACEHOLDER.fullmatch(spec):
        return []
    try:
        registry.parse(spec, **dict.fromkeys(registry.needs(spec)))
    except ValueError as error:
        return [] if "no WordNet database" in str(error) else [str(error)]
    return []


class ParsedError(Exception):
    """Raised when the arguments of a script are parsed, in place of what the script does next."""


def module_problems(module: str, arguments: list[str], partial: bool) -> list[str]:
    """What is wrong with `python -m MODULE …` and the arguments of a benchmark; partial: some are left out."""
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        found = None
    if not found:
        return [f"no module {module}"]
    if not module.startswith("benchmarks."):
        return []
    script, parse, errors = importlib.import_module(module), argparse.ArgumentParser.parse_args, io.StringIO()

    def parse_only(parser, *_):
        actions = parser._option_string_actions
        left_out = [word for word in arguments if PLACEHOLDER.fullmatch(word.partition("=")[2])]
        left_out = [word for word in left_out if word.partition("=")[0] in actions]
        for action in parser._actions if partial else [actions[word.partition("=")[0]] for word in left_out]:
            action.required = False
        parse(parser, [word for word in arguments if word not in left_out])
        raise ParsedError

    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(errors):
        patch.setattr(argparse.ArgumentParser, "parse_args", parse_only)
        patch.setattr(sys, "argv", [module, *arguments])
        try:
            script.main()
        except ParsedError:
            return []
        except SystemExit:
            return [errors.getvalue().strip().rpartition("\n")[2]]
    return [f"{module} does not parse its arguments"]


def make_problems(arguments: list[str]) -> list[str]:
    """What is wrong with `make TARGET VARIABLE=VALUE`."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", text, re.MULTILINE))
    variables = set(re.findall(r"^([A-Z_]+) *\?=", text, re.MULTILINE))
    words = [word.partition("=") for word in arguments]
    return [
        f"no target or variable {name}" for name, equals, _ in words if name not in (variables if equals else targets)
    ]


def mention_problems(text: str) -> list[str]:
    """What is wrong with a command within prose: its verb or module, the names of its flags, and their values."""
    program, *arguments = commands(text)[0].words
    verb = next((word for word in arguments if word not in OMITTED), "")
    if program != "nmt-jax":
        return problems(Command([program, *arguments, OMITTED[0]]))
    if not re.match(r"[a-z]", verb):  # VERB
        return []
    wrong = [f"no verb {verb}"] if verb not in VERBS else flag_problems(verb, " ".join(arguments))
    for word in arguments if not wrong else ():
        name, equals, value = word.removeprefix("--").partition("=")
        parser = flags_of(verb).get(name) if word.startswith("--") and equals else None
        if parser and not PLACEHOLDER.fullmatch(value):
            try:
                parser.parse(value)
            except ValueError as error:
                wrong.append(f"--{name}={value}: {error}")
    return wrong


def all_problems(text: str) -> list[str]:
    """What is wrong with the commands of a page."""
    created = CREATED.findall(text)
    found = [wrong for block in blocks(text) for command in commands(block) for wrong in problems(command, created)]
    return found + [wrong for mention in mentions(text) for wrong in mention_problems(mention)]


@pytest.mark.parametrize("page", [*PAGES, *CONFIGS], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_can_be_parsed(page):
    assert all_problems(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("nmt-jax trainslate --workdir=runs/a", "no verb trainslate"),
        ("nmt-jax translate --workdir=runs/a --beem_size=5", "translate has no flag --beem_size"),
        ("nmt-jax translate \\\n  --workdir=runs/a --noreplacment", "translate has no flag --noreplacment"),
        ("nmt-jax translate --workdir=runs/a # or --beam=5", "translate has no flag --beam"),
        ("nmt-jax translate --workdir=runs/a --beam_size=0", "must be at least 1"),
        ("nmt-jax translate --workdir=runs/a --beam_size=many", "must be an integer"),
        ("nmt-jax translate --workdir=runs/a --format=xml", "value should be one of"),
        ("nmt-jax translate --workdir=runs/a --stopping=soon", "stopping='soon' must be one of"),
        ("nmt-jax translate --workdir=runs/a --attention=yes", "--attention"),
        ("cat a | nmt-jax score - --reference=b --paired=bootstrop > c", "value should be one of"),
        ("nmt-jax score a --reference=b --metrics=bleu,chrv", "no metric 'chrv'"),
        ("nmt-jax score a --reference=b --metrics='bleu|tokenise:zh'", "bleu has no option 'tokenise:zh'"),
        ("nmt-jax score a --reference=b --metrics='bertscore|layer:four'", "bertscore|layer: 'four' is not int"),
        ("nmt-jax mbr --utility=chrf@2,blue@1 < a", "no metric 'blue'"),
        ("nmt-jax train --config=configs/quickstrat.py --workdir=a", "no such config file"),
        ("nmt-jax train --config=configs/glue.py:task=cool --workdir=a", "configs/glue.py:"),
        ("nmt-jax train --config=configs/quickstart.py --workdir=a --config.model.d_modle=4", "'model.d_modle'"),
        ("nmt-jax train --config=configs/quickstart.py --workdir=a --config.train.steps=few", "must be an integer"),
        ("nmt-jax train --config=configs/quickstart.py --workdir=a --config.train.steps=0", "must be at least 1"),
        ("nmt-jax train --workdir=a --config.train.minute=5", "no config has the key train.minute"),
        ("nmt-jax report --workdir=a --config=configs/quickstrat.py", "no such config file"),
        ("nmt-jax sweep --config=configs/quickstart.py --workdir=a", "the config file has no sweep"),
        ("nmt-jax sweep --config=configs/rnn_luong.py --workdir=a --only=model.score=no", "has no point"),
        ("nmt-jax launch --processes=2 -- nmt-jax train --workdir=a --stesp=5", "train has no flag --stesp"),
        ("nmt-jax launch --processes=0 -- nmt-jax train --workdir=a", "must be at least 1"),
        ("T='nmt-jax train --config=configs/elmo.py'; $T --workdri=a", "train has no flag --workdri"),
        ("for f in a b; do nmt-jax translate --workdir=$f --nbest=-1; done", "must be at least 1"),
        ("paste a <(nmt-jax translate --workdir=a --nbests=2)", "translate has no flag --nbests"),
        ("echo $(nmt-jax scores a)", "no verb scores"),
        (".venv/bin/nmt-jax scores a", "no verb scores"),
        ("python -m benchmarks.no_such", "no module benchmarks.no_such"),
        ("python -m nmt_jax.no.such a", "no module nmt_jax.no.such"),
        ("python -m benchmarks.decode --model=rmm", "invalid choice: 'rmm'"),
        ("python -m benchmarks.decoding_table runs/a", "the following arguments are required"),
        ("python -m benchmarks.decoding_table runs/a … --tables=beams", "unrecognized arguments: --tables=beams"),
        ("make tests", "no target or variable tests"),
        ("make install VENVS=a", "no target or variable VENVS"),
        ("pip install 'nmt-jax[plots]'", "no extra plots"),
    ],
)
def test_a_wrong_command_is_seen(command, told):
    found = all_problems(f"Run:\n\n```sh\n{command}\n```\n")
    assert len(found) == 1
    assert told in found[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("`nmt-jax train\n--workdri`", "train has no flag --workdri"),
        ("`nmt-jax plot --kind=curve`", "--kind=curve: value should be one of"),
        ("`nmt-jax scores`", "no verb scores"),
        ("`python -m benchmarks.no_such`", "no module benchmarks.no_such"),
        ("`make tests`", "no target or variable tests"),
        ("Text:\n\n    nmt-jax scores a\n\nMore", "no verb scores"),
    ],
)
def test_a_wrong_command_in_prose_is_seen(text, told):
    assert len(all_problems(text)) == 1
    assert told in all_problems(text)[0]


def test_what_pages_leave_out_is_no_problem():
    assert all_problems("`nmt-jax score --encoder`, `nmt-jax plot --kind=similarity|flow`, `nmt-jax VERB --help`") == []
    commands_left_out = """
        nmt-jax train … --config.train.steps=… --config=… --workdir=…
        nmt-jax generate --num_samples=N --workdir=FOLDER [--prompts=FILE]   # any --seed
        python -m benchmarks.decoding_table --table=beams …
    """
    assert all_problems(f"```sh\n{commands_left_out}```") == []
    assert all_problems("Create `configs/mine.py`:\n\n```sh\nnmt-jax train --config=configs/mine.py:a=1\n```\n") == []
