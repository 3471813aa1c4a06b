"""METEOR 1.5; expected values are by meteor-1.5.jar (in pycocoevalcap 1.2)."""

import gzip
import os
import shlex
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics_jax import Meteor15, parse
from metrics_jax.meteor.meteor15_aligner import Match, java_hash, search
from metrics_jax.meteor.meteor15_normalizer import Normalizer
from metrics_jax.meteor.meteor15_stemmers import STEMMED, english, german, stemmer
from metrics_jax.meteor.meteor15_tables import SYNONYM_FILES, Tables, function_words
from tests.fixtures import golden, texts

STEMS = Meteor15(modules=("exact", "stem"))
SYNSETS = "run\n1 2 3\ndog\n4 5\nhound\n5\nchase\n3 6\nbe\n7\nbee\n8\nglass\n9\n"
EXCEPTIONS = "run\nran running\nbe\nam is\n"
PARAPHRASES = [
    ("a number of", "many"), ("a number of", "several"), ("begin", "start"), ("home", "house"), ("house", "home"),
    ("in order to", "to"), ("many", "various"),
]  # fmt: skip

WORDS = ["the", "to", "v1", "dog", "dogs", "run", "running", "ran", "home", "house", "many", ",", "U.S."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Small tables, in the layout of METEOR's folder."""
    path = tmp_path_factory.mktemp("meteor")
    with zipfile.ZipFile(path / "meteor-1.5.jar", "w") as jar:
        jar.writestr(SYNONYM_FILES[0], SYNSETS)
        jar.writestr(SYNONYM_FILES[1], EXCEPTIONS)
        jar.writestr("nonbreaking/spanish.prefixes", "# abbreviations\nSra\nNo #NUMERIC_ONLY# \n")
    (path / "data").mkdir()
    with gzip.open(path / "data" / "paraphrase-en.gz", "wt") as file:
        file.writelines(f"0.5\n{phrase}\n{paraphrase}\n" for phrase, paraphrase in PARAPHRASES)
    return path


def options(arguments):
    """The arguments of the program as fields of Meteor15."""
    found = {"norm": False, "lowercase": False}
    arguments = iter(shlex.split(arguments))
    for argument in arguments:
        match argument:
            case "-norm":
                found |= {"norm": True, "lowercase": True}
            case "-lower":
                found["lowercase"] = True
            case "-noPunct":
                found["no_punct"] = True
            case "-l" | "-t":
                found[{"-l": "language", "-t": "task"}[argument]] = next(arguments)
            case "-m":
                found["modules"] = tuple(next(arguments).split())
            case "-p" | "-w":
                numbers = tuple(map(float, next(arguments).split()))
                found[{"-p": "parameters", "-w": "weights"}[argument]] = numbers
            case "-r":
                next(arguments)  # the number of references, of which some are repeated as padding
            case _:
                raise AssertionError(argument)
    return found


def check_golden(shared, with_tables):
    """Check the golden cases that need METEOR's tables, or the others, and return their number."""
    checked = 0
    for case, hypotheses, references in golden.cases(shared, "meteor15"):
        fields = options(case["options"]["args"])
        if with_tables != (not {"exact", "stem"} >= set(fields.get("modules", ["synonym"]))):
            continue
        metric = Meteor15(**fields)
        result = metric(hypotheses, references)
        if case["level"] == "corpus":
            found, expected = [{**result.parts, "score": result.score}], [case["expected"]]
        else:
            rows = metric.statistics(hypotheses, references)
            found = [{**metric.parts(row), "score": score} for row, score in zip(rows, result.segments, strict=True)]
            found = [{**values, "fragmentation": values["frag_penalty"]} for values in found]
            expected = case["expected"]
        for values, row in zip(found, expected, strict=True):
            for name, value in row.items():
                value = 0.0 if value == "nan" else value
                assert values[name] == pytest.approx(value, abs=1e-9), (case["id"], name)
        checked += 1
    return checked


def test_golden_values_of_words_and_stems(shared):
    assert check_golden(shared, with_tables=False) == 48


@pytest.mark.slow  # the tables take half a minute to read
def test_golden_values_of_synonyms_and_paraphrases(shared):
    try:
        Meteor15()
    except ValueError as error:
        pytest.skip(f"64 golden cases not run: {error}")
    assert check_golden(shared, with_tables=True) == 64


@pytest.mark.parametrize(
    ("fields", "hypothesis", "reference", "score"),
    [
        (
            {},
            "The dogs were running to the old house, weren't they?",
            "The dog was seen running past the old houses; they weren't.",
            0.2675187640802518,
        ),
        (
            {"modules": ("exact",)},
            "Mr. Brown's U.S. office opened at 10:30 a.m. on Nov. 5.",
            "The US office of Mr. Brown opened at half past ten on November 5.",
            0.2787331961517576,
        ),
        (
            {"no_punct": True},
            'Well-known, isn\'t it? -- "Yes", he said...',
            "It is well known, isn't it? He said: yes.",
            0.46313401627446604,
        ),
        (
            {"norm": False},
            "A Cat sat , and the cats Sat again",
            "the cat sat and a cat sat again",
            0.44214051360744183,
        ),
        (
            {"norm": False, "lowercase": False},
            "A Cat sat , and the cats Sat again",
            "the cat sat and a cat sat again",
            0.230118308607966,
        ),
        (
            {"language": "de"},
            "Die Kinder spielten gestern im Garten des Nachbarn.",
            "Gestern haben die Kinder in den Gärten der Nachbarn gespielt.",
            0.28857758620689655,
        ),
        (
            {"language": "es", "norm": False},
            "los niños jugaban en el jardín .",
            "el niño juega en los jardines .",
            0.4698768978102995,
        ),
        (
            {"language": "fr", "norm": False},
            "les enfants jouaient dans l' eau .",
            "l' enfant joue dans les eaux .",
            0.45945641545191784,
        ),
        (
            {"language": "cz", "modules": ("exact",)},
            "Děti si hrály na zahradě.",
            "Na zahradě si hrály děti.",
            0.4467352531109634,
        ),
        (
            {"language": "ru", "norm": False},
            "дети играли в саду .",
            "в саду играет всё время ребёнок .",
            0.2864975371913438,
        ),
    ],
)
def test_worked_examples(fields, hypothesis, reference, score):
    metric = Meteor15(**{"modules": ("exact", "stem"), **fields})
    assert metric([hypothesis], [reference]).score == pytest.approx(score, abs=1e-12)


def test_corpus_scores_use_the_best_references():
    hypotheses = ["The dogs ran home.", "A quick brown fox", "Nothing here matches"]
    references = [
        ["The dog ran home.", "Dogs were running home."],
        "A quick brown fox",
        ["Other words only", "None at all"],
    ]
    result = STEMS(hypotheses, references)
    assert result.segments == pytest.approx([0.890909090909091, 1, 0], abs=1e-12)
    assert result.score == pytest.approx(0.6996466431095406, abs=1e-12)
    assert result.parts == pytest.approx(
        {
            "precision": 0.66,
            "recall": 0.7071428571428572,
            "f1": 0.6827586206896552,
            "fmean": 0.6996466431095406,
            "frag_penalty": 0,
            "chunks": 0,  # texts that match completely in one chunk add none
            "test_words": 12,
            "reference_words": 12,  # the first of two references that score 0; "at" and "all" are function words
        },
        abs=1e-12,
    )
    assert STEMS.statistics(hypotheses, references)[2].tolist() == [3, 0, 3, 1, 0, *[0] * 8]


def align(hypothesis, reference, **fields):
    return Meteor15(**{"modules": ("exact", "stem"), **fields}).align(hypothesis.split(), reference.split())


def test_words_are_compared_by_java_hash():
    assert java_hash("to") == java_hash("v1")
    assert [java_hash(text) for text in ("", "a", "😀", "international")] == [0, 97, 1772899, 2064805518]
    assert align("to x", "v1 y") == [Match(0, 1, 0, 1, 0)]
    # These texts count as equal, so that only the first module is used; stems match only different words.
    assert align("to x", "v1 x", modules=("stem", "exact")) == []


def test_contested_stems_are_not_matched():
    assert align("run", "running") == [Match(0, 1, 0, 1, 1)]
    assert align("run", "running runs") == []
    assert align("run", "running run") == [Match(1, 1, 0, 1, 0)]


def test_the_last_chunk_is_closed_after_the_last_sort():
    assert align("f b", "a b c b") == [Match(3, 1, 1, 1, 0)]  # not the first "b", which also has one chunk
    assert align("a b a c", "b a b") == [Match(1, 1, 0, 1, 0), Match(2, 1, 1, 1, 0)]


def test_distance_is_added_to_later_paths():
    # The match of the first "a" is tried first; its distance of 3 is added to the other path.
    assert align("a x x a", "z z z a z") == [Match(3, 1, 0, 1, 0)]


def test_function_words_are_english_in_all_languages():
    assert "the" in function_words()
    assert "der" not in function_words()
    rows = [
        Meteor15(language, modules=("exact",), norm=False, lowercase=False).statistics(["The der"], ["x"])
        for language in ("en", "de", "cz")
    ]
    assert [row[0, 1] for row in rows] == [1, 1, 1]


def test_synonyms(folder):
    def share(one, other):
        return bool(align(one, other, modules=("synonym",), tables=folder))

    assert share("dog", "hound")
    assert share("ran", "chase")  # in the list of exceptions
    assert share("hounds", "dogs")
    assert share("running", "run")
    assert not share("dog", "dog")  # equal words are matched by "exact" only
    assert not share("bees", "be")  # the first base form in the synsets, "bee", is the only one
    assert not share("glasss", "glass")
    assert share("am", "is")
    assert not share("Dogs", "hound")  # looked up without lower-casing
    # A stem and a synonym are two candidates for one word; each covers 0 words, and taking one costs a chunk.
    assert align("running", "run", modules=("exact", "stem", "synonym"), tables=folder) == []


def test_paraphrases(folder):
    def matches(hypothesis, reference, modules=("exact", "paraphrase")):
        return align(hypothesis, reference, modules=modules, tables=folder)

    assert matches("a number of dogs", "many dogs") == [Match(0, 1, 0, 3, 1), Match(1, 1, 3, 1, 0)]
    assert matches("many dogs", "a number of dogs") == [Match(0, 3, 0, 1, 1), Match(3, 1, 1, 1, 0)]
    assert matches("begin", "start", ("paraphrase",)) == [Match(0, 1, 0, 1, 0)]
    assert matches("home", "house") == []  # in the table in both directions: two candidates, see above
    assert matches("in order to", "to", ("paraphrase",)) == [Match(0, 1, 0, 3, 0)]
    assert matches("in order to", "to") == [Match(0, 1, 2, 1, 0)]  # an exact match counts 2, the paraphrase 1 + 0


def test_weights_are_assigned_by_position(folder):
    assert Meteor15(tables=folder).weights == (1.0, 0.6, 0.8, 0.6)
    assert Meteor15(modules=("exact", "paraphrase"), tables=folder).weights == (1.0, 0.6)
    assert Meteor15(modules=("paraphrase",), task="util", tables=folder).weights == (1.0,)
    assert Meteor15(modules=("exact", "stem"), parameters=(0.5, 1, 0.5, 0.5)).weights == (1.0, 1.0)


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        ("en", "Dr. Brown's U.S. offices, i.e. two. And so on...", "dr. brown 's us offices , ie two . and so on ..."),
        ("en", "No. 5, but no. Five. P. 5 a.m.", "no. 5 , but no . five . p. 5 am"),
        ("en", "It's 'rock'n'roll' of the 1990's", "it 's ' rock 'n'roll ' of the 1990 's"),
        ("en", "state-of-the-art -- well–known—yes", "state of the art - well - known — yes"),
        ("en", "a-b-c 1,000,5 1,,2 x,,y $3.50 50%", "a b-c 1,000,5 1 , , 2 x , ,y $ 3.50 50 %"),
        ("en", "``Quoted'' “text” ‘here’ &amp; ǎ日", '" quoted " " text " \' here \' & amp ; ǎ 日'),
        ("de", "Am 5. Mai um z.B. 3,5 Mio. Euro, wie's", "am 5. mai um zb 3,5 mio. euro , wie ' s"),
        ("fr", "L'eau d'aujourd'hui. Fin", "l' eau d' aujourd' hui . fin"),
        ("cz", "Dr. Novák\u00a0přišel\u2028dnes.", "dr . novák přišel \u2028 dnes ."),
    ],
)
def test_normaliser(language, text, words):
    prefixes, numeric = Tables().prefixes(language) if language != "fr" else (frozenset(), frozenset())
    assert " ".join(Normalizer(language, prefixes, numeric).words(text)) == words


