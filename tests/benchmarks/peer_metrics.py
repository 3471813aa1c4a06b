"""sacrebleu, rouge-score and nltk on the texts of `metrics.py`, one segment after the other, as users call them."""

import json
import os
import sys
import time

os.sched_setaffinity(0, {0})

import numpy as np


def scorer(name):
    """-> f(hypothesis, reference), the peer's score of a segment."""
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


def main():
    texts, name = np.load(sys.argv[1]), sys.argv[2]
    score = scorer(name)
    pairs = list(zip(texts["hypotheses"].tolist(), texts["references"].tolist(), strict=True))
    # sacrebleu remembers the tokens of every text, so a second pass would not be the work that a user pays for; METEOR
    # must have read its synonyms before time is taken, and is timed in a second pass.
    for pair in pairs if name == "meteor" else pairs[:5]:
        score(*pair)
    start = time.process_time()
    scores = [score(*pair) for pair in pairs]
    seconds = time.process_time() - start
    print(json.dumps({"segments_per_cpu_second": len(pairs) / seconds, "scores": scores}))


if __name__ == "__main__":
    main()
