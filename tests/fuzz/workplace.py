"""Valid inputs for every verb: texts, tables and tiny trained workdirs in one folder."""

import json
import pathlib
import shutil

from tests.conftest import ROOT
from tests.fixtures import judged_texts, tiny_encoder_folder
from tests.fixtures.workdirs import train_smoke

PAGES = {
    "translator": "quickstart",
    "language_model": "rnn_lm",
    "classifier": "ag_news",
    "tagger": "ner",
    "answerer": "squad",
    "vectors": "word2vec",
    "masked": "bert_tiny",
}
SOURCE = ["the old man sleeps .", "", "Anna sees a red house and a dog .", "we do not know him ."]
TARGET = ["der alte Mann schläft .", "", "Anna sieht ein rotes Haus .", "wir kennen ihn nicht ."]

# Valid commands by verb; a word in braces is a file or folder of the workplace, or `configs`.
COMMANDS = {
    "train": [
        "--config={configs}/quickstart.py:smoke=true --workdir=new",
        "--workdir={translator}",
        "--config={configs}/gpt.py:smoke=true --workdir=new",
        "--config={configs}/han_movie_reviews.py:smoke=true --workdir=new",
        "--config={configs}/word2vec.py:smoke=true --workdir=new",
    ],
    "sweep": ["--config={configs}/ablation.py:smoke=true --workdir=new --dry_run"],
    "launch": [
        "--on=slurm --dry_run -- nmt-jax train --config={configs}/quickstart.py --workdir=new",
        "--on=kubernetes --image=me/image --dry_run -- nmt-jax train --config={configs}/quickstart.py --workdir=new",
        "--on=tpu --zone=us --dry_run -- nmt-jax train --config={configs}/quickstart.py --workdir=new",
        "--processes=2 --dry_run -- nmt-jax train --config={configs}/quickstart.py --workdir=new",
    ],
    "translate": ["--workdir={translator} --input={source}", "--workdir={translator} --input={source} --num_samples=2"],
    "generate": ["--workdir={language_model} --num_samples=2 --length=5"],
    "perplexity": ["--workdir={language_model} --input={target}"],
    "mbr": ["--input={candidates} --utility=chrf", "--input={candidates} --utility=bleu@2,chrf --method=aggregate"],
    "rerank": [
        "--input={candidates} --weights={weights} --channel={translator} --source={two}",
        "--input={candidates} --tune={two} --metric=chrf --language_model={language_model}",
    ],
    "classify": ["--workdir={classifier} --input={target}"],
    "summarize": ["--input={source} --sentences=1", "--input={source} --method=sumbasic"],
    "neighbours": ["--workdir={vectors} --input={words}", "--vectors={glove} --input={words} --count=2"],
    "tag": ["--workdir={tagger} --input={source}"],
    "answer": ["--workdir={answerer} --input={questions}"],
    "score": [
        "{source} --reference={target}",
        "{source} {target} --reference={target} --metrics=bleu,chrf --paired=bootstrap",
        "{source} --reference={target} --metrics=bertscore --encoder={encoder}",
        "{source} --reference={target} --metrics=wmd,ter --vectors={glove} --segments",
    ],
    "perturb": ["--input={source} --metrics=bleu"],
    "judge": ["{judged.tsv} --human=human --system=system --item=item --metrics=chrf"],
    "annotations": [
        "{mqm.tsv} --judgements=judgements.tsv --reference=B --agreement=alpha_ordinal,kappa",
        "{esa.jsonl} --kind=esa --z_scores --format=json",
        "{esa.jsonl} --kind=scores --score=-esa_score --agreement=fleiss",
    ],
    "choose_pairs": ["{judged.tsv} --metrics=chrf,bleu --pairs=3", "--choices={choices.tsv}"],
    "pyramid": ["{pyramid.json}", "{pyramid.json} --average --format=json"],
    "calibrate": [
        "{source} --encoder={encoder} --idf=idf.json",
        "{source} --encoder={encoder} --baseline=baseline.csv --num_pairs=4",
    ],
    "encoders": ["--family=t5 --format=json", ""],
    "export": [
        "--workdir={translator} --to=safetensors --output=exported",
        "--workdir={translator} --to=ctranslate2 --output=exported",
        "--workdir={vectors} --to=word2vec --output=exported",
        "--workdir={masked} --to=huggingface --output=exported",
    ],
    "convert": ["--input={model.ckpt} --output=converted"],
    "corpus": ["--workdir={translator} --lines=3 --output=text"],
    "plot": ["--workdir={translator} --kind=curves --output=curves.png"],
    "report": ["--workdir={classifier} --output=report.html"],
}


