"""What is in a scene: shapes, colours, sizes and places, with their words in English and German."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

GRID = 3  # rows and columns of places


@dataclasses.dataclass(frozen=True)
class Noun:
    """A word in both languages; gender: m, f or n of the German one."""

    english: str
    german: str
    gender: str


@dataclasses.dataclass(frozen=True)
class Adjective:
    """An adjective in both languages; german: the stem, which takes endings."""

    english: str
    german: str


# Which points belong to a shape, given their distance to the right of and below its centre, as a share of its radius.
Inside = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _ellipse(x: np.ndarray, y: np.ndarray, width: float, height: float) -> np.ndarray:
    return (x / width) ** 2 + (y / height) ** 2 <= 1


SHAPES: tuple[tuple[Noun, Inside], ...] = (
    (Noun("circle", "Kreis", "m"), lambda x, y: x * x + y * y <= 1),
    (Noun("square", "Quadrat", "n"), lambda x, y: np.maximum(abs(x), abs(y)) <= 0.85),
    (Noun("triangle", "Dreieck", "n"), lambda x, y: (y <= 0.8) & (2 * abs(x) <= y + 1)),
    (Noun("diamond", "Raute", "f"), lambda x, y: abs(x) + abs(y) <= 1),
    (Noun("cross", "Kreuz", "n"), lambda x, y: (np.minimum(abs(x), abs(y)) <= 0.3) & (np.maximum(abs(x), abs(y)) <= 1)),
    (Noun("ring", "Ring", "m"), lambda x, y: (x * x + y * y <= 1) & (x * x + y * y >= 0.3)),
    (Noun("bar", "Balken", "m"), lambda x, y: (abs(x) <= 1) & (abs(y) <= 0.4)),
    (Noun("column", "Säule", "f"), lambda x, y: (abs(x) <= 0.4) & (abs(y) <= 1)),
)
# Two in a row have the same English name.
AMBIGUOUS: tuple[tuple[Noun, Inside], ...] = (
    (
        Noun("bow", "Bogen", "m"),  # a weapon: a crescent and its string
        lambda x, y: (
            (_ellipse(x + 0.5, y, 1.4, 1.0) & ~_ellipse(x + 0.5, y, 1.0, 0.8) & (x > -0.5))
            | ((abs(x + 0.4) < 0.12) & (abs(y) <= 1))
        ),
    ),
    (
        Noun("bow", "Schleife", "f"),  # a ribbon
        lambda x, y: (abs(y) <= 0.75 * abs(x)) & (abs(x) <= 1) | _ellipse(x, y, 0.3, 0.3),
    ),
    (
        Noun("key", "Schlüssel", "m"),  # of a door
        lambda x, y: (
            (_ellipse(x, y + 0.5, 0.5, 0.5) & ~_ellipse(x, y + 0.5, 0.2, 0.2))
            | ((abs(x) < 0.18) & (y > 0) & (y <= 1))
            | ((x > 0) & (x < 0.5) & (abs(y - 0.8) < 0.18))
        ),
    ),
    (
        Noun("key", "Taste", "f"),  # of a keyboard
        lambda x, y: (
            (np.maximum(abs(x), abs(y)) <= 0.9)
            & ~((np.maximum(abs(x), abs(y)) <= 0.7) & (np.maximum(abs(x), abs(y)) > 0.45))
        ),
    ),
    (
        Noun("nut", "Nuss", "f"),  # a fruit with a gap between the halves
        lambda x, y: _ellipse(x, y, 0.6, 0.95) & ~((abs(x) < 0.12) & (y < 0.2)),
    ),
    (
        Noun("nut", "Schraubenmutter", "f"),  # a hexagon with a hole
        lambda x, y: (abs(y) <= 0.87) & (abs(y) + 1.73 * abs(x) <= 1.73) & ~_ellipse(x, y, 0.42, 0.42),
    ),
)
ALL_SHAPES = SHAPES + AMBIGUOUS  # the numbers of shapes count through both
COLOURS: tuple[tuple[Adjective, tuple[int, int, int]], ...] = (
    (Adjective("red", "rot"), (200, 30, 30)),
    (Adjective("green", "grün"), (30, 150, 40)),
    (Adjective("blue", "blau"), (40, 60, 210)),
    (Adjective("yellow", "gelb"), (225, 205, 40)),
    (Adjective("black", "schwarz"), (20, 20, 20)),
    (Adjective("white", "weiß"), (235, 235, 235)),
    (Adjective("brown", "braun"), (120, 70, 30)),
    (Adjective("purple", "violett"), (150, 50, 180)),
)
SIZES: tuple[tuple[Adjective, float], ...] = (  # with the radius, as a share of the side of a place
    (Adjective("small", "klein"), 0.26),
    (Adjective("large", "groß"), 0.45),
)


@dataclasses.dataclass(frozen=True)
class Object:
    """An object; shape, colour and size: its numbers in the tables. row, column: its place, counted from 0."""

    shape: int
    colour: int
    size: int
    row: int
    column: int
    shift: tuple[float, float] = (0.0, 0.0)  # from the centre of the place, to the right and down, as a share of it
    tint: tuple[int, int, int] = (0, 0, 0)  # added to the red, green and blue of the colour

    @property
    def noun(self) -> Noun:
        """The word for the shape."""
        return ALL_SHAPES[self.shape][0]

    @property
    def ambiguous(self) -> bool:
        """Whether its English name has two German translations."""
        return self.shape >= len(SHAPES)

    @property
    def other_meaning(self) -> Noun:
        """The word for the other shape of the same English name; only of ambiguous objects."""
        return AMBIGUOUS[(self.shape - len(SHAPES)) ^ 1][0]

    @property
    def adjectives(self) -> tuple[Adjective, Adjective]:
        """Size and colour."""
        return SIZES[self.size][0], COLOURS[self.colour][0]

    @property
    def rgb(self) -> np.ndarray:
        """Red, green and blue of its pixels, int64[3] from 0 to 255."""
        return np.clip(np.add(COLOURS[self.colour][1], self.tint), 0, 255)

    def mask(self, size: int) -> np.ndarray:
        """The pixels of the object in an image with sides of `size` pixels, bool[size, size]."""
        side = size / GRID
        centres = np.arange(size) + 0.5
        radius = SIZES[self.size][1] * side
        x = (centres - (self.column + 0.5 + self.shift[0]) * side) / radius
        y = (centres - (self.row + 0.5 + self.shift[1]) * side) / radius
        return ALL_SHAPES[self.shape][1](x[None, :], y[:, None])

    def box(self, size: int) -> tuple[int, int, int, int]:
        """The smallest box of pixels that holds the object: left, top, right and bottom, the last two exclusive."""
        mask = self.mask(size)
        columns, rows = np.flatnonzero(mask.any(axis=0)), np.flatnonzero(mask.any(axis=1))
        return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1
