"""Speed and quality of skip-gram training on one thread, beside gensim.

    python -m benchmarks.word_vectors --workdir=runs/word2vec [--epochs=5] [--peer=PYTHON]

Text, words and settings are those of a workdir of configs/word2vec.py. Both programs read the same word ids, train
the same number of epochs, and are evaluated in the same way: `similarity` is Spearman's correlation of cosines with
path similarity in WordNet over pairs of frequent nouns; `neighbours` is the mean path similarity of a noun and its 5
nearest neighbors; the others are the accuracy on analogies, where the answer must be the nearest word (3CosAdd).
Prints one JSON line.
"""

import argparse
import gzip
import itertools
import pathlib
import tempfile
import time
from typing import Any

from benchmarks import measure

ANALOGIES = {
    "comparatives": "old older, great greater, large larger, high higher, small smaller, strong stronger, long longer, "
    "late later, young younger, low lower, deep deeper, fine finer, rich richer, wide wider",
    "past": "take took, go went, come came, see saw, know knew, give gave, find found, think thought, make made, "
    "run ran, write wrote, begin began, fall fell, look looked, turn turned, seem seemed, ask asked, "
    "walk walked, speak spoke",
    "plurals": "day days, year years, hand hands, man men, eye eyes, nation nations, boat boats, ship ships, "
    "word words, friend friends, house houses, woman women, child children, country countries, law laws, "
    "people peoples",
    "family": "man woman, he she, father mother, brother sister, king queen, husband wife, boy girl, his her, "
    "son daughter, uncle aunt, gentleman lady, himself herself",
}
NOUNS, PAIRS, NEAREST = 1500, 30_000, 5


class Hypernyms:
    """Path similarity 1 / (1 + edges) of WordNet nouns, over the two most frequent senses of each word."""

    def __init__(self, folder: pathlib.Path):
        self.parents, self.senses = {}, {}
        with gzip.open(folder / "data.noun.gz", "rt", encoding="utf-8") as lines:
            for fields in (line.split() for line in lines if not line.startswith(" ")):
                first = 4 + 2 * int(fields[3], 16)
                pointers = [fields[first + 1 + 4 * i :][:3] for i in range(int(fields[first]))]
                self.parents[fields[0]] = [to for kind, to, part in pointers if kind in ("@", "@i") and part == "n"]
        with gzip.open(folder / "index.noun.gz", "rt", encoding="utf-8") as lines:
            for fields in (line.split() for line in lines if not line.startswith(" ")):
                self.senses[fields[0]] = fields[-int(fields[2]) :][:2]
        self.above = {}

    def _above(self, word: str) -> list[dict[str, int]]:
        """Return, for each sense, the distances of all its hypernyms."""
        if word not in self.above:
            self.above[word] = []
            for sense in self.senses[word]:
                distances, frontier = {sense: 0}, [sense]
                for depth in itertools.count(1):
                    frontier = [up for node in frontier for up in self.parents[node] if up not in distances]
                    if not frontier:
                        break
                    distances |= dict.fromkeys(frontier, depth)
                self.above[word].append(distances)
        return self.above[word]

    def __call__(self, a: str, b: str) -> float:
        paths = [
            x[node] + y[node]
            for x, y in itertools.product(self._above(a), self._above(b))
            for node in x.keys() & y.keys()
        ]
        return 1 / (1 + min(paths)) if paths else 0.0


def quality(vectors: Any, similarity: Hypernyms) -> dict[str, float]:
    """Return the measures of `Vectors` described in the module docstring; the words must be sorted by frequency."""
    import numpy as np
    import scipy.stats

    from metrics_jax.embedding.nearest import Neighbours, solved

    neighbours = Neighbours(vectors)
    nouns = [word for word in vectors.words[:5000] if word in similarity.senses and len(word) > 3][:NOUNS]
    unit = neighbours._directions[vectors.rows(nouns)]
    pairs = np.random.default_rng(0).integers(len(nouns), size=(PAIRS, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    gold = [similarity(nouns[a], nouns[b]) for a, b in pairs]
    cosines = unit @ unit.T
    found = {"similarity": scipy.stats.spearmanr(cosines[pairs[:, 0], pairs[:, 1]], gold).statistic}
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.argsort(-cosines, axis=1)[:, :NEAREST]
    found["neighbours"] = np.mean([similarity(nouns[a], nouns[b]) for a, row in enumerate(nearest) for b in row])
    for name, listed in ANALOGIES.items():
        known = [tuple(pair.split()) for pair in listed.split(", ") if (vectors.rows(pair.split()) >= 0).all()]
        found[name] = solved(neighbours, [(*one, *two) for one, two in itertools.permutations(known, 2)])
    return {name: round(float(value), 4) for name, value in found.items()}


def ours(task: Any, epochs: int) -> tuple[Any, float]:
    """Return `Vectors` and CPU-seconds of `epochs` epochs with the training step of the loop, without compilation."""
    import jax

    from nmt_jax.checkpoints.train_state import new_state
    from nmt_jax.training.optimizers import make_optimizer, make_schedule
    from nmt_jax.training.train_step import make_train_step

    config = task.config
    steps = epochs * task.batches(1).batches_per_epoch
    optimizer = make_optimizer(config.optimizer)
    schedule = make_schedule(config.optimizer, steps, config.model.d_model)
    state = new_state(jax.jit(task.init)(jax.random.key(config.seed)), optimizer, 0.0)
    step = make_train_step(task.loss_fn, optimizer, schedule, accumulate=1, ema_decay=0.0, seed=config.seed)
    batches = task.batches(steps)
    compiled = step.lower(state, task.dummy_batch(batches.shapes[0])).compile()
    start = time.process_time()
    for n in range(steps):
        state, _ = compiled(state, batches[n])
    jax.block_until_ready(state)
    return task.vectors(state.params), time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workdir", type=pathlib.Path, required=True)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--peer", help="Python with gensim.")
    arguments = parser.parse_args()
    measure.one_thread()

    import numpy as np

    from metrics_jax.embedding.vectors import Vectors
    from nmt_jax import platforms
    from nmt_jax.distributed import sharding
    from nmt_jax.tasks.word_vectors import WordVectors
    from nmt_jax.workdir import Workdir

    platforms.keep_freed_memory()
    folder = Workdir(arguments.workdir)
    task = WordVectors(folder.config(), folder.path, sharding.make_mesh())
    config, ids = task.config, np.asarray(task.train_ids)
    similarity = Hypernyms(measure.SHARED / "data" / "wordnet3.0")
    count = arguments.epochs * int(np.count_nonzero(ids))
    vectors, seconds = ours(task, arguments.epochs)
    figures = {"words": count, "words_per_cpu_second": round(count / seconds), **quality(vectors, similarity)}
    if arguments.peer:
        with tempfile.TemporaryDirectory() as scratch:
            out = pathlib.Path(scratch) / "vectors.npy"
            settings = [arguments.epochs, config.model.d_model, config.model.window, config.loss.negatives]
            work = {"words": np.array(task.words.words), "ids": ids}
            found = measure.peer(
                arguments.peer, "peer_gensim.py", work, str(out), *map(str, settings), str(config.data.subsample)
            )
            theirs = Vectors(task.words.words, np.load(out))
        speed = round(count / found["cpu_seconds"])
        figures["gensim"] = {"version": found["version"], "words_per_cpu_second": speed, **quality(theirs, similarity)}
    measure.report(epochs=arguments.epochs, **figures)


if __name__ == "__main__":
    main()
