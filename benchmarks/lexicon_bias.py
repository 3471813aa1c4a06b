"""What a lexicon gains: RNNs with a vocabulary of words, without and with the bias of an aligned lexicon.

    python -m benchmarks.lexicon_bias FOLDER [--pairs=7250] [--seeds=0,1] [--change=train.steps=1200]

Text is the first pairs of Multi30k, lower-cased, with punctuation apart. The lexicon is made from the same pairs by
`nmt-jax align`. Prints one JSON line per run: BLEU on test_2016_flickr without tokenization, and the recall of the
reference's words by how often they occur in the training text; with a lexicon, also the p-value of paired approximate
randomization against the run without it. Everything is kept in FOLDER; after an interruption, the same command goes on.
"""

import collections
import pathlib
import re
from collections.abc import Sequence

from benchmarks import measure, runs
from benchmarks.back_translation import TEST, prepare

CONFIG = {
    "data.num_buckets": 3,
    "vocab.algorithm": "word",
    "vocab.joint": "false",
    "vocab.size": 4000,
    "model.d_embedding": 96,
    "model.d_hidden": 96,
    "model.tie_embeddings": "none",
    "model.dropout": 0.2,
    "model.dtype": "float32",
    "train.batch_tokens": 1024,
    "train.steps": 1200,
    "train.eval_every": 400,
    "train.checkpoint_every": 250,
    "eval.max_segments": 300,
}
COUNTS = ((0, 0), (1, 1), (2, 5), (6, 20), (21, 10**9))  # of a word in the training text


def split_words(data: pathlib.Path, pairs: int) -> None:
    """Write the texts, lower-cased and with punctuation apart."""
    prepare(data, pairs, 0)
    for path in data.iterdir():
        words = (" ".join(re.findall(r"\w+|[^\w\s]", line.lower())) for line in runs.read(path))
        path.write_text("".join(f"{line}\n" for line in words), encoding="utf-8")


def recalls(hypotheses: Sequence[str], references: Sequence[str], counts: collections.Counter[str]) -> dict[str, float]:
    """Return the share of the reference's words that the translation has too, in percent, by their training count."""
    found: collections.Counter[tuple[int, int]] = collections.Counter()
    total: collections.Counter[tuple[int, int]] = collections.Counter()
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        words = collections.Counter(hypothesis.split())
        for word, times in collections.Counter(reference.split()).items():
            group = next((low, high) for low, high in COUNTS if low <= counts[word] <= high)
            total[group] += times
            found[group] += min(times, words[word])
    return {f"recall_from_{low}": round(100 * found[low, high] / total[low, high], 2) for low, high in COUNTS}


def main() -> None:
    parser = runs.parser()
    parser.add_argument("--pairs", type=int, default=7250)
    options = parser.parse_args()

    from metrics_jax import BLEU
    from metrics_jax.significance import paired_randomisation

    folder = options.folder
    data, lexicon, bleu = folder / "data", folder / "lexicon.tsv", BLEU("none")
    runs.keep_options(folder, pairs=options.pairs)
    if not lexicon.exists():
        split_words(data, options.pairs)
        sides = [f"--source={data / 'train.en'}", f"--target={data / 'train.de'}"]
        runs.nmt_jax("align", *sides, f"--lexicon={lexicon}", f"--output={folder / 'links'}", "--overwrite")
    counts = collections.Counter(word for line in runs.read(data / "train.de") for word in line.split())
    references = runs.read(data / f"{TEST}.de")
    for seed in options.seeds:
        found = {}
        for system, more in (("none", {}), ("lexicon", {"vocab.lexicon": lexicon})):
            workdir = folder / f"{system}-{seed}"
            keys = {"data.directory": data, "seed": seed, **CONFIG, **more, **dict(options.change)}
            runs.train(workdir, "rnn_luong.py", keys)
            hypotheses = runs.translated(workdir, data / f"{TEST}.en")
            found[system] = bleu.statistics(hypotheses, references)
            figures: dict[str, float | None] = {
                "bleu": float(bleu.score(found[system].sum(axis=0))),
                **recalls(hypotheses, references, counts),
            }
            if system != "none":
                figures["p"] = paired_randomisation(bleu, found, "none", trials=1000)[1].p_value
            measure.report(benchmark="lexicon_bias", system=system, seed=seed, **figures)


if __name__ == "__main__":
    main()
