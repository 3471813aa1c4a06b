"""`nmt-jax judge`: tables, files and mistakes."""

import json
import pathlib
import re

import numpy as np
import pytest
import scipy.stats

from metrics_jax import SARI, ChrF
from nmt_jax import __main__ as cli
from tests.fixtures.judged_texts import rows, write


@pytest.fixture
def table(tmp_path):
    return write(tmp_path / "a.tsv", rows())


def judge(capsys, *arguments):
    assert cli.main(["judge", *arguments]) == 0
    return capsys.readouterr().out


COMMON = ("--human=human", "--system=system", "--item=item", "--metrics=chrf,ter")


def test_a_row_a_metric_and_coefficient_in_a_pipe(table, capsys):
    found = [line.split("\t") for line in judge(capsys, table, *COMMON).splitlines()]
    assert [row[:4] for row in found] == [
        [metric, "a", "human", name] for name in ("pearson", "kendall") for metric in ("chrf", "ter")
    ]
    given = list(rows())
    scores = ChrF()([row[2] for row in given], [row[3] for row in given]).segments
    human = [row[4] for row in given]
    assert float(found[0][4]) == pytest.approx(scipy.stats.pearsonr(scores, human).statistic, abs=1e-6)
    assert float(found[2][4]) == pytest.approx(scipy.stats.kendalltau(scores, human).statistic, abs=1e-6)
    assert float(found[1][4]) > 0.8  # TER is an error rate, which counts negated


def test_scores_of_systems_come_from_a_file(table, tmp_path, capsys):
    write(tmp_path / "s.tsv", [("s0", 4), ("s1", 3), ("s2", 2), ("s3", 1)], "system\thuman")
    flags = ("--level=system", "--correlation=spearman", f"--system_scores={tmp_path / 's.tsv'}")
    values = [float(line.split("\t")[4]) for line in judge(capsys, table, *COMMON, *flags).splitlines()]
    assert values == [1, 1]


def test_ranks_turned_round_change_the_sign(table, capsys):
    flags = ("--metrics=", "--scores=human", "--correlation=pearson")
    by_flag = judge(capsys, table, "--human=-human", *flags)
    by_option = judge(capsys, f"{table}|human:-human", *flags)
    assert by_flag == by_option == "human\ta\thuman\tpearson\t-1.000000\n"


def test_several_files_a_column_each_and_the_mean(table, tmp_path, capsys):
    other = write(tmp_path / "b.tsv", rows(seed=1), "sys\tdoc\ttext\tref\tadequacy")
    own = f"{other}|system:sys|item:doc|hypothesis:text|reference:ref|human:adequacy"
    command = (table, own, *COMMON, "--correlation=acc_eq,kendall", "--grouping=item")
    header, _, *body = judge(capsys, *command, "--format=markdown").splitlines()
    assert [cell.strip() for cell in header.strip("|").split("|")] == [
        *("metric", "a acc_eq", "b acc_eq", "mean acc_eq", "a kendall", "b kendall", "mean kendall")
    ]
    for row in body:
        numbers = [float(cell.strip(" *")) for cell in row.strip("|").split("|")[1:]]
        assert numbers[2] == pytest.approx(np.mean(numbers[:2]), abs=1.1e-3)
    latex = judge(capsys, *command, "--format=latex")
    assert r"metric & a acc\_eq & b acc\_eq & mean acc\_eq" in latex
    assert r"\textbf{" in latex


def test_each_place_by_its_own_protocol_and_the_mean_of_its_files(table, tmp_path, capsys):
    folder = tmp_path / "several"
    folder.mkdir()
    files = [write(folder / f"{name}.tsv", rows(seed=seed)) for seed, name in enumerate("cd")]
    places = (f"{folder}|correlation:kendall|grouping:item", f"{table}|name:systems|level:system|outliers:false")
    flags = (*COMMON, "--correlation=pearson", "--average", "--confidence", "--trials=40", "--significance=permutation")
    found = json.loads(judge(capsys, *places, *flags, "--format=json"))
    assert [(one["data"], one["coefficient"]) for one in found] == [("several", "kendall"), ("systems", "pearson")]
    alone = judge(capsys, *files, *COMMON, "--correlation=kendall", "--grouping=item", "--format=json")
    pattern = judge(capsys, f"{folder}/[c-d].*|name:all", *COMMON, "--average", "--format=json")
    assert [one["data"] for one in json.loads(pattern)] == ["all", "all"]
    for metric in ("chrf", "ter"):
        mean = np.mean([one["values"][metric] for one in json.loads(alone)])
        assert found[0]["values"][metric] == pytest.approx(mean, abs=1e-12)
        lower, upper = found[0]["intervals"][metric]
        assert lower < mean < upper
    assert 0 < found[0]["p_values"][0][1] <= 1
    of_systems = judge(capsys, table, *COMMON, "--correlation=pearson", "--level=system", "--nooutliers")
    assert float(of_systems.split("\n")[0].split("\t")[4]) == pytest.approx(found[1]["values"]["chrf"], abs=1e-6)
    named = judge(capsys, f"{table}|name:systems", *COMMON, "--format=json")  # without a mean, too
    assert {one["data"] for one in json.loads(named)} == {"systems"}
    header = judge(capsys, *places, *COMMON, "--correlation=pearson", "--average", "--format=markdown").split("\n")[0]
    assert header == "| metric | several (2) kendall | systems pearson |"


