"""Records of a prepared corpus in the ArrayRecord format, written and read through TFDS.

TFDS takes a quarter of a second to import, so this module is imported where a prepared corpus is opened.
"""

from __future__ import annotations

import contextlib
import io
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tensorflow_datasets as tfds
from tensorflow_datasets.proto import tf_example_pb2

_SPLIT, _FEATURE = "pairs", "pair"

Record = list[str | bytes]  # source, target, and their token ids


class Records:
    """Random access to the records in the folders that `write_records` filled, one after the other."""

    def __init__(self, folders: Sequence[pathlib.Path]):
        raw = tfds.decode.DeserializeMethod.RAW_BYTES  # decoding a record with TFDS would take five times as long
        self._source = tfds.builder_from_directories(list(folders)).as_data_source(_SPLIT, deserialize_method=raw)

    def read(self, indices: Iterable[int]) -> Iterator[Sequence[bytes]]:
        """Yield the record of each index."""
        for record in self._source.__getitems__([int(i) for i in indices]):
            yield tf_example_pb2.Example.FromString(record).features.feature[_FEATURE].bytes_list.value


class _Info(tfds.core.DatasetInfo):
    """The description of a prepared corpus, which no bucket knows."""

    def initialize_from_bucket(self) -> None:
        """Do nothing; the method of TFDS leaves an empty temporary folder behind."""


class PreparedPairs(tfds.core.GeneratorBasedBuilder):
    """Sentence pairs: source, target, and their token ids as bytes, because TFDS integers take longer to read.

    They are one feature, since the order in which an Example stores several differs from process to process.
    """

    VERSION = tfds.core.Version("1.0.0")

    def __init__(self, records: Iterable[Record], data_dir: pathlib.Path):
        self.records = records
        super().__init__(data_dir=data_dir, file_format="array_record")

    def _info(self) -> tfds.core.DatasetInfo:
        features = tfds.features.FeaturesDict({_FEATURE: tfds.features.Sequence(tfds.features.Text(), length=4)})
        return _Info(builder=self, features=features, disable_shuffling=True)

    def _split_generators(self, dl_manager: Any) -> dict[str, Iterator[tuple[int, dict[str, Record]]]]:
        return {_SPLIT: self._generate_examples()}

    def _generate_examples(self) -> Iterator[tuple[int, dict[str, Record]]]:
        yield from ((number, {_FEATURE: record}) for number, record in enumerate(self.records))


def write_records(records: Iterable[Record], directory: pathlib.Path) -> None:
    """Write records; TFDS holds them in memory meanwhile, and needs TensorFlow beyond 1 GB."""
    tfds.display_progress_bar(False)
    without_network = tfds.download.DownloadConfig(try_download_gcs=False)
    with contextlib.redirect_stdout(io.StringIO()):  # TFDS prints to stdout, which belongs to the data
        PreparedPairs(records, directory).download_and_prepare(download_config=without_network)
