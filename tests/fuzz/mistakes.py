"""Random cases: a valid command of the workplace, changed by one to three mistakes that people make."""

import dataclasses
import functools
import importlib
import pathlib
import random
import re
import shlex
import shutil
from collections.abc import Callable

from absl import flags

from nmt_jax import config as configs
from nmt_jax.schema import schema
from nmt_jax.schema.key import Key
from tests.conftest import ROOT
from tests.fuzz.workplace import COMMANDS

INTEGERS = ["-1", "0", "1", "2", "7", "100000", str(2**31), str(2**63), str(-(2**63)), "1" + "0" * 30, "1.5", "x", ""]
NUMBERS = ["nan", "inf", "-inf", "-1", "0", "0.5", "1", "1.5", "1e30", "-1e-30", "1e400", "x", ""]
TEXTS = [
    *("", " ", "x", "\x1b[31mred", "a" * 300, "../..", "/", "~", "a,b", "=", "--", "%s", "{}", "[]", "chrf@nan"),
    *("bleu|smooth_value:nan", "chrf|char_order:9999", "x; rm -rf y", "$(ls)", "a\nb", "ä ö", "\udce4", "-"),
]
PATHS = ["", "missing", ".", "/dev/null", "/dev/full", "/", "/proc/self/mem", "a" * 300, "missing/file", "~nobody/x"]
STDIN = [
    *(
        b"",
        b"\n",
        b"the old man\n",
        b"\xff\xfe\n",
        b"\x00\n",
        b"a" * 100_000,
        b"\t\t\n",
        b"{}\n",
        b"[" * 5000,
        b'{"a":\n',
    ),
    "ein \u2028 Haus\n".encode(),
]
# Flags left alone: they reach for a network, or start programs on purpose.
UNTOUCHED = {"download", "dry_run", "coordinator", "process", "collect"}
BIG_FILES = 1 << 20  # bytes; larger files are not damaged, as copying them takes too long


@dataclasses.dataclass
class Case:
    """A command line, run in `folder` with `stdin`; broken: redirections of streams, as in `>&-` and `2>/dev/full`."""

    arguments: list[str]
    stdin: bytes
    folder: pathlib.Path
    broken: list[str] = dataclasses.field(default_factory=list)

    def __str__(self) -> str:
        return f"(cd {self.folder}; nmt-jax {shlex.join(self.arguments)} {' '.join(self.broken)})"


@functools.cache
def flags_of(verb: str) -> flags.FlagValues:
    """The flags that a verb defines."""
    values = flags.FlagValues()
    importlib.import_module(f"nmt_jax.commands.{verb}").define_flags(values)
    return values


def draw(random: random.Random, workplace: pathlib.Path, folder: pathlib.Path) -> Case:
    """A random case, whose damaged files are copies in `folder`."""
    verb = random.choice(list(COMMANDS))
    folder.mkdir(parents=True)
    words = random.choice(COMMANDS[verb]).split()
    case = Case([verb, *words], random.choice(STDIN) if random.random() < 0.2 else b"the old man sleeps\n", folder)
    for mistake in random.choices(MISTAKES, weights=WEIGHTS, k=random.choice([1, 1, 1, 2, 3])):
        mistake(random, case, workplace)
    if verb == "train":  # writes into the workdir
        for name in {name for word in case.arguments for name in re.findall(r"\{(?!configs)([\w.]+)\}$", word)}:
            copy_to_case(case, workplace, name)
    case.arguments = [word.replace("{configs}", f"{ROOT}/configs") for word in case.arguments]
    case.arguments = [re.sub(r"\{([\w.]+)\}", rf"{workplace}/\1", word) for word in case.arguments]
    return case


def copy_to_case(case: Case, workplace: pathlib.Path, name: str) -> pathlib.Path:
    """Let a case use a copy of a file or folder of the workplace; returns the copy."""
    copy, original = case.folder / name, workplace / name
    if not copy.exists():
        shutil.copytree(original, copy) if original.is_dir() else shutil.copyfile(original, copy)
    case.arguments = [word.replace("{" + name + "}", str(copy)) for word in case.arguments]
    return copy


def insert(case: Case, argument: str) -> None:
    """Add a flag before a command that follows `--`."""
    end = case.arguments.index("--") if "--" in case.arguments else len(case.arguments)
    case.arguments.insert(end, argument)


def set_flag(random: random.Random, case: Case, workplace: pathlib.Path) -> None:
    """Give a flag a random value of its type, or of another."""
    values = flags_of(case.arguments[0])
    names = [name for name in values if name not in UNTOUCHED]
    flag = values[random.choice(names)]
    kind = flag.flag_type()
    choices = getattr(flag.parser, "enum_values", None)
    if kind == "bool":
        insert(case, random.choice([f"--{flag.name}", f"--no{flag.name}", f"--{flag.name}=maybe"]))
        return
    pool = {"int": INTEGERS, "float": NUMBERS, "string enum": [*(choices or []), "x", ""]}.get(kind, TEXTS + PATHS)
    insert(case, f"--{flag.name}={random.choice(pool)}")


