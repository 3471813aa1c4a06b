"""`nmt-jax mbr`: one chosen text per list of candidates."""

import json

import numpy as np
import pytest

from metrics_jax import BLEU, SARI, TER, ChrF
from nmt_jax.translation.reranking import CHUNK
from tests.fixtures.encoder_folders import write_folder

LISTS = [
    [(-0.1, "a quite other line here"), (-0.7, "the old man sleeps now ."), (-0.9, "the old man sleeps .")],
    [(-0.2, "")],
    [(-0.3, "the cat"), (-0.4, "the dog"), (-0.5, "the dog"), (-0.6, "the dog\u2028s")],
]
CHOSEN = ["the old man sleeps now .", "", "the dog\u2028s"]


def as_json(lists):
    entries = (
        {"line": number, "hypotheses": [{"score": score, "text": text} for score, text in candidates]}
        for number, candidates in enumerate(lists, start=1)
    )
    return "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)


def as_rows(lists):
    return "".join(f"{n}\t{score}\t{text}\n" for n, group in enumerate(lists, start=1) for score, text in group)


@pytest.fixture
def mbr(nmt_jax):
    """Run the verb on a text as stdin; returns exit code, stdout and stderr."""

    def run(text: str, *arguments: str) -> tuple[int, str, str]:
        code, lines, stderr = nmt_jax("mbr", *arguments, stdin=text)
        return code, "".join(f"{line}\n" for line in lines), stderr

    return run


@pytest.mark.parametrize("form", [as_json, as_rows])
def test_one_line_per_list(mbr, tmp_path, form):
    code, out, err = mbr(form(LISTS))
    assert code == 0
    assert out.split("\n") == [*CHOSEN, ""]
    assert err.startswith("nmt-jax: 3 lines: expected utility 0.")
    assert "bleu|effective_order:true, not optimized, " in err
    assert err.count("\n") == 1
    (tmp_path / "candidates").write_text(form(LISTS))
    assert mbr("", f"--input={tmp_path / 'candidates'}") == (0, out, err)


def test_json_has_the_expected_utilities(mbr):
    code, out, err = mbr(as_json(LISTS), "--format=json")
    rows = [json.loads(line) for line in out.split("\n")[:-1]]
    assert code == 0
    assert [(row["line"], row["text"]) for row in rows] == list(enumerate(CHOSEN, start=1))
    for row, group in zip(rows, LISTS, strict=True):
        texts = [text for _, text in group]
        assert row["text"] == texts[row["index"]]
        expected = ChrF().pairwise(texts, texts).mean(axis=1) / 100
        assert row["utilities"] == pytest.approx(expected, abs=1e-6)
        assert row["utility"] == max(row["utilities"])
        bleu = BLEU(effective_order=True).pairwise(texts, texts).mean(axis=1)
        assert row["evaluated"] == pytest.approx(bleu[row["index"]], abs=1e-6)
        assert row["first"] == pytest.approx({"utility": expected[0], "evaluated": bleu[0]}, abs=1e-6)
    means = [sum(row["utility"] for row in rows) / 3, sum(row["first"]["utility"] for row in rows) / 3]
    assert f"expected utility {means[0]:.4f} (first candidates: {means[1]:.4f});" in err


def test_dropped_candidates_have_no_utility(mbr):
    for finalists in (1, 2):
        code, out, _ = mbr(as_json(LISTS), "--format=json", "--method=aggregate", f"--finalists={finalists}")
        assert code == 0
        for group, line in zip(LISTS, out.split("\n")[:-1], strict=True):
            utilities = json.loads(line)["utilities"]
            known = {text for (_, text), one in zip(group, utilities, strict=True) if one is not None}
            assert len(known) == min(finalists, len({text for _, text in group}))


def test_probabilities_are_softmax_of_scores(mbr):
    sure = [[(0.0, "a b c"), (-50.0, "x y"), (-50.0, "x y")]]
    assert mbr(as_rows(sure))[1] == "x y\n"
    assert mbr(as_rows(sure), "--weights=probability")[1] == "a b c\n"
    assert mbr(as_rows(sure), "--weights=probability", "--temperature=1000")[1] == "x y\n"


def test_utilities_are_mixed_by_weight(mbr):
    group = [(0, "a b c d x"), (0, "c d a b x"), (0, "abcdx")]
    texts = [text for _, text in group]
    _, out, err = mbr(as_json([group]), "--utility=chrf@3,ter", "--format=json", "--evaluate=rougeL")
    expected = 0.75 * ChrF().pairwise(texts, texts) - 0.25 * TER().pairwise(texts, texts)
    assert json.loads(out)["utilities"] == pytest.approx(expected.mean(axis=1) / 100, abs=1e-6)
    assert "rougeL, not optimized" in err


