"""`nmt-jax calibrate` writes the files that `nmt-jax score` reads."""

import pytest

from metrics_jax import Baseline, Idf
from nmt_jax import __main__ as cli
from nmt_jax.pretrained.metrics import open_metric
from tests.fixtures.encoder_folders import write_folder

CORPUS = ["a b c", "d e f g", "", "h i", "a a", "j k l m n", " "]


@pytest.fixture
def corpus(tmp_path):
    write_folder(tmp_path / "bert")
    (tmp_path / "corpus").write_text("\n".join(CORPUS) + "\n")
    return tmp_path


def test_a_baseline_rescales_the_metric(corpus, capsys):
    encoder, output = f"--encoder={corpus / 'bert'}", corpus / "zero.csv"
    command = ["calibrate", str(corpus / "corpus"), encoder, f"--baseline={output}", "--num_pairs=50", "--seed=3"]
    assert cli.main(command) == 0
    lines = [line for line in CORPUS if line.strip()]
    metric = open_metric("bertscore", encoder=str(corpus / "bert"))
    assert Baseline.load(output) == metric.fit_baseline(lines, num_pairs=50, seed=3)
    score = ["score", str(corpus / "corpus"), f"--reference={corpus / 'corpus'}", "--metrics=bertscore", encoder]
    assert cli.main([*score, f"--baseline={output}"]) == 0
    assert f"|baseline:{Baseline.load(output).fingerprint[:16]}|" in capsys.readouterr().out


def test_token_frequencies_of_the_corpus(corpus, capsys):
    encoder, output = f"--encoder={corpus / 'bert'}", corpus / "idf.json"
    assert cli.main(["calibrate", str(corpus / "corpus"), encoder, f"--idf={output}"]) == 0
    idf = Idf.load(output)
    assert idf.num_documents == 5  # blank lines do not count
    assert idf.frequencies[5] == 2  # "a"
    score = ["score", str(corpus / "corpus"), f"--reference={corpus / 'corpus'}", "--metrics=bertscore", encoder]
    assert cli.main([*score, f"--idf={output}"]) == 0
    assert f"|idf:{idf.fingerprint[:16]}|" in capsys.readouterr().out


def test_mistakes(corpus, capsys):
    (corpus / "one").write_text("a\na\n")
    text, encoder, output = str(corpus / "corpus"), f"--encoder={corpus / 'bert'}", f"--baseline={corpus / 'x'}"
    cases = {
        (encoder, output): "needs a corpus",
        (text, encoder): "one of --baseline=FILE and --idf=FILE",
        (text, encoder, output, f"--idf={corpus / 'y'}"): "one of --baseline=FILE and --idf=FILE",
        (text, output): "needs an encoder",
        (text, encoder, output, "--metric=yisi1"): "yisi1 has no baseline",
        (text, encoder, f"--idf={corpus / 'y'}", "--metric=bleu"): "bleu has no idf",
        (text, encoder, f"--idf={corpus / 'nowhere' / 'y'}"): "no such folder",
        (text, encoder, f"--idf={corpus}"): "is a folder; name another file",
        (str(corpus / "one"), encoder, output): "1 different texts",
        (str(corpus / "nowhere"), encoder, output): "no such file",
    }
    for arguments, words in cases.items():
        assert cli.main(["calibrate", *arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("nmt-jax: error: ")
        assert err.count("\n") == 1
        assert words in err
