"""Beam search speed of Transformer T, one thread: sentences a CPU-second, beam 5, batch 32.

    python -m tests.benchmarks.decode [--dtype=bfloat16] [--peer=PYTHON-WITH-CTRANSLATE2]

The 320 longest Multi30k test sentences, 20 steps each, random weights. The peer is CTranslate2 (`peer_ctranslate2.py`)
on the same sentences with a model of the same shape, run in turn with ours.
"""

import argparse
import statistics
import tempfile

from tests.benchmarks import measure

SENTENCES, BATCH, BEAM, STEPS, ROUNDS = 320, 32, 5, 20, 3


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    parser.add_argument("--peer", help="a Python that has ctranslate2")
    parser.add_argument("--peer_compute", default="float32", choices=("float32", "int8"))
    options = parser.parse_args()
    measure.one_thread()

    import jax
    import numpy as np

    from nmt_jax.data.corpora import open_text
    from nmt_jax.data.vocab import EOS, PAD
    from tests.benchmarks import model_t

    with tempfile.TemporaryDirectory() as workdir:
        task = model_t.task(options.dtype, workdir)
        vocab = task.vocabularies[0]
        ids = [[*vocab.encode(text), EOS] for text, _ in open_text(task.config.data, "test")]
        ids = sorted(ids, key=len)[-SENTENCES:]
        params = jax.jit(task.init)(jax.random.key(0))
    source = np.full((SENTENCES, max(map(len, ids))), PAD, np.int32)
    for row, sentence in zip(source, ids, strict=True):
        row[: len(sentence)] = sentence
    limits = np.full(BATCH, STEPS, np.int32)
    groups = [rows[:, : (rows != PAD).sum(1).max()] for rows in np.split(source, SENTENCES // BATCH)]

    def ours() -> None:
        for rows in groups:
            search = task.search(params, rows, limits, np.float32(0.6), beam_size=BEAM, n_best=1, max_length=STEPS)
            jax.block_until_ready(search)

    speeds, peers = [], []
    for _ in range(ROUNDS):
        speeds.append(SENTENCES / measure.cpu_seconds(ours, repeats=2))
        if options.peer:
            sizes = (model_t.LAYERS, model_t.D_MODEL, model_t.D_FF, model_t.HEADS, model_t.VOCABULARY)
            arrays = {"source": source, "shape": np.array([*sizes, BATCH, BEAM, STEPS])}
            result = measure.peer(options.peer, "peer_ctranslate2.py", arrays, options.peer_compute)
            peers.append(result["sentences_per_cpu_second"])
    figures = {"sentences_per_cpu_second": statistics.median(speeds), "matmul_gflops": measure.matmul_rate() / 1e9}
    if peers:
        figures["ctranslate2_sentences_per_cpu_second"] = statistics.median(peers)
        figures["ratio_to_ctranslate2"] = statistics.median(a / b for a, b in zip(speeds, peers, strict=True))
    measure.report(benchmark="decode_transformer", dtype=options.dtype, peer=options.peer_compute, **figures)


if __name__ == "__main__":
    main()
