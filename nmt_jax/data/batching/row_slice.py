"""The rows of a global batch that one process builds."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class RowSlice:
    """The `index`-th of `count` equal parts of every global batch, whose rows are a multiple of `multiple_of`.

    Raises ValueError where the parts could not be equal.
    """

    multiple_of: int = 1
    index: int = 0
    count: int = 1

    def __post_init__(self) -> None:
        if self.multiple_of % self.count:
            raise ValueError(f"{self.multiple_of} rows cannot be shared equally among {self.count} processes")

    def of(self, rows: int) -> range:
        """Which of the `rows` of a batch these are."""
        size = rows // self.count
        return range(self.index * size, (self.index + 1) * size)


ALL = RowSlice()  # every row, as many as fit
