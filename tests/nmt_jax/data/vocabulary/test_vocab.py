"""Vocabularies: no text is lost, training is deterministic, invalid input gives clear errors."""

import concurrent.futures
import functools
import io
import itertools
import re
import subprocess
import sys

import hypothesis
import pytest
import sentencepiece
from hypothesis import strategies as st

from nmt_jax.data.vocabulary import vocab as vocab_module
from nmt_jax.data.vocabulary.vocab import ALGORITHMS, BOS, EOS, PAD, UNK, Vocab
from nmt_jax.errors import UserError

SUBWORDS = ("unigram", "bpe")
TEXTS = [
    " ".join(words)
    for words in itertools.product(
        ("der Hund", "eine Katze", "the old dog"),
        ("läuft", "sieht", "runs past"),
        ("2 Bäume.", "the house.", "schnell!"),
    )
]


@pytest.fixture(scope="module", params=SUBWORDS)
def vocab(request) -> Vocab:
    return Vocab.train(TEXTS, size=330, algorithm=request.param)


@hypothesis.given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="▁")))
@hypothesis.example("Nummer\xa028\tund \u2028 \x85 \x00 \x0b 😀 ½ ﬁ ｆｕｌｌ <s> </s>")
@hypothesis.example("  zwei  Leerzeichen  ")
def test_decoding_restores_the_text_except_redundant_spaces(vocab, text):
    assert vocab.decode(vocab.encode(text)) == re.sub(" +", " ", text).strip(" ")


def test_ten_thousand_words(vocab):
    text = " ".join(["Hund"] * 10_000)
    assert vocab.decode(vocab.encode(text)) == text


def test_special_pieces(vocab):
    assert vocab.pieces([PAD, UNK, BOS, EOS]) == ["<pad>", "<unk>", "<s>", "</s>"]
    ids = vocab.encode("der Hund")
    assert not set(ids) & {PAD, UNK, BOS, EOS}
    assert vocab.decode([BOS, *ids, EOS, *vocab.encode("läuft"), PAD]) == "der Hund"
    assert vocab.decode([*ids, PAD, PAD]) == "der Hund"
    assert "".join(vocab.pieces(ids)) == "▁der▁Hund"


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_symbol_is_one_piece_that_no_text_needs_to_contain(algorithm):
    vocab = Vocab.train(TEXTS, size=330, algorithm=algorithm, symbols=["<BT>"])
    tagged, plain = (vocab.pieces(vocab.encode(text)) for text in ("<BT> der Hund", "der Hund"))
    assert "".join(tagged) == "▁<BT>▁der▁Hund"
    assert [piece for piece in tagged if "BT" in piece or "<" in piece] in (["<BT>"], ["▁<BT>"])
    assert tagged[-len(plain) :] == plain
    assert vocab.decode(vocab.encode("<BT> der Hund")) == "<BT> der Hund"


def test_without_byte_fallback_unknown_characters_are_marked():
    vocab = Vocab.train(TEXTS, size=60, byte_fallback=False)
    assert UNK in vocab.encode("😀")
    assert "⁇" in vocab.decode(vocab.encode("Hund 😀"))


@pytest.mark.parametrize("algorithm", SUBWORDS)
@pytest.mark.parametrize("limit", [101, 10_000])
def test_training_is_the_same_in_every_process(algorithm, limit):  # 101: the trainer sees a sample
    texts = [f"{text} {n}" for n, text in enumerate(TEXTS * 20)]
    here = Vocab.train(iter(texts), size=400, algorithm=algorithm, sample_lines=limit)
    assert here == Vocab.train(iter(texts), size=400, algorithm=algorithm, sample_lines=limit)
    assert here != Vocab.train(texts[99:], size=400, algorithm=algorithm, sample_lines=limit)
    script = f"""
from nmt_jax.data.vocabulary import vocab
print(vocab.Vocab.train({texts!r}, size=400, algorithm={algorithm!r}, sample_lines={limit}).fingerprint)
"""
    there = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert there.stdout == f"{here.fingerprint}\n"


