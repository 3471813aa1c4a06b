import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from metrics_jax import Idf, MoverScore
from metrics_jax.embedding import contextual
from tests.fixtures import golden, minilm, tiny_encoder

ENCODER = tiny_encoder.make()

short = st.text("ab c.", max_size=6)


def compare(shared, encoder, wanted) -> int:
    """Checks the selected golden cases and returns their number."""
    read = golden.read(shared, "moverscore")
    given = [one for one in read["inputs"].values() if "hypotheses" in one]
    counter = MoverScore(encoder)
    corpus = {
        "idf": counter.count([group[0] for one in given for group in one["references"]]),
        "hypothesis_idf": counter.count([text for one in given for text in one["hypotheses"]]),
    }
    count = 0
    for case in read["cases"]:
        if case["level"] != "sentence" or not wanted(case):
            continue
        options = dict(case["options"])
        options |= corpus if options.pop("idf") == "corpus" else {}
        texts = read["inputs"][case["input"]]
        found = MoverScore(encoder, **options).statistics(texts["hypotheses"], texts["references"])
        expected = np.array([row["exact_emd"] for row in case["expected"]], float)  # null: all weights are 0
        defined = ~np.isnan(expected)
        np.testing.assert_allclose(found[defined, 0], expected[defined], atol=1e-5, rtol=0, err_msg=case["id"])
        assert np.isfinite(found).all()
        count += 1
    return count


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*only tokens of idf weight 0")
def test_equals_the_published_programs(shared, monkeypatch):
    """v1 and v2 with pyemd, recomputed with weights that sum to 1 and POT's exact solver."""
    encoder = minilm.load()
    monkeypatch.setattr(contextual, "encode", minilm.Read(encoder, shared, "moverscore"))
    assert compare(shared, encoder, lambda case: True) > 100


@pytest.mark.filterwarnings("ignore:.*only tokens of idf weight 0")
@pytest.mark.slow
def test_equals_the_published_programs_end_to_end(shared):
    encoder = minilm.load()

    def wanted(case):
        options = case["options"]
        return case["input"] == "emoji" and options["idf"] == "corpus" and not options["stop_words"]

    assert compare(shared, encoder, wanted) == 6


def runs(text, metric, weigh):
    """The vectors that are moved and their weights, from the definition."""
    vectors, ids, special = zip(*(tiny_encoder.states(ENCODER, text, layer) for layer in metric.layers), strict=True)
    pieces, kept = ENCODER.pieces(ids[0].tolist()), []
    for place, (piece, mark) in enumerate(zip(pieces, special[0], strict=True)):
        continues = metric.remove_subwords and "##" in piece
        if mark or not (piece in string.punctuation or continues or piece in metric.stop_words):
            kept.append(place)
    if metric.variant == "v1":
        points = np.concatenate([np.min(vectors, 0), np.mean(vectors, 0), np.max(vectors, 0)], axis=1)[kept]
    else:
        points = vectors[0][kept]
    weights = np.array([weigh(int(ids[0][place])) for place in kept])
    n = min(metric.n_gram, len(kept))
    places = [range(first, first + n) for first in range(len(kept) - n + 1)]
    means = [np.average(points[window], axis=0, weights=weights[window]) for window in places]
    return np.array([mean / np.linalg.norm(mean) for mean in means]), np.array(
        [weights[window].sum() for window in places]
    )


def expected_score(hypothesis, reference, metric, weigh, weigh_reference):
    (x, a), (y, b) = runs(hypothesis, metric, weigh), runs(reference, metric, weigh_reference)
    cost = np.linalg.norm(x[:, None] - y[None], axis=-1) ** (2 if metric.variant == "v1" else 1)
    rows, columns = np.kron(np.eye(len(a)), np.ones(len(b))), np.kron(np.ones(len(a)), np.eye(len(b)))
    sums = np.concatenate([a / a.sum(), b / b.sum()])
    value = linprog(cost.ravel(), A_eq=np.concatenate([rows, columns]), b_eq=sums).fun
    return 1 - value if metric.variant == "v1" else 1 / (1 + value)


