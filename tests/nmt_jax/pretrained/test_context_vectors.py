"""Sentence Mover's Similarity with words in context: against its definition in POT and NumPy."""

import itertools

import numpy as np
import ot
import pytest

from metrics_jax import load
from metrics_jax.embedding.encoder import encode
from nmt_jax.data.vocabulary.vocab import EOS
from nmt_jax.errors import UserError
from nmt_jax.pretrained import load_encoder
from nmt_jax.pretrained.context_vectors import load_context_vectors
from nmt_jax.pretrained.elmo_features import load_elmo
from nmt_jax.pretrained.metrics import open_metric
from nmt_jax.training.trained import open_trained
from nmt_jax.workdir import Workdir
from tests.fixtures import tiny_encoder_folder
from tests.fixtures.workdirs import train_once

HYPOTHESES = ["the good film. A dull man in paris", "great", "karl sees anna", "", "bonn"]
REFERENCES = ["the bad film . In paris a great man.", "great", "", "", "the 12 ,"]
WORDS = [["the", "good", "film", ".", "A", "dull", "man", "in", "paris"]]
WORDS += [["the", "bad", "film", ".", "In", "paris", "a", "great", "man", "."]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(tiny_encoder_folder.write(tmp_path_factory.mktemp("encoder")))


def test_words_are_the_means_of_their_pieces(folder):
    encoder, words = load_encoder(folder), ["man", "karlanna", "film"]
    (found,) = load_context_vectors(folder).read([words], (-1, 1), "power_means")
    (vectors, ids, special) = encode(encoder, [" ".join(words)], (-1, 1), combine="power_means", normalize=False)[0]
    pieces = encoder.pieces(ids.tolist())
    assert sum(~special) > 3
    starts = [number for number, piece in enumerate(pieces) if not special[number] and not piece.startswith("##")]
    ends = [*starts[1:], len(ids) - 1]
    expected = [vectors[start:end].mean(axis=0) for start, end in zip(starts, ends, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(("variant", "norm"), [("wms", True), ("sms", False), ("s+wms", True)])
def test_equals_the_definition(variant, norm, folder):
    """Stop words are read, but not moved."""
    metric = open_metric(
        f"sms_context|variant:{variant}|layers:1+2|norm:{str(norm).lower()}|stop_words:the+a+in", encoder=folder
    )
    kept = [[1, 2, 5, 6, 8], [1, 2, 5, 7, 8]]  # words, in the two sentences of both texts
    lengths = [(2, 3), (2, 3)]
    sides = []
    for vectors, chosen, (first, second) in zip(metric.context.read(WORDS, (1, 2), "mean"), kept, lengths, strict=True):
        words = vectors[chosen]
        words = words / np.linalg.norm(words, axis=1, keepdims=True) if norm else words
        means = np.stack([words[:first].mean(axis=0), words[first:].mean(axis=0)])
        both = {"wms": (words, [1] * 5), "sms": (means, [first, second])}
        both["s+wms"] = (np.concatenate([words, means]), [1] * 5 + [first, second])
        points, weights = both[variant]
        sides.append((points, np.array(weights, float) / sum(weights)))
    (x, a), (y, b) = sides
    result = metric(HYPOTHESES, REFERENCES)
    assert result.segments[0] == pytest.approx(np.exp(-ot.emd2(a, b, ot.dist(x, y, "euclidean"))), abs=1e-6)
    assert result.segments[1:].tolist() == [1, 0, 0, 0]
    assert result.parts["missing"] == 3
    np.testing.assert_array_equal(metric(HYPOTHESES[::-1], REFERENCES[::-1]).segments[::-1], result.segments)
    np.testing.assert_array_equal(np.diag(metric.pairwise(HYPOTHESES, REFERENCES)), result.segments)
    assert load(result.signature, context=metric.context)(HYPOTHESES, REFERENCES).score == result.score


@pytest.mark.slow
def test_power_means_of_elmo(elmo_workdir):
    metric = open_metric("sms_context|variant:wms|layers:0+1+2|combine:power_means", encoder=str(elmo_workdir))
    (found, _) = metric.context.read(WORDS, metric.layers, metric.combine)
    states = load_elmo(elmo_workdir).features(WORDS)[0]
    expected = np.concatenate([states.min(axis=0), states.mean(axis=0), states.max(axis=0)], axis=-1)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    result = metric(HYPOTHESES[:2], REFERENCES[:2])
    assert 0 < result.segments[0] < result.segments[1] == 1


@pytest.mark.parametrize("page", ["quickstart", pytest.param("rnn_luong", marks=pytest.mark.slow)])
def test_words_of_a_translation_model(page, translator_workdir, tmp_path_factory):
    """Their vectors are the means of what the decoder attends to; a long line is read in windows."""
    workdir = translator_workdir
    if page != "quickstart":
        workdir = train_once("recurrent", page, {"model.dtype": "float32"}, tmp_path_factory)
    task, params = open_trained(Workdir(workdir), "translate")
    longest = task.config.data.max_length - 1
    words = ["a", "big", "dog", "runs", ","]
    context = load_context_vectors(workdir)
    many = words * (longest // len(words))
    whole, long, empty = context.read([words, many, []], (-1,), "mean")
    pieces = [task.vocabularies[0].encode(word) for word in words]
    ids = np.array([[*itertools.chain(*pieces), EOS]])
    states = task.model.apply({"params": params}, ids, method="encode")
    states = np.asarray(states["states"] if isinstance(states, dict) else states, np.float32)[0]
    ends = np.cumsum([len(one) for one in pieces])
    assert ends[-1] > len(words)
    expected = [part.mean(axis=0) for part in np.split(states[:-1], ends[:-1])]
    np.testing.assert_allclose(whole, expected, atol=1e-5)
    first = int(np.searchsorted(np.cumsum([len(one) for one in pieces * longest]), longest, side="right"))
    (alone,) = context.read([many[:first]], (-1,), "mean")
    assert first < len(long) == len(many)
    np.testing.assert_allclose(long[:first], alone, atol=1e-5)
    assert empty.shape == (0, states.shape[1])
    (both,) = context.read([words], (0, -1), "concatenate")
    np.testing.assert_allclose(both, np.concatenate([whole, whole], axis=1), atol=1e-5)
    with pytest.raises(ValueError, match="the encoder has layers 0"):
        context.read([words], (1,), "mean")


def test_mistakes(folder):
    for spec, words in (
        ("sms_context", "needs a model of words in context: --encoder=PLACE"),
        ("sms_context|combine:sum", "combine='sum' is none of concatenate, mean, power_means"),
        ("sms_context|variant:x", "variant='x' is none of wms"),
    ):
        with pytest.raises(UserError, match=words):
            open_metric(spec, encoder=folder if "|" in spec else None)
    with pytest.raises(ValueError, match="the encoder has layers 0"):
        open_metric("sms_context|layers:7", encoder=folder)(["a man"], ["a man"])
