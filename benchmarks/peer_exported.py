"""CTranslate2 on an exported model, on one thread, with the search of its `translate.py`; started by `translate.py`."""

import json
import os
import pathlib
import sys
import time

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
started = time.perf_counter(), time.process_time()

import ctranslate2
import numpy as np
import sentencepiece


def main() -> None:
    work = np.load(sys.argv[1])
    folder = pathlib.Path(str(work["folder"]))
    lines = pathlib.Path(str(work["source"])).read_text(encoding="utf-8").splitlines()
    program = (folder / "translate.py").read_text(encoding="utf-8")
    alpha = float(program.split("BEAM_SIZE, LENGTH_PENALTY = ")[1].split(",")[1].split()[0])
    translator = ctranslate2.Translator(
        str(folder), device="cpu", compute_type=str(work["compute"]), intra_threads=1, inter_threads=1
    )
    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=str(folder / name)) for name in ("source.model", "target.model")
    )

    def translate() -> list[str]:
        results = translator.translate_batch(
            [source.encode(line, out_type=str) for line in lines],
            max_batch_size=32,
            beam_size=5,
            num_hypotheses=5,
            patience=2,
            length_penalty=1e-6,
            return_end_token=True,
            return_scores=True,
            disable_unk=True,
            min_decoding_length=0,
        )
        best = []
        for result in results:
            ranked = zip(result.scores, result.hypotheses, strict=True)
            _, pieces = max((score / ((5 + len(pieces)) / 6) ** alpha, pieces) for score, pieces in ranked)
            best.append(target.decode([piece for piece in pieces if piece != "</s>"]))
        return best

    translate()
    cold = time.perf_counter() - started[0]
    begin = time.perf_counter(), time.process_time()
    translations = translate()
    seconds, cpu = time.perf_counter() - begin[0], time.process_time() - begin[1]
    figures = {"cold_seconds": cold, "sentences_per_second": len(lines) / seconds}
    print(json.dumps(figures | {"sentences_per_cpu_second": len(lines) / cpu, "translations": translations}))


if __name__ == "__main__":
    main()
