"""What synthetic pairs gain on Multi30k: back-translation in several ways, and copies of pairs with changed words.

    python -m benchmarks.back_translation FOLDER [--pairs=7250] [--monolingual=21750] [--seeds=0,1] [--size=tiny]

Trains a German-English model on the first pairs, translates the German captions of the next ones, and trains
English-German models on both, all for the same steps and with the same vocabulary. Real pairs are repeated until they
are as many as the translated ones. Other systems train on the real pairs and one copy of each in which words changed.
Prints one JSON line per run: BLEU on test_2016_flickr, with the p-value of paired approximate randomization against the
run without synthetic pairs and the same seed. Everything is kept in FOLDER; after an interruption, the same command
goes on where it stopped. Changes of the config: `--change=train.steps=2000`.
"""

import argparse
import gzip
import itertools
import pathlib

from benchmarks import measure, runs

DATA = measure.SHARED / "data" / "multi30k"
TEST = "test_2016_flickr"
GLOVE = "glove.6B.50d.top50k.txt.gz"
TRANSLATED = {  # flags of nmt-jax augment --kind=back_translation
    "beam": ["--search=beam"],
    "greedy": ["--search=greedy"],
    "sampling": ["--search=sampling"],
    "top_k": ["--search=top_k"],
    "noised": ["--search=beam", "--noise"],
    "tagged": ["--search=beam", "--tag=<BT>"],
}
CHANGED = {  # flags of nmt-jax augment, for copies of the pairs
    "synonyms": ["--kind=synonyms", f"--wordnet={measure.SHARED / 'data' / 'wordnet3.0'}", "--rate=0.3"],
    "embedding": ["--kind=embedding", f"--vectors={measure.SHARED / 'data' / 'glove' / GLOVE}", "--rate=0.1"],
    "mask": ["--kind=mask", "--rate=0.1"],
    "dropout": ["--kind=dropout", "--rate=0.1"],
    "swap": ["--kind=swap", "--rate=0.1"],
}


def write_lines(name: str, output: pathlib.Path, first: int = 0, last: int | None = None) -> None:
    """Write lines `first` to `last` - 1 of a file of Multi30k."""
    with gzip.open(DATA / f"{name}.gz", "rt", encoding="utf-8", newline="\n") as file:
        output.write_text("".join(itertools.islice(file, first, last)), encoding="utf-8")


def prepare(data: pathlib.Path, pairs: int, monolingual: int) -> None:
    """Write the texts of the experiment."""
    data.mkdir(parents=True, exist_ok=True)
    for language in ("en", "de"):
        write_lines(f"train.{language}", data / f"train.{language}", 0, pairs)
        for split in ("val", TEST):
            write_lines(f"{split}.{language}", data / f"{split}.{language}")
    write_lines("train.de", data / "mono.de", pairs, pairs + monolingual)


def train(workdir: pathlib.Path, stage: str, options: argparse.Namespace, **keys: object) -> None:
    """Train a model, unless that is done."""
    keys = {"data.directory": options.folder / "data", **keys, **dict(options.change)}
    runs.train(workdir, f"back_translation.py:stage={stage},size={options.size}", keys)


def make_pairs(system: str, folder: pathlib.Path) -> None:
    """Make the synthetic pairs of a system, unless that is done; `train` makes the reverse model."""
    done = folder / f"{system}.done"
    if done.exists():
        return
    data = folder / "data"
    if system in TRANSLATED:
        flags = ["--kind=back_translation", f"--workdir={folder / 'reverse'}", f"--target={data / 'mono.de'}"]
        flags += TRANSLATED[system]
    else:
        flags = [f"--source={data / 'train.en'}", f"--target={data / 'train.de'}", "--overwrite", *CHANGED[system]]
    runs.nmt_jax("augment", *flags, f"--output={folder / system}")
    done.touch()


def main() -> None:
    parser = runs.parser()
    parser.add_argument("--pairs", type=int, default=7250)
    parser.add_argument("--monolingual", type=int, default=21_750)
    parser.add_argument(
        "--systems", default="none,beam,sampling,tagged", help=", ".join(["none", *TRANSLATED, *CHANGED])
    )
    parser.add_argument("--size", default="tiny")
    options = parser.parse_args()

    import numpy as np

    from metrics_jax import BLEU
    from metrics_jax.significance import paired_randomisation

    data, bleu = options.folder / "data", BLEU()
    runs.keep_options(options.folder, pairs=options.pairs, monolingual=options.monolingual)
    prepare(data, options.pairs, options.monolingual)
    references = {language: runs.read(data / f"{TEST}.{language}") for language in ("en", "de")}
    reverse = options.folder / "reverse"
    train(reverse, "reverse", options)
    score = bleu(runs.translated(reverse, data / f"{TEST}.de"), references["en"]).score
    measure.report(benchmark="back_translation", system="reverse", seed=0, bleu=score, signature=bleu.signature)
    for seed in options.seeds:
        found: dict[str, np.ndarray] = {}
        for system in options.systems.split(","):
            changes: dict[str, object] = {"seed": seed}
            if system != "none":
                changes["data.synthetic"] = options.folder / system
                make_pairs(system, options.folder)
            if system in TRANSLATED:
                changes["data.upsample"] = max(round(options.monolingual / options.pairs), 1)
            workdir = options.folder / f"{system}-{seed}"
            train(workdir, "forward", options, **changes)
            found[system] = bleu.statistics(runs.translated(workdir, data / f"{TEST}.en"), references["de"])
            figures = {"system": system, "seed": seed, "bleu": float(bleu.score(found[system].sum(axis=0)))}
            if "none" in found and system != "none":
                pair = {name: found[name] for name in ("none", system)}
                figures["p"] = paired_randomisation(bleu, pair, "none", trials=1000)[1].p_value
            measure.report(benchmark="back_translation", **figures, signature=bleu.signature)


if __name__ == "__main__":
    main()
