"""`nmt-jax augment`: changed copies of lines, with and without translations, and mistakes."""

import gzip

import pytest

from tests.fixtures import wordnet

ENGLISH = ["The boys see a car .", "A car is near the lads .", "", "Cars and bikes , and my bicycles .", "my auto"]
GERMAN = ["Die Jungen sehen ein Auto .", "Ein Auto ist bei den Kerlen .", "", "Autos und Räder", "mein Auto"]
LINKS = ["0-0 1-1 2-2 3-3 4-4 5-5", "1-1", "", "", "0-0"]
LEXICON = "lads\tKerle\t0.8\nauto\tWagen\t0.6\nauto\tAuto\t0.3\nboys\tJungen\t0.2\n"


@pytest.fixture
def files(tmp_path):
    for name, lines in (("train.en", ENGLISH), ("train.de", GERMAN), ("links", LINKS)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "lexicon").write_text(LEXICON)
    wordnet.write(tmp_path / "wordnet")
    (tmp_path / "vectors.txt").write_text("car 1 0\nauto 1 0.1\nboys 0 1\nlads 0.1 1\nkönig 1 1\n")
    return [f"--source={tmp_path / 'train.en'}", f"--target={tmp_path / 'train.de'}", f"--output={tmp_path / 'out'}"]


def read(path):
    return path.read_text().split("\n")[:-1]


@pytest.fixture
def substitution(files, tmp_path):
    flags = ("rate=1", "min_count=1", f"lexicon={tmp_path / 'lexicon'}", f"links={tmp_path / 'links'}")
    return [*files, *(f"--{flag}" for flag in flags)]


def test_synonyms_and_their_translations(nmt_jax, substitution, tmp_path):
    code, lines, stderr = nmt_jax(
        "augment", "--kind=synonyms", f"--wordnet={tmp_path / 'wordnet'}", *substitution, "--keep_unchanged"
    )
    assert (code, lines) == (0, [str(tmp_path / "out.en"), str(tmp_path / "out.de")])
    assert read(tmp_path / "out.en") == [
        "The lads see a car .",  # not `a auto`
        "A car is near the boys .",
        "",
        "Cars and bicycles , and my bikes .",  # autos and cycles are not in the text
        "my car",
    ]
    assert read(tmp_path / "out.de") == ["Die Kerle sehen ein Auto .", *GERMAN[1:]]
    assert "5 lines: 4 changed copies, 5 words changed by synonyms; 1 target words changed, 4 left" in stderr
    assert "1 copies without any change; 5 lines written" in stderr


def test_neighbours_among_vectors(nmt_jax, substitution, tmp_path):
    flags = ["--kind=embedding", f"--vectors={tmp_path / 'vectors.txt'}"]
    code, _, stderr = nmt_jax("augment", *flags, *substitution)
    assert code == 0
    assert read(tmp_path / "out.en") == ["The lads see a car .", "A car is near the boys .", "my car"]
    assert read(tmp_path / "out.de")[0] == "Die Kerle sehen ein Auto ."
    assert "5 lines: 3 changed copies, 3 words changed by embedding; 1 target words changed, 2 left" in stderr
    assert "2 copies without any change; 3 lines written" in stderr


@pytest.mark.parametrize("kind", ["dropout", "swap", "mask", "infill"])
def test_noise_changes_the_source_only(nmt_jax, files, tmp_path, kind):
    flags = [f"--kind={kind}", "--rate=0.4", "--copies=3", "--keep_unchanged", "--keep_original"]
    assert nmt_jax("augment", *flags, *files).code == 0
    english = read(tmp_path / "out.en")
    assert english[::4] == ENGLISH
    assert read(tmp_path / "out.de") == [line for line in GERMAN for _ in range(4)]
    assert english != [line for line in ENGLISH for _ in range(4)]
    assert english[8:12] == [""] * 4
    assert ("<mask>" in " ".join(english)) == (kind in ("mask", "infill"))