def prepare(folder: pathlib.Path) -> None:
    """Write all files of the workplace into `folder`; this trains the workdirs, which takes half a minute."""
    (folder / "source").write_text("\n".join(SOURCE) + "\n")
    (folder / "target").write_text("\n".join(TARGET) + "\n")
    (folder / "words").write_text("der\nMann - Frau + Haus\n")
    (folder / "glove").write_text("der 1 0 1\nMann 0 1 0.5\nHaus -1 0 0.5\nFrau 0.5 0.5 0\n")
    (folder / "candidates").write_text(
        "".join(f"{n}\t{-k}.5\t{text}\n" for n in (1, 2) for k, text in enumerate(TARGET))
    )
    (folder / "two").write_text("\n".join(TARGET[:2]) + "\n")
    (folder / "weights").write_text('{"weights": {"direct": 0.5, "words": 0.4}}\n')
    questions = [{"question": "Who sleeps?", "context": "The old man sleeps."}, {"question": "", "context": "No."}]
    (folder / "questions").write_text("".join(json.dumps(one) + "\n" for one in questions))
    judged_texts.write(folder / "judged.tsv", judged_texts.rows(systems=3, items=4))
    write_annotations(folder)
    tiny_encoder_folder.write(folder / "encoder")
    shutil.copy(ROOT / "tests" / "fixtures" / "torch_files" / "lightning.ckpt", folder / "model.ckpt")
    for name, page in PAGES.items():
        train_smoke(page, folder / f"{name}.tmp", {})
        (folder / f"{name}.tmp" / "w").rename(folder / name)


def write_annotations(folder: pathlib.Path) -> None:
    """Write files of annotated errors, of scores with error spans, of chosen texts, and of a pyramid."""
    rows = [
        ("system", "seg_id", "rater", "source", "target", "category", "severity"),
        ("A", "1", "r", "the man", "der <v>Mann</v>", "Accuracy/Mistranslation", "Major"),
        ("A", "1", "s", "the <v>man</v>", "der Mann", "Fluency/Punctuation", "Minor"),
        *(("B", "1", rater, "the man", "ein Mann", "No-error", "no-error") for rater in "rs"),
    ]
    (folder / "mqm.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    spans = [{"start_i": 0, "end_i": 3, "severity": "minor"}]
    objects = [
        {"system": system, "line_id": 1, "annotator": rater, "src": "the", "tgt": "der", "esa_score": 9 * score}
        | {"esa_spans": spans[:score]}
        for score, (system, rater) in enumerate(("Ar", "As", "Br", "Bs"))
    ]
    (folder / "esa.jsonl").write_text("".join(json.dumps(one) + "\n" for one in objects))
    choices = [("choice", "left_metric", "right_metric"), ("left", "bleu", "chrf"), ("tie", "chrf", "bleu")]
    (folder / "choices.tsv").write_text("".join("\t".join(row) + "\n" for row in choices))
    units = {"1": {"label": "left", "contributors": ["A", "B"]}, "2": {"contributors": ["A"]}}
    summaries = {"system": {"units": ["1"], "others": 2}}
    (folder / "pyramid.json").write_text(json.dumps({"units": units, "summaries": summaries}, indent=1))