def test_the_training_sample_is_drawn_from_the_whole_text():
    drawn = [int(text) for text in vocab_module._sample(map(str, range(10_000)), 1000)]
    assert len(set(drawn)) == 1000
    assert [sum(low <= number < low + 2500 for number in drawn) for low in range(0, 10_000, 2500)] == pytest.approx(
        [250] * 4, abs=60
    )


@pytest.mark.parametrize("algorithm", SUBWORDS)
def test_a_size_too_large_for_the_corpus_gives_fewer_pieces(algorithm):
    assert 260 < len(Vocab.train(TEXTS, size=30_000, algorithm=algorithm)) < 1000


def test_a_size_too_small_names_the_minimum():
    with pytest.raises(UserError, match=r"config\.vocab\.size=100 is too small .* set it to \d+ or more") as caught:
        Vocab.train(TEXTS, size=100)
    least = int(re.search(r"set it to (\d+)", str(caught.value))[1])
    assert len(Vocab.train(TEXTS, size=least)) <= least
    with pytest.raises(UserError):
        Vocab.train(TEXTS, size=least - 1)


@pytest.mark.parametrize("texts", [[], ["", " "]])
def test_no_text_at_all(texts):
    with pytest.raises(UserError, match="no usable text"):
        Vocab.train(texts, size=300)


def test_lines_that_the_trainer_cannot_use_are_ignored():
    odd = ["a\x00b", "x\ty", "▅", "z" * 20_000, "\u2028", "😀", ""]
    vocab = Vocab.train([*TEXTS, *odd], size=350)
    assert vocab.decode(vocab.encode("der Hund")) == "der Hund"


@pytest.mark.parametrize("algorithm", ["unigram", "bpe"])
def test_long_lines_are_read(algorithm):
    words = [f"word{number}" for number in range(900)]  # more than 4,192 bytes
    long, short = (Vocab.train(texts, size=400, algorithm=algorithm) for texts in ([" ".join(words)], words))
    assert long == short


def test_errors_while_reading_the_text_are_passed_on():
    def texts():
        yield "der Hund"
        raise UserError("train.de:2: not UTF-8")

    with pytest.raises(UserError, match=r"^train\.de:2: not UTF-8$"):
        Vocab.train(texts(), size=300)


def test_unknown_algorithm():
    with pytest.raises(UserError, match=r"config\.vocab\.algorithm: 'wordpiece' is not one of unigram, bpe"):
        Vocab.train(TEXTS, size=300, algorithm="wordpiece")


def test_sampling_depends_only_on_the_seed(vocab):
    text = "the old dog runs past the house."
    alone = [vocab.sample(text, 0.3, seed) for seed in range(40)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda seed: vocab.sample(text, 0.3, seed), reversed(range(40))))
    assert alone == together[::-1]
    assert len(set(map(tuple, alone))) > 2
    assert {vocab.decode(ids) for ids in alone} == {text}


def test_save_and_load(vocab, tmp_path):
    path = tmp_path / "vocab" / "source.model"
    vocab.save(path)
    loaded = Vocab.load(path)
    assert loaded == vocab
    assert len(loaded) == len(vocab)
    assert [p.name for p in path.parent.iterdir()] == ["source.model"]


@pytest.mark.parametrize("content", [b"", b"not a model", None])
def test_damaged_or_missing_models_are_reported(content, tmp_path, capfd):
    path = tmp_path / "broken.model"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=re.escape(str(path))):
        Vocab.load(path)
    assert capfd.readouterr() == ("", "")


def test_truncated_models_are_reported(vocab, tmp_path):
    path = tmp_path / "short.model"
    path.write_bytes(vocab.model[: len(vocab.model) // 2])
    with pytest.raises(UserError, match=re.escape(str(path))):
        Vocab.load(path)


def test_models_with_other_special_ids_are_rejected(tmp_path):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS), model_writer=model, vocab_size=60, hard_vocab_limit=False, minloglevel=3
    )
    path = tmp_path / "other.model"
    path.write_bytes(model.getvalue())
    with pytest.raises(
        UserError, match=r"\(-1, 0, 1, 2\); train the vocabulary with --pad_id=0 --unk_id=1 --bos_id=2 --eos_id=3"
    ):
        Vocab.load(path)


