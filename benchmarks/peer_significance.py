"""Bootstrap and paired tests of sacrebleu on precomputed statistics; started by `significance.py`."""

import json
import os
import statistics
import sys
import time

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import numpy as np
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest, _bootstrap_resample, estimate_ci


class Counted(BLEU):
    """BLEU on precomputed statistics, so that only resampling and scoring are timed."""

    def _extract_corpus_statistics(self, hypotheses, references):
        return hypotheses


def timed(work, repeats):
    """Return the median CPU-seconds after a warm-up call, and the last result."""
    result = work()
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        result = work()
        seconds.append(time.process_time() - start)
    return statistics.median(seconds), result


def main():
    systems = [(f"system {i}", rows.astype(int).tolist()) for i, rows in enumerate(np.load(sys.argv[1])["systems"])]
    bleu = Counted()
    bleu.num_refs = 1  # required by the signature

    def bootstrap():
        scores = _bootstrap_resample(systems[0][1], bleu)[1]
        return estimate_ci(np.array([score.score for score in scores]))

    figures = {"bootstrap": {"cpu_seconds": timed(bootstrap, 5)[0]}}
    tests = (("paired_bootstrap", "bs", -1, 3), ("paired_randomisation", "ar", 1000, 1))  # both compute intervals
    for name, test, intervals, repeats in tests:
        compare = PairedTest(systems, {"BLEU": bleu}, [[]], test, n_ar_confidence=intervals)
        seconds, (_, rows) = timed(compare, repeats)
        figures[name] = {"cpu_seconds": seconds, "p_values": [row.p_value for row in rows["BLEU"][1:]]}
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
