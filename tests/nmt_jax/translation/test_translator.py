"""The translation of a line depends on the line alone, for every decoding method and constraint."""

import jax
import numpy as np
import pytest

from nmt_jax import config as configs
from nmt_jax.data.vocabulary.vocab import EOS
from nmt_jax.decoding.method import Search
from nmt_jax.decoding.sampling import Sampling
from nmt_jax.distributed import sharding
from nmt_jax.errors import UserError
from nmt_jax.models.layers.quantization import quantize_parameters
from nmt_jax.tasks.translate import Translate
from nmt_jax.translation.requests import Line
from nmt_jax.translation.translator import Translator
from tests.conftest import ROOT
from tests.fixtures.parameters import draw_parameters

# Lines of similar length, so that few shapes are compiled.
LINES = ["the old man sees .", "she sleeps .", "", "we see the house .", "she sleeps .", "the dog sleeps ."]
METHODS = {
    "beam": Search(beam_size=3, n_best=2, length_penalty=0.6, coverage_penalty=0.3, no_repeat_ngram_size=2),
    "groups": Search(beam_size=4, num_groups=2, n_best=3, min_length=2),
    "samples": Sampling(num_samples=3, top_p=0.9, seed=1),
    "different samples": Sampling(num_samples=3, replacement=False),
}


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """A Transformer and a recurrent model with the same vocabulary."""
    folder = tmp_path_factory.mktemp("workdir")
    settings = {"data.cache": str(folder / "cache")}
    pages = ("quickstart", "rnn_luong")
    made = []
    for page in pages:
        config = configs.load(f"{ROOT}/configs/{page}.py:smoke=true", settings)
        config.vocab.update(algorithm="bpe", joint=True)
        made.append(Translate(config, folder, sharding.make_mesh()))
    return made


@pytest.fixture(scope="module")
def params(tasks):
    return [draw_parameters(task.init, seed=number) for number, task in enumerate(tasks)]


SLOW = ("groups", "different samples")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in METHODS])
def test_a_result_does_not_depend_on_other_lines_order_or_batch_size(tasks, params, name):
    translator, method = tasks[0].translator, METHODS[name]
    together = translator.translate(params[:1], LINES, method)
    alone = [translator.translate(params[:1], [line], method)[0] for line in LINES]
    many = translator.translate(params[:1], LINES[::-1] * 11, method)[: len(LINES)][::-1]
    assert together[1] == together[4]  # the same line
    for other in (alone, many):
        for found, expected in zip(other, together, strict=True):
            assert [one.ids for one in found] == [one.ids for one in expected]
            np.testing.assert_allclose([one.score for one in found], [one.score for one in expected], rtol=1e-4)


@pytest.mark.slow
def test_results_are_equal_to_the_bit_in_batches_of_every_size(tmp_path):
    """The widths are those at which products of few rows and sums of small arrays were rounded differently."""
    config = configs.load(f"{ROOT}/configs/quickstart.py:smoke=true", {"data.cache": str(tmp_path / "cache")})
    config.vocab.update(algorithm="bpe", joint=True)
    config.model.update(num_encoder_layers=1, num_decoder_layers=1, d_model=256, d_ff=512, dtype="float32")
    task = Translate(config, tmp_path, sharding.make_mesh())
    params = [draw_parameters(task.init, stddev=0.1)]
    lines = ["she sleeps .", "the dog sees .", "we sleep .", "the man .", "a house", "a dog", "we see .", "she sees ."]
    method = Search(beam_size=8, n_best=4)
    alone = task.translator.translate(params, lines[:1], method)
    together = task.translator.translate(params, lines[::-1], method)
    assert together[-1:] == alone
    assert len({one.score for one in alone[0]}) == 4


