"""Export of word vectors to the text and binary formats of word2vec."""

import pathlib

import numpy as np

from metrics_jax.embedding.vectors import Vectors

TEXT, BINARY = "vectors.txt", "vectors.bin"


def write(vectors: Vectors, folder: pathlib.Path) -> None:
    """Writes FOLDER/vectors.txt and FOLDER/vectors.bin; `metrics_jax.embedding.vectors.Vectors.load` reads both.

    Both begin with a line "V D". A line of the text file has a word and D decimal numbers with enough digits to restore
    the float32 values exactly. A row of the binary file has a word, a space, D little-endian float32 and a line end.
    """
    header = "{} {}\n".format(*vectors.matrix.shape).encode()
    matrix = np.asarray(vectors.matrix, "<f4")
    with open(folder / TEXT, "wb") as text, open(folder / BINARY, "wb") as binary:
        text.write(header)
        binary.write(header)
        for word, row in zip(vectors.words, matrix, strict=True):
            text.write(f"{word} {' '.join(map(str, row))}\n".encode())
            binary.write(f"{word} ".encode() + row.tobytes() + b"\n")
