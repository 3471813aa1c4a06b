"""`nmt-jax align`: one line of links per sentence pair, a lexicon, scores against gold links, neural models."""

import json

import pytest

from nmt_jax.data.vocabulary.translation_lexicon import Lexicon
from nmt_jax.data.vocabulary.vocab import Vocab
from tests.fixtures import tiny_encoder_folder

PAIRS = [("das haus", "the house"), ("das buch", "the book"), ("ein buch", "a book"), ("ein haus", "a house")]
TEXT = "".join(f"{source} ||| {target}\n" for source, target in PAIRS)


@pytest.fixture
def files(tmp_path):
    for side, name in enumerate(("source", "target")):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in PAIRS))
    return [f"--{name}={tmp_path / name}" for name in ("source", "target")]


def test_links_lexicon_and_scores(nmt_jax, files, tmp_path):
    gold = tmp_path / "gold"
    gold.write_text("1-1 2-2\n1-1 2p2\n1-1 2-2 1p2\n1-1 2-2\n")
    lexicon = tmp_path / "lexicon.tsv"
    code, lines, stderr = nmt_jax("align", *files, f"--gold={gold}", f"--lexicon={lexicon}", "--model=ibm1")
    assert (code, lines) == (0, ["0-0 1-1"] * 4)
    assert "4 lines: AER 0.0000, precision 1.0000, recall 1.0000" in stderr
    rows = [row.split("\t") for row in lexicon.read_text().splitlines()]
    assert {(source, target) for source, target, p in rows if float(p) > 0.5} == {
        ("das", "the"),
        ("haus", "house"),
        ("buch", "book"),
        ("ein", "a"),
    }
    vocabularies = [Vocab.train([pair[side] for pair in PAIRS], size=20, algorithm="word") for side in (0, 1)]
    assert Lexicon.read(lexicon, *vocabularies).listed == len(rows)


def test_pairs_of_stdin_and_json(nmt_jax):
    text = TEXT.replace(" ||| ", "\t") + " ||| nothing\n"
    code, lines, _ = nmt_jax("align", "--model=ibm1", "--format=json", "--symmetrize=intersection", stdin=text)
    assert code == 0
    rows = [json.loads(line) for line in lines]
    assert [row["line"] for row in rows] == [1, 2, 3, 4, 5]
    assert rows[4]["links"] == []
    assert [link[:2] for link in rows[0]["links"]] == [[0, 0], [1, 1]]
    assert all(0.5 < link[2] <= 1 for row in rows for link in row["links"])


def test_pairs_that_do_not_belong_together_have_the_lowest_scores(nmt_jax):
    text = TEXT * 5 + "das haus ||| a book\n"
    code, lines, _ = nmt_jax("align", "--model=ibm1", "--format=score", stdin=text)
    scores = [float(line) for line in lines]
    assert code == 0
    assert scores[-1] < 0.5 < 0.7 < min(scores[:-1]) <= max(scores) <= 1


def test_sampled_links_do_not_depend_on_chunks(nmt_jax, files):
    flags = ["align", *files, "--sweeps=30", "--chains=2", "--seed=3", "--symmetrize=intersection"]
    whole = nmt_jax(*flags)
    assert whole.code == 0
    assert whole.lines == ["0-0 1-1"] * 4
    assert nmt_jax(*flags, "--chunk=3").lines == whole.lines


def test_output_to_a_file(nmt_jax, files, tmp_path):
    output = tmp_path / "links"
    assert nmt_jax("align", *files, f"--output={output}", "--model=ibm1", "--chunk=3").code == 0
    assert output.read_text() == "0-0 1-1\n" * 4


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return tiny_encoder_folder.write(tmp_path_factory.mktemp("encoder"))


def test_links_by_an_encoder(nmt_jax, encoder, tmp_path):
    """Equal sentences; chunks change nothing."""
    gold = tmp_path / "gold"
    gold.write_text("1-1 2-2 3-3\n\n1-1 2-2\n")
    text = "the bad film ||| the bad film\n ||| a man\ngreat man ||| great man\n"
    flags = ["align", f"--encoder={encoder}", "--layer=1", f"--gold={gold}"]
    code, lines, stderr = nmt_jax(*flags, stdin=text)
    assert (code, lines) == (0, ["0-0 1-1 2-2", "", "0-0 1-1"])
    assert "3 lines: AER 0.0000" in stderr
    assert nmt_jax(*flags, "--chunk=1", stdin=text).lines == lines
    rows = [json.loads(row) for row in nmt_jax(*flags, "--format=json", stdin=text).lines]
    assert rows[1] == {"line": 2, "links": []}
    assert rows[2]["links"] == [[0, 0, pytest.approx(1, abs=1e-5)], [1, 1, pytest.approx(1, abs=1e-5)]]


