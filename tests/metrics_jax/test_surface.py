import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metrics_jax.api import check_texts
from metrics_jax.surface import BLEU, TER, ChrF

METRICS = [BLEU(), ChrF(), ChrF(word_order=2), TER()]
text = st.text(alphabet="abc .,\u2028é🙂", max_size=12)
segments = st.lists(st.tuples(text, st.lists(text, min_size=1, max_size=3)), min_size=1, max_size=6)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_text_compared_with_itself_is_perfect(metric):
    texts = ["the old man sleeps in the garden .", "nobody knows it , not even he ."]
    result = metric(texts, texts)
    perfect = 100.0 if metric.higher_is_better else 0.0
    assert result.score == pytest.approx(perfect, abs=1e-9)
    np.testing.assert_allclose(result.segments, [perfect] * 2, atol=1e-9)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
@given(segments)
@settings(max_examples=25, deadline=None)
def test_statistics_add_up_to_the_score_and_nothing_is_nan(metric, pairs):
    hypotheses, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    result = metric(hypotheses, references)
    assert metric.score(metric.statistics(hypotheses, references).sum(axis=0)) == pytest.approx(result.score, abs=1e-9)
    assert np.isfinite(result.segments).all()
    alone = [metric([hypothesis], [group]).segments[0] for hypothesis, group in pairs]
    np.testing.assert_array_equal(result.segments, alone)  # a segment's score does not depend on its neighbours


@pytest.mark.parametrize("kind", [BLEU, ChrF, TER])
def test_corpus_scores_equal_the_golden_values(kind, shared):
    path = shared / "golden" / f"{kind.name}.json"
    if not path.exists():
        pytest.skip(f"no golden values at {path}")
    golden = json.loads(path.read_text())
    checked = 0
    for case in golden["cases"]:
        texts = golden["inputs"][case["input"]]
        if (
            case["level"] != "corpus" or "hypotheses" not in texts or case["input"] == "permutations"
        ):  # TER takes a minute
            continue
        result = kind(**case["options"])(texts["hypotheses"], texts["references"])
        assert result.score == pytest.approx(case["expected"]["score"], rel=1e-9, abs=1e-12), case["id"]
        assert result.signature.startswith(case["signature"]), case["id"]
        checked += 1
    assert checked > 20


def test_scores_of_a_small_corpus():  # numbers from the command `sacrebleu` 2.6.0
    hypotheses = ["der alte mann schläft .", "ein hund läuft ."]
    references = ["der alte Mann schläft .", "ein Hund läuft schnell ."]
    assert BLEU()(hypotheses, references).score == pytest.approx(18.56, abs=0.005)
    assert BLEU(lowercase=True)(hypotheses, references).score == pytest.approx(73.58, abs=0.005)
    assert ChrF()(hypotheses, references).score == pytest.approx(59.36, abs=0.005)
    assert TER()(hypotheses, references).score == pytest.approx(10.0, abs=0.005)


def test_more_references_help():
    hypotheses = ["the cat sat on the mat ."]
    one, two = [["a dog ran in the park ."]], [["a dog ran in the park .", "the cat sat on the mat ."]]
    assert BLEU()(hypotheses, one).score < BLEU()(hypotheses, two).score == pytest.approx(100)
    assert TER()(hypotheses, one).score > TER()(hypotheses, two).score == 0


def test_the_signature_names_what_changes_the_number():
    assert BLEU()(["a"], ["a"]).signature.startswith("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert "nrefs" not in BLEU().signature
    assert "nrefs:var" in BLEU()(["a", "b"], [["a"], ["b", "c"]]).signature
    changed = [
        BLEU(lowercase=True),
        BLEU(tokenize="intl"),
        BLEU(smooth_method="floor"),
        BLEU(max_ngram_order=2),
        ChrF(word_order=2),
        ChrF(beta=3),
        TER(normalized=True),
    ]
    assert len({metric.signature for metric in changed + METRICS[:2] + METRICS[3:]}) == len(changed) + 3


def test_wrong_input_is_told():
    with pytest.raises(ValueError, match="3 hypotheses but 2 references"):
        check_texts(["a", "b", "c"], ["a", "b"])
    with pytest.raises(TypeError, match="hypotheses must be a sequence"):
        check_texts("abc", ["a", "b", "c"])
    with pytest.raises(TypeError, match="references must be a sequence"):
        check_texts(["a", "b", "c"], "abc")
    with pytest.raises(ValueError, match="segment 1 has no reference"):
        check_texts(["a", "b"], [["a"], []])
    with pytest.raises(TypeError, match="segment 0"):
        check_texts([b"a"], ["a"])
    with pytest.raises(ValueError, match="no segments"):
        BLEU()([], [])
    with pytest.raises(ValueError, match="none of 13a"):
        BLEU(tokenize="13b")
    with pytest.raises(ValueError, match="none of exp"):
        BLEU(smooth_method="exponential")


def test_importing_the_package_imports_nothing_heavy():
    heavy = {"flax", "sacrebleu", "matplotlib", "tensorflow", "torch", "nmt_jax", "tensorflow_datasets"}
    code = f"import sys, metrics_jax, metrics_jax.surface; print(sorted({heavy!r} & set(sys.modules)))"
    root = pathlib.Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True).stdout == "[]\n"
