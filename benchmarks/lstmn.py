"""Long short-term memory-networks (LSTMN; Cheng et al., 2016) beside LSTMs, as language models and as encoders.

    python -m benchmarks.lstmn FOLDER [--parts=language_model,encoder] [--seeds=0,1]

The language models are those of `configs/rnn_lm.py` on a part of the Penn Treebank, with blocks of 64 words. The
encoders are bidirectional, in small models of `configs/rnn_luong.py` on Multi30k, English to German. The cells of a
part have the same width, but an LSTMN has attention in addition; `wide` is an LSTM with about as many weights.

Prints one JSON line per run: the number of weights, the seconds, and perplexity on the development and the test text;
or BLEU on test_2016_flickr, with the p-value of paired approximate randomization against the LSTM of the same seed.
Everything is kept in FOLDER; after an interruption, the same command goes on. Changes of the configs:
`--change=train.steps=20`.
"""

import gzip
import itertools
import pathlib
from typing import Any

import numpy as np

from benchmarks import measure, runs
from benchmarks.back_translation import TEST, prepare
from benchmarks.language_models import tested, trained
from metrics_jax import BLEU
from metrics_jax.significance import paired_randomisation
from nmt_jax.training.record import read_record
from nmt_jax.workdir import Workdir

PTB = measure.SHARED / "data" / "ptb" / "ptb.valid.txt.gz"
PAGES: dict[str, tuple[str, dict[str, Any]]] = {  # of each part: page and changes
    "language_model": ("rnn_lm.py", {"data.block_length": 64, "eval.context": 32, "model.dtype": "float32"}),
    "encoder": (
        "rnn_luong.py",
        {
            "data.num_buckets": 3,
            "vocab.size": 4000,
            "model.d_embedding": 128,
            "model.d_hidden": 128,
            "model.dtype": "float32",
            "train.steps": 2000,
            "train.eval_every": 2000,
            "train.checkpoint_every": 500,
            "eval.max_segments": 300,
        },
    ),
}
CELLS: dict[str, dict[str, dict[str, Any]]] = {
    "language_model": {
        "lstm": {},
        "lstmn": {"model.cell": "lstmn"},
        "wide": {"model.d_embedding": 218, "model.d_hidden": 218},
    },
    "encoder": {"lstm": {}, "lstmn": {"model.cell": "lstmn"}},
}


def prepare_all(data: pathlib.Path) -> None:
    """Write the sentence pairs, and the lines of the Penn Treebank that no training reads."""
    prepare(data, 29_000, 0)
    with gzip.open(PTB, "rt", encoding="utf-8") as file:
        lines = list(file)
    (data / PTB.name.removesuffix(".gz")).write_text("".join(lines), encoding="utf-8")
    (data / "ptb.test.txt").write_text("".join(lines[-(len(lines) // 10) :]), encoding="utf-8")


def main() -> None:
    parser = runs.parser()
    parser.add_argument("--parts", default=",".join(PAGES))
    options = parser.parse_args()

    folder, bleu = options.folder, BLEU()
    data = folder / "data"
    if not data.exists():
        prepare_all(data)
    references = runs.read(data / f"{TEST}.de")
    for part, seed in itertools.product(options.parts.split(","), options.seeds):
        page, common = PAGES[part]
        found: dict[str, np.ndarray] = {}
        for cell, own in CELLS[part].items():
            workdir = folder / f"{part}-{cell}-{seed}"
            keys = {"data.directory": data, "seed": seed, **common, **own, **dict(options.change)}
            figures = trained(workdir, page, keys)
            figures["dev_perplexity"] = min(figures["dev_perplexity"])
            if record := read_record(Workdir(workdir)):
                figures["weights"] = record.parameters
            if part == "language_model":
                figures |= tested(workdir, data / "ptb.test.txt")
            else:
                found[cell] = bleu.statistics(runs.translated(workdir, data / f"{TEST}.en"), references)
                figures["bleu"] = float(bleu.score(found[cell].sum(axis=0)))
                if cell != "lstm":
                    pair = {"lstm": found["lstm"], cell: found[cell]}
                    figures["p"] = paired_randomisation(bleu, pair, "lstm", trials=1000)[1].p_value
            measure.report(benchmark="lstmn", part=part, cell=cell, seed=seed, **figures)


if __name__ == "__main__":
    main()