def test_attention_gives_the_links_of_translate(nmt_jax, translator_workdir, tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_text("the old man sleeps .\nAnna sees a red house .\n")
    target.write_text("der alte Mann schläft .\nAnna sieht ein rotes Haus .\n")
    translated = nmt_jax(
        "translate", f"--workdir={translator_workdir}", f"--input={source}", f"--given={target}", "--alignment=argmax"
    )
    aligned = nmt_jax("align", f"--workdir={translator_workdir}", f"--source={source}", f"--target={target}")
    assert aligned.code == 0
    assert aligned.lines == [row.split("\t")[-1] for row in translated.lines]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--encoder={encoder}", "--workdir=x"], "--encoder and --workdir exclude each other"),
        (["--encoder={encoder}", "--model=hmm"], "--model has no effect with --encoder"),
        (["--workdir=x", "--symmetrize=union"], "--symmetrize has no effect with --workdir"),
        (["--encoder={encoder}", "--lexicon=x"], "--lexicon has no effect with --encoder"),
        (["--encoder={encoder}", "--layer=3"], "--layer=3: the encoder has layers 0 (embeddings) to 2"),
        (["--encoder={encoder}", "--threshold=0.2"], "--threshold has no effect without --workdir"),
        (["--encoder={encoder}", "--checkpoint=last"], "--checkpoint has no effect without --workdir=FOLDER"),
        (["--encoder=/nowhere"], "/nowhere: no such folder or installed package"),
        (["--method=match"], "--method has no effect without --encoder"),
        (["--layer=1"], "--layer has no effect without --encoder"),
        (["--workdir=/nowhere"], "/nowhere"),
        (["--workdir={language_model}"], "'language_model'"),
        (["--encoder={language_model}"], "its task is 'language_model', but an encoder needs"),
    ],
)
def test_mistakes_with_neural_models(mistake, encoder, language_model_workdir, flags, message):
    places = {"encoder": encoder, "language_model": language_model_workdir}
    assert message in mistake("align", *(flag.format(**places) for flag in flags), stdin=TEXT)


@pytest.mark.parametrize(
    ("flags", "text", "message"),
    [
        (["file.txt"], TEXT, "reads stdin"),
        (["--source=x"], TEXT, "--source and --target belong together"),
        (["--source=x", "--target=y", "--input=z"], TEXT, "--input excludes"),
        (["--source=/nowhere", "--target=/nowhere"], TEXT, "/nowhere: no such file"),
        (["--model=ibm1", "--null_probability=0.1"], TEXT, "--null_probability has no effect with --model=ibm1"),
        (["--model=hmm", "--sweeps=3"], TEXT, "--sweeps has no effect without --model=fertility"),
        (["--model=hmm", "--fit_tension"], TEXT, "--fit_tension has no effect without --model=diagonal"),
        (["--alpha=0.1"], TEXT, "--alpha has no effect with --model=fertility"),
        (["--lexicon_minimum=0.1"], TEXT, "no effect without --lexicon"),
        ([], "a b c\n", "stdin:1: not a sentence pair"),
        ([], "a ||| b ||| c\n", "stdin:1: not a sentence pair"),
        ([], " ||| a\nb ||| \n", "no sentence pair has words on both sides"),
        ([], "", "no sentence pair has words on both sides"),
        ([], f"{'a ' * 2000} ||| b\n", "stdin:1: a sentence of 2,000 words"),
    ],
)
def test_mistakes(mistake, flags, text, message):
    assert message in mistake("align", *flags, stdin=text)


@pytest.mark.parametrize(
    ("gold", "message"),
    [
        ("1-1\n1-1\n1-1\n", "3 lines, but the input has 4"),
        ("1-1\n" * 5, ":5: more lines than the input, which has 4"),
        ("1-1\n1-3\n\n\n", ":2: the link 1-3 names a word that is not there: counted from 1, the target has 2 words"),
        ("0-1\n\n\n\n", ":1: the link 0-1 names a word that is not there"),
        ("1x1\n\n\n\n", ":1: '1x1' is not a link"),
    ],
)
def test_gold_of_another_text(mistake, tmp_path, gold, message):
    path = tmp_path / "gold"
    path.write_text(gold)
    assert message in mistake("align", f"--gold={path}", stdin=TEXT)


def test_unequal_files(mistake, files, tmp_path):
    (tmp_path / "target").write_text("the house\n")
    assert "this line has no counterpart" in mistake("align", *files)
