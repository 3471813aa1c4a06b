"""KenLM's queries of an ARPA file: log10 probability of each word and line end; started by `ngram_models.py`."""

import json
import os
import sys
import time

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

from importlib import metadata

import kenlm
import numpy as np

lines = np.load(sys.argv[1])["text"].tobytes().decode().split("\n")
start = time.process_time()
model = kenlm.Model(sys.argv[2])
loaded = time.process_time()
scores = [score for line in lines for score in model.full_scores(line)]
end = time.process_time()
log_p = np.array([score[0] for score in scores])
known = log_p[[not score[2] for score in scores]]
np.save(sys.argv[3], log_p)
figures = {
    "version": metadata.version("kenlm"),
    "load_cpu_seconds": loaded - start,
    "score_cpu_seconds": end - loaded,
    "perplexity": float(10 ** -log_p.mean()),
    "known_perplexity": float(10 ** -known.mean()),
}
print(json.dumps(figures))
