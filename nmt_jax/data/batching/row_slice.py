"""The rows of a global batch that one process builds."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class RowSlice:
    """Part `index` of `count` equal parts of every global batch, whose number of rows is a multiple of `multiple_of`.

    Raises ValueError if the parts cannot be equal.
    """

    multiple_of: int = 1
    index: int = 0
    count: int = 1

    def __post_init__(self) -> None:
        if self.multiple_of % self.count:
            raise ValueError(f"{self.multiple_of} rows cannot be divided equally among {self.count} processes")

    def of(self, rows: int) -> range:
        """The indices of this part in a batch of `rows` rows."""
        size = rows // self.count
        return range(self.index * size, (self.index + 1) * size)


ALL = RowSlice()  # all rows; any number of them
