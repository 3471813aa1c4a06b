"""Speed of beam search on one thread: sentences per CPU-second, beam 5, batch 32.

    python -m benchmarks.decode [--model=rnn] [--dtype=bfloat16] [--peer=PYTHON]

The 320 longest Multi30k test sentences, 20 steps each, random weights. The peer alternates with ours, on the same
sentences and with a model of the same shape: CTranslate2 for Transformer T (`peer_ctranslate2.py`; a Python with
ctranslate2), a plain PyTorch loop for recurrent network R (`peer_torch_beam.py`; a Python with torch).
"""

import argparse
import statistics
import tempfile

from benchmarks import measure

SENTENCES, BATCH, BEAM, STEPS, ROUNDS = 320, 32, 5, 20, 3


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="transformer", choices=("transformer", "rnn"))
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "int8"))
    parser.add_argument("--peer", help="Python with ctranslate2 or torch.")
    parser.add_argument("--peer_compute", default="float32", choices=("float32", "int8"))
    options = parser.parse_args()
    measure.one_thread()

    import jax
    import numpy as np

    from benchmarks import model_r, model_t
    from nmt_jax.data.readers.parallel_text import open_text
    from nmt_jax.data.vocabulary.vocab import EOS, PAD
    from nmt_jax.decoding.beam_search import SearchRequest
    from nmt_jax.decoding.method import Search
    from nmt_jax.models.layers.quantization import quantize_parameters

    transformer = options.model == "transformer"
    with tempfile.TemporaryDirectory() as workdir:
        task = (model_t if transformer else model_r).task(
            "float32" if options.dtype == "int8" else options.dtype, workdir
        )
        vocab = task.vocabularies[0]
        ids = [[*vocab.encode(text), EOS] for text, _ in open_text(task.config.data, "test")]
        ids = sorted(ids, key=len)[-SENTENCES:]
        params = jax.jit(task.init)(jax.random.key(0))
    if options.dtype == "int8":
        params = jax.jit(quantize_parameters)(params)
    source = np.full((SENTENCES, max(map(len, ids))), PAD, np.int32)
    for row, sentence in zip(source, ids, strict=True):
        row[: len(sentence)] = sentence
    limits, search = np.full(BATCH, STEPS, np.int32), Search(beam_size=BEAM, length_penalty=0.6)
    groups = [rows[:, : (rows != PAD).sum(1).max()] for rows in np.split(source, SENTENCES // BATCH)]

    def ours() -> None:
        for rows in groups:
            seeds = np.zeros(len(rows), np.uint32)  # a search draws nothing
            found = task.translator.programs.decode(
                (params,), rows, SearchRequest(limits), seeds, method=search, max_length=STEPS
            )
            jax.block_until_ready(found)

    speeds, peers = [], []
    for _ in range(ROUNDS):
        speeds.append(SENTENCES / measure.cpu_seconds(ours, repeats=2))
        if options.peer:
            sizes = (model_t.LAYERS, model_t.D_MODEL, model_t.D_FF, model_t.HEADS, model_t.VOCABULARY)
            arrays = {"source": source, "shape": np.array([*sizes, BATCH, BEAM, STEPS])}
            script = "peer_ctranslate2.py" if transformer else "peer_torch_beam.py"
            result = measure.peer(options.peer, script, arrays, options.peer_compute)
            peers.append(result["sentences_per_cpu_second"])
    figures = {"sentences_per_cpu_second": statistics.median(speeds), "matmul_gflops": measure.matmul_rate() / 1e9}
    if peers:
        peer = "ctranslate2" if transformer else "torch"
        figures[f"{peer}_sentences_per_cpu_second"] = statistics.median(peers)
        figures[f"ratio_to_{peer}"] = statistics.median(a / b for a, b in zip(speeds, peers, strict=True))
    measure.report(benchmark=f"decode_{options.model}", dtype=options.dtype, peer=options.peer_compute, **figures)


if __name__ == "__main__":
    main()
