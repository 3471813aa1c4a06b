"""What a metric is said to have matched gives its score again, computed here from the parts alone."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from metrics_jax import parse
from metrics_jax.surface.wordnet import WordNet
from nmt_jax.reporting.explanations.explain import explain
from tests.fixtures import tiny_encoder, wordnet

WORDS = ["the", "cat", "cats", "sat", "car", "auto", "on", "a", "mat", ".", "running", "run", "Jérôme", "don't", "2,5"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)
NEAR = st.tuples(st.permutations(WORDS[:8]), st.integers(0, 8)).map(lambda drawn: " ".join(drawn[0][: drawn[1]]))


def on_pairs(test):
    """Random pairs, and the extreme ones: an empty hypothesis, no match, equal texts."""
    for pair in (("", "the cat"), ("the cat", ""), ("", ""), ("a a a a", "mat mat"), ("the cat sat .",) * 2):
        test = example(pair)(test)
    return settings(max_examples=15)(given(st.tuples(TEXTS, TEXTS) | st.tuples(NEAR, NEAR))(test))


def explained(metric, pair):
    """The explanation of a pair; its score is that of the metric for a corpus and for a segment."""
    found, result = explain(metric, *pair), metric([pair[0]], [pair[1]])
    assert found["score"] == result.score == result.segments[0]
    assert found["signature"] == result.signature
    return found


def f_score(precision, recall, weight=1.0):
    return (1 + weight) * precision * recall / (weight * precision + recall) if precision + recall else 0.0


def check_places(found):
    """Every n-gram stands where it is said to stand, and the matches are the sum of the clipped counts."""
    joint = "".join if found["unit"] == "character" else " ".join
    for order in found["orders"]:
        for ngram in order["ngrams"]:
            assert ngram["matched"] == min(len(ngram["hypothesis"]), len(ngram["reference"]))
            for side in ("hypothesis", "reference"):
                units = list("".join(found[side])) if found["unit"] == "character" else found[side]
                texts = {joint(units[start:end]) for start, end in ngram[side]}
                assert texts <= {ngram["text"].replace(" ", "") if found["unit"] == "character" else ngram["text"]}
        assert order["matches"] == sum(ngram["matched"] for ngram in order["ngrams"])
        for side in ("hypothesis", "reference"):
            assert order[side] == sum(len(ngram[side]) for ngram in order["ngrams"])


@pytest.mark.parametrize(
    "options", ["", "|smooth_method:add-k", "|effective_order:true|lowercase:true", "|tokenize:char"]
)
def test_bleu(options):
    @on_pairs
    def check(pair):
        found = explained(parse(f"bleu{options}"), pair)
        check_places(found)
        length, other = len(found["hypothesis"]), len(found["reference"])
        precisions, halved = [], 1.0
        for order in found["orders"]:
            added = order["order"] > 1 and "add-k" in options
            matches, total = order["matches"] + added, order["hypothesis"] + added
            if total == 0 and "effective" in options:
                break
            if total and not matches and "add-k" not in options:
                halved /= 2
                matches = halved
            precisions.append(100 * matches / total if total else 0.0)
        score = 0.0
        if any(order["matches"] for order in found["orders"]) and all(precisions):
            penalty = 1.0 if length >= other else math.exp(1 - other / length)
            score = penalty * math.prod(precisions) ** (1 / len(precisions))
        assert found["score"] == pytest.approx(score, rel=1e-9, abs=1e-9)
        assert found["equation"][-1].endswith(f"= {score:.2f}") or score == 0

    check()


@pytest.mark.parametrize("options", ["", "|word_order:2", "|whitespace:true|beta:1", "|lowercase:true|char_order:3"])
def test_chrf(options):
    @on_pairs
    def check(pair):
        metric = parse(f"chrf{options}")
        found = explained(metric, pair)
        check_places(found)
        reached = [order for order in found["orders"] if order["hypothesis"] and order["reference"]]
        precision, recall = (
            sum(order["matches"] / order[side] for order in reached) / max(len(reached), 1)
            for side in ("hypothesis", "reference")
        )
        assert found["score"] == pytest.approx(100 * f_score(precision, recall, metric.beta**2), rel=1e-9, abs=1e-9)

    check()


def test_nist_overlap_and_per():
    @on_pairs
    def check(pair):
        found = explained(parse("nist"), pair)
        check_places(found)
        assert found["parts"]["information"] == [order["information"] for order in found["orders"]]
        found = explained(parse("overlap|beta:2.0"), pair)
        check_places(found)
        (order,) = found["orders"]
        precision, recall = (order["matches"] / max(order[side], 1) for side in ("hypothesis", "reference"))
        assert found["score"] == pytest.approx(f_score(precision, recall, 4), abs=1e-9)
        found = explained(parse("per"), pair)
        (order,) = found["orders"]
        edits = max(order["hypothesis"], order["reference"]) - order["matches"]
        expected = 100 * edits / order["reference"] if order["reference"] else 100.0 * (edits > 0)
        assert found["score"] == pytest.approx(expected, abs=1e-9)

    check()


def check_edits(found):
    """The shifts and edits turn the hypothesis into the reference, and their number is that of the metric."""
    order = list(range(len(found["hypothesis"])))
    for first, middle, last in found["shifts"]:
        order = order[:first] + order[middle:last] + order[first:middle] + order[last:]
    assert order == found["order"]
    words = [found["hypothesis"][position] for position in order]
    pairs = dict(found["pairs"])
    assert list(pairs) == sorted(pairs)
    assert list(pairs.values()) == sorted(pairs.values())
    substituted = sum(words[place] != found["reference"][j] for place, j in pairs.items())
    inserted, deleted = (len(side) - len(pairs) for side in (found["reference"], words))
    expected = {"shift": len(found["shifts"]), "insertion": inserted, "deletion": deleted, "substitution": substituted}
    assert {"shift": 0} | found["counts"] == expected
    return sum(expected.values())


@pytest.mark.parametrize("name", ["ter", "ter|normalized:true|case_sensitive:true", "wer"])
def test_ter_and_wer(name):
    @on_pairs
    def check(pair):
        found = explained(parse(name), pair)
        edits, length = check_edits(found), len(found["reference"])
        expected = 100 * edits / length if length else 100.0 * (edits > 0)
        assert found["score"] == pytest.approx(expected, abs=1e-9)

    check()


def test_ter_beyond_its_beam():
    draw = np.random.default_rng(0)
    reference = " ".join(map(str, range(150)))
    texts = ["60 80", "149 0", " ".join(map(str, [*range(100, 150), *range(60)]))]
    texts += [" ".join(map(str, draw.integers(0, 150, size))) for size in (10, 60)]
    for text in texts:
        found = explained(parse("ter"), (text, reference))
        assert found["score"] == pytest.approx(100 * check_edits(found) / 150, abs=1e-9)


def test_wer_of_texts_of_which_one_is_much_longer():
    draw = np.random.default_rng(0)
    reference = " ".join(map(str, draw.integers(0, 20, 300)))
    for size in (0, 1, 40, 300):
        text = " ".join(map(str, draw.integers(0, 20, size)))
        found = explained(parse("wer"), (text, reference))
        assert found["shifts"] == []
        assert found["score"] == pytest.approx(100 * check_edits(found) / 300, abs=1e-9)


def test_cder():
    found = explained(parse("cder"), ("a b c", "a c d e"))
    assert found["score"] == pytest.approx(100 * found["parts"]["num_edits"] / 4)
    assert f"{found['parts']['num_edits']:g} edits / 4 words" in found["equation"][0]


def positions(found):
    """Matched positions of both texts; no word is matched twice."""
    pairs = [(i, j) for match in found["matches"] for i in match["hypothesis"] for j in match["reference"]]
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)
    return pairs


def test_cider():
    fitted = parse("cider").fitted(["the cat", "a mat", "on the car"])

    @on_pairs
    def check(pair):
        found = explained(fitted, pair)
        check_places(found)
        values = [one["similarity"] for one in found["orders"]]
        assert found["score"] == pytest.approx(sum(values) / 4, abs=1e-9)
        assert found["equation"][0].endswith(f"= {found['score']:.4f}")
        assert explained(parse("cider"), pair)["equation"][0].startswith("CIDEr-D = 0: ")

    check()


@pytest.mark.parametrize("exponent", [1.0, 2.0])
def test_gtm(exponent):
    @on_pairs
    def check(pair):
        found = explained(parse(f"gtm|exponent:{exponent}"), pair)
        pairs = positions(found)
        assert all(found["hypothesis"][i] == found["reference"][j] for i, j in pairs)
        chunks = [match["chunk"] for match in found["matches"]]
        size = sum(chunks.count(chunk) ** exponent for chunk in set(chunks)) ** (1 / exponent)
        assert found["parts"]["match_size"] == pytest.approx(size)
        precision, recall = (size / max(len(found[side]), 1) for side in ("hypothesis", "reference"))
        assert found["score"] == pytest.approx(f_score(precision, recall), abs=1e-9)
        assert pairs or found["equation"] == ["GTM = 0, since no word matches"]

    check()


def test_character_and_eed():
    pair = ("so she said yes", "yes she said")
    found = explained(parse("character"), pair)
    assert found["equation"] == ["CharacTER = (3 edits + 3.00 for shifts) / 15 characters = 0.4000"]
    found = explained(parse("character"), ("", "a"))
    assert found["equation"] == ["CharacTER = 1: the hypothesis has no words"]
    found = explained(parse("character"), ("a", "bcd"))
    assert found["equation"] == ["CharacTER = (3 edits + 0.00 for shifts) / 1 characters, at most 1 = 1.0000"]
    found = explained(parse("eed"), ("a b", "a b"))
    line = "EED = (distance + coverage) / (reference + coverage) = (0.00 + 0.30) / (5 characters + 0.30) = 0.0566"
    assert (found["kind"], found["equation"]) == ("score", [line])


@pytest.mark.parametrize(
    "name", ["rouge1", "rouge2", "rougeL", "rougeLsum", "rouge155|variant:L", "rouge155|variant:2"]
)
def test_rouge(name):
    @on_pairs
    def check(pair):
        found = explained(parse(name), pair)
        if found["kind"] == "ngrams":
            check_places(found)
            (order,) = found["orders"]
            matches, length, other = (order[key] for key in ("matches", "hypothesis", "reference"))
        else:
            pairs = positions(found)
            assert [j for _, j in pairs] == sorted(j for _, j in pairs)
            assert all(found["hypothesis"][i] == found["reference"][j] for i, j in pairs)
            matches, length, other = len(pairs), len(found["hypothesis"]), len(found["reference"])
        score = f_score(matches / max(length, 1), matches / max(other, 1))
        assert found["score"] == pytest.approx(score, rel=1e-9, abs=1e-9)

    check()


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    return WordNet(wordnet.write(tmp_path_factory.mktemp("wordnet")))


@pytest.mark.parametrize("name", ["meteor", "meteor|alpha:0.5|beta:1.0|gamma:0.3", "meteor_nltk"])
def test_meteor(name, database):
    @on_pairs
    def check(pair):
        metric = parse(name, wordnet=database)
        found = explained(metric, pair)
        pairs = positions(found)
        score = 0.0
        if pairs:
            length, other = len(found["hypothesis"]), len(found["reference"])
            chunks = len({match["chunk"] for match in found["matches"]})
            precision, recall = len(pairs) / length, len(pairs) / other
            f = precision * recall / (metric.alpha * precision + (1 - metric.alpha) * recall)
            score = f * (1 - metric.gamma * (chunks / len(pairs)) ** metric.beta)
        assert found["score"] == pytest.approx(score, rel=1e-9, abs=1e-9)

    check()


@pytest.mark.parametrize("name", ["meteor", "meteor_nltk"])
def test_the_modules_of_meteor(name, database):
    found = explained(parse(name, wordnet=database), ("the cats run auto", "the cat running car"))
    words = [(found["hypothesis"][m["hypothesis"][0]], m["module"], m["chunk"]) for m in found["matches"]]
    assert words == [("the", "exact", 0), ("cats", "stem", 0), ("run", "stem", 0), ("auto", "synonym", 0)]


def test_meteor15_without_tables():
    metric = parse("meteor15|modules:exact+stem|norm:false|language:en")
    found = explained(metric, ("the cats sat on a mat", "a cat sat on the mat"))
    assert len({match["chunk"] for match in found["matches"]}) == found["parts"]["chunks"]
    assert {match["module"] for match in found["matches"]} == {"exact", "stem"}


@pytest.fixture(scope="module")
def encoder():
    return tiny_encoder.make()


PAIRS = [
    ("the cat sat", "a cat sat on"),
    ("same text", "same text"),
    ("abc", "xyz ."),
    ("", "the cat"),
    ("a", ""),
    ("", ""),
]


@pytest.mark.parametrize("name", ["bertscore", "bertscore|nonnegative:false", "yisi1|alpha:0.4"])
@pytest.mark.parametrize("pair", PAIRS)
def test_similarities(name, pair, encoder):
    metric = parse(name, encoder=encoder)
    found = explained(metric, pair)
    precision, recall = found["parts"]["precision"], found["parts"]["recall"]
    alpha = getattr(metric, "alpha", 0.5)
    divisor = alpha * precision + (1 - alpha) * recall
    assert found["score"] == pytest.approx(precision * recall / divisor if divisor else 0.0, abs=1e-9)
    if found["kind"] == "score":
        assert "" in pair
        return
    matrix, (left, right) = np.array(found["matrix"]), map(np.array, found["weights"])
    assert matrix.shape == (len(found["hypothesis"]), len(found["reference"])) == (len(left), len(right))
    if not left.any() or not right.any():
        assert found["score"] == 0
        return
    least = 0.0 if getattr(metric, "nonnegative", True) else -1.0
    best = [np.maximum(matrix.max(axis=axis), least) for axis in (1, 0)]
    assert best[0] @ left / left.sum() == pytest.approx(precision, abs=1e-5)
    assert best[1] @ right / right.sum() == pytest.approx(recall, abs=1e-5)


@pytest.mark.parametrize("pair", PAIRS)
def test_transport(pair, encoder):
    found = explained(parse("moverscore", encoder=encoder), pair)
    if found["kind"] == "score":
        assert "has weight" in found["note"]
        return
    moved, cost = np.array(found["moved"]), np.array(found["cost"])
    np.testing.assert_allclose(moved.sum(axis=1), found["weights"][0], atol=1e-5)
    np.testing.assert_allclose(moved.sum(axis=0), found["weights"][1], atol=1e-5)
    assert found["score"] == pytest.approx(1 - (moved * cost).sum(), abs=1e-4)


def test_a_metric_that_does_not_say_what_it_matched(encoder):
    found = explained(parse("twmd", encoder=encoder), ("a cat", "the cat"))
    assert (found["kind"], found["equation"]) == ("score", [])


def test_all_metrics_of_the_registry_have_an_explanation_or_none():
    from metrics_jax.registry import REGISTRY
    from nmt_jax.reporting.explanations.explain import _FUNCTIONS

    assert _FUNCTIONS.keys() <= REGISTRY.keys()
    for module, function in _FUNCTIONS.values():
        loaded = __import__(f"nmt_jax.reporting.explanations.{module}", fromlist=[function])
        assert callable(getattr(loaded, function))
