"""Captions in English, French and Czech, translated into German together, beside the best of the three alone.

    python -m benchmarks.several_sources FOLDER [--models=rnn,transformer] [--systems=en,flat] [--seeds=0,1]

Text is Multi30k. Each model is trained from every language alone, and from all three with every `model.combination`: a
small model of `configs/rnn_luong.py`, and the Transformer of `configs/multi30k.py` with two layers, for as many steps
of as many target tokens. Prints one JSON line per run: BLEU on test_2016_flickr, and BLEU and perplexity of the
development set; with several sources, also the p-value of paired approximate randomization against the source that
alone has the best BLEU on the development set, of the same model and seed. Only sources among `--systems` are compared.
Everything is kept in FOLDER; after an interruption, the same command goes on. Changes of the config:
`--change=train.steps=20`.
"""

import itertools
import pathlib
from typing import Any

import numpy as np

from benchmarks import measure, runs
from benchmarks.back_translation import TEST, write_lines
from metrics_jax import BLEU
from metrics_jax.significance import paired_randomisation
from nmt_jax.workdir import Workdir

SOURCES = ("en", "fr", "cs")
STEPS = 2000
CONFIG: dict[str, Any] = {
    "data.target": "de",
    "data.num_buckets": 3,
    "vocab.size": 4000,
    "model.dtype": "float32",
    "train.batch_tokens": 2048,
    "train.steps": STEPS,
    "train.eval_every": STEPS,
    "train.checkpoint_every": 100,
    "eval.max_segments": 1014,
}
MODELS: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {  # page, combinations and changes
    "rnn": (
        "rnn_luong.py",
        ("concat", "flat", "hierarchical"),
        {"model.d_embedding": 128, "model.d_hidden": 128, "model.d_attention": 128},
    ),
    "transformer": (
        "multi30k.py",
        ("joint", "flat", "serial", "parallel", "hierarchical"),
        {
            "model.num_encoder_layers": 2,
            "model.num_decoder_layers": 2,
            "model.dropout": 0.1,
            "optimizer.warmup_steps": 400,
            "train.keep_last": 5,
            "decode.average": 5,
        },
    ),
}


def prepare(data: pathlib.Path) -> None:
    """Write the texts, and the test file of all sources: a line has the three captions, separated by tabs."""
    data.mkdir(parents=True)
    for split, language in itertools.product(("train", "val", TEST), (*SOURCES, "de")):
        write_lines(f"{split}.{language}", data / f"{split}.{language}")
    captions = zip(*(runs.read(data / f"{TEST}.{language}") for language in SOURCES), strict=True)
    lines = ["\t".join(caption) for caption in captions]
    (data / f"{TEST}.{','.join(SOURCES)}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main() -> None:
    parser = runs.parser()
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--systems", help="Languages and combinations, the languages first; default: all.")
    options = parser.parse_args()

    folder, bleu = options.folder, BLEU()
    data = folder / "data"
    if not data.exists():
        prepare(data)
    references = runs.read(data / f"{TEST}.de")
    for model, seed in itertools.product(options.models.split(","), options.seeds):
        page, combinations, own = MODELS[model]
        alone: dict[str, tuple[float, np.ndarray]] = {}  # development BLEU and statistics of the test text
        for system in options.systems.split(",") if options.systems else (*SOURCES, *combinations):
            workdir, together = folder / f"{model}-{system}-{seed}", system in combinations
            keys = {"data.directory": data, "seed": seed, **CONFIG, **own}
            keys["data.source"] = ",".join(SOURCES) if together else system
            if together:
                keys["model.combination"] = system
            runs.train(workdir, page, keys | dict(options.change))
            rows = Workdir(workdir).metrics()
            translations = runs.translated(workdir, data / f"{TEST}.{keys['data.source']}")
            statistics = bleu.statistics(translations, references)
            figures: dict[str, Any] = {"bleu": float(bleu.score(statistics.sum(axis=0)))}
            figures["dev_bleu"] = max(row["dev/bleu"] for row in rows if "dev/bleu" in row)
            figures["dev_perplexity"] = [row["dev/perplexity"] for row in rows if "dev/perplexity" in row][-1]
            figures["seconds"] = round(max(row.get("seconds", 0) for row in rows))
            if not together:
                alone[system] = figures["dev_bleu"], statistics
            elif alone:
                best = max(alone, key=lambda language: alone[language][0])
                pair = {best: alone[best][1], system: statistics}
                figures["against"] = best
                figures["p"] = paired_randomisation(bleu, pair, best, trials=1000)[1].p_value
            measure.report(benchmark="several_sources", model=model, system=system, seed=seed, **figures)


if __name__ == "__main__":
    main()