@pytest.mark.slow
def test_a_result_in_int8_does_not_depend_on_other_lines(tasks, params):
    translator, quantized = tasks[0].translator, [quantize_parameters(params[0])]
    method = Search(beam_size=3, n_best=2)
    together = translator.translate(quantized, LINES, method)
    many = translator.translate(quantized, LINES[::-1] * 11, method)[: len(LINES)][::-1]
    for found, expected in zip(many, together, strict=True):
        assert [one.ids for one in found] == [one.ids for one in expected]
        np.testing.assert_allclose([one.score for one in found], [one.score for one in expected], rtol=1e-4)


@pytest.mark.slow
def test_a_model_whose_activations_overflow_is_an_error(tasks, params):
    translator, broken = tasks[0].translator, jax.tree.map(lambda leaf: leaf * 1e30, params[:1])
    for method in METHODS.values():
        with pytest.raises(UserError, match="the outputs of the model are not finite: it has diverged"):
            translator.translate(broken, LINES, method)
    with pytest.raises(UserError, match="the outputs of the model are not finite"):
        translator.score(broken, LINES, LINES)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "factor"), [(0, -3), (1, 2)])
def test_scoring_returns_the_scores_of_the_search(tasks, params, number, factor):
    translator, table = tasks[number].translator, params[number]["source_embedding"]["table"]
    # The table is that of the outputs, too: with another row for the end, some texts end before the limit.
    ending = [{**params[number], "source_embedding": {"table": table.at[EOS].multiply(factor)}}]
    lines, limit = [line for line in LINES if line], 12
    options = {"max_length_ratio": 0.0, "max_length_offset": limit}
    kinds = set()
    for method in (Search(beam_size=3, n_best=3), Sampling(num_samples=2, temperature=1.3)):
        found = translator.translate(ending, lines, method, **options)
        for k in range(method.num_results):
            scored = translator.score(ending, lines, [own[k].ids for own in found])
            for line, one in zip(found, scored, strict=True):
                cut = len(line[k].ids) == limit  # such a text has no end
                total = sum(one.log_probs[:-1] if cut else one.log_probs)
                assert line[k].score == pytest.approx(total, rel=1e-5, abs=1e-5)
                kinds.add(cut)
    assert kinds == {True, False}


@pytest.mark.slow
def test_constraints_are_met(tasks, params):
    translator = tasks[0].translator
    vocab = translator.vocabularies[1]
    requests = [
        Line(LINES[0], prefix="der Mann"),
        Line(LINES[1], phrases=("ein Haus", "Kinder")),
        Line(LINES[3], prefix="wir", phrases=("Hund",)),
        Line(LINES[5]),
    ]
    method = Search(beam_size=4, n_best=2)
    found = translator.translate(params[:1], requests, method, max_length_offset=30)
    for line, hypotheses in zip(requests, found, strict=True):
        for hypothesis in hypotheses:
            begin = vocab.encode(line.prefix)
            assert hypothesis.ids[: len(begin)] == begin
            said = " ".join(map(str, hypothesis.ids)) + " "
            for phrase in line.phrases:
                assert " ".join(map(str, vocab.encode(phrase))) + " " in said
    plain = translator.translate(params[:1], [LINES[5]], method, max_length_offset=30)[0]
    assert [one.ids for one in found[3]] == [one.ids for one in plain]
    samples = translator.translate(params[:1], requests[:1], Sampling(num_samples=2), max_length_offset=30)[0]
    assert all(one.ids[: len(vocab.encode("der Mann"))] == vocab.encode("der Mann") for one in samples)


def test_impossible_constraints_are_errors(tasks, params):
    translator, method = tasks[0].translator, Search(beam_size=2)
    with pytest.raises(UserError, match=r"FILE:3: the prefix and constraints need .* the limit is \d+"):
        translator.translate(params[:1], [Line("she sleeps .", prefix="x " * 60, location="FILE:3: ")], method)
    with pytest.raises(UserError, match=r"FILE:4: the prefix and constraints need"):
        translator.translate(params[:1], [Line("she sleeps .", phrases=("haus " * 60,), location="FILE:4: ")], method)
    with pytest.raises(UserError, match="not supported by sampling"):
        translator.translate(params[:1], [Line("she sleeps .", phrases=("Hund",))], Sampling())
    with pytest.raises(UserError, match="num_groups=2"):
        translator.search(beam_size=3, num_groups=2)