def test_intervals_tests_and_clusters(table, tmp_path, capsys):
    (tmp_path / "noise.txt").write_text("".join(f"{x:.4f}\n" for x in np.random.default_rng(0).normal(size=32)))
    command = (table, *COMMON, f"--scores=noise={tmp_path / 'noise.txt'}", "--trials=199", "--correlation=pearson")
    command += ("--confidence", "--significance=permutation")
    found = json.loads(judge(capsys, *command, "--format=json"))[0]
    assert found["clusters"]["noise"] == max(found["clusters"].values()) > 1
    assert found["clusters"]["chrf"] < found["clusters"]["noise"]
    assert found["p_values"][0][0] is None
    assert found["p_values"][0][2] == found["p_values"][2][0] <= 0.01
    lower, upper = found["intervals"]["chrf"]
    assert lower < found["values"]["chrf"] < upper
    tsv = judge(capsys, *command, "--format=tsv").splitlines()
    assert tsv[0].split("\t") == ["metric", "data", "human", "coefficient", "value", "lower", "upper", "cluster"]
    markdown = judge(capsys, *command, "--format=markdown")
    assert "| p of a difference | chrf | ter | noise |" in markdown
    williams = json.loads(judge(capsys, *command[:-1], "--significance=williams", "--format=json"))[0]
    assert williams["clusters"]["noise"] == max(williams["clusters"].values()) > 1


