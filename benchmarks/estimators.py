r"""Speed of COMET and CometKiwi beside unbabel-comet, with the same random weights: translations per CPU-second.

    python -m benchmarks.estimators [--peer=PYTHON] [--segments=40] [--systems=5] [--metrics=comet,cometkiwi]

The encoder is XLM-R base (width 768, 12 layers) with random weights and a small vocabulary; the estimators have the
sizes of the published models. The texts are WMT21 German to English: the translations of the first segments by so many
systems, which share their sources and references, on one CPU thread. The peer's Python has unbabel-comet. One JSON line
per metric; scores must agree with the peer's. Passes alternate with those of the peer, because other work on the
machine changes their speed: figures are medians over the rounds. `bound_of_products` is the ratio that a program would
reach that did nothing but the encoder's products with weights, for every text, at the faster of the two rates of a
large float32 product.
"""

import argparse
import csv
import gzip
import itertools
import json
import pathlib
import statistics
import tempfile
import time
from typing import Any

from benchmarks import measure

ROUNDS = 3
PIECES = {"[PAD]": "<pad>", "[UNK]": "<unk>", "[CLS]": "<s>", "[SEP]": "</s>", "[MASK]": "<mask>"}
HEADS = {"hidden_sizes": [3072, 1024], "activations": "Tanh", "final_activation": None, "encoder_model": "XLM-RoBERTa"}
SETTINGS: dict[str, dict[str, Any]] = {
    "comet": {
        **{"class_identifier": "regression_metric", "pool": "avg", "layer": "mix"},
        **{"layer_transformation": "sparsemax", "layer_norm": False},
    },
    "cometkiwi": {
        **{"class_identifier": "unified_metric", "sent_layer": "mix", "layer_transformation": "softmax"},
        **{"layer_norm": True, "input_segments": ["mt", "src"]},
    },
}


def texts(segments: int, systems: int) -> dict[str, list[str]]:
    """Return hypotheses, references and sources of WMT21 German to English: of each segment, by so many systems."""
    path = measure.SHARED / "data" / "wmt21_da" / "wmt21.de-en.seg.tsv.gz"
    groups: dict[str, list[dict[str, str]]] = {}
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            groups.setdefault(row["source"], []).append(row)
    large = [group[:systems] for group in groups.values() if len(group) >= systems]
    rows = [*itertools.chain.from_iterable(large[:segments])]
    names = {"hypotheses": "hypothesis", "references": "reference", "sources": "source"}
    return {name: [row[column] for row in rows] for name, column in names.items()}


def write_model(folder: pathlib.Path, metric: str, corpus: dict[str, list[str]], layers: int) -> None:
    """Write a model with random weights, as `nmt-jax convert` does."""
    import jax
    import numpy as np

    from nmt_jax.models.layers.bert_stack import Bert
    from nmt_jax.pretrained import Pretrained, save
    from nmt_jax.pretrained.model_files import write_tensors
    from nmt_jax.pretrained.tokenizer import Tokenizer

    trained = Tokenizer.train(itertools.chain(*corpus.values()), size=8000, algorithm="unigram", lower_case=False).model
    for old, new in PIECES.items():
        trained = trained.replace(json.dumps(old), json.dumps(new))
    tokenizer = Tokenizer(trained)
    sizes = {"num_layers": layers, "first_position": 1, "num_segments": 1, "epsilon": 1e-5, "pooler": False}
    model = Bert(vocab_size=len(tokenizer), max_positions=512, **sizes)
    params = jax.jit(model.init)(jax.random.key(0), np.zeros((1, 1), np.int32), np.ones((1, 1), bool))["params"]
    save(Pretrained("xlm-roberta", model, jax.tree.map(np.asarray, params), tokenizer, 512), folder)
    import safetensors.numpy

    random = np.random.default_rng(0)
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    tensors = {f"encoder.model.{name}": value for name, value in tensors.items()}
    for number in range(layers + 1):
        tensors[f"layerwise_attention.scalar_parameters.{number}"] = random.normal(0, 0.1, 1).astype(np.float32)
    tensors["layerwise_attention.gamma"] = np.ones(1, np.float32)
    widths = [model.d_model * (6 if metric == "comet" else 1), *HEADS["hidden_sizes"], 1]
    for number, (size, width) in enumerate(itertools.pairwise(widths)):
        kernel = random.normal(0, size**-0.5, (width, size)).astype(np.float32)
        tensors |= {f"estimator.ff.{3 * number}.weight": kernel}
        tensors |= {f"estimator.ff.{3 * number}.bias": np.zeros(width, np.float32)}
    write_tensors(folder / "model.safetensors", tensors)
    config = json.loads((folder / "config.json").read_text())
    config["comet"] = {**HEADS, **SETTINGS[metric]}
    (folder / "config.json").write_text(json.dumps(config))


