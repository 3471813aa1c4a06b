"""`nmt-jax rerank`: scores restated from the outputs of other verbs, tuned weights, mistakes."""

import json
import math

import numpy as np
import pytest

from tests.fixtures.command_line import error_line

SOURCES = ["der alte Mann schläft .", "sie sieht den Hund .", "wir kennen ihn nicht ."]
LISTS = [
    [(-1.5, "the old man sleeps ."), (-1.75, "an old man sleeps"), (-2.0, "the old dog")],
    [(-0.5, "she sees the dog ."), (-3.0, "")],
    [(-2.5, "we do not know him ."), (-2.75, "we know him"), (-4.0, "we do not know him at all .")],
]
TEXTS = [text for group in LISTS for _, text in group]
WEIGHTS = {"direct": 0.4, "channel": 0.3, "language_model": 0.2, "words": -0.1}


def as_json(lists):
    """Lists of (score, text) or (score, text, features) as `nmt-jax translate` and `nmt-jax rerank` write them."""
    names = ("score", "text", "features")
    rows = [[dict(zip(names, one, strict=False)) for one in group] for group in lists]
    return "".join(json.dumps({"line": n, "hypotheses": own}) + "\n" for n, own in enumerate(rows, start=1))


def write_weights(path, weights):
    path.write_text(json.dumps({"weights": weights}))
    return f"--weights={path}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Sources, candidates and an n-gram model of a few words."""
    from nmt_jax.__main__ import main

    folder = tmp_path_factory.mktemp("rerank")
    (folder / "source.de").write_text("\n".join(SOURCES) + "\n")
    (folder / "candidates").write_text(as_json(LISTS))
    (folder / "text").write_text("the old man sleeps .\nshe sees the old dog .\nwe know him .\n")
    fallback = "--discount_fallback=0.5,1,1.5"
    assert main(["ngram", f"--input={folder}/text", "--order=2", fallback, f"--output={folder}/en.arpa"]) == 0
    return folder


@pytest.fixture
def models(folder, translator_workdir):
    """The flags of the inputs and of both models."""
    channel = (f"--channel={translator_workdir}", f"--source={folder / 'source.de'}")
    return (f"--input={folder / 'candidates'}", *channel, f"--language_model={folder / 'en.arpa'}")


def hypotheses(finished):
    assert finished.code == 0, finished.stderr
    return [json.loads(line)["hypotheses"] for line in finished.lines]


def test_scores_are_weighted_sums_of_what_other_verbs_compute(folder, models, translator_workdir, nmt_jax, tmp_path):
    (tmp_path / "texts").write_text("".join(f"{text}\n" for text in TEXTS))
    repeated = [source for source, group in zip(SOURCES, LISTS, strict=True) for _ in group]
    (tmp_path / "sources").write_text("".join(f"{source}\n" for source in repeated))
    given = f"--given={tmp_path / 'sources'}", f"--input={tmp_path / 'texts'}"
    found = nmt_jax("translate", f"--workdir={translator_workdir}", *given, "--format=json").lines
    channel = [json.loads(line)["hypotheses"][0]["score"] for line in found]
    found = nmt_jax("perplexity", f"--ngram={folder / 'en.arpa'}", "--segments", given[1]).lines
    language = [-row["tokens"] * math.log(row["perplexity"]) for row in map(json.loads, found)]
    rest = zip(channel, language, strict=True)
    expected = []
    for group in LISTS:
        scores = {}
        for direct, text in group:
            features = np.array([direct, *next(rest), len(text.split())])
            scores[text] = float(np.array([0.4, 0.3, 0.2, -0.1]) @ features), features
        expected.append(sorted(scores.items(), key=lambda item: -item[1][0]))
    weights = write_weights(tmp_path / "weights", WEIGHTS)
    ranked = hypotheses(nmt_jax("rerank", *models, weights, "--format=json"))
    for own, wanted in zip(ranked, expected, strict=True):
        assert [one["text"] for one in own] == [text for text, _ in wanted]
        np.testing.assert_allclose([one["score"] for one in own], [score for _, (score, _) in wanted], atol=1e-5)
        for one, (_, (_, features)) in zip(own, wanted, strict=True):
            assert list(one["features"]) == ["direct", "words", "channel", "language_model"]
            np.testing.assert_allclose([one["features"][name] for name in WEIGHTS], features, atol=1e-5)
    assert any(own[0]["text"] != group[0][1] for own, group in zip(ranked, LISTS, strict=True))
    assert nmt_jax("rerank", *models, weights).lines == [own[0]["text"] for own in ranked]
    apart = hypotheses(nmt_jax("rerank", *models, weights, "--format=json", "--chunk=1"))
    for own, wanted in zip(apart, ranked, strict=True):
        assert [one["text"] for one in own] == [one["text"] for one in wanted]
        np.testing.assert_allclose([one["score"] for one in own], [one["score"] for one in wanted], atol=1e-5)


