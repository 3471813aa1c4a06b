"""Attention of Luong et al. (2015) on Multi30k: scores, windows, input feeding, layers and directions.

    python -m benchmarks.luong FOLDER [--attention=general,local-p] [--shapes=base,no_feeding] [--seeds=0,1]

Text is Multi30k, English to German, lower-cased, with punctuation apart. All models are those of `configs/rnn_luong.py`
at half its width. `base` has one bidirectional layer and input feeding. By default, every kind of attention is trained
with and without input feeding, and `general`, `local-m` and `local-p` with two layers and unidirectional encoders too.

Prints one JSON line per run: BLEU on test_2016_flickr without tokenization, with the p-value of paired approximate
randomization against `general` of the same shape and seed; the perplexity of the development text; and the alignment
error rate of the attention against the links of `nmt-jax align`, which are no gold links. Everything is kept in FOLDER;
after an interruption, the same command goes on. Changes of the config: `--change=train.steps=20`.
"""

import itertools
import pathlib
from typing import Any

import numpy as np

from benchmarks import measure, runs
from benchmarks.back_translation import TEST
from benchmarks.language_models import trained
from benchmarks.lexicon_bias import split_words
from metrics_jax import BLEU
from metrics_jax.prediction.alignments import alignment_scores, alignment_statistics
from metrics_jax.significance import paired_randomisation
from nmt_jax.alignment.links import Link, parse_links

PAIRS = 29_000
CONFIG = {
    "data.num_buckets": 3,
    "vocab.size": 4000,
    "model.d_embedding": 128,
    "model.d_hidden": 128,
    "model.d_attention": 128,
    "model.dtype": "float32",
    "train.steps": 2000,
    "train.eval_every": 2000,
    "train.checkpoint_every": 500,
    "eval.max_segments": 300,
}
SCORES = ("general", "dot", "scaled_dot", "reduced_rank", "additive", "concat", "location")
WINDOWS = ("local-m", "local-p")
ATTENTION: dict[str, dict[str, Any]] = {score: {"model.score": score} for score in SCORES} | {
    kind: {"model.attention": kind} for kind in WINDOWS
}
TWO_LAYERS: dict[str, Any] = {"model.num_encoder_layers": 2, "model.num_decoder_layers": 2}
UNIDIRECTIONAL: dict[str, Any] = {"model.bidirectional": False}
SHAPES: dict[str, dict[str, Any]] = {
    "base": {},
    "no_feeding": {"model.input_feeding": False},
    "two_layers": TWO_LAYERS,
    "unidirectional": UNIDIRECTIONAL,
    "two_layers_unidirectional": TWO_LAYERS | UNIDIRECTIONAL,
}
WITH_ALL_SHAPES = ("general", *WINDOWS)


def prepare(data: pathlib.Path) -> None:
    """Write the texts, and the links of the test text by an aligner that reads the training text as well."""
    split_words(data, PAIRS)
    for language in ("en", "de"):
        lines = runs.read(data / f"train.{language}") + runs.read(data / f"{TEST}.{language}")
        (data / f"all.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    sides = [f"--source={data / 'all.en'}", f"--target={data / 'all.de'}"]
    runs.nmt_jax("align", *sides, f"--output={data / 'links'}", "--overwrite")


def links(path: pathlib.Path, pairs: list[tuple[str, str]]) -> list[set[Link]]:
    """Return the links of the last pairs of a file."""
    lines = runs.read(path)[-len(pairs) :]
    sizes = [(len(source.split()), len(target.split())) for source, target in pairs]
    return [set(parse_links(line, size, str(path)).possible) for line, size in zip(lines, sizes, strict=True)]


def alignment_error_rate(workdir: pathlib.Path, data: pathlib.Path) -> float:
    """Return the error rate, in percent, of the links to the word with the largest attention."""
    sides, output = [data / f"{TEST}.{language}" for language in ("en", "de")], workdir / "links"
    if not output.exists():
        files = [f"--source={sides[0]}", f"--target={sides[1]}"]
        runs.nmt_jax("align", f"--workdir={workdir}", *files, f"--output={output}")
    pairs = [*zip(*map(runs.read, sides), strict=True)]
    expected = links(data / "links", pairs)
    return 100 * alignment_scores(alignment_statistics(links(output, pairs), expected, expected)).error_rate


def main() -> None:
    parser = runs.parser()
    parser.add_argument("--attention", default=",".join(ATTENTION), help="Name general, the baseline, first.")
    parser.add_argument("--shapes", default=",".join(SHAPES), help=", ".join(SHAPES))
    options = parser.parse_args()

    folder, bleu = options.folder, BLEU("none")
    data = folder / "data"
    if not (data / "links").exists():
        prepare(data)
    references = runs.read(data / f"{TEST}.de")
    found: dict[tuple[str, str, int], np.ndarray] = {}
    for seed, shape, attention in itertools.product(
        options.seeds, options.shapes.split(","), options.attention.split(",")
    ):
        if shape not in ("base", "no_feeding") and attention not in WITH_ALL_SHAPES:
            continue
        workdir = folder / f"{attention}-{shape}-{seed}"
        keys = {"data.directory": data, "seed": seed, **CONFIG, **ATTENTION[attention], **SHAPES[shape]}
        perplexities = trained(workdir, "rnn_luong.py", keys | dict(options.change))["dev_perplexity"]
        statistics = bleu.statistics(runs.translated(workdir, data / f"{TEST}.en"), references)
        found[attention, shape, seed] = statistics
        figures = {"bleu": float(bleu.score(statistics.sum(axis=0))), "dev_perplexity": perplexities[-1]}
        figures["aer"] = alignment_error_rate(workdir, data)
        if attention != "general" and (baseline := found.get(("general", shape, seed))) is not None:
            pair = {"general": baseline, attention: statistics}
            figures["p"] = paired_randomisation(bleu, pair, "general", trials=1000)[1].p_value
        measure.report(benchmark="luong", attention=attention, shape=shape, seed=seed, **figures)


if __name__ == "__main__":
    main()
