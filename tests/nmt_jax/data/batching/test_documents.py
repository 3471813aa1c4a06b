"""Documents: how texts become sentences of tokens, and batches for training and prediction."""

import itertools

import numpy as np
import pytest

from nmt_jax.data.batching.batches import Batches, choose_shapes
from nmt_jax.data.batching.documents import NO_LABEL, DocumentCorpus, DocumentLayout, DocumentReader, document_batches
from nmt_jax.data.batching.row_slice import RowSlice
from nmt_jax.data.readers.labelled import GrammarTexts, Labelled
from nmt_jax.data.vocabulary.vocab import PAD, UNK, Vocab
from nmt_jax.errors import UserError

WORDS = [chr(ord("a") + number) for number in range(20)]


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return Vocab.train([" ".join(WORDS)] * 3, size=100, algorithm="word")


def make_reader(vocab, **changes) -> DocumentReader:
    return DocumentReader(
        vocab,
        **({"max_sentences": 4, "max_words": 5, "tokenizer": "none", "lower_case": False, "join": False} | changes),
    )


class Texts:
    """Texts in memory, given as (label, sentences)."""

    name = "texts"

    def __init__(self, *texts):
        self.texts = texts

    def __iter__(self):
        return (Labelled(label, sentences, f"texts:{n}") for n, (label, sentences) in enumerate(self.texts, start=1))


def words(sentences):
    return [sentence.words for sentence in sentences]


def ids(sentences):
    return [i for sentence in sentences for i in sentence.ids]


def test_sentences_of_words(vocab):
    read = make_reader(vocab)
    sentences, whole = read(["a  b", "", " ", "c\td q x"])
    assert whole
    assert words(sentences) == [["a", "b"], ["c", "d", "q", "x"]]
    known = vocab.encode("a b")
    assert sentences[0].ids == known
    assert sentences[1].ids[-1] == UNK  # x is not in the vocabulary
    assert read([]) == read(["  "]) == ([], True)
    assert words(read(["A b"])[0]) == [["A", "b"]]
    assert words(make_reader(vocab, lower_case=True)(["A b"])[0]) == [["a", "b"]]
    assert words(make_reader(vocab, join=True)(["a b", "c"])[0]) == [["a", "b", "c"]]
    assert words(make_reader(vocab, tokenizer="13a")(['a, "b".'])[0]) == [["a", ",", '"', "b", '"'], ["."]]
    assert words(make_reader(vocab, tokenizer="char")(["ab c"])[0]) == [["a", "b", "c"]]
    with pytest.raises(UserError, match=r"config\.data\.tokenizer: .*'13b'"):
        make_reader(vocab, tokenizer="13b")(["a"])


def test_long_sentences_are_split_and_long_texts_truncated(vocab):
    read = make_reader(vocab)
    text = " ".join(WORDS[:12])
    sentences, whole = read([text])
    assert whole
    assert words(sentences) == [WORDS[:5], WORDS[5:10], WORDS[10:12]]
    assert ids(sentences) == vocab.encode(text)
    assert words(read([text, text])[0]) == [*words(sentences), WORDS[:5]]
    assert not read([text, text])[1]
    with pytest.raises(UserError, match="at least 1"):
        make_reader(vocab, max_words=0)


def test_words_of_several_tokens_are_not_split():
    texts = [sentence for item in GrammarTexts("train", 60) for sentence in item.sentences]
    vocab = Vocab.train(texts, size=450, algorithm="bpe")
    read = make_reader(vocab, max_words=20, max_sentences=100)
    for text in texts:
        sentences, whole = read([text])
        assert whole
        assert list(itertools.chain(*words(sentences))) == text.split()
        assert ids(sentences) == vocab.encode(text)
        for sentence in sentences:
            assert len(sentence.ids) == sum(sentence.sizes) <= 20
            assert [vocab.decode(ids) for ids in np.split(sentence.ids, np.cumsum(sentence.sizes)[:-1])] == (
                sentence.words
            )
    ((long,), _) = read(["Z" * 50])
    assert long.sizes == [20]  # the rest of an overlong word is dropped


def test_a_corpus_skips_texts_without_words(vocab):
    texts = Texts(("x", ["a b", "c"]), ("y", [" "]), ("y", ["d"]), ("x", ["a b c d e f"] * 9))
    corpus = DocumentCorpus(texts, make_reader(vocab), ["x", "y"])
    assert corpus.lengths.tolist() == [[2, 2], [1, 1], [4, 5]]
    assert corpus.labels.tolist() == [0, 1, 0]
    assert corpus.report == "texts: 3 of 4 texts; skipped: 1 without words; 1 truncated to 4 sentences"
    (document,) = corpus.__getitems__([0])
    assert [ids.tolist() for ids in document.sentences] == [vocab.encode("a b"), vocab.encode("c")]
    with pytest.raises(UserError, match="texts:2: label 'y' does not occur in the training texts, which have x, z"):
        DocumentCorpus(texts, make_reader(vocab), ["x", "z"])
    with pytest.raises(UserError, match="no text is left: 1 have no words"):
        DocumentCorpus(Texts(("x", [""])), make_reader(vocab), ["x"])