def test_features_in_the_input_are_kept(models, nmt_jax, tmp_path):
    computed = nmt_jax("rerank", *models, "--format=json")  # without weights, the order is kept
    assert [[one["text"] for one in own] for own in hypotheses(computed)] == [[text for _, text in g] for g in LISTS]
    weights = write_weights(tmp_path / "weights", WEIGHTS)
    stored = "".join(f"{line}\n" for line in nmt_jax("rerank", *models, weights, "--format=json").lines)
    assert nmt_jax("rerank", weights, stdin=stored).lines == nmt_jax("rerank", *models, weights).lines
    direct = write_weights(tmp_path / "direct", {"direct": 1, "channel": 0, "language_model": 0, "words": 0})
    assert nmt_jax("rerank", direct, stdin=stored).lines == [group[0][1] for group in LISTS]
    equal = as_json([[(-1.0, "b"), (-1.0, "a"), (-1.0, "c")]])
    assert [one["text"] for one in hypotheses(nmt_jax("rerank", "--format=json", stdin=equal))[0]] == ["b", "a", "c"]


def test_log_probabilities_replace_scores(folder, translator_workdir, nmt_jax):
    rows = hypotheses(
        nmt_jax("translate", f"--workdir={translator_workdir}", "--nbest=3", "--format=json", stdin=SOURCES[0] + "\n")
    )
    (folder / "own").write_text(json.dumps({"line": 1, "hypotheses": rows[0]}) + "\n")
    (folder / "one").write_text(SOURCES[0] + "\n")
    flags = f"--input={folder / 'own'}", f"--source={folder / 'one'}", f"--direct={translator_workdir}", "--format=json"
    for one in hypotheses(nmt_jax("rerank", *flags))[0]:
        (folder / "given").write_text(one["text"] + "\n")
        given = f"--workdir={translator_workdir}", f"--given={folder / 'given'}", "--format=json"
        found = nmt_jax("translate", *given, stdin=SOURCES[0] + "\n")
        assert one["features"]["direct"] == pytest.approx(hypotheses(found)[0][0]["score"], abs=1e-5) == one["score"]


def test_a_neural_language_model(folder, language_model_workdir, nmt_jax):
    flags = f"--input={folder / 'candidates'}", f"--language_model={language_model_workdir}", "--format=json"
    for own in hypotheses(nmt_jax("rerank", *flags))[:1]:
        for one in own:
            rows = nmt_jax("perplexity", f"--workdir={language_model_workdir}", stdin=one["text"] + "\n").lines
            found = dict(row.split() for row in rows)
            expected = -float(found["tokens"]) * math.log(float(found["perplexity"]))
            assert one["features"]["language_model"] == pytest.approx(expected, rel=1e-5)


def test_tuning_finds_planted_weights(nmt_jax, tmp_path):
    rng = np.random.default_rng(0)
    words = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"]
    lists = []
    for _ in range(60):
        features = rng.normal(size=(8, 2))
        order = np.argsort(np.argsort(features @ (2.0, -1.0)))  # the best has the most words of the reference
        texts = [" ".join([*words[: 4 + place], *["x"] * (8 - place)]) for place in order]
        rows = zip(texts, features.tolist(), strict=True)
        lists.append([(0.0, text, {"first": one, "second": other}) for text, (one, other) in rows])
    (tmp_path / "references").write_text((" ".join(words) + "\n") * len(lists))
    output = tmp_path / "weights"
    tune = f"--tune={tmp_path / 'references'}", f"--output={output}", "--overwrite"
    code, _, stderr = nmt_jax("rerank", *tune, stdin=as_json(lists))
    content = json.loads(output.read_text())
    weights = content["weights"]
    assert code == 0
    assert list(weights) == ["direct", "words", "first", "second"]
    assert weights["first"] / weights["second"] == pytest.approx(-2, rel=0.1)
    assert sum(map(abs, weights.values())) == pytest.approx(1)
    assert f"60 lines: bleu {content['score']:.4g} (first candidates: {content['first']:.4g})" in stderr
    assert content["score"] > content["first"] + 20
    best = [max(group, key=lambda one: 2 * one[2]["first"] - one[2]["second"])[1] for group in lists]
    chosen = nmt_jax("rerank", f"--weights={output}", stdin=as_json(lists)).lines
    assert sum(one == other for one, other in zip(chosen, best, strict=True)) >= 57


