"""CTranslate2 on the sentences of `decode.py`, with random weights of the same shape; started by `decode.py`."""

import json
import os
import sys
import tempfile
import time
from typing import Any

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import ctranslate2
import numpy as np
from ctranslate2.specs import common_spec, transformer_spec


def fill(spec: Any, layers: int, width: int, inner: int, heads: int, vocabulary: int) -> None:
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
    layers, width, inner, heads, vocabulary, batch, beam, steps = work["shape"].tolist()
    spec = transformer_spec.TransformerSpec.from_config(
        (layers, layers), heads, pre_norm=False, activation=common_spec.Activation.RELU
    )
    fill(spec, layers, width, inner, heads, vocabulary)
    pieces = ["<blank>", "<unk>", "<s>", "</s>", *(f"piece{i}" for i in range(4, vocabulary))]
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.validate()
    spec.optimize(quantization=None if compute == "float32" else compute)
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        translator = ctranslate2.Translator(folder, device="cpu", intra_threads=1, inter_threads=1)
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
        start = time.process_time()
        translate()
        seconds = time.process_time() - start
    print(json.dumps({"sentences_per_cpu_second": len(sentences) / seconds}))


if __name__ == "__main__":
    main()
