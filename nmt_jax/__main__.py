"""`nmt-jax VERB …`: picks the verb, reads its flags, and turns every mistake into one line and an exit code."""

import difflib
import importlib
import os
import re
import sys
import textwrap
import warnings
from collections.abc import Sequence
from typing import NamedTuple

from absl import flags

from nmt_jax.errors import UserError
from nmt_jax.interrupts import Interrupted

USAGE_ERROR = 2
INTERRUPTED = 130  # 128 + SIGINT, as shells count
BROKEN_PIPE = 141  # 128 + SIGPIPE


class Verb(NamedTuple):
    """A line of the help; the module `nmt_jax.<verb>` is imported only when the verb is called."""

    summary: str
    usage: str
    example: str


VERBS = {
    "train": Verb(
        "train a model, or go on where training stopped",
        "--config=FILE[:ARGUMENT] --workdir=FOLDER [--config.KEY=VALUE …]",
        "--config=configs/quickstart.py --workdir=runs/quickstart",
    ),
    "sweep": Verb(
        "train every point of an experiment's sweep, with several seeds, and compare them in a table",
        "--config=FILE[:ARGUMENT] --workdir=FOLDER [--seeds=N] [--parallel=K] [--collect] [FLAG …]",
        "--config=configs/rnn_luong.py --workdir=runs/luong --seeds=3 --only=model.attention=global",
    ),
    "launch": Verb(
        "train in several processes: of this machine, or through SLURM, Kubernetes, a TPU pod",
        "[--on=local|slurm|kubernetes|tpu] [--processes=N] [FLAG …] -- nmt-jax train|sweep …",
        "--processes=2 -- nmt-jax train --config=configs/quickstart.py --workdir=runs/quickstart",
    ),
    "translate": Verb(
        "translate lines of text with a trained model",
        "--workdir=FOLDER [FLAG …] < SOURCE > TRANSLATION",
        "--workdir=runs/quickstart < source.txt > hypothesis.txt",
    ),
    "generate": Verb(
        "draw text from a trained language model",
        "--workdir=FOLDER [--prompts=FILE|-] [FLAG …] > TEXT",
        "--workdir=runs/rnn_lm --num_samples=5 --temperature=0.8",
    ),
    "perplexity": Verb(
        "measure how surprised a trained language model is by a text",
        "--workdir=FOLDER [FLAG …] < TEXT",
        "--workdir=runs/rnn_lm --input=test.txt",
    ),
    "mbr": Verb(
        "choose of many candidates for each line the one that metrics expect to be best",
        "[--utility=METRIC,…] [FLAG …] < CANDIDATES > TRANSLATION",
        "--utility=chrf < candidates.jsonl > hypothesis.txt",
    ),
    "classify": Verb(
        "label or score lines of text, or pairs of texts, with a trained classifier",
        "--workdir=FOLDER [FLAG …] < TEXTS > LABELS",
        "--workdir=runs/ag_news < texts.txt > labels.txt",
    ),
    "summarize": Verb(
        "choose the sentences of a text that stand for the whole",
        "[--method=lead|sumbasic|lexrank|textrank] [FLAG …] < TEXTS > SUMMARIES",
        "--method=lexrank --sentences=3 < texts.txt > summaries.txt",
    ),
    "neighbours": Verb(
        "name the words nearest to words, and to analogies such as king - man + woman",
        "--workdir=FOLDER|--vectors=FILE [FLAG …] < WORDS > NEIGHBOURS",
        "--workdir=runs/word2vec --count=5 < words.txt",
    ),
    "tag": Verb(
        "tag the words of lines with a trained tagger: names of people, places …",
        "--workdir=FOLDER [FLAG …] < WORDS > CONLL",
        "--workdir=runs/wikigold < words.txt > words.conll",
    ),
    "answer": Verb(
        "answer questions from the texts that they come with",
        "--workdir=FOLDER [FLAG …] < QUESTIONS > ANSWERS",
        "--workdir=runs/squad < questions.jsonl > answers.txt",
    ),
    "score": Verb(
        "compare translations with references: BLEU, chrF, TER, METEOR, BERTScore and the others",
        "HYPOTHESIS [HYPOTHESIS …] --reference=FILE [--reference=FILE …] [FLAG …]",
        "hypothesis.txt --reference=reference.txt --metrics=bleu,chrf",
    ),
    "perturb": Verb(
        "make sentences worse and say how much by other metrics: what a learned metric is pretrained on",
        "[--mlm=WORKDIR] [--there=WORKDIR --back=WORKDIR] [FLAG …] < SENTENCES > TABLE",
        "--mlm=runs/bert_tiny --metrics=bleu,rougeL < sentences.txt > synthetic.tsv",
    ),
    "judge": Verb(
        "judge metrics by people: how their scores of judged texts, or of systems, agree with the judgements",
        "FILE|FOLDER [FILE …] --human=COLUMN [--system=COLUMN] [--item=COLUMN] [--metrics=NAME,…] [FLAG …]",
        "wmt17.cs-en.tsv --human=human_z --metrics=chrf,ter --confidence",
    ),
    "calibrate": Verb(
        "compute from a corpus the baseline that rescales BERTScore, or the frequencies that weigh tokens",
        "CORPUS [CORPUS …] --encoder=PLACE --baseline=FILE|--idf=FILE [FLAG …]",
        "corpus.txt --encoder=models/bert --baseline=bert.csv",
    ),
    "export": Verb(
        "write a trained model for other programs: CTranslate2 (Transformers), safetensors (any model)",
        "--workdir=FOLDER --to=ctranslate2|safetensors --output=FOLDER [FLAG …]",
        "--workdir=runs/quickstart --to=ctranslate2 --quantization=int8 --output=exported",
    ),
    "corpus": Verb(
        "write the text of an experiment's corpus as plain files",
        "--workdir=FOLDER|--config=FILE --output=PREFIX [--split=test] [--lines=N]",
        "--workdir=runs/quickstart --split=test --output=test",
    ),
    "plot": Verb(
        "draw curves, attention, sweeps, BLEU by length, shares of layers, what an embedding metric compares",
        '[--workdir=FOLDER] [--kind=…] [FLAG …] [FILE … | RUN … | "TEXT" "REFERENCE"]',
        '--workdir=runs/quickstart --kind=attention --sentence="the old man sleeps ."',
    ),
    "report": Verb(
        "write a page of a run or a sweep: scores, curves, translations, attention, config, failures",
        "--workdir=FOLDER [--output=FILE.html] [--source=FILE --reference=FILE] [FLAG …]",
        "--workdir=runs/quickstart --config=configs/quickstart.py",
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run `nmt-jax` with `argv` (without the program's name; the process's by default) -> exit code.

    0 success; 2 a mistake of the user, told in one line; 128 + signal interrupted; 141 nobody reads the output.
    """
    usual, warnings.formatwarning = warnings.formatwarning, _format_warning
    try:
        code = _dispatch(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return code
    except UserError as error:
        print(f"nmt-jax: error: {_one_line(str(error))}", file=sys.stderr)
        return USAGE_ERROR
    except Interrupted as interrupted:  # it has said on stderr what was saved
        return 128 + interrupted.signal
    except KeyboardInterrupt:
        print("nmt-jax: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # `nmt-jax … | head`: the interpreter's own last flush must not complain either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    finally:
        warnings.formatwarning = usual


def _dispatch(arguments: list[str]) -> int:
    """Help, the version, or the verb named first."""
    if not arguments or arguments[0] in ("-h", "--help", "-help", "help"):
        print(_overview())
        return 0
    if arguments[0] == "--version":
        print(f"nmt-jax {importlib.import_module('nmt_jax').__version__}")
        return 0
    name, *rest = arguments
    if name not in VERBS:
        raise UserError(f"no verb {name!r}{_did_you_mean(name, VERBS)}; the verbs: {', '.join(VERBS)}")
    module = importlib.import_module(f"nmt_jax.commands.{name}")
    flag_values = flags.FlagValues()
    flag_values.set_gnu_getopt(True)  # flags may stand after file names
    module.define_flags(flag_values)
    if {"-h", "--help", "-help"}.intersection(rest[: rest.index("--")] if "--" in rest else rest):
        print(_verb_help(name, flag_values))
        return 0
    if "override" in flag_values:
        rest = _gather_overrides(rest)
    positional = _parse_flags(name, flag_values, rest)
    return module.main(flag_values, positional) or 0


def _gather_overrides(arguments: list[str]) -> list[str]:
    """`--config.KEY=VALUE` and `--config.KEY VALUE` become `--override=KEY=VALUE`: absl has no open flag names."""
    gathered: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            return [*gathered, argument, *rest]
        dashless = argument.removeprefix("-").removeprefix("-")
        if argument == dashless or not dashless.startswith("config."):
            gathered.append(argument)
            continue
        key, equals, value = dashless.removeprefix("config.").partition("=")
        if not equals:
            value = next(rest, "--")
            if value.startswith("--"):
                raise UserError(f"--config.{key} needs a value: --config.{key}=VALUE")
        gathered.append(f"--override={key}={value}")
    return gathered


def _parse_flags(verb: str, flag_values: flags.FlagValues, arguments: list[str]) -> list[str]:
    """Read `arguments` into `flag_values` -> what is not a flag."""
    try:
        return flag_values([f"nmt-jax {verb}", *arguments])[1:]
    except flags.UnrecognizedFlagError as error:
        near = _did_you_mean(error.flagname, list(flag_values), "--")
        raise UserError(
            f"nmt-jax {verb}: no flag --{error.flagname}{near}; `nmt-jax {verb} --help` lists them"
        ) from None
    except flags.Error as error:
        raise UserError(f"nmt-jax {verb}: {_one_line(str(error))}") from None


def _overview() -> str:
    """Every verb with an example."""
    lines = [
        "nmt-jax – from parallel text to a trained, decoded, scored translator",
        "",
        "usage: nmt-jax VERB [FLAG …]",
        "",
    ]
    for name, verb in VERBS.items():
        lines += [f"  {name:<11}{verb.summary}", f"  {'':<11}$ nmt-jax {name} {verb.example}", ""]
    return "\n".join([*lines, "`nmt-jax VERB --help` lists the flags of a verb."])


def _verb_help(name: str, flag_values: flags.FlagValues) -> str:
    """The flags of a verb with their defaults."""
    verb = VERBS[name]
    lines = [f"nmt-jax {name} – {verb.summary}", "", f"usage: nmt-jax {name} {verb.usage}"]
    lines += [f"   $ nmt-jax {name} {verb.example}", ""]
    names = list(flag_values)
    indent = max(map(len, names)) + 6
    for flag in (flag_values[flag_name] for flag_name in names):
        # absl wraps the text: the choices before it, a remark on flags that may be repeated behind it
        help_text = re.sub(r"^<\S+>: |;\n.*", "", str(flag.help), flags=re.DOTALL)
        default = str(flag.default_as_str).strip("'") if flag.default not in (None, "", []) else ""
        choices = getattr(flag.parser, "enum_values", None)
        text = " ".join(
            filter(None, [help_text, f"({' | '.join(choices)})" if choices else "", default and f"[{default}]"])
        )
        lines += textwrap.wrap(
            text,
            110,
            initial_indent=f"  --{flag.name}".ljust(indent),
            subsequent_indent=" " * indent,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def _did_you_mean(word: str, known: Sequence[str] | dict[str, Verb], prefix: str = "") -> str:
    """`; did you mean …?` naming the nearest of `known`, or the empty string."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {prefix}{near[0]}?" if near else ""


def _format_warning(message: Warning | str, *_: object, **__: object) -> str:
    """A warning as the user reads it: what, not where in the code."""
    return f"nmt-jax: warning: {_one_line(str(message))}\n"


def _one_line(text: str) -> str:
    """`text` without its line breaks: one mistake, one line."""
    return " ".join(text.split())


if __name__ == "__main__":
    sys.exit(main())
