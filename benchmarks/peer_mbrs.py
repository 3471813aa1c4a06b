"""mbrs on the candidates of `mbr.py`, called as its users call it, all pairs, with the model loaded beforehand."""

import json
import os
import sys
import time

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ["RAYON_NUM_THREADS"] = "1"

import numpy as np
import torch
from mbrs.decoders import DecoderMBR
from mbrs.metrics import MetricBERTScore, MetricChrF

torch.set_num_threads(1)


def main():
    lists, spec, folder = np.load(sys.argv[1])["lists"].tolist(), sys.argv[2], sys.argv[3]
    if spec == "chrf":
        metric, scale = MetricChrF(MetricChrF.Config(fastchrf=True)), 100
    else:
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            layers = json.load(file)["num_hidden_layers"]
        metric = MetricBERTScore(MetricBERTScore.Config(model_type=folder, num_layers=layers, nthreads=1, cpu=True))
        scale = 1
    decoder = DecoderMBR(DecoderMBR.Config(), metric)
    decoder.decode(lists[0], lists[0])
    start = time.process_time()
    outputs = [decoder.decode(group, group) for group in lists]
    seconds = time.process_time() - start
    print(json.dumps({"cpu_seconds": seconds, "utilities": [output.score[0] / scale for output in outputs]}))


if __name__ == "__main__":
    main()
