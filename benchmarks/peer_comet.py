"""unbabel-comet on the texts of `estimators.py`, with the same weights, loaded beforehand."""

import json
import os
import pathlib
import sys
import time
import warnings

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
warnings.simplefilter("ignore")

import numpy as np
import safetensors.torch
import torch
from comet.models import str2model

torch.set_num_threads(1)


def matmul_rate(n=2048, repeats=5):
    """The floating-point operations per CPU-second of a float32 matrix product."""
    x = torch.ones(n, n)
    x @ x
    start = time.process_time()
    for _ in range(repeats):
        x @ x
    return 2 * n**3 * repeats / (time.process_time() - start)


def main():
    texts, folder = np.load(sys.argv[1]), pathlib.Path(sys.argv[2])
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))["comet"]
    kind = settings.pop("class_identifier")
    model = str2model[kind](**settings, pretrained_model=str(folder), load_pretrained_weights=False).eval()
    missing = model.load_state_dict(safetensors.torch.load_file(folder / "model.safetensors"), strict=False)
    unused = ("position_ids", "dropout_mask", "dropout_fill")  # buffers
    assert not [name for name in missing.missing_keys if not name.endswith(unused)], missing
    names = {"mt": "hypotheses", "src": "sources", "ref": "references"}
    if kind != "regression_metric":
        names.pop("ref")
    columns = {name: texts[column].tolist() for name, column in names.items()}
    samples = [dict(zip(columns, group, strict=True)) for group in zip(*columns.values(), strict=True)]
    options = {"batch_size": 16, "gpus": 0, "progress_bar": False, "num_workers": 0}
    model.predict(samples[:16], **options)
    start = time.process_time()
    scores = model.predict(samples, **options)["scores"]
    seconds = time.process_time() - start
    print(json.dumps({"seconds": seconds, "scores": scores, "matmul_rate": matmul_rate()}))


if __name__ == "__main__":
    main()