def test_a_table_on_a_terminal(table, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    out = judge(capsys, table, *COMMON, "--confidence", "--significance=permutation", "--trials=50")
    assert "a pearson" in out
    assert "95 % bootstrap interval" in out
    assert "clusters" in out


def test_a_column_of_scores_and_ranked_pairs(tmp_path, capsys):
    path = write(tmp_path / "p.tsv", [("a b c", "x", "a b c"), ("a b", "a b c", "a b c")], "up\tdown\treference")
    found = judge(capsys, path, "--hypothesis=up", "--worse=down", "--metrics=chrf", "--correlation=darr,wmt_neutral")
    assert [float(line.split("\t")[4]) for line in found.splitlines()] == [0, 0]  # one of two pairs
    table = write(tmp_path / "a.tsv", rows())
    out = judge(capsys, table, "--human=human", "--metrics=", "--scores=human", "--scores=-human")
    assert {line.split("\t")[4] for line in out.splitlines()} in ({"1.000000"}, {"-1.000000"})


def test_outliers_are_left_out_only_where_asked(table, capsys):
    given = [(*row[:4], row[4] - 50 * (row[0] == "s9")) for row in rows(10)]
    path = write(pathlib.Path(table).with_name("o.tsv"), given)
    flags = (path, *COMMON, "--level=system", "--correlation=pearson")
    with_all, without = (judge(capsys, *flags, *more) for more in ((), ("--nooutliers",)))
    assert with_all != without


def test_pictures(table, tmp_path, capsys):
    plots = tmp_path / "plots"
    for flags in ((), ("--level=system", "--confidence", "--significance=permutation", "--trials=30")):
        judge(capsys, table, *COMMON, "--correlation=pearson", f"--plots={plots}", *flags)
        for name in ("a.human.png", "a.human.pearson.png"):
            assert (plots / name).read_bytes().startswith(b"\x89PNG")
            (plots / name).unlink()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "needs judged texts"),
        (("T",), "--human=COLUMN"),
        (("T", "--human=nothing"), r"a\.tsv:1: no column 'nothing'"),
        (("T", "--human=human", "--metrics="), "needs metrics"),
        (("T", "--human=human", "--metrics=blue"), "did you mean bleu"),
        (("T", "--human=human", "--correlation=tau"), "there is no 'tau'; choose one of pearson"),
        (("T", "--human=human", "--level=system"), "--system=COLUMN"),
        (("T", "--human=human", "--grouping=item"), "grouping item needs the item of each text: pass --item=COLUMN"),
        (("T", *COMMON, "--correlation=spa"), "use level system"),
        (("T", *COMMON, "--significance=williams"), "Pearson's r"),
        (("T", "T", "--human=human"), "two files have the name a"),
        (("T|level:words", "--human=human"), "choose one of segment, system"),
        (("T|outliers:no", "--human=human"), "choose one of true, false"),
        (("nothing/*.tsv", "--human=human"), r"nothing/\*\.tsv: no \.tsv or \.jsonl file found"),
        (("T", "U|name:a", "--human=human"), "two files have the name a"),
        (("T", *COMMON, "--average", "--correlation=pearson", "--significance=williams"), "of one file"),
        (("T|humans:z", "--human=human"), "option:value with one of the options correlation"),
        (("T", "--human=human", "--scores=x=F"), r"short\.txt has 1 lines, but a has 32 judged texts"),
        (("T", "--human=human", "--scores=x=N"), r"words\.txt:2: not a number: 'two'"),
        (("T", "U", "--human=human", "--scores=x=F"), "one file of judgements, but there are 2"),
        (("T", "--human=human", "--scores=other"), "no column 'other'"),
        (("U", "--human=human", "--system=system", "--item=item"), r"b\.tsv:34: system s0 already has a text for item"),
    ],
)
def test_mistakes_are_one_line(table, tmp_path, capsys, arguments, words):
    (tmp_path / "short.txt").write_text("1\n")
    (tmp_path / "words.txt").write_text("1\ntwo\n")
    other = write(tmp_path / "b.tsv", [*rows(), next(rows())])
    places = {"T": table, "U": other, "F": str(tmp_path / "short.txt"), "N": str(tmp_path / "words.txt")}
    given = [re.sub(r"(^|=)([TUFN])(?=$|\|)", lambda match: match[1] + places[match[2]], one) for one in arguments]
    assert cli.main(["judge", *given]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert re.search(words, err), err


def test_a_score_that_is_no_number_is_named_with_its_place(tmp_path, capsys):
    path = write(tmp_path / "a.tsv", rows())
    (tmp_path / "nan.txt").write_text("1\n" * 4 + "nan\n" + "1\n" * 27)
    assert cli.main(["judge", path, "--human=human", f"--scores=mine={tmp_path / 'nan.txt'}"]) == 2
    assert f"{path}:6: the mine score of this text is nan" in capsys.readouterr().err


def test_a_metric_of_sources_is_judged(tmp_path, capsys):
    given = [("a b c", "a b", "a b c d", 3.0), ("d e", "d e f", "x e f", 1.0), ("a", "a", "a b", 2.0)]
    path = tmp_path / "s.tsv"
    path.write_text(
        "hypothesis\treference\tsource\thuman\n" + "".join("{}\t{}\t{}\t{}\n".format(*row) for row in given)
    )
    found = judge(capsys, str(path), "--human=human", "--metrics=sari", "--source=source", "--correlation=pearson")
    hypotheses, references, sources, human = zip(*given, strict=True)
    expected = scipy.stats.pearsonr(SARI()(hypotheses, references, sources).segments, human).statistic
    assert float(found.splitlines()[0].split("\t")[4]) == pytest.approx(expected, abs=1e-6)


def test_metrics_without_references_need_no_column_of_them(tmp_path, capsys):
    model = tmp_path / "words.arpa"
    model.write_text("\\data\\\nngram 1=4\n\n\\1-grams:\n-0.5\t<s>\n-0.6\t</s>\n-0.7\ta\n-1.5\t<unk>\n\n\\end\\\n")
    path = tmp_path / "q.tsv"
    path.write_text("hypothesis\thuman\na a\t3\na b\t2\nb b\t1\n")
    arguments = [str(path), "--human=human", "--correlation=spearman", f"--perplexity={model}"]
    found = judge(capsys, *arguments, "--metrics=perplexity")
    assert float(found.splitlines()[0].split("\t")[4]) == pytest.approx(1.0)
    assert cli.main(["judge", *arguments, "--metrics=perplexity,bleu"]) == 2
    assert "q.tsv:1: no column 'reference'" in capsys.readouterr().err
