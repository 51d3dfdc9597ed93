"""Published tables as they are read: a batch at a time, so that any number of records fits any machine.

A table is one file, or a folder of parts that follow each other. It may come from anyone: whatever is wrong with it
shows in what is returned, or is a `ValueError` or an `OSError`, without its values.

Records that come in canonical order come cell by cell, so that a batch is reduced to its runs of equal records before
anything is counted. What is kept is the histogram of the columns that somebody asked for, and nothing of the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd.core.signing import file_sha256
from incrowd.histogram import Column, Histogram, smallest_type
from incrowd.mechanisms.base import Publication
from incrowd.mechanisms.packages import read_package
from incrowd.mechanisms.tables import write_table
from incrowd.policy import Attribute
from incrowd.releases import footer
from incrowd.releases.release import FileDigest

if TYPE_CHECKING:
    import pyarrow as pa

_RECORDS = 1 << 18  # in a batch
_BLOCK = 1 << 22  # bytes of a text file in a batch; no record is longer
_MERGED = 1 << 16  # cells that wait before they are merged with those that were counted


@dataclass(frozen=True, eq=False)
class Published:
    """What was read.

    Attributes:
        histogram: of the columns asked for, in the table's order.
        canonical: whether the table says nothing but which records it has: they come in the order of their codes, and
            no file has notes of its own.
        records: the number of records of each file.
        beside: the further files of the release, by their path in the folder.
        unsure: whether other versions of the software seem to have written it, so that its bytes say nothing.
    """

    histogram: Histogram
    canonical: bool
    records: tuple[int, ...]
    beside: Mapping[str, bytes] = field(default_factory=dict)
    unsure: bool = False

    @property
    def publication(self) -> Publication:
        """What was published, as mechanisms look at it."""
        return Publication(self.histogram, self.beside)


def no_table(labels: Mapping[str, Sequence[str | None]]) -> Published:
    """Nothing was read: the release has files of its own only."""
    none = np.zeros(0, np.uint8)
    return Published(Histogram.of([Column(n, tuple(of), none) for n, of in labels.items()]), canonical=True, records=())


def read_table(
    files: Sequence[Path],
    labels: Mapping[str, Sequence[str | None]],
    wanted: Collection[str] | None = None,
    notes: Mapping[str, str] | None = None,
    attributes: Mapping[str, Attribute] | None = None,
) -> Published:
    """Reads a table once, and counts it by some of its columns.

    Args:
        files: CSV or Parquet, in their order.
        labels: of each column, in the table's order.
        wanted: the columns to count by; all if not given.
        notes: what a Parquet or Arrow file says of itself.
        attributes: what the policy says of the columns.

    Raises:
        ValueError: the table has other columns, or other values than these labels.
    """
    import pyarrow as pa

    columns = [Column(name, tuple(texts), np.zeros(0, dtype=np.int64)) for name, texts in labels.items()]
    counting = _RowCount(columns, set(labels) if wanted is None else set(wanted))
    try:
        return _read(files, columns, counting, notes or {}, attributes or {})
    except (pa.ArrowException, MemoryError):  # a small file can hold a value that fits no machine
        raise ValueError("a file cannot be read") from None


def _read(
    files: Sequence[Path],
    columns: Sequence[Column],
    counting: _RowCount,
    notes: Mapping[str, str],
    attributes: Mapping[str, Attribute],
) -> Published:
    names = [column.name for column in columns]
    records, plain, unsure = [], True, False
    for path in files:
        reader: _Csv | _Parquet | _Whole
        if path.suffix in (".csv", ".parquet"):
            reader = _Csv(path, names) if path.suffix == ".csv" else _Parquet(path, columns, notes)
        else:
            reader = _Whole(path, columns, notes, attributes)
            unsure |= not reader.written_alike()
        before = counting.records
        for batch in reader.batches():
            counting.add([_codes(values, column) for values, column in zip(batch.columns, columns, strict=True)])
        records.append(counting.records - before)
        plain &= reader.says_nothing_else()
    return Published(counting.histogram(), plain and counting.ordered, tuple(records), unsure=unsure)


class _RowCount:
    """Counts records as they come, and notices when they come out of order."""

    def __init__(self, columns: Sequence[Column], wanted: Collection[str]) -> None:
        self.records = 0
        self.ordered = True
        self._wanted = [(place, column) for place, column in enumerate(columns) if column.name in wanted]
        self._last: list[np.ndarray] = []
        self._counted: Histogram | None = None
        self._waiting: list[Histogram] = []
        self.add([column.codes for column in columns])

    def add(self, codes: Sequence[np.ndarray]) -> None:
        """The codes of the next records."""
        joined = [np.concatenate(pair) for pair in zip(self._last, codes, strict=True)] if self._last else codes
        self.ordered &= _runs(joined)[1]
        starts, _ = _runs(codes)
        size = len(codes[0])
        counts = np.diff(starts, append=size)
        cells = [Column(column.name, column.labels, codes[place][starts]) for place, column in self._wanted]
        self._waiting.append(Histogram.of(cells, counts))
        self.records += size
        if size:
            self._last = [code[-1:] for code in codes]
        if sum(map(len, self._waiting)) > max(_MERGED, 0 if self._counted is None else len(self._counted)):
            self._merge()

    def histogram(self) -> Histogram:
        """All records so far."""
        self._merge()
        if self._counted is None:
            raise ValueError("nothing was counted")
        return self._counted

    def _merge(self) -> None:
        found = [*([] if self._counted is None else [self._counted]), *self._waiting]
        columns = [
            Column(one.name, one.labels, np.concatenate([h.columns[place].codes for h in found]))
            for place, (_, one) in enumerate(self._wanted)
        ]
        self._counted, self._waiting = Histogram.of(columns, np.concatenate([h.counts for h in found])), []


def _runs(codes: Sequence[np.ndarray]) -> tuple[np.ndarray, bool]:
    """Where runs of equal records begin, and whether no record comes before a smaller one."""
    if not len(codes[0]):
        return np.zeros(0, dtype=np.int64), True
    same, ordered = np.ones(len(codes[0]) - 1, dtype=bool), True
    for code in codes:
        ordered &= not bool(np.any(same & (code[:-1] > code[1:])))
        same &= code[:-1] == code[1:]
    return np.flatnonzero(np.concatenate([[True], ~same])), ordered


def _codes(values: Any, column: Column) -> np.ndarray:
    """The codes of texts that Arrow has encoded by a dictionary, of which every entry must be declared."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known = pc.index_in(values.dictionary, pa.array(column.labels, type=pa.string()))
    ends = pc.min_max(values.indices).as_py()  # Arrow itself does not look whether there is such an entry
    within = ends["min"] is None or 0 <= ends["min"] <= ends["max"] < len(known)
    if not within or known.null_count or (None not in column.labels and values.null_count):
        raise ValueError("a column holds values outside its labels")
    missing = column.labels.index(None) if None in column.labels else 0
    codes = np.append(known.to_numpy(), missing).astype(smallest_type(len(column.labels)))
    found: np.ndarray = codes[values.indices.fill_null(len(known)).to_numpy()]
    return found


