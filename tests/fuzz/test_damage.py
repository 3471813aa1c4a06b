"""Damaged files of every format are read, or refused in one line: never another exception, and never much memory."""

import gzip
import pathlib
import random
import resource
import shutil

import pytest

from metrics_jax.embedding.baseline import Baseline
from metrics_jax.embedding.idf import Idf
from metrics_jax.embedding.vectors import Vectors
from metrics_jax.judging.pyramid import read_pyramid
from nmt_jax import config as configs
from nmt_jax.checkpoints.reading import load_params
from nmt_jax.data.lines import read_lines
from nmt_jax.data.readers.annotations import read_annotations
from nmt_jax.data.readers.judgements import Columns, read_judged
from nmt_jax.data.readers.questions import read_asked
from nmt_jax.data.vocabulary.vocab import Vocab
from nmt_jax.errors import UserError
from nmt_jax.export import safetensors
from nmt_jax.pretrained.huggingface import load_folder
from nmt_jax.pretrained.tokenizer import Tokenizer
from nmt_jax.pretrained.torch_files import TorchFile
from nmt_jax.translation.candidates import read_candidates
from nmt_jax.workdir import Workdir
from tests.fuzz.mistakes import BIG_FILES, spoil

JUDGED = Columns(human=("human",), system="system", item="item")
# What is damaged, how it is read, and how often: reading a checkpoint takes longer.
FORMATS = {
    "a saved config": ("translator/config.json", configs.read, 200),
    "a log": ("translator/metrics.jsonl", lambda path: Workdir(path.parent).metrics(), 1000),
    "a vocabulary": ("translator/vocab/joint.model", Vocab.load, 500),
    "a checkpoint": ("translator/checkpoints", lambda path: load_params(path.parent), 60),
    "a tokenizer": ("encoder", Tokenizer.load, 600),
    "an encoder": ("encoder", load_folder, 150),
    "a checkpoint of PyTorch": ("model.ckpt", TorchFile, 600),
    "safetensors": ("exported", safetensors.load, 600),
    "judgements": ("judged.tsv", lambda path: read_judged(path, JUDGED), 1000),
    "annotated errors": ("mqm.tsv", lambda path: read_annotations(path, "mqm"), 1000),
    "error spans": ("esa.jsonl", lambda path: read_annotations(path, "esa"), 1000),
    "a pyramid": ("pyramid.json", read_pyramid, 1000),
    "candidates": ("candidates", lambda path: list(read_candidates(read_lines(path), "file")), 1000),
    "questions": ("questions", lambda path: list(read_asked(read_lines(path), "file")), 1000),
    "compressed text": ("source.gz", lambda path: list(read_lines(path)), 1000),
    "word vectors": ("glove", Vectors.load, 800),
    "a baseline": ("baseline.csv", Baseline.load, 500),
    "token frequencies": ("idf.json", Idf.load, 500),
}
METRIC_FILES = (
    Baseline.load,
    Idf.load,
    Vectors.load,
    read_pyramid,
)  # metrics_jax raises ValueError, which verbs report as well


@pytest.fixture(scope="module")
def originals(workplace, nmt_jax_once) -> pathlib.Path:
    """The workplace with one more file of each format that verbs write."""
    (workplace / "source.gz").write_bytes(gzip.compress((workplace / "source").read_bytes() * 20))
    encoder, source = f"--encoder={workplace / 'encoder'}", workplace / "source"
    nmt_jax_once("calibrate", source, encoder, f"--idf={workplace / 'idf.json'}")
    nmt_jax_once("calibrate", source, encoder, f"--baseline={workplace / 'baseline.csv'}", "--num_pairs=4")
    nmt_jax_once(
        "export", f"--workdir={workplace / 'translator'}", "--to=safetensors", f"--output={workplace / 'exported'}"
    )
    return workplace


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_a_damaged_file_is_read_or_refused(name, originals, tmp_path):
    path, read, count = FORMATS[name]
    choose, before = random.Random(name), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused = 0
    for _ in range(count):
        copy = tmp_path / pathlib.Path(path).name
        if (originals / path).is_dir():
            shutil.copytree(originals / path, copy)
            victim = choose.choice(
                sorted(one for one in copy.rglob("*") if one.is_file() and one.stat().st_size < BIG_FILES)
            )
        else:
            victim = pathlib.Path(shutil.copy(originals / path, copy))
        spoil(choose, victim)
        try:
            read(copy)
        except (UserError, OSError) as error:  # the command line reports an OSError with its path
            message = str(error)
        except ValueError as error:
            if read not in METRIC_FILES:
                raise
            message = str(error)
        else:
            continue
        finally:
            shutil.rmtree(copy) if copy.is_dir() else copy.unlink(missing_ok=True)
        assert message
        assert "\n" not in message
        refused += 1
    assert refused > count // 20
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 < 2 << 30
