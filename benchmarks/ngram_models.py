"""N-gram models beside KenLM: the same values, and CPU-seconds on one thread.

    python -m benchmarks.ngram_models --train=FILE --test=FILE [--order=5] [--peer=PYTHON] [--lmplz=PROGRAM]

PYTHON has the package kenlm, which scores the test text with our ARPA file. PROGRAM is lmplz, whose model of the same
text is compared with ours n-gram by n-gram. Reported are the largest differences of base-10 logarithms.
"""

import argparse
import pathlib
import resource
import subprocess
import tempfile
import time
from typing import Any

from benchmarks import measure


def differences(ours: Any, theirs: Any) -> dict[str, float]:
    """Return the largest differences of log-probabilities and backoffs of the same n-grams of two `NgramModel`s.

    Raises ValueError if the models do not have the same n-grams.
    """
    import numpy as np

    numbers = {word: number for number, word in enumerate(ours.vocabulary.words)}
    words = np.array([numbers[word] for word in theirs.vocabulary.words])
    if ours.trie.sizes != theirs.trie.sizes:
        raise ValueError(f"numbers of n-grams {ours.trie.sizes} and {theirs.trie.sizes}")
    largest = {"log_probabilities": 0.0, "backoffs": 0.0}
    for order in range(1, ours.order + 1):
        spelled = words[theirs.trie.spelled(order)]
        found = spelled[:, 0]
        for n in range(2, order + 1):
            found = ours.trie.find(n, found, spelled[:, n - 1])
        if (found < 0).any():
            raise ValueError(f"an n-gram of order {order} is missing")
        for name in largest if order < ours.order else ["log_probabilities"]:
            difference = np.abs(getattr(ours, name)[order - 1][found] - getattr(theirs, name)[order - 1])
            largest[name] = max(largest[name], float(difference.max()))
    return largest


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--train", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--peer")
    parser.add_argument("--lmplz")
    options = parser.parse_args()
    measure.one_thread()

    import numpy as np

    from nmt_jax.data.lines import read_lines
    from nmt_jax.ngram.arpa import read_arpa, write_arpa
    from nmt_jax.ngram.binary import read_binary, write_binary
    from nmt_jax.ngram.counts import count
    from nmt_jax.ngram.kneser_ney import estimate

    train, test = list(read_lines(options.train)), list(read_lines(options.test))
    figures: dict[str, Any] = {}
    clock = time.process_time()

    def lap(name: str) -> None:
        nonlocal clock
        figures[f"{name}_cpu_seconds"], clock = time.process_time() - clock, time.process_time()

    counts = count(train, options.order)
    lap("count")
    model, _ = estimate(counts)
    lap("estimate")
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        write_arpa(model, folder / "ours.arpa")
        lap("write_arpa")
        write_binary(model, folder / "ours.ngram")
        lap("write_binary")
        read_arpa(folder / "ours.arpa")
        lap("read_arpa")
        binary = read_binary(folder / "ours.ngram")
        lap("read_binary")
        scores = binary.score(test)
        lap("score")
        figures |= {f"{path.suffix[1:]}_megabytes": path.stat().st_size / 1e6 for path in folder.iterdir()}
        known = scores.log_probabilities[~scores.unknown]
        figures["perplexity"] = float(10 ** -scores.log_probabilities.mean())
        figures["known_perplexity"] = float(10 ** -known.mean())
        if options.peer:
            text = np.frombuffer("\n".join(test).encode(), np.uint8)
            out = folder / "kenlm.npy"
            figures["kenlm"] = measure.peer(
                options.peer, "peer_kenlm.py", {"text": text}, str(folder / "ours.arpa"), str(out)
            )
            figures["kenlm"]["largest_difference"] = float(np.abs(np.load(out) - scores.log_probabilities).max())
        if options.lmplz:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            (folder / "train.txt").write_text("".join(f"{line}\n" for line in train), encoding="utf-8", newline="\n")
            command = [options.lmplz, "-o", str(options.order), "-S", "300M", "-T", f"{folder}/temporary"]
            files = ["--text", str(folder / "train.txt"), "--arpa", str(folder / "theirs.arpa")]
            subprocess.run([*command, *files], check=True, stderr=subprocess.DEVNULL)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            figures["lmplz"] = {
                "cpu_seconds": round(seconds, 2),
                **differences(model, read_arpa(folder / "theirs.arpa")),
            }
    words = sum(len(line.split()) for line in train)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    measure.report(
        benchmark="ngram_models",
        words=words,
        ngrams=model.trie.sizes,
        test_tokens=len(scores.unknown),
        **figures,
        peak_mebibytes=peak,
    )


if __name__ == "__main__":
    main()
