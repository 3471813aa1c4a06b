"""The page docs/reference/flags.md: all flags of all verbs."""

from collections.abc import Iterator

from nmt_jax.__main__ import VERBOSE, VERBS, verb_flags
from nmt_jax.commands.flag_text import flag_texts

INTRODUCTION = f"""# Flags

All flags of all verbs, as `nmt-jax VERB --help` describes them. [Command line](command-line.md) explains the
conventions. This page is generated from `nmt_jax/commands/`:

    python -m nmt_jax.reference docs/reference

- Every verb has `--verbose`: {VERBOSE[0].lower()}{VERBOSE[1:]}
- A flag that is true or false is set by `--NAME`, and `--noNAME` sets it to false.
- A repeatable flag is given once for each value.
- `--config.KEY=VALUE` is the same as `--override=KEY=VALUE`; [config keys](config-keys.md) lists the keys.
- Integers are at most 2,147,483,647 where no other bound is given. A flag without a default is not set.
"""


def markdown() -> str:
    """Return the page."""
    return "\n".join([INTRODUCTION, *(line for verb in VERBS for line in _section(verb))]) + "\n"


def _section(name: str) -> Iterator[str]:
    """Yield the lines about a verb."""
    verb = VERBS[name]
    yield f"## {name}\n\n{verb.summary[0].upper()}{verb.summary[1:]}.\n"
    yield f"```text\nnmt-jax {name} {verb.usage}\n```\n"
    yield f"Example:\n\n```sh\nnmt-jax {name} {verb.example}\n```\n"
    yield "| flag | default | values | meaning |"
    yield "|---|---|---|---|"
    for flag in flag_texts(verb_flags(name)):
        if flag.name != "verbose":
            default = f"`{flag.default}`" if flag.default else ""
            cells = (f"`--{flag.name}`", default, flag.values, flag.help.replace("<", "&lt;"))
            yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
    yield ""
