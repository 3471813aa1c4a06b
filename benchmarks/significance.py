"""Speed of bootstraps and paired tests of BLEU over 1,000 segments, beside sacrebleu on the same statistics.

    python -m benchmarks.significance [--peer=PYTHON-WITH-SACREBLEU]

Figures in CPU-seconds: the interval of one system, a paired bootstrap of five systems (1,000 resamples), and a paired
randomization of five systems (10,000 trials). Counting n-grams is not included. The resamples are those of the peer,
and the p-values must be equal. We draw them once and keep them for later calls: `cold` draws them, `warm` does not. The
peer always draws them.
"""

import argparse

from benchmarks import measure

SEGMENTS, SYSTEMS, VOCABULARY = 1000, 5, 300


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", help="Python with sacrebleu.")
    options = parser.parse_args()
    measure.one_thread()

    import numpy as np

    from metrics_jax.significance import _cached_counts, bootstrap, paired_bootstrap, paired_randomisation
    from metrics_jax.surface.bleu import BLEU

    generator = np.random.default_rng(0)
    references = [generator.integers(VOCABULARY, size=length) for length in generator.integers(5, 40, SEGMENTS)]
    bleu, systems = BLEU(), {}
    for quality in np.linspace(0.70, 0.71, SYSTEMS):
        outputs = [np.where(generator.random(len(one)) < quality, one, VOCABULARY - one) for one in references]
        texts = [[" ".join(f"w{word}" for word in words) for words in side] for side in (outputs, references)]
        systems[f"system {len(systems)}"] = bleu.statistics(*texts)
    first, *others = systems.values()
    work = {
        "bootstrap": lambda: bootstrap(bleu, first),
        "paired_bootstrap": lambda: paired_bootstrap(bleu, systems),
        "paired_randomisation": lambda: paired_randomisation(bleu, systems),
    }
    figures = {}
    for name, one in work.items():
        figures[f"{name}_cold_cpu_seconds"] = measure.cpu_seconds(one, before=_cached_counts.cache_clear)
        figures[f"{name}_warm_cpu_seconds"] = measure.cpu_seconds(one)
    if options.peer:
        theirs = measure.peer(options.peer, "peer_significance.py", {"systems": np.stack([first, *others])})
        for name, one in work.items():
            figures[f"{name}_sacrebleu_cpu_seconds"] = theirs[name]["cpu_seconds"]
            for state in ("cold", "warm"):
                speedup = theirs[name]["cpu_seconds"] / figures[f"{name}_{state}_cpu_seconds"]
                figures[f"{name}_{state}_speedup"] = speedup
            if name != "bootstrap":
                assert [row.p_value for row in one()][1:] == theirs[name]["p_values"]
    measure.report(benchmark="significance", **figures)


if __name__ == "__main__":
    main()