@pytest.fixture(scope="module")
def corpus(vocab) -> DocumentCorpus:
    """Documents whose first two words encode their index."""
    random = np.random.default_rng(3)
    texts = []
    for number in range(150):
        lengths = random.integers(2, 12, random.integers(1, 9))
        first = f"{WORDS[number % 20]} {WORDS[number // 20]}"
        texts.append((WORDS[number % 3], [first] + [" ".join(random.choice(WORDS, n)) for n in lengths]))
    return DocumentCorpus(Texts(*texts), make_reader(vocab, max_sentences=10, max_words=11), WORDS[:3])


def make(corpus, **changes) -> Batches:
    settings = {"batch_tokens": 300, "num_buckets": 4, "share": RowSlice(4), "seed": 3, "layout": DocumentLayout()}
    return Batches(corpus, **(settings | changes))


def found_in(batch, corpus) -> list[int]:
    """The documents in a batch; checks that they are complete."""
    numbers = []
    for row, label in zip(batch["words"], batch["label"], strict=True):
        if label == NO_LABEL:
            assert (row == PAD).all()
            continue
        sentences = [sentence[sentence != PAD].tolist() for sentence in row if (sentence != PAD).any()]
        number = next(
            n
            for n, document in enumerate(corpus.__getitems__(range(len(corpus))))
            if [ids.tolist() for ids in document.sentences] == sentences
        )
        assert corpus.labels[number] == label
        assert [len(sentences), max(map(len, sentences))] == corpus.lengths[number].tolist()
        numbers.append(number)
    return numbers


def test_an_epoch_contains_every_document_once_in_few_shapes(corpus):
    batches = make(corpus)
    found, shapes = [], set()
    for n in range(len(batches)):
        found += found_in(batches[n], corpus)
        shapes.add(batches[n]["words"].shape)
    assert sorted(found) == list(range(150))
    assert shapes == set(batches.shapes)
    assert 1 < len(shapes) <= 4
    for rows, sentences, longest in shapes:
        assert rows % 4 == 0
        assert rows * sentences * longest <= 300 or rows == 4
        assert (rows + 4) * sentences * longest > 300


def test_padding_is_the_share_of_places_without_a_token(corpus):
    batches = make(corpus)
    arrays = [batches[n]["words"] for n in range(len(batches))]
    empty = sum((array == PAD).sum() for array in arrays)
    assert batches.padding["words"] == pytest.approx(empty / sum(map(np.size, arrays)))


def test_a_batch_of_documents_depends_only_on_its_number(corpus):
    ahead, behind = make(corpus, steps=100), make(corpus, steps=60)
    wholes = {n: ahead[n] for n in (0, 31, 59)}
    shares = [make(corpus, share=RowSlice(4, i, 2), steps=60) for i in range(2)]
    for n in (59, 31, 0):
        for key in ("words", "label"):
            np.testing.assert_array_equal(behind[n][key], wholes[n][key])
            np.testing.assert_array_equal(np.concatenate([share[n][key] for share in shares]), wholes[n][key])
    assert found_in(make(corpus, seed=4)[0], corpus) != found_in(wholes[0], corpus)


def test_shapes_of_documents_are_optimal(corpus):
    """Compared with all chains of two boxes; the cost of a box is the number of its words."""
    lengths = np.minimum(corpus.lengths, 6)
    histogram = np.zeros((8, 8), int)
    np.add.at(histogram, tuple(lengths.T), 1)

    def cost(chain):
        left, total = lengths, 0
        for rows, sentences, longest in chain:
            fits = (left[:, 0] <= sentences) & (left[:, 1] <= longest)
            total += -(-fits.sum() // rows) * rows * sentences * longest
            left = left[~fits]
        return total

    def shape(sentences, longest):
        return max(90 // (sentences * longest) // 2, 1) * 2, sentences, longest

    outer = tuple(lengths.max(0))
    chains = [[shape(*outer)]] + [
        [shape(s, w), shape(*outer)] for s in range(1, outer[0] + 1) for w in range(1, outer[1] + 1)
    ]
    assert cost(choose_shapes(histogram, 90, 2, 2, DocumentLayout())) == min(map(cost, chains))


def test_a_budget_below_the_largest_document_is_an_error(corpus):
    sentences, longest = corpus.lengths.max(0)
    with pytest.raises(UserError, match=rf"batch_tokens = 9 is less than the {sentences * longest} tokens .*max_words"):
        make(corpus, batch_tokens=9)


@pytest.mark.parametrize("multiple_of", [1, 3])
def test_document_batches_hold_every_document_once(corpus, vocab, multiple_of):
    read = make_reader(vocab, max_sentences=10, max_words=11)
    random = np.random.default_rng(1)
    texts = [[" ".join(random.choice(WORDS, random.integers(1, 12))) for _ in range(n % 7)] for n in range(100)]
    documents = [read(text)[0] for text in texts]
    seen, sizes = [], []
    for numbers, rows in document_batches(documents, batch_tokens=200, multiple_of=multiple_of):
        count, sentences, longest = rows.shape
        assert count % multiple_of == 0
        assert count * sentences * longest <= 200 or count == multiple_of
        assert (sentences & (sentences - 1), longest & (longest - 1)) == (0, 0)
        assert (rows[len(numbers) :] == PAD).all()
        for number, row in zip(numbers, rows, strict=False):
            assert [row[row != PAD].tolist() for row in row][: len(documents[number])] == [
                sentence.ids for sentence in documents[number]
            ]
        seen += numbers.tolist()
        sizes.append((sentences, longest))
    assert sorted(seen) == list(range(100))
    assert sizes == sorted(sizes, reverse=True)
    assert not list(document_batches([], batch_tokens=10))