@pytest.mark.slow
def test_an_ensemble_of_different_models_averages_probabilities(tasks, params):
    lines, method = [line for line in LINES if line], Search(beam_size=4, n_best=2)
    first = tasks[0]
    together = Translator(first.config, [task.model for task in tasks], first.vocabularies, first.mesh)
    found = together.translate(params, lines, method)
    flat = [(line, one.ids) for line, hypotheses in zip(lines, found, strict=True) for one in hypotheses]
    sources, targets = ([pair[side] for pair in flat] for side in (0, 1))
    one, other = (task.translator.score([own], sources, targets) for task, own in zip(tasks, params, strict=True))
    for a, b, c in zip(one, other, together.score(params, sources, targets), strict=True):
        expected = np.log((np.exp(a.log_probs) + np.exp(b.log_probs)) / 2)
        np.testing.assert_allclose(c.log_probs, expected, atol=1e-4)


@pytest.mark.parametrize("number", [0, 1])
def test_attention_of_scoring_equals_that_of_teacher_forcing(tasks, params, number):
    task = tasks[number]
    source, target = LINES[0], "der alte Mann sieht das Haus ."
    (scored,) = task.translator.score(params[number : number + 1], [source], [target], with_attention=True)
    expected = task.attention(params[number], source, target)
    layers = expected["cross"]  # [L, H, T, S]
    np.testing.assert_allclose(scored.attention, layers[-2:][0].mean(axis=0), atol=2e-4)
    assert scored.source_pieces == expected["source_pieces"]
    assert scored.pieces == expected["target_pieces"]


@pytest.mark.parametrize("name", ["beam", "samples"])
def test_the_same_request_is_compiled_once(tasks, params, name):
    translator, method = tasks[0].translator, METHODS[name]
    translator.translate(params[:1], LINES, method)
    compiled = translator.programs.decode._cache_size()
    translator.translate(params[:1], LINES[::-1], method)
    assert translator.programs.decode._cache_size() == compiled


def test_learned_positions_limit_the_length_of_translations(tmp_path):
    changes = {"data.cache": str(tmp_path / "cache"), "data.max_length": "24"}
    changes |= {"model.positions": "learned", "model.max_positions": "24"}
    config = configs.load(f"{ROOT}/configs/quickstart.py:smoke=true", changes)
    task = Translate(config, tmp_path, sharding.make_mesh())
    params, line = [draw_parameters(task.init)], LINES[0]
    (found,) = task.translator.translate(params, [line], Search(beam_size=1, min_length=30), max_length_ratio=9)
    assert len(found[0].ids) == 23  # cut off, with room for the end
    (scored,) = task.translator.score(params, [line], [found[0].ids])
    assert len(scored.log_probs) == 24
    given = Line(line, translation=" ".join(["man"] * 40))
    with pytest.raises(UserError, match="too long to be scored; at most 23 are possible"):
        task.translator.score_given(params, [given])


def test_a_coverage_penalty_needs_attention(tmp_path):
    changes = {"data.cache": str(tmp_path / "cache"), "model.attention": "none", "model.input_feeding": "false"}
    config = configs.load(f"{ROOT}/configs/rnn_luong.py:smoke=true", changes)
    task = Translate(config, tmp_path, sharding.make_mesh())
    params = [draw_parameters(task.init)]
    with pytest.raises(UserError, match="no coverage penalty"):
        task.translator.translate(params, LINES, METHODS["beam"])
    with pytest.raises(UserError, match="no coverage penalty"):
        next(task.translator.grow(params, Line(LINES[0]), METHODS["beam"]))