def test_prefixes_of_other_languages_are_read(folder):
    metric = Meteor15("es", modules=("exact",), tables=folder)
    assert " ".join(metric.words("Sra. García: No. 5, No. Sí.")) == "sra. garcía : no. 5 , no . sí ."


def test_stems_of_2011():
    words = (
        "evening international added biologist emergency skies y's generously ponies hopping agreed succeeded yelling"
    )
    stems = "even intern ad biologist emerg sky y generous poni hop agre succeed yell"
    assert " ".join(map(english, words.split())) == stems
    words = "ergebnisse aufeinander häuser grüßten schönste beschäftigung freundlichkeit bauer quelle jährlichen"
    stems = "ergebniss aufeinand haus grusst schon beschaft freundlich bau quell jahrlich"
    assert " ".join(map(german, words.split())) == stems
    assert [stemmer("ru")("всё"), stemmer("tr")("ankara'da"), stemmer("fr")("Maisons")] == ["всё", "ankara'", "Maison"]
    assert all(stemmer(language)("") == "" for language in STEMMED)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 2), st.integers(0, 5), st.integers(1, 2)), max_size=12))
@settings(deadline=None, max_examples=200)
def test_search(spans):
    candidates = [Match(*span, 0) for span in spans]
    found = search(candidates, 7, 7, ("exact",))
    assert set(found) <= set(candidates)
    assert found == sorted(found)
    for first in (0, 2):
        taken = [k for match in found for k in range(match[first], match[first] + match[first + 1])]
        assert len(taken) == len(set(taken))
    alone = [
        one
        for one in candidates
        if all(
            one is other or one[k] + one[k + 1] <= other[k] or other[k] + other[k + 1] <= one[k]
            for other in candidates
            for k in (0, 2)
        )
    ]
    assert set(alone) <= set(found)


