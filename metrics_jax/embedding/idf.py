"""Inverse document frequencies of tokens, counted in a collection of sentences."""

import dataclasses
import functools
import hashlib
import json
import math
import os
import pathlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

FORMS: dict[str, Callable[[int, int], float]] = {  # n: number of sentences, df: number of those with the token
    "bertscore": lambda n, df: math.log((n + 1) / (df + 1)),  # Zhang et al., 2020, section 3; also MoverScore
    "yisi": lambda n, df: math.log(1 + (n + 1) / (df + 1)),  # Lo, 2019
}

Token = int | str
LONGEST = 1 << 28  # characters of a file: a device such as /dev/zero has no end


@dataclasses.dataclass(frozen=True)
class Idf:
    """Weights of tokens (ids or strings) by the number of sentences that contain them.

    frequencies: the number of sentences, of `num_documents`, that contain each token. form: "bertscore",
    log((N + 1) / (df + 1)), which is 0 for a token of every sentence and log(N + 1) for an unseen one; or "yisi",
    log(1 + (N + 1) / (df + 1)). Raises ValueError if the form does not exist or the counts are impossible.
    """

    frequencies: Mapping[Token, int]
    num_documents: int
    form: str = "bertscore"

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ValueError(f"form={self.form!r} is none of {', '.join(FORMS)}")
        if self.num_documents < 1:
            raise ValueError("no sentences: idf needs at least one sentence to count frequencies in")
        if not all(0 < count <= self.num_documents for count in self.frequencies.values()):
            raise ValueError(f"frequencies must lie between 1 and the number of sentences, {self.num_documents}")

    @classmethod
    def fit(cls, documents: Iterable[Iterable[Token]], form: str = "bertscore") -> "Idf":
        """Count frequencies in tokenized sentences; special tokens count like any other.

        Raises TypeError if a sentence is a string.
        """
        frequencies: Counter[Token] = Counter()
        number = 0
        for number, tokens in enumerate(documents, start=1):  # noqa: B007  the count is used
            if isinstance(tokens, str):
                raise TypeError("a sentence must be a sequence of tokens, not a single string")
            frequencies.update({token if isinstance(token, str) else int(token) for token in tokens})
        return cls(dict(frequencies), number, form)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Idf":
        """Read a file that `save` wrote. Raises ValueError if it is missing or has another format."""
        try:
            with open(path, encoding="ascii") as file:
                content = json.loads(file.read(LONGEST))
            tokens, counts = content["tokens"], content["frequencies"]
            return cls(dict(zip(tokens, counts, strict=True)), content["num_documents"], content["form"])
        except (OSError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"{path}: not a file of frequencies that Idf.save wrote ({error})") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a JSON file that `load` reads."""
        pathlib.Path(path).write_text(self._json + "\n", encoding="ascii")

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the form and the frequencies."""
        return hashlib.sha256(self._json.encode("ascii")).hexdigest()

    def __getitem__(self, token: Token) -> float:
        return FORMS[self.form](self.num_documents, self.frequencies.get(token, 0))

    def weights(self, tokens: np.ndarray | Sequence[Sequence[Token]], mask: np.ndarray | None = None) -> np.ndarray:
        """Weights float64[N, n] of tokens [N, n]; padding, where mask bool[N, n] is False, has weight 0.

        A segment whose tokens all have weight 0 would have no score. Its tokens get weight 1 instead, and a warning
        tells how many segments are affected.
        """
        table = np.asarray(tokens)
        if table.dtype.kind == "U":
            table = np.asarray(tokens, object)  # NumPy's own strings lose trailing NUL characters
        mask = np.ones(table.shape, bool) if mask is None else np.asarray(mask, bool)
        distinct, inverse = np.unique(table, return_inverse=True)
        values = np.array([self[token] for token in distinct.tolist()], np.float64)
        weights = np.where(mask, values[inverse.reshape(table.shape)] if len(values) else 0.0, 0.0)
        zero = np.asarray(mask.any(axis=-1) & ~weights.any(axis=-1))
        if zero.any():
            warnings.warn(
                f"{np.count_nonzero(zero)} of {zero.size} segments have only tokens of idf weight 0, which occur in "
                f"all {self.num_documents} sentences that were counted; the tokens of these segments get equal weights",
                stacklevel=2,
            )
        return np.where(zero[..., None] & mask, 1.0, weights)

    @functools.cached_property
    def _json(self) -> str:
        tokens = sorted(self.frequencies, key=lambda token: (isinstance(token, str), token))
        content = {"form": self.form, "num_documents": self.num_documents, "tokens": tokens}
        return json.dumps(content | {"frequencies": [self.frequencies[token] for token in tokens]})
