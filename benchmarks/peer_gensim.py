"""word2vec of gensim on the words of `word_vectors.py`: CPU-seconds of training on one thread, and the vectors."""

import json
import os
import sys
import time

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import gensim
import numpy as np

with np.load(sys.argv[1]) as work:
    words, ids = work["words"].tolist(), work["ids"]
out, epochs, dimensions, window, negatives, subsample = sys.argv[2], *map(float, sys.argv[3:])
ends = np.flatnonzero(ids == 0)
texts = [[words[i - 1] for i in part[part > 0]] for part in np.split(ids, ends) if (part > 0).any()]
model = gensim.models.Word2Vec(
    sg=1,
    vector_size=int(dimensions),
    window=int(window),
    negative=int(negatives),
    sample=subsample,
    min_count=1,
    workers=1,
    epochs=int(epochs),
    seed=1,
)
model.build_vocab(texts)
start = time.process_time()
model.train(texts, total_examples=model.corpus_count, epochs=model.epochs)
seconds = time.process_time() - start
np.save(out, model.wv[words])
print(json.dumps({"version": gensim.__version__, "cpu_seconds": seconds}))
