r"""Self-training for SST-2: sentences of movie reviews, graded by models trained on human grades.

    python -m benchmarks.self_training sentences movie_reviews.train.jsonl.gz \
        --held_out=sst2.dev.tsv,sst5.dev.tsv > reviews.tsv
    tail -n +2 reviews.tsv | cut -f 2 | nmt-jax classify --workdir=runs/grades_0 > grades_0.txt
    python -m benchmarks.self_training mix reviews.tsv --grades=grades_0.txt,grades_1.txt \
        --gold=sst5.train.tsv > mixed.tsv

A sentence is dropped if the models contradict the label of its review, unless the models grade it as nearly neutral.
Of the neutral sentences, half as many are kept as of the others. Human-graded sentences are added twice. All commands
and results: docs/results/fine-tuning.md.
"""

import argparse
import pathlib
import random

from nmt_jax.data.readers.table import read_table

SENTENCES = 24_000
NEUTRAL, MARGIN = 2, 0.5  # for grades from 0 to 4


def rows(path: str) -> list[tuple[str, str]]:
    """Return (label, sentence) of each row of a file."""
    return [(row.value("label"), row.value("sentence")) for row in read_table(path, "labelled sentences")]


def sentences(reviews: str, held_out: list[str]) -> list[tuple[str, str]]:
    """Return (label of the review, sentence) of distinct sentences of 4 to 40 words that are not held out."""
    seen = {" ".join(sentence.split()) for path in held_out for _, sentence in rows(path)}
    found = []
    for review in read_table(reviews, "reviews"):
        for sentence in (" ".join(words.split()) for words in review.value("sentences")):
            if 4 <= len(sentence.split()) <= 40 and sentence not in seen:
                seen.add(sentence)
                found.append((str(int(review.value("label") == "pos")), sentence))
    random.Random(0).shuffle(found)
    return found[:SENTENCES]


def mixed(reviews: str, grades: list[str], gold: str) -> list[tuple[str, str]]:
    """Return (grade, sentence): sentences of reviews with the mean grade of the models, and human-graded sentences."""
    columns = [map(float, pathlib.Path(path).read_text().split()) for path in grades]
    polar, neutral = [], []
    graded = [
        (sum(row) / len(row), *review) for row, review in zip(zip(*columns, strict=True), rows(reviews), strict=True)
    ]
    kept = [one for one in graded if abs(one[0] - NEUTRAL) <= MARGIN or (one[0] > NEUTRAL) == (one[1] == "1")]
    random.Random(0).shuffle(kept)
    for grade, _, sentence in kept:
        (polar if abs(grade - NEUTRAL) > MARGIN else neutral).append((f"{grade:.3f}", sentence))
    found = polar + neutral[: len(polar) // 2] + rows(gold) * 2
    random.Random(1).shuffle(found)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    stages = parser.add_subparsers(dest="stage", required=True)
    one = stages.add_parser("sentences")
    one.add_argument("reviews")
    one.add_argument("--held_out", default="")
    two = stages.add_parser("mix")
    two.add_argument("reviews")
    two.add_argument("--grades", required=True)
    two.add_argument("--gold", required=True)
    options = parser.parse_args()
    if options.stage == "sentences":
        table = sentences(options.reviews, options.held_out.split(",") if options.held_out else [])
    else:
        table = mixed(options.reviews, options.grades.split(","), options.gold)
    print("label\tsentence")
    for row in table:
        print("\t".join(row))


if __name__ == "__main__":
    main()