def test_a_share_of_the_lines_gives_the_same_result(nmt_jax, files, tmp_path):
    flags = ["--kind=dropout", "--rate=0.5", "--copies=2", "--seed=3", "--keep_unchanged"]
    assert nmt_jax("augment", *flags, *files).code == 0
    (tmp_path / "part.en.gz").write_bytes(gzip.compress("\n".join(ENGLISH[3:]).encode()))
    part = [f"--source={tmp_path / 'part.en.gz'}", f"--output={tmp_path / 'part'}", "--first_line=4"]
    assert nmt_jax("augment", *flags, *part).lines == [str(tmp_path / "part.en")]
    assert read(tmp_path / "part.en") == read(tmp_path / "out.en")[6:]
    nmt_jax("augment", *flags, *files, "--seed=4", "--overwrite")
    assert read(tmp_path / "part.en") != read(tmp_path / "out.en")[6:]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--kind=swap", "--rate=0"], "--rate"),
        (["--kind=swap", "--rate=1.5"], "--rate"),
        (["--kind=swap", "--window=0"], "--window"),
        (["--kind=swap", "--mask_token=x"], "--mask_token has no effect with --kind=swap"),
        (["--kind=dropout", "--links=links"], "--links has no effect with --kind=dropout"),
        (["--kind=mask", "--mask_token=a b"], "must be one word"),
        (["--kind=mask", "--min_probability=0.5"], "--min_probability has no effect without --lexicon=FILE"),
        (["--kind=mask", "more"], "nmt-jax augment needs --kind=KIND, --source=FILE and --output=PREFIX"),
        (["--kind=embedding"], "needs --vectors=FILE"),
        (["--kind=synonyms", "--links=links"], "--lexicon, --links and --target belong together"),
        (
            ["--kind=synonyms", "--wordnet=wordnet", "--min_count=9", "--rate=1"],
            "no word has a WordNet synonym that occurs",
        ),
        (["--kind=synonyms", "--wordnet=nowhere"], "no WordNet database in nowhere"),
        (["--kind=embedding", "--vectors=missing"], "missing"),
        (["--kind=mask", "--rate=0.000001"], "--rate=1e-06 of 23 words is too little"),
        (["--kind=mask", "--target=links"], "use names that end in different languages"),
    ],
)
def test_mistakes(mistake, files, tmp_path, monkeypatch, flags, message):
    monkeypatch.chdir(tmp_path)
    assert message in mistake("augment", *files, *flags)
    assert not list(tmp_path.glob("*out*"))


def test_damaged_files(mistake, substitution, files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    synonyms = ["augment", "--kind=synonyms", "--wordnet=wordnet", *substitution]
    (tmp_path / "links").write_text("\n".join([*LINKS[:3], "0-0 1-9", ""]) + "\n")
    assert "links:4: the link 1-9 names a word that is not there" in mistake(*synonyms)
    (tmp_path / "links").write_text("0-0\n")
    assert "has 1" in mistake(*synonyms)
    (tmp_path / "lexicon").write_text("Hund\tdog\t0.5\n")
    assert "lexicon: none of its source words occurs in the text" in mistake(*synonyms)
    (tmp_path / "lexicon").write_text("dog\tHund\t0.5\ndog\n")
    assert "lexicon:2: not an entry" in mistake(*synonyms)
    (tmp_path / "vectors.txt").write_text("könig 1 1\n")
    assert "vectors.txt: no word of" in mistake("augment", "--kind=embedding", "--vectors=vectors.txt", *files)
    (tmp_path / "train.de").write_text("eins\n")
    assert "train.en:2: this line has no counterpart" in mistake("augment", "--kind=mask", *files)
    assert not list(tmp_path.glob("*out*"))


def test_inputs_and_existing_files_are_kept(mistake, files, tmp_path):
    assert "a file would be used twice" in mistake("augment", "--kind=mask", *files, f"--output={tmp_path / 'train'}")
    (tmp_path / "out.de").write_text("precious")
    assert "out.de: already exists" in mistake("augment", "--kind=mask", *files)
    assert (tmp_path / "out.de").read_text() == "precious"
