"""bert-score on the texts of `embedding_metrics.py`, called as its users call it, with the model loaded beforehand."""

import json
import os
import sys
import time

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import bert_score
import numpy as np
import torch

torch.set_num_threads(1)


def main():
    texts, folder = np.load(sys.argv[1]), sys.argv[2]
    hypotheses, references = texts["hypotheses"].tolist(), texts["references"].tolist()
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        layers = json.load(file)["num_hidden_layers"]
    scorer = bert_score.BERTScorer(model_type=folder, num_layers=layers, device="cpu")
    scorer.score(hypotheses[:64], references[:64])
    start = time.process_time()
    scores = scorer.score(hypotheses, references)[2]
    print(json.dumps({"cpu_seconds": time.process_time() - start, "scores": scores.tolist()}))


if __name__ == "__main__":
    main()