@given(texts.segments(texts.spaced(*WORDS, max_size=8), max_size=4))
@settings(deadline=None, max_examples=100)
def test_properties(folder, pairs):
    metric = Meteor15(tables=folder)
    hypotheses, references = [text for text, _ in pairs], [group for _, group in pairs]
    result = metric(hypotheses, references)
    assert ((result.segments >= 0) & (result.segments <= 1)).all()
    statistics = metric.statistics(hypotheses, references)
    assert metric.score(statistics.sum(axis=0)) == result.score
    np.testing.assert_array_equal(metric.score(np.stack([statistics, statistics])), [result.segments] * 2)
    for hypothesis, group, segment in zip(hypotheses, references, result.segments, strict=True):
        assert metric([hypothesis], [group]).score == segment
        assert segment == max(metric([hypothesis], [one]).score for one in group[::-1])
        identical = metric([hypothesis], [hypothesis]).score
        assert identical == (1 if metric.words(hypothesis) else 0)


def test_empty_texts_score_0():
    result = STEMS(["", "a", "", " "], ["a", "", "", ["\n", "b"]])
    assert result.segments.tolist() == [0, 0, 0, 0]
    assert result.score == 0
    assert not np.isnan(list(result.parts.values())).any()
    assert STEMS.score(np.zeros((2, 13))).tolist() == [0, 0]


