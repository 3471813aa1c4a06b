"""Files: what is written is read again, and every mistake is reported with file and line."""

import gzip
import os

import numpy as np
import pytest

from nmt_jax.errors import UserError
from nmt_jax.ngram.arpa import NEVER, read_arpa
from nmt_jax.ngram.files import read_model, writer_of
from nmt_jax.ngram.vocabulary import UNK
from tests.nmt_jax.ngram.conftest import FOLDER, model_of_order, text

ARPA = """
\\data\\
ngram 1=5
ngram  2 = 3

\\1-grams:
-99 <s> -0.25
-0.5\t</s>
-0.75\tb\t-0.125
-1 a\u00a0c 0.5
-2\t<unk>

\\2-grams:
-0.25\tb b

-0.5\ta\u00a0c b
-0.125\t<s>  b

\\end\\
"""


@pytest.mark.parametrize("name", ["m.arpa", "m.arpa.gz", "m.ngram"])
@pytest.mark.parametrize("order", [1, 4])
def test_a_model_is_read_as_it_was_written(tmp_path, name, order):
    model, path = model_of_order(order), tmp_path / name
    writer_of(path)(model, path)
    again = read_model(path)
    assert list(again.vocabulary.words) == list(model.vocabulary.words)
    for one, other in zip(again.trie.keys, model.trie.keys, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(
        (*again.log_probabilities, *again.backoffs), (*model.log_probabilities, *model.backoffs), strict=True
    ):
        np.testing.assert_array_equal(one, other.astype(np.float32))
    scores = again.score(text()).log_probabilities
    np.testing.assert_allclose(scores, model.score(text()).log_probabilities, atol=2e-6)
    writer_of(path)(again, tmp_path / f"again-{name}")
    assert (tmp_path / f"again-{name}").read_bytes() == path.read_bytes()


def test_a_text_file_of_another_program(tmp_path):
    path = tmp_path / "m.arpa"
    path.write_text(ARPA)
    model = read_model(path)
    assert model.vocabulary.words == ["<unk>", "<s>", "</s>", "b", "a\u00a0c"]
    found = model.score(["b a\u00a0c x"]).log_probabilities
    np.testing.assert_allclose(found, [-0.125, -0.125 - 1, 0.5 - 2, -0.5])
    path.write_text(ARPA.replace("-2\t<unk>\n", "").replace("1=5", "1=4"))
    assert read_arpa(path).log_probabilities[0][UNK] == NEVER


def test_a_pipe_is_read_once():
    source, sink = os.pipe()
    os.write(sink, ARPA.encode())
    os.close(sink)
    assert read_model(f"/dev/fd/{source}").order == 2
    os.close(source)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\\data\\", "data", ":2: found 'data', expected .data."),
        ("ngram 1=5", "ngram 1=x", ":3: found 'ngram 1=x', expected ngram 1=NUMBER"),
        ("ngram 1=5\nngram  2 = 3\n", "", ":4: expected ngram 1=NUMBER before"),
        ("ngram 1=5", "ngram 1=4", ":11: found '-2 <unk>', expected .2-grams:"),
        ("ngram 1=5", "ngram 1=6", ":13: found .2-grams:, but there are fewer 1-grams"),
        ("2 = 3", "2 = 4", ":19: found .end., but there are fewer 2-grams"),
        ("\\2-grams:", "\\3-grams:", ":13: found '.3-grams:', expected .2-grams:"),
        ("-1 a", "x a", ":10: found 'x a.xa0c 0.5', expected a log10 probability"),
        ("-1 a", "1 a", ":10: found '1 a.xa0c 0.5', expected a log10 probability of at most 0"),
        ("-1 a", "nan a", ":10: found 'nan a"),
        ("\t-0.125", "\tnan", ":9: found '-0.75 b nan'"),
        ("-0.75\tb\t", "-0.75\tb\td ", ":9: found '-0.75 b d -0.125'"),
        ("-0.75\tb\t-0.125", "-0.75", ":9: found '-0.75'"),
        ("-0.75\tb", "-0.75\t<s>", ":9: this 1-gram is listed twice"),
        ("-2\t<unk>", "-2\tb", ":11: this 1-gram is listed twice"),
        ("<s> -0.25", "x -0.25", "the 1-gram <s> is not listed"),
        ("b b", "b x", ":14: the word 'x' is not listed as a 1-gram"),
        ("<s>  b", "b b", ":17: this 2-gram is listed twice"),
        ("\\end\\", "", ":20: the file ends here, expected .end."),
        (ARPA[ARPA.index("-0.125\t<s>") :], "", ":17: the file ends here, expected 3 2-grams after line 13"),
    ],
)
def test_mistakes_in_text_files(tmp_path, old, new, message):
    path = tmp_path / "m.arpa"
    assert ARPA.count(old)
    path.write_text(ARPA.replace(old, new, 1))
    with pytest.raises(UserError, match=f"m.arpa{message}" if message.startswith(":") else message):
        read_arpa(path)


def test_a_context_must_be_listed(tmp_path):
    path = tmp_path / "m.arpa"
    lines = (FOLDER / "lmplz.arpa").read_text().replace("ngram 3=119", "ngram 3=118").splitlines()
    lines = [line for line in lines if line.split("\t")[1:2] != ["<s> the cat"]]
    path.write_text("\n".join(lines))
    number = next(n for n, line in enumerate(lines, start=1) if line.split("\t")[1:2] == ["<s> the cat sees"])
    with pytest.raises(UserError, match=f"m.arpa:{number}: its first 3 words are not listed as a 3-gram"):
        read_arpa(path)


def test_a_damaged_gzip_file(tmp_path, model):
    path = tmp_path / "m.arpa.gz"
    path.write_bytes(gzip.compress(ARPA.encode())[:-20])
    with pytest.raises(UserError, match=r"m.arpa.gz:\d+: damaged gzip file"):
        read_model(path)


def test_mistakes_in_binary_files(tmp_path, model):
    path = tmp_path / "m.ngram"
    writer_of(path)(model, path)
    whole = path.read_bytes()
    magic = whole[: whole.index(b"\n")]
    places = {
        whole[:-1]: r"m.ngram: .* bytes, but the arrays need .*: truncated",
        whole + b"x": "truncated or changed",
        whole[: len(magic) + 20]: "m.ngram:2: damaged list of arrays",
        whole.replace(b'"order": 4', b'"order": 3'): "m.ngram:2: damaged list of arrays",
        whole.replace(b'"order": 4', b'"order": []'): "m.ngram:2: damaged list of arrays",
        whole.replace(b"version 1", b"version 2"): "m.ngram:1: a binary n-gram model of another version",
        whole.replace(b"\n<s>", b"\n<t>"): "m.ngram:2: arrays of different lengths",
        whole.replace(b"house", b"h\nuse"): "m.ngram:2: arrays of different lengths",
        whole.replace(b"house", b"h\xffuse"): "m.ngram: damaged words",
    }
    for content, message in places.items():
        path.write_bytes(content)
        with pytest.raises(UserError, match=message):
            read_model(path)


def test_other_names_and_missing_files(tmp_path):
    with pytest.raises(UserError, match=r"x.txt: the name must end in .arpa"):
        writer_of("x.txt")
    with pytest.raises(UserError, match="no such file"):
        read_model(tmp_path / "x.arpa")
