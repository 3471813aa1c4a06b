"""bert-score on the texts of `embedding_metrics.py`, called as its users call it, with the model loaded beforehand."""

import json
import os
import sys
import time

DEVICE = sys.argv[3] if len(sys.argv) > 3 else "cpu"
if DEVICE == "cpu":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import bert_score
import numpy as np
import torch

if DEVICE == "cpu":
    torch.set_num_threads(1)
now = time.process_time if DEVICE == "cpu" else time.perf_counter


def main():
    texts, folder = np.load(sys.argv[1]), sys.argv[2]
    hypotheses, references = texts["hypotheses"].tolist(), texts["references"].tolist()
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        layers = json.load(file)["num_hidden_layers"]
    scorer = bert_score.BERTScorer(model_type=folder, num_layers=layers, device=DEVICE)
    scorer.score(hypotheses[:64], references[:64])
    start = now()
    scores = scorer.score(hypotheses, references)[2]
    print(json.dumps({"seconds": now() - start, "scores": scores.tolist()}))


if __name__ == "__main__":
    main()
