"""`nmt-jax score`: tables, formats and mistakes."""

import contextlib
import gzip
import io
import json
import pathlib

import numpy as np
import pytest

from metrics_jax import BLEU, SARI, BERTScore
from metrics_jax.api import AdditiveMetric
from metrics_jax.embedding import forward
from nmt_jax import __main__ as cli
from nmt_jax.errors import UserError
from nmt_jax.pretrained.metrics import open_metric
from nmt_jax.reporting.system_scores import score_files
from tests.fixtures.encoder_folders import write_folder


@pytest.fixture
def files(tmp_path):
    """Write {"name": text or bytes} and return the paths as strings."""

    def write(**contents: str | bytes) -> list[str]:
        for name, content in contents.items():
            (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return [str(tmp_path / name) for name in contents]

    return write


def test_one_row_per_system_and_metric_in_a_pipe(files, capsys):
    good, bad, reference = files(good="a b c d e\nf\n", bad="a b c x y\nf\n", ref="a b c d e\nf\n")
    assert cli.main(["score", bad, "--metrics=bleu,ter", good, f"--reference={reference}"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows] == [[bad, "bleu"], [good, "bleu"], [bad, "ter"], [good, "ter"]]
    assert rows[1][2] == "100.00"
    assert rows[3][2] == "0.00"
    assert rows[0][3].startswith("bleu|nrefs:1|tokenize:13a|")


def test_json_holds_scores_signatures_and_parts(files, capsys):
    hypothesis, one, two = files(h="a b c d\n", one="x\n", two="a b c d\n")
    code = cli.main(["score", hypothesis, f"--reference={one}", f"--reference={two}", "--format=json"])
    assert code == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["metric"] for row in rows] == ["bleu", "chrf", "ter"]
    assert rows[0]["score"] == pytest.approx(100)
    assert "nrefs:2" in rows[0]["signature"]
    assert len(rows[0]["parts"]["precisions"]) == 4


def test_a_table_on_a_terminal(files, capsys, monkeypatch):
    hypothesis, reference = files(**{"h[1]": "a b c d\n", "r": "a b c d\n"})
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert cli.main(["score", hypothesis, f"--reference={reference}", "--metrics=bleu,chrf++"]) == 0
    out = capsys.readouterr().out
    assert "bleu ↑" in out
    assert "100.00" in out
    assert "h[1]" in "".join(out.split())
    assert "chrf++ ↑" in out
    assert "word_order:2" in out


def test_lines_end_at_line_feeds_only_and_gz_is_read(files, tmp_path):
    text = "a\u2028b c d\ne\x85f g h\n\n"
    hypothesis, reference = files(h=b"\xef\xbb\xbf" + text.encode(), r="x\ny\nz\n")
    (tmp_path / "r.gz").write_bytes(gzip.compress(text.encode()))
    results = score_files([hypothesis], [str(tmp_path / "r.gz")], metrics=["bleu"])
    assert len(results[0].result.segments) == 3
    assert results[0].result.score == pytest.approx(100)
    assert score_files([hypothesis], [reference], metrics=["chrf"])[0].result.score < 50


def test_the_verb_prints_the_score_of_the_metric(files):
    hypotheses, references = ["der alte Mann schläft .", "Ein Hund"], ["der alte mann schläft !", "ein Hund"]
    paths = files(h="\n".join(hypotheses), r="\n".join(references))
    for spec, metric in (("bleu", BLEU()), ("bleu|lowercase:true|tokenize:char", BLEU("char", lowercase=True))):
        assert score_files(paths[:1], paths[1:], metrics=[spec])[0].result.score == metric(hypotheses, references).score


def test_a_complete_signature_selects_the_same_metric(files, capsys):
    paths = files(h="a b c d\nA b\n", r="a b c e\na b\n")
    result = BLEU(lowercase=True, effective_order=True)(["a b c d", "A b"], ["a b c e", "a b"])
    assert cli.main(["score", paths[0], f"--reference={paths[1]}", f"--metrics={result.signature}"]) == 0
    assert capsys.readouterr().out.split("\t")[1:3] == [
        "bleu|lowercase:true|effective_order:true",
        f"{result.score:.2f}",
    ]


def test_one_row_per_line(files, capsys):
    a, b, reference = files(a="a b c d\nx\n", b="y\na b c d\n", r="a b c d\na b c d\n")
    command = ["score", a, b, f"--reference={reference}", "--metrics=bleu,chrf", "--segments"]
    assert cli.main([*command, "--format=tsv"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["system", "line", "bleu", "chrf"]
    assert [row[:2] for row in rows[1:]] == [[a, "1"], [a, "2"], [b, "1"], [b, "2"]]
    assert [row[2] for row in rows[1:]] == ["100", "0", "0", "100"]
    assert cli.main([*command, "--format=json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["segments"] == pytest.approx([100, 0])
    assert cli.main([*command, "--format=latex"]) == 2


def test_documents_are_scored_as_one_text(files, capsys):
    """Line breaks within a document do not change its score."""
    hypothesis, reference, names = files(h="a b c\nd e f g\nx y z v\n", r="a b c d\ne f g\nx y z w\n", d="1\n1\n2\n")
    command = ["score", hypothesis, f"--reference={reference}", "--metrics=ter", "--segments", "--format=json"]
    assert cli.main([*command, f"--documents={names}"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["segments"] == pytest.approx([0, 25])
    (apart,) = files(d="1\n2\n1\n")
    assert cli.main([*command, f"--documents={apart}"]) == 2
    assert f"{apart}:3: document '1' continues after another one began" in capsys.readouterr().err
    (short,) = files(d="1\n2\n")
    assert cli.main([*command, f"--documents={short}"]) == 2
    assert f"has 3 lines but {short} has 2" in capsys.readouterr().err


def test_bleu_of_short_lines_comes_with_a_hint(files, capsys):
    hypothesis, reference = files(h="a b\na b c d\n", r="a b\na b c d\n")
    command = ["score", hypothesis, f"--reference={reference}"]
    hinted = {("--segments",): True, ("--segments", "--format=json"): True, (): False}
    hinted |= {("--segments", "--metrics=chrf"): False}
    hinted |= {("--segments", "--metrics=bleu|effective_order:true"): False}
    for flags, is_hinted in hinted.items():
        assert cli.main([*command, *flags]) == 0
        out, err = capsys.readouterr()
        assert err.count("\n") == ("--metrics='bleu|effective_order:true'" in err) == is_hinted
    assert [line.split("\t")[2] for line in out.splitlines()] == ["100", "100"]


LINES = [f"{word} old man sleeps in the garden of house {i}" for i in range(40) for word in ("the", "an")]


def test_intervals_and_tests_against_the_first_system(files, capsys):
    worse = [line.replace("old", "red") if i % 3 else line for i, line in enumerate(LINES)]
    base, copy, good, ref = files(
        base="\n".join(worse), copy="\n".join(worse), good="\n".join(LINES), ref="\n".join(LINES)
    )
    command = ["score", base, copy, good, f"--reference={ref}", "--metrics=bleu"]
    for test in ("bootstrap", "randomisation"):
        assert cli.main([*command, f"--paired={test}", "--format=json"]) == 0
        first, second, third = json.loads(capsys.readouterr().out)
        assert first["p_value"] is None
        assert second["p_value"] == 1
        assert third["p_value"] < 0.01
        assert third["wins"] == 1
        assert first["lower"] < first["score"] < first["upper"]
    assert cli.main([*command, "--confidence", "--format=tsv"]) == 0
    heading = capsys.readouterr().out.splitlines()[0].split("\t")
    assert heading == ["system", "metric", "score", "mean", "half_width", "lower", "upper", "signature"]
    assert cli.main(["score", base, f"--reference={ref}", "--paired=bootstrap"]) == 2
    assert "give the baseline first" in capsys.readouterr().err


def test_latex(files, capsys):
    good, bad, reference = files(**{"good_1": "a b c d\n", "bad": "a b c e\n", "ref": "a b c d\n"})
    assert cli.main(["score", bad, good, f"--reference={reference}", "--metrics=chrf++,ter", "--format=latex"]) == 0
    out = capsys.readouterr().out
    assert r"good\_1 & \textbf{100.00} & \textbf{0.00} \\" in out
    assert r"chrf++ $\uparrow$ & ter $\downarrow$" in out
    assert "% chrf|nrefs:1|" in out


def test_scores_do_not_depend_on_the_segments_per_call(files, monkeypatch):
    paths = files(h="\n".join(LINES), r="\n".join(reversed(LINES)))
    quiet = score_files(paths[:1], paths[1:], metrics=["nist", "bleu"])
    monkeypatch.setattr(AdditiveMetric, "segments_per_call", 7)
    chunked = score_files(paths[:1], paths[1:], metrics=["nist", "bleu"])
    assert [one.result.score for one in chunked] == pytest.approx([one.result.score for one in quiet])


def test_stdin_is_a_system(files, monkeypatch):
    (reference,) = files(r="a b c d\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a b c d\n")))
    assert score_files(["-"], [reference], metrics=["bleu"])[0].result.score == pytest.approx(100)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    for others in ({"references": ["-"]}, {"references": [reference], "source": "-"}):
        with pytest.raises(UserError, match=r"stdin \(-\) can be only one of the files"):
            score_files(["-"], **others)
    with pytest.raises(UserError, match="stdin: nothing to score"):
        score_files(["-"], [reference])


def test_mistakes(files, tmp_path, capsys):
    short, long, empty, broken = files(short="a\nb\n", long="a\nb\nc\n", empty="", broken=b"a\nb\xff\n")
    cases = {
        (short, f"--reference={long}"): [f"{short} has 2 lines but {long} has 3"],
        (short, f"--reference={short}", f"--reference={long}"): [f"{short} has 2 lines but {long} has 3"],
        (empty, f"--reference={short}"): [empty, "empty"],
        (broken, f"--reference={short}"): [f"{broken}:2: not UTF-8"],
        (str(tmp_path / "nowhere"), f"--reference={short}"): ["nowhere", "no such file"],
        (str(tmp_path), f"--reference={short}"): ["folder"],
        (short, f"--reference={short}", "--metrics=bleu,blue"): ["'blue'", "did you mean bleu"],
        (short, short, f"--reference={short}"): ["given twice"],
        (short,): ["--reference=FILE"],
        (short, f"--reference={short}", "--metrics=bleu|tokenize:13b"): ["13a"],
    }
    for arguments, words in cases.items():
        assert cli.main(["score", *arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("nmt-jax: error: ")
        assert err.count("\n") == 1
        for word in words:
            assert word in err


def test_word_vectors_from_a_file(tmp_path, capsys):
    for name, lines in {"h": "the cat sat\na dog\n", "r": "the cat sat\na cat\n"}.items():
        (tmp_path / name).write_text(lines)
    words = {"the": (1, 0), "cat": (0, 1), "sat": (1, 1), "a": (1, 0.5), "dog": (0.6, 0.8)}
    rows = [f"{word} {x} {y}" for word, (x, y) in words.items()]
    (tmp_path / "vectors.txt").write_text("\n".join(rows) + "\n")
    command = ["score", str(tmp_path / "h"), f"--reference={tmp_path / 'r'}", "--metrics=wmd,sms"]
    assert cli.main([*command, f"--vectors={tmp_path / 'vectors.txt'}", "--segments", "--format=json"]) == 0
    scores = {row["metric"]: row for row in json.loads(capsys.readouterr().out)}
    assert scores["wmd"]["segments"] == pytest.approx([0, np.hypot(0.6, 0.2) / 2])  # half of the weight moves
    assert set(scores) == {"wmd", "sms"}
    assert cli.main(command) == 2
    assert "--metrics=wmd needs word vectors: --vectors=FILE" in capsys.readouterr().err
    (tmp_path / "ragged.txt").write_text("the 1 0\ncat 1\n")
    assert cli.main([*command, f"--vectors={tmp_path / 'ragged.txt'}"]) == 2
    assert "ragged.txt:2: " in capsys.readouterr().err


WORDS = "abcdefghijklmn"


@pytest.fixture
def encoder(tmp_path):
    """--encoder=FOLDER of a tiny model that reads at most 10 tokens."""
    return f"--encoder={write_folder(tmp_path / 'bert')}"


def test_contextual_metrics_of_several_systems(files, encoder, capsys):
    ours, theirs, reference, other = files(
        ours="a b c\n\n \nd\n", theirs="c\na b\nd\nd e\n", ref="a b c\na b\n\nd\n", other="c b a\nb\nx\nd\n"
    )
    metrics = ["bertscore|layer:0", "moverscore|layers:0", "yisi1|layer:0", "bertscore|idf:references"]
    command = ["score", ours, theirs, f"--reference={reference}", f"--reference={other}", encoder, "--segments"]
    assert cli.main([*command, f"--metrics={','.join(metrics)}", "--format=json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == 8
    assert len({row["score"] for row in rows}) > 5
    systems = {path: pathlib.Path(path).read_text().split("\n")[:-1] for path in (ours, theirs, reference, other)}
    groups = list(zip(systems[reference], systems[other], strict=True))
    for row in rows:
        expected = open_metric(row["metric"], encoder=encoder.partition("=")[2])(systems[row["system"]], groups)
        assert row["signature"] == expected.signature
        assert row["parts"] == expected.parts
        np.testing.assert_array_equal(row["segments"], expected.segments)  # no NaN


def test_references_are_encoded_once_for_all_systems(files, encoder, monkeypatch):
    paths = files(h1="a b\nc\n", h2="a b\nd\n", r="e f\ng h\n")
    texts = []
    usual = forward.Forward.__call__
    monkeypatch.setattr(
        forward.Forward,
        "__call__",
        lambda self, rows, tokens: texts.extend(map(tuple, rows)) or usual(self, rows, tokens),
    )
    score_files(paths[:2], paths[2:], metrics=["bertscore"], encoder=encoder.partition("=")[2])
    assert len(texts) == len(set(texts)) == 5


@pytest.mark.slow
def test_long_lines_under_each_policy(files, encoder, capsys, monkeypatch):
    paths = files(short="a b\nc\n", long=f"a b\n{' '.join(WORDS[i % 14] for i in range(5000))}\n", ref="a b\nc\n")
    command = ["score", *paths[:2], f"--reference={paths[2]}", encoder, "--format=json"]
    for policy in ("truncate", "window"):
        with contextlib.nullcontext() if policy == "window" else pytest.warns(UserWarning, match="were truncated"):
            assert cli.main([*command, f"--metrics=bertscore|long:{policy},yisi1|long:{policy}"]) == 0
        rows = json.loads(capsys.readouterr().out)
        assert [row["parts"]["long"] for row in rows] == [0, 1, 0, 1]
        assert all(0 < row["score"] < 1 + 1e-6 for row in rows)
        assert all(f"|long:{policy}|" in row["signature"] for row in rows)
    assert cli.main([*command, "--metrics=bertscore|long:error"]) == 2
    err = capsys.readouterr().err
    assert f"nmt-jax: error: {paths[1]}:2: this line or its reference is too long: 5002 tokens" in err
    assert "long:window" in err
    assert err.count("\n") == 1
    monkeypatch.setattr(BERTScore, "segments_per_call", 1)  # the line is named in later blocks, too
    assert cli.main([*command, "--metrics=bertscore|long:error"]) == 2
    assert f"{paths[1]}:2: this line" in capsys.readouterr().err


def test_mistakes_with_an_encoder(files, encoder, tmp_path, capsys):
    hypothesis, reference = files(h="a b\n", r="a b\n")
    command = ["score", hypothesis, f"--reference={reference}"]
    cases = {
        ("--metrics=bertscore",): "needs an encoder: --encoder=PLACE",
        ("--metrics=bertscore|layer:40", encoder): "layers (40,): the encoder has layers 0 (embeddings) to",
        ("--metrics=bertscore|long:cut", encoder): "long='cut'",
        ("--metrics=bertscore|layer:last", encoder): "'last' is not int",
        ("--metrics=bertscore", f"--encoder={tmp_path}"): "config.json: No such file",
        ("--metrics=bertscore", "--encoder=no/such/model"): "no such folder or installed package",
        ("--metrics=bertscore", encoder, f"--cache={hypothesis}"): "cannot create the cache folder",
        ("--metrics=bertscore", encoder, "--dtype=float16"): "--dtype",
    }
    for arguments, words in cases.items():
        assert cli.main([*command, *arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("nmt-jax: error: ")
        assert err.count("\n") == 1
        assert words in err


def test_the_cache_keeps_embeddings(files, encoder, tmp_path, capsys):
    hypothesis, reference = files(h="a b\nc\n", r="b\nc d\n")
    outputs = []
    for _ in range(2):
        command = ["score", hypothesis, f"--reference={reference}", encoder, f"--cache={tmp_path / 'kept'}"]
        assert cli.main([*command, "--metrics=bertscore,yisi1"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert len(list((tmp_path / "kept").glob("*/shard-*"))) == 1  # both metrics use the same layer


def test_no_metric_at_all(files, mistake):
    hypothesis, *_ = files(h="a b c d\n")
    assert "--metrics is empty" in mistake("score", hypothesis, f"--reference={hypothesis}", "--metrics=")
    assert "--metrics is empty" in mistake("perturb", "--metrics=", stdin="a b c d\n")


def test_a_metric_of_sources(files, capsys):
    texts = {"h": "a b c\nd e\n", "r": "a b\nd e f\n", "s": "a b c d\nx e f\n"}
    hypothesis, reference, source = files(**texts)
    expected = SARI()(*(text.splitlines() for text in texts.values()))
    flags = [hypothesis, f"--reference={reference}", "--metrics=sari,chrf"]
    assert cli.main(["score", *flags, f"--source={source}", "--format=json"]) == 0
    row = json.loads(capsys.readouterr().out)[0]
    assert row["score"] == pytest.approx(expected.score)
    assert row["signature"] == expected.signature
    for wrong, words in (
        (
            flags,
            "--metrics=sari needs the source of each text: nmt-jax score, mbr, judge and choose_pairs read it with "
            "--source",
        ),
        ([*flags[:2], f"--source={source}"], "--source has no effect: none of the metrics reads sources"),
        ([*flags, f"--source={files(short='a')[0]}"], "short has 1: line N must be"),
    ):
        assert cli.main(["score", *wrong]) == 2
        assert words in capsys.readouterr().err
