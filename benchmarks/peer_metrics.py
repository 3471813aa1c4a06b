"""The reference programs on the texts of `metrics.py`, called as users call them: segment by segment, or on a file."""

import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import numpy as np

PASSES = 10  # timed passes


def scorer(name):
    """Return a function f(hypothesis, reference) that computes the peer's score of a segment."""
    if name in ("bleu", "chrf", "chrf++", "ter"):
        from sacrebleu.metrics import BLEU, CHRF, TER

        kinds = {"bleu": lambda: BLEU(effective_order=True), "chrf": CHRF, "ter": TER}
        metric = CHRF(word_order=2) if name == "chrf++" else kinds[name]()
        return lambda hypothesis, reference: metric.sentence_score(hypothesis, [reference]).score
    if name.startswith("rouge"):
        from rouge_score.rouge_scorer import RougeScorer

        metric = RougeScorer([name], use_stemmer=name == "rougeLsum")
        return lambda hypothesis, reference: metric.score(reference, hypothesis)[name].fmeasure
    from nltk.translate.meteor_score import single_meteor_score

    return lambda hypothesis, reference: single_meteor_score(reference.split(), hypothesis.split())


def meteor15(pairs):
    """Return the scores of the Java program METEOR 1.5, and the CPU-seconds of a pass after loading and warming up."""
    jar = next(pathlib.Path(os.environ["METEOR_DATA"]).glob("meteor-*.jar"))
    seconds = []
    for passes in (1, 1 + PASSES):
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder, name) for name in ("hypotheses", "references")]
            for path, lines in zip(paths, zip(*pairs, strict=True), strict=True):
                path.write_text("\n".join(lines * passes), encoding="utf-8")
            command = ["java", "-Xmx2G", "-jar", str(jar), *map(str, paths), "-l", "en", "-norm"]
            start = resource.getrusage(resource.RUSAGE_CHILDREN)
            printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            end = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime)
    scores = list(map(float, re.findall(r"^Segment \d+ score:\s+(\S+)", printed, re.MULTILINE)))
    return scores[: len(pairs)], (seconds[1] - seconds[0]) / PASSES


def one_by_one(name, pairs):
    """Return the scores and CPU-seconds of the other programs."""
    score = scorer(name)
    # sacrebleu caches the tokens of every text, so only a first pass has the cost that a user pays. METEOR must have
    # read its synonyms before it is timed, so it is timed in a second pass.
    for pair in pairs if name == "meteor" else pairs[:5]:
        score(*pair)
    start = time.process_time()
    scores = [score(*pair) for pair in pairs]
    return scores, time.process_time() - start


def main():
    texts, name = np.load(sys.argv[1]), sys.argv[2]
    pairs = list(zip(texts["hypotheses"].tolist(), texts["references"].tolist(), strict=True))
    scores, seconds = meteor15(pairs) if name == "meteor15" else one_by_one(name, pairs)
    print(json.dumps({"segments_per_cpu_second": len(pairs) / seconds, "scores": scores}))


if __name__ == "__main__":
    main()