class _Parquet:
    """A Parquet file of texts."""

    def __init__(self, path: Path, columns: Sequence[Column], notes: Mapping[str, str]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        names = [column.name for column in columns]
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            if schema.names != names:
                raise ValueError("the columns are others")
            # A column that has no label for missing values may be declared to have none, and need not be.
            declared = pa.schema(
                [(c.name, pa.string(), f.nullable or None in c.labels) for c, f in zip(columns, schema, strict=True)],
                metadata=dict(notes) or None,
            )
            texts = schema.equals(declared, check_metadata=True)
        self._path, self._names, self._texts, self._notes = path, names, texts, notes

    def batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        with pq.ParquetFile(self._path, read_dictionary=self._names, buffer_size=_BLOCK, pre_buffer=False) as file:
            yield from file.iter_batches(_RECORDS)

    def says_nothing_else(self) -> bool:
        return self._texts and footer.says_nothing_else(self._path, self._notes)


class _Whole:
    """A file of Arrow, a statistics package or a spreadsheet, read at once and written once more."""

    def __init__(
        self, path: Path, columns: Sequence[Column], notes: Mapping[str, str], attributes: Mapping[str, Attribute]
    ) -> None:
        self._path, self._notes, self._attributes = path, notes, attributes
        self._output = path.suffix[1:]
        self._labels = {column.name: column.labels for column in columns}
        if self._output == "arrow":
            self._table, self._plain = _read_arrow(path, columns, notes)
        else:
            self._table, self._plain = read_package(path, self._output, self._labels, attributes)

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self._table.unify_dictionaries().to_batches(_RECORDS)

    def says_nothing_else(self) -> bool:
        return self._plain

    def written_alike(self) -> bool:
        again = FileDigest()
        table = Histogram.from_arrow(self._table, labels=self._labels)
        write_table(table, self._output, again, self._notes, self._attributes)  # type: ignore[arg-type]
        return again.hexdigest() == file_sha256(self._path)


def _read_arrow(path: Path, columns: Sequence[Column], notes: Mapping[str, str]) -> tuple[pa.Table, bool]:
    import pyarrow as pa

    with pa.memory_map(str(path)) as file:
        table = pa.ipc.open_file(file).read_all()
    if table.column_names != [column.name for column in columns]:
        raise ValueError("the columns are others")
    expected = Histogram.of(columns).schema().with_metadata(dict(notes) or None)
    if not table.schema.equals(expected):
        raise ValueError("a column is of another type")
    table.validate(full=True)
    return table, bool(table.schema.equals(expected, check_metadata=True))


class _Csv:
    """A CSV file, which is written once more while it is read: only one file says the same."""

    def __init__(self, path: Path, names: list[str]) -> None:
        import pyarrow as pa
        from pyarrow import csv

        self._path, self._names = path, names
        self._again = FileDigest()
        self._writer = csv.CSVWriter(self._again, pa.schema([(name, pa.string()) for name in names]))

    def batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        from pyarrow import csv

        reader = csv.open_csv(
            self._path,
            read_options=csv.ReadOptions(block_size=_BLOCK),
            # A record with nothing but missing values is an empty line, and still a record.
            parse_options=csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(self._names, pa.dictionary(pa.int32(), pa.string())),
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                null_values=[""],
            ),
        )
        with reader:
            if reader.schema.names != self._names:
                raise ValueError("the columns are others")
            for batch in reader:
                plain = [values.dictionary_decode() for values in batch.columns]
                self._writer.write_batch(pa.RecordBatch.from_arrays(plain, names=self._names))
                yield batch

    def says_nothing_else(self) -> bool:
        self._writer.close()
        return self._again.hexdigest() == file_sha256(self._path)