def set_key(random: random.Random, case: Case, workplace: pathlib.Path) -> None:
    """Change a key of the config, for verbs that take one."""
    if "override" not in flags_of(case.arguments[0]):
        return set_flag(random, case, workplace)
    name, key = random.choice(list(_keys(case).items()))
    insert(case, f"--config.{name}={random.choice(_values(key))}")


def _keys(case: Case) -> dict[str, Key]:
    """The keys of the config that a command names, or of a translator."""
    page = next((word.partition("{configs}")[2] for word in case.arguments if "{configs}" in word), "/quickstart.py")
    return _keys_of(f"{ROOT}/configs{page}")


@functools.cache
def _keys_of(spec: str) -> dict[str, Key]:
    config = configs.load(spec)
    return schema(config.model_name, config.task)


def _values(key: Key) -> list[str]:
    """Values at the bounds of a key, beyond them, and of other types; no large ones, which only take long."""
    if key.type is bool:
        return ["true", "false", "1", "x"]
    if key.type is str:
        return [*key.choices, *TEXTS, *PATHS]
    bounds = [bound for bound in (key.low, key.above, key.below) if bound is not None]
    beyond = [bound + step for bound in bounds for step in (-1, 0)] + [key.high * 2 + 1 for _ in [0] if key.high]
    words = ["-1", "x", "", "[]", "true", str(2**63), "1" + "0" * 30, *map(str, beyond)]
    return words + (["1.5", "2", "7"] if key.type is int else ["nan", "inf", "-inf", "1e400", "-1e-30", "0.5"])


def drop(random: random.Random, case: Case, workplace: pathlib.Path) -> None:
    """Leave out an argument."""
    if len(case.arguments) > 1 and "--dry_run" not in case.arguments:
        del case.arguments[random.randrange(1, len(case.arguments))]


def misspell(random: random.Random, case: Case, workplace: pathlib.Path) -> None:
    """Lose a character of an argument, if there is one."""
    if len(case.arguments) == 1:
        return
    place = random.randrange(1, len(case.arguments))
    word = case.arguments[place]
    if word not in ("--dry_run", "--", "--collect") and "{" not in word and word:
        at = random.randrange(len(word))
        case.arguments[place] = word[:at] + word[at + 1 :]


def replace_path(random: random.Random, case: Case, workplace: pathlib.Path) -> None:
    """Name another file or folder than the right one."""
    inside = [place for place, word in enumerate(case.arguments) if re.search(r"\{[\w.]+\}$", word)]
    if inside:
        place = random.choice(inside)
        names = ["{source}", "{translator}", "{vectors}", "{encoder}", "{judged.tsv}", "{candidates}"]
        case.arguments[place] = re.sub(r"\{[\w.]+\}$", lambda _: random.choice(PATHS + names), case.arguments[place])


def damage(random: random.Random, case: Case, workplace: pathlib.Path) -> None:
    """Damage a file that the command reads."""
    inside = [word for word in case.arguments if re.search(r"\{(?!configs)[\w.]+\}$", word)]
    if not inside:
        return
    name = re.search(r"\{([\w.]+)\}$", random.choice(inside))[1]
    victim = copy_to_case(case, workplace, name)
    if victim.is_dir():
        files = sorted(path for path in victim.rglob("*") if path.is_file() and path.stat().st_size < BIG_FILES)
        victim = random.choice(files)
    if victim.is_file():
        spoil(random, victim)


def break_stream(random: random.Random, case: Case, workplace: pathlib.Path) -> None:
    """Close a standard stream, or let it lead to a full disk."""
    case.broken.append(random.choice(["<&-", ">&-", "2>&-", ">/dev/full", "2>/dev/full"]))


def spoil(random: random.Random, path: pathlib.Path) -> None:
    """Change the bytes of a file, or remove it."""
    data = bytearray(path.read_bytes())
    at, length = random.randrange(len(data) + 1), random.choice([1, 4, 100])
    kind = random.choice(["flip", "flip", "cut", "insert", "delete", "twice", "empty", "remove", "garbage", "folder"])
    if kind == "flip" and data:
        data[at % len(data)] ^= 1 << random.randrange(8)
    elif kind == "cut":
        del data[at:]
    elif kind == "insert":
        data[at:at] = random.choice([b"\n", b"\x00", b"nan", b"\xff", b'"', b"{", b"[" * 2000, b"\t", b"1e999"])
    elif kind == "delete":
        del data[at : at + length]
    elif kind == "twice":
        data += bytes(data)
    elif kind == "empty":
        data.clear()
    elif kind == "garbage":
        data[:] = random.randbytes(200)
    path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind != "remove":
        path.write_bytes(data)


Mistake = Callable[[random.Random, Case, pathlib.Path], None]
MISTAKES: list[Mistake] = [set_flag, set_key, damage, replace_path, drop, misspell, break_stream]
WEIGHTS = [6, 3, 4, 2, 1, 1, 1]
