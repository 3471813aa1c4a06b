import gzip
import io
import json

import pytest

from metrics_jax.surface import BLEU
from nmt_jax import __main__ as cli
from nmt_jax import score
from nmt_jax.errors import UserError


@pytest.fixture
def files(tmp_path):
    """Writes {"name": "text" or bytes} -> the paths as strings."""

    def write(**contents: str | bytes) -> list[str]:
        for name, content in contents.items():
            (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return [str(tmp_path / name) for name in contents]

    return write


def test_one_row_a_system_and_metric_in_a_pipe(files, capsys):
    good, bad, reference = files(good="a b c d e\nf\n", bad="a b c x y\nf\n", ref="a b c d e\nf\n")
    assert cli.main(["score", bad, "--metrics=bleu,ter", good, f"--reference={reference}"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows] == [[bad, "bleu"], [bad, "ter"], [good, "bleu"], [good, "ter"]]
    assert rows[2][2] == "100.00"
    assert rows[3][2] == "0.00"
    assert rows[0][3].startswith("nrefs:1|case:mixed|")


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
    assert "nw:2" in out


def test_lines_end_at_line_feeds_only_and_gz_is_read(files, tmp_path):
    text = "a\u2028b c d\ne\x85f g h\n\n"
    hypothesis, reference = files(h=b"\xef\xbb\xbf" + text.encode(), r="x\ny\nz\n")
    (tmp_path / "r.gz").write_bytes(gzip.compress(text.encode()))
    results = score.run([hypothesis], [str(tmp_path / "r.gz")], metrics=["bleu"])
    assert len(results[0].result.segments) == 3
    assert results[0].result.score == pytest.approx(100)
    assert score.run([hypothesis], [reference], metrics=["chrf"])[0].result.score < 50


def test_the_verb_gives_the_number_of_the_metric(files):
    hypotheses, references = ["der alte Mann schläft .", "Ein Hund"], ["der alte mann schläft !", "ein Hund"]
    paths = files(h="\n".join(hypotheses), r="\n".join(references))
    for options in ({}, {"lowercase": True}, {"tokenize": "char"}):
        result = score.run(paths[:1], paths[1:], metrics=["bleu"], **options)[0].result
        assert result.score == BLEU(**options)(hypotheses, references).score


def test_stdin_is_a_system(files, monkeypatch):
    (reference,) = files(r="a b c d\n")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a b c d\n")))
    assert score.run(["-"], [reference], metrics=["bleu"])[0].result.score == pytest.approx(100)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(UserError, match="stdin: nothing to score"):
        score.run(["-"], [reference])


def test_bad_input_is_one_line(files, tmp_path, capsys):
    short, long, empty, broken = files(short="a\nb\n", long="a\nb\nc\n", empty="", broken=b"a\nb\xff\n")
    cases = {
        (short, f"--reference={long}"): [f"{short} has 2 lines but {long} has 3"],
        (short, f"--reference={short}", f"--reference={long}"): [f"{short} has 2 lines but {long} has 3"],
        (empty, f"--reference={short}"): [empty, "empty"],
        (broken, f"--reference={short}"): [f"{broken}:2: not UTF-8"],
        (str(tmp_path / "nowhere"), f"--reference={short}"): ["nowhere", "no such file"],
        (str(tmp_path), f"--reference={short}"): ["folder"],
        (short, f"--reference={short}", "--metrics=bleu,blue"): ["'blue'", "bleu, chrf"],
        (short,): ["--reference=FILE"],
        (short, f"--reference={short}", "--tokenize=13b"): ["13a"],
    }
    for arguments, words in cases.items():
        assert cli.main(["score", *arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("nmt-jax: error: ")
        assert err.count("\n") == 1
        for word in words:
            assert word in err
