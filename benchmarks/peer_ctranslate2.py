"""CTranslate2 with random weights of a given shape, on the sentences of `decode.py` or `accelerator_decoding.py`.

`decode.py` measures one CPU thread. `accelerator_decoding.py` also names the device and the number of rounds.
"""

import json
import os
import sys
import tempfile
import time
from typing import Any

NAMED = len(sys.argv) > 3  # the device
if not NAMED:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import ctranslate2
import numpy as np
from ctranslate2.specs import common_spec, transformer_spec


def fill(spec: Any, width: int, inner: int, heads: int, vocabulary: int) -> None:
    """Fill every variable of a Transformer spec with random values."""
    random = np.random.default_rng(0)

    def matrix(rows: int, columns: int) -> np.ndarray:
        return (random.normal(size=(rows, columns)) * columns**-0.5).astype(np.float32)

    def linear(layer: Any, rows: int, columns: int) -> None:
        layer.weight, layer.bias = matrix(rows, columns), np.zeros(rows, np.float32)

    def norm(layer: Any) -> None:
        layer.gamma, layer.beta = np.ones(width, np.float32), np.zeros(width, np.float32)

    def attention(layer: Any, sizes: tuple[int, ...]) -> None:
        norm(layer.layer_norm)
        for part, size in zip(layer.linear, sizes, strict=True):
            linear(part, size, width)

    def feed_forward(layer: Any) -> None:
        norm(layer.layer_norm)
        linear(layer.linear_0, inner, width)
        linear(layer.linear_1, width, inner)

    table = matrix(vocabulary, width)
    for side in (spec.encoder, spec.decoder):
        embeddings = side.embeddings[0] if isinstance(side.embeddings, list) else side.embeddings
        embeddings.weight = table
        side.scale_embeddings = True
        side.position_encodings.encodings = np.zeros((1024, width), np.float32)
        for layer in side.layer:
            attention(layer.self_attention, (3 * width, width))
            feed_forward(layer.ffn)
    for layer in spec.decoder.layer:
        attention(layer.attention, (width, 2 * width, width))
    spec.decoder.projection.weight, spec.decoder.projection.bias = table, np.zeros(vocabulary, np.float32)


def main() -> None:
    work, compute = np.load(sys.argv[1]), sys.argv[2]
    device, rounds = (sys.argv[3], int(sys.argv[4])) if NAMED else ("cpu", 1)
    clock = time.perf_counter if NAMED else time.process_time
    *layers, width, inner, heads, vocabulary, batch, beam, steps = work["shape"].tolist()
    spec = transformer_spec.TransformerSpec.from_config(
        (layers[0], layers[-1]), heads, pre_norm=False, activation=common_spec.Activation.RELU
    )
    fill(spec, width, inner, heads, vocabulary)
    pieces = ["<blank>", "<unk>", "<s>", "</s>", *(f"piece{i}" for i in range(4, vocabulary))]
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.validate()
    spec.optimize(quantization=compute if compute == "int8" else None)
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        kind = {"device": device, "compute_type": compute if device == "cuda" else "default"}
        translator = ctranslate2.Translator(folder, **kind, intra_threads=1, inter_threads=1)
        sentences = [[pieces[i] for i in row if i != 0] for row in work["source"].tolist()]

        def translate() -> None:
            translator.translate_batch(
                sentences,
                max_batch_size=batch,
                beam_size=beam,
                min_decoding_length=steps,
                max_decoding_length=steps,
                length_penalty=0.6,
            )

        translate()
        seconds = []
        for _ in range(rounds):
            start = clock()
            translate()
            seconds.append(clock() - start)
    figures = {"seconds": seconds, "peer": f"ctranslate2 {ctranslate2.__version__}"}
    print(json.dumps(figures | {"sentences_per_cpu_second": len(sentences) / min(seconds)}))


if __name__ == "__main__":
    main()