def product_operations(folder: pathlib.Path, metric: str, corpus: dict[str, list[str]]) -> float:
    """Return the floating-point operations of the encoder's products with weights, for all texts without padding."""
    from nmt_jax.pretrained.tokenizer import Tokenizer

    settings = json.loads((folder / "config.json").read_text())
    width, inner = settings["hidden_size"], settings["intermediate_size"]
    weights = settings["num_hidden_layers"] * (4 * width**2 + 2 * width * inner)
    read = corpus if metric == "comet" else {name: corpus[name] for name in ("hypotheses", "sources")}
    texts = [text for lines in read.values() for text in lines]
    tokens = sum(map(len, Tokenizer.load(folder, "xlm-roberta").encode(texts))) + 2 * len(texts)
    return 2.0 * weights * tokens


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", help="Python with unbabel-comet.")
    parser.add_argument("--segments", type=int, default=40)
    parser.add_argument("--systems", type=int, default=5, help="Translations of each segment.")
    parser.add_argument("--metrics", default="comet,cometkiwi", help="Metrics to measure.")
    parser.add_argument("--layers", type=int, default=12)
    options = parser.parse_args()
    measure.one_thread()

    import numpy as np

    from nmt_jax.pretrained.metrics import open_metric

    corpus = texts(options.segments, options.systems)
    count = len(corpus["hypotheses"])
    arrays = {name: np.array(lines) for name, lines in corpus.items()}
    for name in options.metrics.split(","):
        with tempfile.TemporaryDirectory() as place:
            write_model(pathlib.Path(place), name, corpus, options.layers)
            metric: Any = open_metric(name, sources=True, **{name: place})
            scores = metric(**corpus).segments  # compiles
            operations = product_operations(pathlib.Path(place), name, corpus)
            ours, theirs = [], []
            for _ in range(ROUNDS):
                start = time.process_time()
                metric(**corpus)
                ours.append(time.process_time() - start)
                if options.peer:
                    theirs.append(measure.peer(options.peer, "peer_comet.py", arrays, place))
        seconds = statistics.median(ours)
        figures: dict[str, Any] = {"translations_per_cpu_second": count / seconds, "cpu_seconds": seconds}
        rate = measure.matmul_rate()
        figures["matmul_gflops"] = rate / 1e9
        if theirs:
            difference = float(np.abs(scores - theirs[0]["scores"]).max())
            assert difference < 1e-4, difference
            figures["difference_from_peer"] = difference
            figures["peer_cpu_seconds"] = statistics.median(one["seconds"] for one in theirs)
            figures["ratios"] = [round(one["seconds"] / own, 2) for own, one in zip(ours, theirs, strict=True)]
            figures["ratio"] = statistics.median(figures["ratios"])
            rate = max(rate, *(one["matmul_rate"] for one in theirs))
            figures["bound_of_products"] = figures["peer_cpu_seconds"] * rate / operations
        measure.report(benchmark="estimators", metric=name, layers=options.layers, translations=count, **figures)


if __name__ == "__main__":
    main()
