r"""Speed of beam search on an accelerator: sentences per second, beside CTranslate2 or Hugging Face transformers.

    python -m benchmarks.accelerator_decoding [--size=base] [--dtype=bfloat16] [--batch=128] [--beam=5] \
[--peer=PYTHON] [--program=transformers|ctranslate2] [KEY=VALUE ...]

The model of `transformer.py` with random weights, random sources of 32 tokens, 32 steps, one device. No hypothesis
ends early: ours never chooses the end of a sentence, the peer gets a minimum length. The peer has a Transformer of the
same shape: `peer_ctranslate2.py` (a Python with ctranslate2), or `generate` of a Marian model in `peer_generate.py` (a
Python with torch and transformers). Ours and the peer take turns, each in a new process, which compiles, warms up and
measures three rounds. One JSON line, with medians over all rounds.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import Any

from benchmarks import measure

INNER = "--inner"  # marks the measured process
ROUNDS = 3
PEERS = {"transformers": "peer_generate.py", "ctranslate2": "peer_ctranslate2.py"}


def inner(given: dict[str, Any]) -> None:
    """Measure our beam search, and print the seconds of each round as JSON."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from nmt_jax import config as configs
    from nmt_jax import platforms
    from nmt_jax.data.vocabulary.vocab import BOS, EOS, PAD, UNK
    from nmt_jax.decoding.beam_search import SearchRequest
    from nmt_jax.decoding.method import Search
    from nmt_jax.models.registry import model_class
    from nmt_jax.translation.programs import Programs

    platforms.configure_compilation()
    sizes = {f"{side}_vocab_size": given["vocabulary"] for side in ("source", "target")}
    model = configs.build_model(model_class("transformer"), given["model"], **sizes)
    ids = jnp.ones((1, 2), jnp.int32)
    params = jax.jit(model.init)(jax.random.key(0), ids, ids)["params"]
    source = sources(given)
    request = SearchRequest(np.full(len(source), given["steps"], np.int32))
    programs, search = Programs([model], (PAD, UNK, BOS, EOS)), Search(beam_size=given["beam"], length_penalty=0.6)
    options = {"method": search, "max_length": given["steps"]}
    groups = np.split(source, len(source) // given["batch"])
    request = SearchRequest(request.limits[: given["batch"]])
    seeds = np.zeros(given["batch"], np.uint32)  # a search draws nothing

    def run() -> float:
        start = time.perf_counter()
        found = [programs.decode((params,), rows, request, seeds, **options) for rows in groups]
        jax.block_until_ready(found)
        return time.perf_counter() - start

    first = run()
    seconds = [run() for _ in range(ROUNDS)]
    device = jax.devices()[0].device_kind
    print(json.dumps({"seconds": seconds, "first": first, "device": device, "jax": jax.__version__}))


def sources(given: dict[str, Any]) -> Any:
    """Return random sources int32[sentences, length]; low ids are special pieces."""
    import numpy as np

    shape = (given["sentences"], given["length"])
    return np.random.default_rng(0).integers(5, given["vocabulary"], shape, np.int32)


def main() -> None:
    if sys.argv[1:2] == [INNER]:
        return inner(json.loads(sys.argv[2]))
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", default="base", choices=("tiny", "small", "base", "big"))
    parser.add_argument("--dtype", default="bfloat16", choices=("float32", "bfloat16"))
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--length", type=int, default=32, help="Tokens of a source.")
    parser.add_argument("--steps", type=int, default=32, help="Tokens of a translation.")
    parser.add_argument("--vocabulary", type=int, default=37_000)
    parser.add_argument("--turns", type=int, default=2, help="Processes of ours and of the peer.")
    parser.add_argument("--peer", help="Python with the peer.")
    parser.add_argument("--program", default="transformers", choices=PEERS)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="Device of the peer.")
    parser.add_argument("changes", nargs="*", metavar="KEY=VALUE")
    options = parser.parse_args()
    from nmt_jax import config as configs

    changes = {"model.dtype": options.dtype} | dict(configs.split_override(change) for change in options.changes)
    model = configs.load(f"{measure.ROOT}/configs/transformer.py:size={options.size}", changes).model.to_dict()
    names = ("batch", "beam", "length", "steps", "vocabulary")
    given = {name: vars(options)[name] for name in names}
    given |= {"model": model, "sentences": options.batch * options.batches}
    command = [sys.executable, "-m", "benchmarks.accelerator_decoding", INNER, json.dumps(given)]
    layers = [model["num_encoder_layers"], model["num_decoder_layers"]]
    sizes = [model["d_model"], model["d_ff"], model["num_heads"], options.vocabulary]
    arrays = {"source": sources(given), "shape": [*layers, *sizes, options.batch, options.beam, options.steps]}
    mine, theirs = [], []
    for _ in range(options.turns):
        finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=measure.ROOT)
        mine.append(json.loads(finished.stdout.splitlines()[-1]))
        if options.peer:
            theirs.append(
                measure.peer(options.peer, PEERS[options.program], arrays, options.dtype, options.device, str(ROUNDS))
            )
    seconds, other = (
        statistics.median([s for one in side for s in one["seconds"]] or [0.0]) for side in (mine, theirs)
    )
    figures: dict[str, Any] = {"size": options.size, "dtype": options.dtype, "device": mine[0]["device"]}
    figures |= {"jax": mine[0]["jax"], "sentences_per_second": given["sentences"] / seconds}
    figures |= {"first_pass_seconds": mine[0]["first"]}
    if theirs:
        figures |= {"peer": theirs[0]["peer"], "peer_sentences_per_second": given["sentences"] / other}
        figures |= {"ratio": other / seconds}
    measure.report(benchmark="accelerator_decoding", **figures)
    return None


if __name__ == "__main__":
    main()
