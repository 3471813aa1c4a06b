"""What a curriculum gains on Multi30k: the steps until a development BLEU is reached, with and without one.

    python -m benchmarks.curriculum FOLDER [--seeds=0,1] [--difficulties=none,rarity,length] [--growth_steps=1100]

Trains a small English-German Transformer on the 29,000 pairs and evaluates it every 100 steps. Prints one JSON line per
run: the first step with a BLEU of at least 30 on 500 sentences of the development set, and the BLEU of all evaluations.
Everything is kept in FOLDER; after an interruption, the same command goes on. Changes of the config:
`--change=train.steps=3000`.
"""

import json
import pathlib

from benchmarks import measure, runs
from benchmarks.back_translation import prepare

PAIRS = 29_000
CONFIG = {
    "data.num_buckets": 3,
    "vocab.size": 4000,
    "model.num_encoder_layers": 2,
    "model.num_decoder_layers": 2,
    "model.dropout": 0.1,
    "model.dtype": "float32",
    "optimizer.warmup_steps": 500,
    "train.batch_tokens": 2048,
    "train.steps": 2000,
    "train.eval_every": 100,
    "train.checkpoint_every": 500,
    "train.keep_last": 1,
    "train.patience": 0,
    "eval.max_segments": 500,
}


def evaluations(workdir: pathlib.Path) -> list[dict[str, float]]:
    """Return the records of a run that have a development BLEU."""
    lines = (workdir / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [record for record in map(json.loads, lines) if "dev/bleu" in record]


def main() -> None:
    parser = runs.parser()
    parser.add_argument("--difficulties", default="none,rarity,length")
    parser.add_argument("--growth_steps", type=int, default=1100)
    parser.add_argument("--bleu", type=float, default=30.0)
    options = parser.parse_args()

    data = options.folder / "data"
    if not data.exists():
        prepare(data, PAIRS, 0)
    for seed in options.seeds:
        for difficulty in options.difficulties.split(","):
            workdir = options.folder / f"{difficulty}-{seed}"
            keys = {"data.directory": data, "seed": seed, **CONFIG}
            keys["data.curriculum.difficulty"] = difficulty
            if difficulty != "none":
                keys["data.curriculum.growth_steps"] = options.growth_steps
            runs.train(workdir, "multi30k.py", {**keys, **dict(options.change)})
            found = evaluations(workdir)
            reached = next((record["step"] for record in found if record["dev/bleu"] >= options.bleu), None)
            measure.report(
                benchmark="curriculum",
                difficulty=difficulty,
                seed=seed,
                step=reached,
                bleu={record["step"]: round(record["dev/bleu"], 2) for record in found},
            )


if __name__ == "__main__":
    main()