@pytest.mark.parametrize(
    "options",
    [
        {"n_gram": 1},
        {"n_gram": 2, "remove_subwords": False},
        {"n_gram": 3, "stop_words": ("b",), "remove_subwords": False},
        {"n_gram": 1, "layers": (2, 4)},
        {"variant": "v2", "remove_subwords": False},
        {"variant": "v2", "layers": (1,)},
    ],
    ids=str,
)
@given(st.lists(st.tuples(short, short), min_size=1, max_size=4), st.booleans())
@settings(max_examples=6, deadline=None)
def test_equals_the_definition(options, pairs, weighted):
    metric, weighs = MoverScore(ENCODER, **options), [lambda token: 1] * 2
    if weighted:
        idfs = Idf({3 + ord("a"): 3, 3 + ord("b") + 128: 1}, 4), Idf({3 + ord("c"): 1, 1: 2}, 3)
        metric = MoverScore(ENCODER, **options, hypothesis_idf=idfs[0], idf=idfs[1])
        weighs = [idf.__getitem__ for idf in idfs]
    found = metric.statistics(*zip(*pairs, strict=True))
    np.testing.assert_allclose(found[:, 0], [expected_score(*pair, metric, *weighs) for pair in pairs], atol=1e-5)
    np.testing.assert_array_equal(found[:, 1], 0)


def test_the_gap_bounds_the_error_of_sinkhorn():
    hypotheses = ["abc a ca b", "a", "", "b c a b"]
    references = ["c b ab cc", "b", "a", "b c a"]
    for variant in ("v1", "v2"):
        exact = MoverScore(ENCODER, variant=variant, remove_subwords=False)(hypotheses, references)
        result = MoverScore(ENCODER, variant=variant, remove_subwords=False, transport="sinkhorn")(
            hypotheses, references
        )
        assert (result.segments <= exact.segments + 1e-6).all()
        assert result.parts["gap"] < 0.02
        assert exact.score - result.score <= result.parts["gap"]
        assert exact.parts["gap"] == 0


def test_texts_without_remaining_tokens():
    plain = tiny_encoder.plain()
    for variant in ("v1", "v2"):
        np.testing.assert_array_equal(
            MoverScore(plain, variant=variant)(["", "a", "", "..", "."], ["a", "", "", "a", "!?"]).segments,
            [0, 0, 1, 0, 1],
        )
        scores = MoverScore(ENCODER, variant=variant)(["", "a", ""], ["a", "", ""]).segments  # [CLS] and [SEP] remain
        assert (scores[:2] < 1).all()
        assert scores[2] == pytest.approx(1, abs=1e-6)


def test_several_references_are_averaged():
    metric, references = MoverScore(ENCODER), ["a b", "c", "b a c"]
    single = [metric(["a c"], [reference]).score for reference in references]
    assert metric(["a c"], [references]).score == pytest.approx(np.mean(single))


def test_a_stop_word_list_by_name():
    smart = MoverScore(ENCODER, stop_words="smart")
    assert "|stop_words:smart|" in smart.signature
    pair = (["a 7 8"], ["b 8"])
    assert smart(*pair).score == MoverScore(ENCODER, stop_words=("b", "a"))(*pair).score
    assert smart(*pair).score != MoverScore(ENCODER)(*pair).score


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"variant": "v3"}, "variant='v3' is none of v1, v2"),
        ({"n_gram": 0}, "n_gram=0"),
        ({"variant": "v2", "n_gram": 2}, "n_gram=2"),
        ({"transport": "greedy"}, "transport='greedy'"),
        ({"stop_words": "the"}, "stop_words='the'"),
    ],
)
def test_invalid_options_raise_errors(options, line):
    with pytest.raises(ValueError, match=line):
        MoverScore(ENCODER, **options)