def test_signature(folder, tmp_path):
    metric = Meteor15(task="adq", tables=folder)
    fingerprint = metric.tables.fingerprint[:16]
    assert metric.signature.split("|")[1:-1] == [
        "language:en",
        "task:adq",
        "modules:exact+stem+synonym+paraphrase",
        "weights:1.0+1.0+0.6+0.8",
        "parameters:0.75+1.4+0.45+0.7",
        "norm:true",
        "lowercase:true",
        "no_punct:false",
        f"tables:{fingerprint}",
    ]
    assert parse(metric.signature, tables=folder) == metric
    assert parse(metric.signature, tables=Tables(folder)) == metric
    assert "tables:none" in STEMS.signature
    assert parse(STEMS.signature) == STEMS
    (tmp_path / "synonym").mkdir()
    (tmp_path / SYNONYM_FILES[0]).write_text(SYNSETS.replace("9", "8"))
    (tmp_path / SYNONYM_FILES[1]).write_text(EXCEPTIONS)
    (tmp_path / "paraphrase-en.gz").write_bytes((folder / "data" / "paraphrase-en.gz").read_bytes())
    with pytest.raises(ValueError, match="computed with tables"):
        parse(metric.signature, tables=tmp_path)


def test_default_directory(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("METEOR_DATA", str(folder))
    assert Meteor15() == Meteor15(tables=folder)
    monkeypatch.setenv("METEOR_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=r"english\.synsets.*pip install pycocoevalcap"):
        Meteor15()
    with pytest.raises(ValueError, match=r"paraphrase-de\.gz"):
        Meteor15("de", tables=folder)
    monkeypatch.delenv("METEOR_DATA")
    package = tmp_path / "pycocoevalcap"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('never imported')")
    (package / "meteor").symlink_to(folder)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert Meteor15() == Meteor15(tables=folder)
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(ValueError, match="not installed: pip install pycocoevalcap"):
        Meteor15()


def test_broken_tables(folder, tmp_path):
    (tmp_path / "paraphrase-en.gz").write_bytes((folder / "data" / "paraphrase-en.gz").read_bytes()[:-9])
    metric = Meteor15(modules=("exact", "paraphrase"), tables=tmp_path)
    with pytest.raises(ValueError, match=r"cannot unpack METEOR's paraphrase-en\.gz"):
        metric(["a"], ["b"])
    os.remove(tmp_path / "paraphrase-en.gz")
    with pytest.raises(ValueError, match=r"cannot read METEOR's paraphrase-en\.gz"):
        _ = metric.signature


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"language": "xx"}, "language='xx'"),
        ({"language": "da"}, "cannot normalise 'da'"),
        ({"language": "da", "norm": False}, "task='rank'.*li, tune"),
        ({"language": "de", "task": "adq"}, "task='adq'.*rank, li, tune"),
        ({"task": "ranks"}, "task='ranks'"),
        ({"task": "ranks", "parameters": (0.5, 1, 0.5, 0.5)}, "task='ranks'"),
        ({"language": "de", "parameters": (0.5, 1, 0.5, 0.5)}, "weights"),
        ({"modules": ()}, "modules"),
        ({"modules": ("exact", "exact")}, "at most once"),
        ({"modules": ("exact", "stems")}, "modules"),
        ({"language": "de", "modules": ("synonym",)}, "no synonyms for 'de'"),
        ({"language": "cz", "modules": ("exact", "stem")}, "no stemmer for 'cz'"),
        ({"weights": (1.0,)}, "one for each of 2"),
        ({"weights": (1.0, -0.1)}, "none negative"),
        ({"weights": (1.0, float("nan"))}, "none negative"),
        ({"parameters": (0.5, 1, 0.5)}, "alpha, beta, gamma, delta"),
        ({"parameters": (0.5, -1, 0.5, 0.5)}, "alpha, beta, gamma, delta"),
        ({"lowercase": False}, "norm=True implies lower-casing"),
        ({"norm": False, "no_punct": True}, "no_punct=True needs norm=True"),
    ],
)
def test_invalid_options(fields, message):
    with pytest.raises(ValueError, match=message):
        Meteor15(**{"modules": ("exact",) if "language" in fields else ("exact", "stem"), **fields})


def test_imports_are_lazy():
    code = "import metrics_jax.meteor.meteor15, sys; "
    code += "print([m for m in ('nltk', 'snowballstemmer', 'jax') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