def test_requests_that_cannot_be_met(
    folder, models, translator_workdir, language_model_workdir, nmt_jax, mistake, tmp_path
):
    candidates, channel, source, language = models
    weights = write_weights(tmp_path / "w", {"direct": 1})
    (tmp_path / "few").write_text("der Mann\n")
    (tmp_path / "many").write_text("der Mann\n" * 4)
    (tmp_path / "source.en").write_text("the man\n" * 3)
    for name, words in {"few": "few:2: no such line, but", "many": "many:4: "}.items():
        finished = nmt_jax("rerank", candidates, channel, f"--source={tmp_path / name}", weights)
        assert finished.code == 2
        assert words in error_line(finished)
    assert "few: 1 lines, but" in mistake("rerank", candidates, f"--tune={tmp_path / 'few'}")
    wrong = "translates from en into de, so it fits no translations of"
    assert wrong in mistake("rerank", candidates, channel, f"--source={tmp_path / 'source.en'}", weights)
    assert wrong in mistake("rerank", candidates, f"--direct={translator_workdir}", source, weights)
    assert "need --source=FILE" in mistake("rerank", candidates, channel, weights)
    assert "its task is 'language_model'" in mistake(
        "rerank", candidates, f"--channel={language_model_workdir}", source, weights
    )
    assert "its task is 'translate'" in mistake("rerank", candidates, f"--language_model={translator_workdir}", weights)
    assert "neither a workdir nor a file" in mistake("rerank", candidates, "--language_model=/nowhere", weights)
    assert "candidates:1: " in mistake("rerank", candidates, f"--language_model={folder / 'candidates'}", weights)
    assert "needs --weights=FILE" in mistake("rerank", candidates, language)
    assert "no candidates" in mistake("rerank", weights)


HUGE = f'{{"weights": {{"direct": {"1" * 400}}}}}'  # no float


def test_weights_that_cannot_be_used(models, mistake, tmp_path):
    candidates, path = models[0], tmp_path / "w"
    said = mistake("rerank", candidates, write_weights(path, {"direct": 1, "word": 1}))
    assert f"{path}: has a weight for 'word', but the candidates have no such feature; did you mean words?" in said
    said = mistake("rerank", candidates, write_weights(path, {"channel": 1}))
    assert "no such feature: name the model by --channel" in said
    for content in (
        "{}",
        "[1]",
        '{"weights": {"direct": "x"}}',
        '{"weights": {"direct": NaN}}',
        '{"weights": {}}',
        HUGE,
    ):
        path.write_text(content)
        assert f"{path}: not a file of weights" in mistake("rerank", candidates, f"--weights={path}")


def test_candidates_that_cannot_be_used(mistake, tmp_path):
    weights = write_weights(tmp_path / "w", {"direct": 1})
    unscored = json.dumps({"line": 1, "hypotheses": [{"text": "a"}]})
    assert "candidates of line 1: the feature 'direct' is nan" in mistake("rerank", weights, stdin=unscored)
    uneven = as_json([[(0.0, "a", {"extra": 1.0}), (0.0, "b", {})]])
    both = write_weights(tmp_path / "both", {"direct": 1, "extra": 1})
    assert "candidates of line 1: one lacks the feature 'extra'" in mistake("rerank", both, stdin=uneven)
    (tmp_path / "reference").write_text("a\n")
    alike = as_json([[(0.0, "b"), (-1.0, "c")]])
    assert "no line has candidates of different bleu" in mistake(
        "rerank", f"--tune={tmp_path / 'reference'}", stdin=alike
    )
