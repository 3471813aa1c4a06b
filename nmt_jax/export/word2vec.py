"""Word vectors as the files that word2vec made common: text and binary."""

import pathlib

import numpy as np

from metrics_jax.embedding.vectors import Vectors

TEXT, BINARY = "vectors.txt", "vectors.bin"


def write(vectors: Vectors, folder: pathlib.Path) -> None:
    """Writes FOLDER/vectors.txt and FOLDER/vectors.bin; `metrics_jax.embedding.vectors.Vectors.load` reads either.

    Both begin with a line "V D". Text: a word and D decimals a line, as many as a float32 needs to come back as it was;
    binary: a word, a blank, D little-endian float32 and a line end.
    """
    header = "{} {}\n".format(*vectors.matrix.shape).encode()
    matrix = np.asarray(vectors.matrix, "<f4")
    with open(folder / TEXT, "wb") as text, open(folder / BINARY, "wb") as binary:
        text.write(header)
        binary.write(header)
        for word, row in zip(vectors.words, matrix, strict=True):
            text.write(f"{word} {' '.join(map(str, row))}\n".encode())
            binary.write(f"{word} ".encode() + row.tobytes() + b"\n")