@pytest.mark.parametrize(("utility", "other"), [("bleu", "chrf"), ("bleu,chrf", "ter"), ("ter", "bleu|effective")])
def test_another_metric_is_reported(mbr, utility, other):
    assert f"; {other}" in mbr(as_rows(LISTS), f"--utility={utility}")[2]


def test_many_chunks_and_other_pseudo_references(mbr, tmp_path):
    many = LISTS * CHUNK
    assert mbr(as_rows(many))[1].split("\n")[:-1] == CHOSEN * CHUNK
    (tmp_path / "references").write_text(as_json([[(0, "the old man sleeps .")], [(0, "e")], [(0, "the cat")]]))
    code, out, _ = mbr(as_json(LISTS), f"--references={tmp_path / 'references'}")
    assert (code, out) == (0, "the old man sleeps .\n\nthe cat\n")
    unscored = json.dumps({"line": len(many) + 1, "hypotheses": [{"text": "a"}]})
    assert f"stdin:{len(many) + 1}: --weights" in mbr(as_json(many) + unscored, "--weights=probability")[2]
    (tmp_path / "few").write_text(as_json(LISTS[:2]))
    code, out, err = mbr(as_json(LISTS), f"--references={tmp_path / 'few'}")
    assert code == 2
    assert "line 3" in err


def test_an_embedding_metric(mbr, tmp_path):
    encoder = f"--encoder={write_folder(tmp_path / 'bert')}"
    lists = [[(0, "a b c"), (0, "a b d"), (0, "a b c d"), (0, "n")]]
    for method in ("exact", "aggregate", "prune"):
        code, out, _ = mbr(as_json(lists), "--utility=bertscore", encoder, f"--method={method}")
        assert (code, out.count("\n")) == (0, 1)
        assert out != "n\n"


def test_mistakes(mbr):
    rows = as_rows(LISTS)
    cases = {
        "nmt-jax mbr reads stdin": (rows, "candidates.txt"),
        "--metrics: no metric 'chr'": (rows, "--utility=chr"),
        "--utility=chrf@x: 'x' is not a weight": (rows, "--utility=chrf@x"),
        "each with a positive weight": (rows, "--utility=chrf@-1"),
        "needs an encoder": (rows, "--utility=bertscore"),
        "chrf is one of the utilities": (rows, "--evaluate=chrf++"),
        "--evaluate=METRIC: name a metric": (rows, "--utility=bleu,chrf,ter"),
        "ter cannot aggregate references: use one of bleu, chrf": (rows, "--utility=ter", "--method=aggregate"),
        "stdin: no candidates": ("",),
        "stdin:2: neither tab-separated LINE, SCORE, TEXT": ("1\t0\ta\nhello\n",),
        "stdin:1: neither tab-separated LINE, SCORE": ('{"line": 1, "hypotheses": ["a"]}\n',),
        "stdin:1: no candidates for line 1": ('{"line": 1, "hypotheses": []}\n',),
        "stdin:2: candidates of line 3, expected line 2": ("1\t0\ta\n3\t0\tb\n",),
        "stdin:1: --weights=probability needs a score": (
            '{"line": 1, "hypotheses": [{"text": "a"}]}\n',
            "--weights=probability",
        ),
    }
    for words, (text, *arguments) in cases.items():
        code, _, err = mbr(text, *arguments)
        assert code == 2
        assert err.startswith("nmt-jax: error: ")
        assert err.count("\n") == 1
        assert words in err


def test_lines_before_a_bad_row_are_decided(mbr):
    code, out, err = mbr(as_rows(LISTS) + "4\tnone\n")
    assert code == 2
    assert out.split("\n")[:-1] == CHOSEN[:2]
    assert "stdin:9:" in err


def test_a_utility_that_reads_sources(mbr, tmp_path):
    sources = ["the old cat sat on the mat", "a dog runs in the park"]
    lists = [[(0, "the cat sat"), (0, "the cat sat down"), (0, "cats")], [(0, "the cat sat"), (0, "a dog runs")]]
    (tmp_path / "s").write_text("".join(f"{line}\n" for line in sources))
    code, out, err = mbr(as_rows(lists), "--utility=sari", f"--source={tmp_path / 's'}", "--format=json")
    assert code == 0, err
    for source, group, row in zip(sources, lists, out.splitlines(), strict=True):
        texts = [text for _, text in group]
        expected = SARI().pairwise(texts, texts, [source] * len(texts)).mean(axis=1) / 100
        np.testing.assert_allclose(json.loads(row)["utilities"], expected, atol=1e-6)
    assert "--metrics=sari needs the source of each text" in mbr(as_rows(lists), "--utility=sari")[2]
    assert "--source has no effect" in mbr(as_rows(lists), f"--source={tmp_path / 's'}")[2]
    (tmp_path / "s").write_text("one line\n")
    assert (
        "s:2: no such line, but stdin has candidates of line 2"
        in mbr(as_rows(lists), "--utility=sari", f"--source={tmp_path / 's'}")[2]
    )