def test_training_prints_nothing(capfd):
    Vocab.train(TEXTS, size=300)
    assert capfd.readouterr() == ("", "")


def test_a_vocabulary_of_words_contains_whole_words_only():
    vocab = Vocab.train(TEXTS, size=12, algorithm="word")
    assert set(vocab.pieces(range(4, len(vocab)))) <= {"▁" + word for text in TEXTS for word in text.split()}
    known = vocab.pieces([4])[0][1:]
    ids = vocab.encode(f"{known} Zebra {known}")
    assert ids == [4, UNK, 4]
    assert vocab.decode([4, 4]) == f"{known} {known}"


def test_a_vocabulary_of_characters_has_one_piece_for_each():
    vocab = Vocab.train(["der Hund", "ein Hut"], size=1000, algorithm="character", byte_fallback=False)
    assert sorted(vocab.pieces(range(4, len(vocab)))) == sorted({"▁", *"derHundeinHut"})
    assert vocab.pieces(vocab.encode("ein  Hund")) == list("▁ein▁Hund")
    assert vocab.decode(vocab.encode("ein  Hund")) == "ein Hund"


def test_unknown_words_are_numbered_past_the_vocabulary():
    vocab = Vocab.train(TEXTS, size=12, algorithm="word")
    known, size = vocab.pieces([4])[0][1:], len(vocab)
    text = f"Zebra {known} Yak Zebra Gnu <s>"
    assert vocab.encode(text) == [UNK, 4, UNK, UNK, UNK, UNK]  # one id per word, adjacent ones included
    words = vocab.unknown(text, 10)
    assert words == ["▁Zebra", "▁Yak", "▁Gnu", "▁<s>"]
    assert vocab.encode(text, words) == [size, 4, size + 1, size, size + 2, size + 3]
    assert vocab.decode(vocab.encode(text, words), words) == text
    assert vocab.unknown(text, 2) == words[:2]
    assert vocab.encode(text, words[:2]) == [size, 4, size + 1, size, UNK, UNK]
    assert vocab.encode(f"Gnu {known} Auk", words) == [
        size + 2,
        4,
        UNK,
    ]  # another text with the unknown words of the first
    assert vocab.unknown(text, 0) == vocab.unknown(f"{known} {known}", 10) == []
    assert vocab.pieces([4, size + 1, size + 9], words) == [f"▁{known}", "▁Yak", "<unk>"]
    assert vocab.decode([size + 1, EOS, size], words) == "Yak"


@hypothesis.given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="▁")))
@hypothesis.example("Zebra\xa0Yak \u2028 \x85  <s> </s> der Hund ")
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_lists_of_unknown_pieces_restore_the_text(algorithm, text):
    vocab = without_bytes(algorithm)
    words = vocab.unknown(text, len(text))
    ids = vocab.encode(text, words)
    assert UNK not in ids
    assert vocab.decode(ids, words) == re.sub(" +", " ", text).strip(" ")


@functools.cache
def without_bytes(algorithm: str) -> Vocab:
    return Vocab.train(TEXTS, size=60, algorithm=algorithm, byte_fallback=False)


def test_nothing_is_unknown_with_byte_fallback(vocab):
    assert vocab.unknown("Zebra 😀 漢字", 10) == []


def test_samples_number_unknown_pieces():
    vocab = without_bytes("unigram")
    text = "der Hund 😀 läuft"
    words = vocab.unknown(text, 10)
    drawn = {tuple(vocab.sample(text, 0.1, seed, words)) for seed in range(20)}
    assert len(drawn) > 2
    assert all(len(vocab) in ids and UNK not in ids for ids in drawn)
    assert {vocab.decode(ids, words) for ids in drawn} == {text}


@pytest.mark.parametrize("algorithm", ["word", "character"])
def test_words_and_characters_have_one_segmentation_only(algorithm):
    with pytest.raises(UserError, match=r"sampling_alpha: a vocabulary of words or characters has only one segm"):
        without_bytes(algorithm).sample("der Hund", 0.1, 0)
