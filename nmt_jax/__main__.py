"""The command line: `nmt-jax VERB …` parses the flags of a verb, calls it, and turns errors into exit codes."""

import contextlib
import importlib
import pathlib
import sys
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from nmt_jax import boundary
from nmt_jax.errors import UserError, did_you_mean, one_line
from nmt_jax.storage.paths import is_remote

if TYPE_CHECKING:
    from absl import flags

HELP = {"-h", "--help", "-help"}
VERBOSE = "Also show logs of libraries on stderr, and tracebacks of errors."


class Verb(NamedTuple):
    """One line of the overview. The module `nmt_jax.commands.<verb>` is imported only when the verb is called."""

    summary: str
    usage: str
    example: str


VERBS = {
    "train": Verb(
        "train a model, or continue training in an existing workdir",
        "--config=FILE[:ARGUMENT] --workdir=FOLDER [--config.KEY=VALUE …]",
        "--config=configs/quickstart.py --workdir=runs/quickstart",
    ),
    "sweep": Verb(
        "train every point of a hyperparameter sweep, with several seeds, and tabulate the results",
        "--config=FILE[:ARGUMENT] --workdir=FOLDER [--seeds=N] [--parallel=K] [--collect] [FLAG …]",
        "--config=configs/rnn_luong.py --config.data.directory=DIRECTORY --workdir=runs/luong --seeds=3",
    ),
    "prepare": Verb(
        "prepare the corpus of a config as training would, on all cores of this machine or on a cluster",
        "--config=FILE[:ARGUMENT] [--runner=direct|spark|flink|dataflow] [--runner_option=NAME=VALUE …]",
        "--config=configs/multi30k.py --config.data.directory=DIRECTORY --runner_option=direct_num_workers=8",
    ),
    "plan": Verb(
        "compile a config for TPUs or GPUs that are not there: whether it fits, and what bounds its speed",
        "--config=FILE[:ARGUMENT] --topology=NAME:SIZE [--topology=…] [--config.KEY=VALUE …] [FLAG …]",
        "--config=configs/transformer.py --topology=v5e:4x4 --topology=h100:8",
    ),
    "launch": Verb(
        "run train, translate, score and other verbs in several processes: local, SLURM, Kubernetes, a TPU pod",
        "[--on=local|slurm|kubernetes|tpu] [--processes=N] [FLAG …] -- nmt-jax VERB …",
        "--processes=2 -- nmt-jax train --config=configs/quickstart.py --workdir=runs/quickstart",
    ),
    "translate": Verb(
        "translate lines of text with a trained model",
        "--workdir=FOLDER [FLAG …] < SOURCE > TRANSLATION",
        "--workdir=runs/quickstart < source.txt > hypothesis.txt",
    ),
    "align": Verb(
        "align the words of sentence pairs: IBM model 1, fast_align's model, HMM; lexicons; alignment error rate",
        "--source=FILE --target=FILE [FLAG …] > LINKS",
        "--source=train.en --target=train.de --lexicon=lexicon.tsv > train.links",
    ),
    "align_sentences": Verb(
        "align the sentences of a document and its translation by their lengths (Gale and Church, 1993)",
        "--source=FILE --target=FILE --output=PREFIX [--beads=FILE] [FLAG …]",
        "--source=book.en --target=book.de --output=train",
    ),
    "augment": Verb(
        "augment text with changed copies: dropout, swaps, masks, WordNet synonyms, near words by vectors",
        "--kind=KIND --source=FILE [--target=FILE] --output=PREFIX [FLAG …]",
        "--kind=synonyms --source=train.en --target=train.de --output=augmented",
    ),
    "generate": Verb(
        "sample text from a trained language model",
        "--workdir=FOLDER [--prompts=FILE|-] [FLAG …] > TEXT",
        "--workdir=runs/rnn_lm --num_samples=5 --temperature=0.8",
    ),
    "ngram": Verb(
        "estimate an n-gram language model: modified Kneser-Ney; ARPA files and fast binary files",
        "--output=FILE.arpa|FILE.ngram [--order=N] [FLAG …] < TEXT",
        "--input=train.txt --order=5 --output=train.ngram",
    ),
    "perplexity": Verb(
        "measure the perplexity of a trained language model or an n-gram model on a text",
        "--workdir=FOLDER|--ngram=FILE [FLAG …] < TEXT",
        "--workdir=runs/rnn_lm --input=test.txt",
    ),
    "mbr": Verb(
        "choose among translation candidates by minimum Bayes risk",
        "[--utility=METRIC,…] [FLAG …] < CANDIDATES > TRANSLATION",
        "--utility=chrf < candidates.jsonl > hypothesis.txt",
    ),
    "rerank": Verb(
        "rerank translation candidates with a reverse translator, a language model and tuned weights",
        "--weights=FILE|--tune=REFERENCES [--channel=FOLDER --source=FILE] [FLAG …] < CANDIDATES",
        "--channel=runs/reverse --source=test.en --weights=weights.json < candidates.jsonl > hypothesis.txt",
    ),
    "classify": Verb(
        "label or score lines of text, or pairs of texts, with a trained classifier",
        "--workdir=FOLDER [FLAG …] < TEXTS > LABELS",
        "--workdir=runs/ag_news < texts.txt > labels.txt",
    ),
    "summarize": Verb(
        "summarize texts by extracting their most important sentences",
        "[--method=lead|sumbasic|lexrank|textrank] [FLAG …] < TEXTS > SUMMARIES",
        "--method=lexrank --sentences=3 < texts.txt > summaries.txt",
    ),
    "neighbours": Verb(
        "find the nearest words of words, and of analogies such as king - man + woman",
        "--workdir=FOLDER|--vectors=FILE [FLAG …] < WORDS > NEIGHBOURS",
        "--workdir=runs/word2vec --count=5 < words.txt",
    ),
    "retrieve": Verb(
        "find the nearest of many sentences or images for each line, with a trained dual encoder",
        "--workdir=FOLDER --candidates=FILE [FLAG …] < QUERIES > FOUND",
        "--workdir=runs/retrieval --candidates=sentences.de --count=5 < sentences.en",
    ),
    "features": Verb(
        "write features of images by a pretrained ViT or CLIP, as sources of a model",
        "--encoder=FOLDER --output=FOLDER [FLAG …] < PATHS > PATHS",
        "--encoder=vit-base-patch16-224-in21k --output=features < images.txt > train.features",
    ),
    "tag": Verb(
        "tag the words of sentences, such as names of people and places, with a trained tagger",
        "--workdir=FOLDER [FLAG …] < WORDS > CONLL",
        "--workdir=runs/wikigold < words.txt > words.conll",
    ),
    "answer": Verb(
        "answer questions by extracting spans of the texts that come with them",
        "--workdir=FOLDER [FLAG …] < QUESTIONS > ANSWERS",
        "--workdir=runs/squad < questions.jsonl > answers.txt",
    ),
    "score": Verb(
        "compare translations with references: BLEU, chrF, TER, METEOR, BERTScore and others",
        "HYPOTHESIS [HYPOTHESIS …] --reference=FILE [--reference=FILE …] [FLAG …]",
        "hypothesis.txt --reference=reference.txt --metrics=bleu,chrf",
    ),
    "perturb": Verb(
        "perturb sentences and score the copies: synthetic data for pretraining a learned metric",
        "[--mlm=WORKDIR] [--there=WORKDIR --back=WORKDIR] [FLAG …] < SENTENCES > TABLE",
        "--mlm=runs/bert_tiny --metrics=bleu,rougeL < sentences.txt > synthetic.tsv",
    ),
    "judge": Verb(
        "evaluate metrics: how well their scores agree with human judgements of texts or systems",
        "FILE|FOLDER [FILE …] --human=COLUMN [--system=COLUMN] [--item=COLUMN] [--metrics=NAME,…] [FLAG …]",
        "wmt17.cs-en.tsv --human=human_z --metrics=chrf,ter --confidence",
    ),
    "annotations": Verb(
        "rank systems by annotations of people: MQM, ESA, scores of raters; agreement of the raters",
        "FILE [--kind=mqm|esa|scores] [--z_scores] [--judgements=FILE.tsv] [FLAG …]",
        "mqm_newstest2021_ende.tsv --judgements=mqm.tsv --reference=ref-A",
    ),
    "choose_pairs": Verb(
        "choose pairs of texts for people to compare, on which two metrics disagree; power of the test",
        "FILE --metrics=A,B [--difference=X] [--pairs=N] [FLAG …] > PAIRS.tsv, or --choices=PAIRS.tsv",
        "wmt21.de-en.seg.tsv --item=seg_id --metrics=chrf,ter > pairs.tsv",
    ),
    "pyramid": Verb(
        "score summaries by pyramids of content units (Nenkova and Passonneau, 2004)",
        "FILE [FILE …] [--average] [--format=text|tsv|json]",
        "d0601.json d0602.json --average",
    ),
    "calibrate": Verb(
        "compute the baseline that rescales BERTScore, or token frequencies for idf weights, from a corpus",
        "CORPUS [CORPUS …] --encoder=PLACE --baseline=FILE|--idf=FILE [FLAG …]",
        "corpus.txt --encoder=models/bert --baseline=bert.csv",
    ),
    "encoders": Verb(
        "list published encoders that load: family, layers, width, licence, the layer for BERTScore",
        "[--family=NAME] [--format=text|tsv|json]",
        "--family=deberta-v2",
    ),
    "export": Verb(
        "convert a trained model for other programs: CTranslate2, Hugging Face, word2vec, safetensors",
        "--workdir=FOLDER --to=ctranslate2|huggingface|word2vec|safetensors --output=FOLDER [FLAG …]",
        "--workdir=runs/quickstart --to=ctranslate2 --quantization=int8 --output=exported",
    ),
    "convert": Verb(
        "convert a checkpoint of PyTorch to safetensors, without running its code",
        "--input=FILE|FOLDER --output=FOLDER [--base=FOLDER]",
        "--input=models/wmt22-comet-da --base=models/xlm-roberta-large --output=models/comet",
    ),
    "corpus": Verb(
        "write the parallel corpus of an experiment to plain text files",
        "--workdir=FOLDER|--config=FILE --output=PREFIX [--split=test] [--lines=N]",
        "--workdir=runs/quickstart --split=test --output=test",
    ),
    "plot": Verb(
        "draw training curves, attention, sweeps, BLEU by length, layer weights, alignments of embedding metrics",
        '[--workdir=FOLDER] [--kind=…] [FLAG …] [FILE … | RUN … | "TEXT" "REFERENCE"]',
        '--workdir=runs/quickstart --kind=attention --sentence="the old man sleeps ."',
    ),
    "serve": Verb(
        "serve trained translators and metrics: a page to look at, and JSON over HTTP",
        "--workdir=FOLDER [--workdir=FOLDER …] [--port=N] [FLAG …]",
        "--workdir=runs/quickstart --port=8000",
    ),
    "report": Verb(
        "write an HTML report of a run or a sweep: scores, curves, translations, attention, config, failures",
        "--workdir=FOLDER [--output=FILE.html] [--source=FILE --reference=FILE] [FLAG …]",
        "--workdir=runs/quickstart --config=configs/quickstart.py",
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run `nmt-jax` with the arguments `argv`, by default those of the process, and return the exit code.

    0: success. 2: invalid input, reported in one line. 128 + signal: interrupted. 141: nothing reads the output.
    """
    if argv is None:
        boundary.start_process()
        return boundary.run(lambda: _dispatch(sys.argv[1:]))
    default_format, warnings.formatwarning = warnings.formatwarning, boundary.format_warning
    try:
        return boundary.run(lambda: _dispatch(list(argv)))
    finally:
        warnings.formatwarning = default_format


def _dispatch(arguments: list[str]) -> int:
    """Print the help or the version, or call the verb that is the first argument; return the exit code."""
    if not arguments or arguments[0] in {*HELP, "help"}:
        print(_overview())
        return 0
    if arguments[0] == "--version":
        print(f"nmt-jax {importlib.import_module('nmt_jax').__version__}")
        return 0
    name, *rest = arguments
    if name not in VERBS:
        raise UserError(f"unknown verb {name!r}{did_you_mean(name, VERBS)}; the verbs are {', '.join(VERBS)}")
    module = importlib.import_module(f"nmt_jax.commands.{name}")
    flag_values = verb_flags(name)
    if HELP.intersection(rest[: rest.index("--")] if "--" in rest else rest):
        print(_verb_help(name, flag_values))
        if hasattr(module, "more_help"):
            flag_values.mark_as_parsed()
            with contextlib.suppress(UserError):  # help is also for those who do not know the flags
                parse_flags(name, flag_values, [word for word in rest if word not in HELP])
            heading, entries = module.more_help(flag_values)
            print("\n".join(["", heading, "", *_columns(entries)]))
        return 0
    positional = parse_flags(name, flag_values, rest)
    boundary.HANDLER.verbose = flag_values.verbose
    boundary.HANDLER.folder = _workdir(flag_values)
    return module.main(flag_values, positional) or 0


def verb_flags(name: str) -> "flags.FlagValues":
    """Return the flags of a verb, with their defaults."""
    from absl import flags  # imported here and below, since Ctrl-C before `main` ends in a traceback

    flag_values = flags.FlagValues()
    flag_values.set_gnu_getopt(True)  # allow flags after file names
    importlib.import_module(f"nmt_jax.commands.{name}").define_flags(flag_values)
    flags.DEFINE_bool("verbose", False, VERBOSE, flag_values)
    return flag_values


def parse_flags(verb: str, flag_values: "flags.FlagValues", arguments: list[str]) -> list[str]:
    """Parse `arguments` into the flags of a verb and return the positional arguments. Raises UserError."""
    from absl import flags

    if "override" in flag_values:
        arguments = _gather_overrides(arguments)
    try:
        return flag_values([f"nmt-jax {verb}", *arguments])[1:]
    except flags.UnrecognizedFlagError as error:
        near = did_you_mean(error.flagname, list(flag_values), "--")
        raise UserError(f"nmt-jax {verb}: unknown flag --{error.flagname}{near}; see `nmt-jax {verb} --help`") from None
    except flags.Error as error:
        raise UserError(f"nmt-jax {verb}: {one_line(str(error))}") from None


def _workdir(flag_values: "flags.FlagValues") -> pathlib.Path | None:
    """Return the first workdir that the flags name, to write the log into; None if it is in an object store."""
    named = flag_values["workdir"].value if "workdir" in flag_values else None
    first = named[0] if isinstance(named, list) and named else named
    return pathlib.Path(first).expanduser() if first and not is_remote(first) else None


def _gather_overrides(arguments: list[str]) -> list[str]:
    """Replace `--config.KEY=VALUE` and `--config.KEY VALUE` by `--override=KEY=VALUE`, since absl needs fixed names."""
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


def _overview() -> str:
    """Return the help of the program: every verb with an example."""
    lines = ["nmt-jax – train, run and evaluate models for machine translation and other text tasks", ""]
    lines += ["usage: nmt-jax VERB [FLAG …]", ""]
    for name, verb in VERBS.items():
        lines += [f"  {name:<12}{verb.summary}", f"  {'':<12}$ nmt-jax {name} {verb.example}", ""]
    lines.append("`nmt-jax VERB --help` describes the flags of a verb, `nmt-jax --version` prints the version.")
    return "\n".join(lines)


def _verb_help(name: str, flag_values: "flags.FlagValues") -> str:
    """Return the help of a verb: its flags with their choices and defaults."""
    from nmt_jax.commands.flag_text import flag_texts

    verb = VERBS[name]
    lines = [f"nmt-jax {name} – {verb.summary}", "", f"usage: nmt-jax {name} {verb.usage}"]
    lines += [f"   $ nmt-jax {name} {verb.example}", ""]
    entries = []
    for flag in flag_texts(flag_values):
        choices, default = f"({' | '.join(flag.choices)})" if flag.choices else "", flag.default and f"[{flag.default}]"
        entries.append((f"--{flag.name}", " ".join(filter(None, [flag.help, choices, default]))))
    return "\n".join([*lines, *_columns(entries)])


def _columns(entries: Sequence[tuple[str, str]]) -> list[str]:
    """Return the lines that describe flags: their names, and beside them their texts."""
    import textwrap

    indent = max(len(name) for name, _ in entries) + 4
    lines = []
    for name, text in entries:
        first, other = f"  {name}".ljust(indent), " " * indent
        lines += textwrap.wrap(text, 110, initial_indent=first, subsequent_indent=other, break_on_hyphens=False)
    return lines


if __name__ == "__main__":
    sys.exit(main())
