"""A table of people as what it is to every mechanism: how many records fall into each cell.

A cell is a combination of codes, one per column; code i of a column stands for its ``labels[i]``, and the label None
is the explicit cell of missing values. Only cells that hold records are stored, sorted by their codes, each once, so
that two histograms of the same records are equal however the records were ordered, split or stored: nothing of the
input's row order can survive.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from incrowd.core.errors import DataError, InternalError, ParameterError
from incrowd.domain import Recode

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

Labels = tuple[str | None, ...]

# A table of all possible cells is faster than sorting, as long as it is small and not mostly empty.
_DENSE_CELLS = 2**26
_DENSE_CELLS_PER_ROW = 4
# The codes of a row are folded into one whole number below this.
_KEY_LIMIT = 2**62
# A key and its count are sorted as one number below this.
_PACK_LIMIT = 2**63
# All records together, so that no sum of counts can overflow.
_TOTAL_LIMIT = 2**62
# Sums of floating-point whole numbers are exact below this.
_EXACT_FLOAT = 2**53
_BATCH_ROWS = 2**20
_BLOCK = 2**15


@dataclass(frozen=True, eq=False)
class Column:
    """One named column of codes; code i is printed as ``labels[i]``, and None is the missing value."""

    name: str
    labels: Labels
    codes: np.ndarray

    def __post_init__(self) -> None:
        labels, codes = tuple(self.labels), np.asarray(self.codes)
        if len(set(labels)) != len(labels):
            raise ParameterError(
                f"Two codes of column {self.name!r} have the same label.",
                code="labels-duplicate",
                remedy="Rename the bucket for other values, or merge the groups that share a name.",
            )
        if codes.ndim != 1 or codes.dtype.kind not in "ui":
            raise ParameterError(f"The codes of column {self.name!r} must be whole numbers.", code="parameter-type")
        if codes.size and (int(codes.min()) < 0 or int(codes.max()) >= len(labels)):
            raise ParameterError(f"Column {self.name!r} holds a code without a label.", code="parameter-range")
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "codes", _frozen(codes.astype(smallest_type(len(labels)), copy=False)))

    def recode(self, recode: Recode) -> Column:
        """The same column, coarsened."""
        to = np.asarray(recode.to)
        if len(to) != len(self.labels):
            raise ParameterError(
                f"The recoding of column {self.name!r} covers {len(to)} codes, the column has {len(self.labels)}.",
                code="parameter-combination",
            )
        groups = Column(self.name, recode.labels, to)  # checked here, once for each code and not for each cell
        same = len(groups.labels) == len(to) and np.array_equal(to, np.arange(len(to)))
        return _with_codes(groups, self.codes if same else groups.codes[self.codes])


@dataclass(frozen=True, eq=False)
class Histogram:
    """How many records fall into each cell. Immutable; build it with `Histogram.of`.

    Attributes:
        columns: the columns, one code per cell, cells sorted by code (first column first) and all different.
        counts: the number of records of each cell, at least one, as 64-bit integers.
    """

    columns: tuple[Column, ...]
    counts: np.ndarray

    @classmethod
    def of(cls, columns: Sequence[Column], counts: np.ndarray | None = None) -> Histogram:
        """Counts rows given in any order, any number of times; `counts` says how many records each row stands for."""
        columns = tuple(columns)
        names = [column.name for column in columns]
        if len(set(names)) != len(names):
            raise ParameterError("Two columns of a histogram have the same name.", code="data-columns")
        if counts is None:
            if not columns:
                raise ParameterError("Rows without columns need counts.", code="parameter-combination")
            counts = np.ones(len(columns[0].codes), dtype=np.int64)
        counts = _whole(counts)
        if any(len(column.codes) != len(counts) for column in columns):
            raise ParameterError("Codes and counts are not equally many.", code="parameter-combination")
        return _grouped(*_present(columns, counts))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def total(self) -> int:
        """The number of records."""
        return int(self.counts.sum())

    @cached_property
    def tallies(self) -> dict[str, np.ndarray]:
        """For each column, how many records have each of its labels."""
        exact = self.total < _EXACT_FLOAT
        counts = self.counts.astype(np.float64 if exact else np.int64)
        tallies = {}
        for c in self.columns:
            if exact:
                tally = np.bincount(c.codes, weights=counts, minlength=len(c.labels)).astype(np.int64)
            else:
                tally = np.zeros(len(c.labels), dtype=np.int64)
                np.add.at(tally, c.codes, counts)
            tallies[c.name] = _frozen(tally)
        return tallies

    @cached_property
    def sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """The different sizes of cells, in order, and how many cells have each."""
        if not len(self) or self.counts.max() > len(self):
            return np.unique(self.counts, return_counts=True)
        cells = np.bincount(self.counts)
        sizes = np.flatnonzero(cells)
        return sizes, cells[sizes]

    @property
    def domain_size(self) -> int:
        """The number of cells there could be."""
        return math.prod(len(column.labels) for column in self.columns)

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, name: str) -> Column:
        for column in self.columns:
            if column.name == name:
                return column
        raise ParameterError(f"The histogram has no column {name!r}.", code="column-unknown")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Histogram):
            return NotImplemented
        return (
            self._same_columns(other)
            and np.array_equal(self.counts, other.counts)
            and all(np.array_equal(a.codes, b.codes) for a, b in zip(self.columns, other.columns, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        columns = " × ".join(f"{column.name}[{len(column.labels)}]" for column in self.columns)
        return f"<Histogram {columns}: {self.total} records in {len(self)} cells>"

    def recode(self, recodes: Mapping[str, Recode]) -> Histogram:
        """Coarsens the named columns; cells that become equal are merged."""
        for name in recodes:
            self[name]
        if not recodes:
            return self
        return _grouped([c.recode(recodes[c.name]) if c.name in recodes else c for c in self.columns], self.counts)

    def project(self, names: Sequence[str]) -> Histogram:
        """Keeps only these columns, in this order, summing over all others."""
        if tuple(names) == self.names:
            return self
        return Histogram.of([self[name] for name in names], self.counts)

    def marginalise(self, names: Sequence[str]) -> Histogram:
        """Sums over these columns, keeping all others."""
        for name in names:
            self[name]
        return self.project([name for name in self.names if name not in names])

    def merge(self, other: Histogram) -> Histogram:
        """The records of both. The columns and their labels must be the same."""
        if not self._same_columns(other):
            raise ParameterError(
                "Only histograms of the same columns and labels can be merged.", code="parameter-combination"
            )
        columns = [
            _with_codes(a, np.concatenate([a.codes, b.codes])) for a, b in zip(self.columns, other.columns, strict=True)
        ]
        return Histogram.of(columns, np.concatenate([self.counts, other.counts]))

    def with_counts(self, counts: np.ndarray) -> Histogram:
        """The same cells with other counts; cells whose count is zero vanish."""
        counts = _whole(counts)
        if len(counts) != len(self):
            raise ParameterError("Cells and counts are not equally many.", code="parameter-combination")
        columns, counts = _present(self.columns, counts)
        return Histogram(tuple(columns), _frozen(counts))  # in order and all different still

    def where(self, mask: np.ndarray) -> Histogram:
        """Only the cells at which `mask` is true."""
        mask = np.asarray(mask, dtype=bool)
        if len(mask) != len(self):
            raise ParameterError("Cells and a choice of them are not equally many.", code="parameter-combination")
        return self.at(np.flatnonzero(mask))

    def at(self, places: np.ndarray) -> Histogram:
        """Only the cells at these places, which must be ascending."""
        columns = tuple(_with_codes(c, c.codes[places]) for c in self.columns)
        return Histogram(columns, _frozen(self.counts[places]))

    def places(self, cells: Histogram) -> np.ndarray:
        """Where each cell of another histogram of the same columns is among the cells of this one; −1 if nowhere."""
        if not self._same_columns(cells) or not self.columns:
            raise ParameterError(
                "Only histograms of the same columns have the same cells.", code="parameter-combination"
            )
        if not len(self):
            return np.full(len(cells), -1)
        both = [np.concatenate([a.codes, b.codes]) for a, b in zip(self.columns, cells.columns, strict=True)]
        keys, sought = np.split(_keys(both, [len(c.labels) for c in self.columns]), [len(self)])
        places = np.minimum(np.searchsorted(keys, sought), len(keys) - 1)
        return np.where(keys[places] == sought, places, -1)

    def decode(self, count: str | None = "count", *, plain: bool = False) -> pa.Table:
        """The cells as an Arrow table: text columns (null is missing) and, unless `count` is None, their counts.

        Columns are dictionary-encoded; `plain` makes them ordinary text.
        """
        import pyarrow as pa

        if count is not None and count in self.names:
            raise ParameterError(
                f"A column is already called {count!r}.",
                code="data-columns",
                remedy="Give the column of counts another name.",
            )
        arrays = [_arrow(column, column.codes, plain) for column in self.columns]
        names = list(self.names)
        if count is not None:
            arrays.append(arrow_integers(self.counts))
            names.append(count)
        return pa.Table.from_arrays(arrays, names=names)

    def expand(self, *, plain: bool = False) -> pa.Table:
        """One row per record, in the order of the cells."""
        import pyarrow as pa

        return pa.Table.from_batches(list(self.batches(plain=plain)), schema=self.schema(plain=plain))

    def schema(self, *, plain: bool = False) -> pa.Schema:
        """The names and types of the columns of `expand`; only those with a label for it have missing values."""
        import pyarrow as pa

        return pa.schema(
            [pa.field(c.name, _arrow(c, c.codes[:0], plain).type, nullable=None in c.labels) for c in self.columns]
        )

    def batches(self, rows: int = _BATCH_ROWS, *, plain: bool = False) -> Iterator[pa.RecordBatch]:
        """What `expand` gives, at most `rows` records at a time, so that any number of them can be written."""
        import pyarrow as pa

        if not self.columns:
            raise ParameterError("Records without columns cannot be written.", code="parameter-combination")
        schema, ends = self.schema(plain=plain), np.cumsum(self.counts)
        for start in range(0, self.total, rows):
            stop = min(start + rows, self.total)
            first, last = np.searchsorted(ends, [start, stop - 1], side="right")
            cells = slice(int(first), int(last) + 1)
            repeats = np.minimum(ends[cells], stop) - np.maximum(ends[cells] - self.counts[cells], start)
            arrays = [_arrow(column, column.codes[cells], plain, repeats) for column in self.columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def to_pandas(self, count: str | None = "count") -> pd.DataFrame:
        """The cells as a pandas table of categorical columns and, unless `count` is None, their counts."""
        return self.decode(count).to_pandas()

    @classmethod
    def from_arrow(
        cls,
        table: pa.Table,
        *,
        count: str | None = None,
        labels: Mapping[str, Sequence[str | None]] | None = None,
    ) -> Histogram:
        """Counts the rows of an Arrow table, every value as text and null as missing.

        Args:
            table: the rows.
            count: the column that says how many records a row stands for; without it, each stands for one.
            labels: the labels of columns whose domain is known. The labels of the others are the values that occur,
                in alphabetical order, so they tell which values occur.
        """
        names = [name for name in table.column_names if name != count]
        if len(set(table.column_names)) != len(table.column_names):
            raise DataError("Two columns of the table have the same name.", code="data-columns")
        counts = None
        if count is not None:
            if count not in table.column_names:
                raise DataError(f"The table has no column {count!r}.", code="column-unknown")
            counts = _counts_of(table.column(count), count)
        given = labels or {}
        return cls.of([_column_of(name, table.column(name), given.get(name)) for name in names], counts)

    @classmethod
    def from_pandas(
        cls,
        frame: pd.DataFrame,
        *,
        count: str | None = None,
        labels: Mapping[str, Sequence[str | None]] | None = None,
    ) -> Histogram:
        """Counts the rows of a pandas table, as `from_arrow` does; the index is ignored."""
        import pyarrow as pa

        return cls.from_arrow(pa.Table.from_pandas(frame, preserve_index=False), count=count, labels=labels)

    def _same_columns(self, other: Histogram) -> bool:
        return [(c.name, c.labels) for c in self.columns] == [(c.name, c.labels) for c in other.columns]


def smallest_type(size: int) -> np.dtype[Any]:
    """The smallest unsigned type that holds the codes 0 … size − 1."""
    return np.min_scalar_type(max(size - 1, 0))


def arrow_integers(values: np.ndarray, missing: np.ndarray | None = None) -> pa.Array:
    """Integers as an Arrow array. Unlike ``pa.array``, this does not import pandas, which takes half a second."""
    import pyarrow as pa

    validity = None if missing is None else pa.py_buffer(np.packbits(~missing, bitorder="little"))
    values = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [validity, pa.py_buffer(values)])


def arrow_texts(texts: Sequence[str]) -> pa.Array:
    """Texts as an Arrow array, without importing pandas."""
    import pyarrow as pa

    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)]).astype(np.int32)
    return pa.Array.from_buffers(pa.string(), len(encoded), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))])


def _present(columns: Sequence[Column], counts: np.ndarray) -> tuple[Sequence[Column], np.ndarray]:
    """Without the rows that stand for no record."""
    if counts.all():
        return columns, counts
    present = np.flatnonzero(counts)
    return [_with_codes(c, c.codes[present]) for c in columns], counts[present]


def _grouped(columns: Sequence[Column], counts: np.ndarray) -> Histogram:
    """The histogram of rows that are known to be sound, each of which stands for some records."""
    codes, counts = _group([c.codes for c in columns], [len(c.labels) for c in columns], counts)
    return Histogram(tuple(_with_codes(c, code) for c, code in zip(columns, codes, strict=True)), _frozen(counts))


def _group(codes: list[np.ndarray], sizes: list[int], counts: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    """Merges equal rows and sorts them by their codes."""
    if not len(counts):
        return codes, counts
    if not codes:
        return [], counts.sum(keepdims=True)
    space = math.prod(sizes)
    if space <= min(_DENSE_CELLS, _DENSE_CELLS_PER_ROW * len(counts)) and counts.sum() < _EXACT_FLOAT:
        keys = _keys(codes, sizes)
        if _ascending(keys):
            return codes, counts
        dense = np.bincount(keys, weights=counts)
        cells = np.flatnonzero(dense)
        return unfold(cells, sizes), dense[cells].astype(np.int64)
    # From here on keys are sorted; codes that fill whole bits are the fastest to take apart again.
    padded = [1 << (size - 1).bit_length() for size in sizes]
    keys = _keys(codes, padded)
    if _ascending(keys):
        return codes, counts
    width, space = int(counts.max()).bit_length(), math.prod(padded)
    if space <= _KEY_LIMIT and space << width <= _PACK_LIMIT:  # so no prefix was replaced by its rank
        # Key and count in one number: sorting numbers is faster than finding the order that sorts them.
        keys <<= width
        keys |= counts
        keys.sort()
        counts = keys & (2**width - 1)
        keys >>= width
        keys, counts, _ = _merge(keys, counts)
        return unfold(keys, padded), counts
    order = np.argsort(keys)
    _, counts, starts = _merge(keys[order], counts[order])
    return [code[order[starts]] for code in codes], counts


def _keys(codes: list[np.ndarray], sizes: list[int]) -> np.ndarray:
    """One whole number per row, ordered as the rows are.

    Where all combinations would overflow 64 bits, the prefixes seen so far are replaced by their ranks.
    """
    keys, space = np.zeros(len(codes[0]), dtype=np.int64), 1
    for code, size in zip(codes, sizes, strict=True):
        if space * size > _KEY_LIMIT:
            prefixes, keys = np.unique(keys, return_inverse=True)
            keys, space = keys.astype(np.int64, copy=False), len(prefixes)
        keys *= size
        keys += code
        space *= size
    return keys


def _ascending(keys: np.ndarray) -> bool:
    return bool(np.all(keys[1:] > keys[:-1]))


def _merge(keys: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray | slice]:
    """Each of the sorted keys once, the sums of their counts, and where each begins."""
    if _ascending(keys):
        return keys, counts, slice(None)
    starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
    return keys[starts], np.add.reduceat(counts, starts), starts


def unfold(keys: np.ndarray, sizes: list[int]) -> list[np.ndarray]:
    """The codes that keys were folded from, the last size varying fastest.

    Block by block: fresh memory costs more than arithmetic.
    """
    codes = [np.empty(len(keys), dtype=smallest_type(size)) for size in sizes]
    for start in range(0, len(keys), _BLOCK):
        block = slice(start, start + _BLOCK)
        rest = keys[block]
        for code, size in zip(reversed(codes), reversed(sizes), strict=True):
            if size.bit_count() == 1:
                code[block] = rest & (size - 1)
                rest = rest >> (size.bit_length() - 1)
            else:
                rest, code[block] = np.divmod(rest, size)
    return codes


def _whole(counts: np.ndarray) -> np.ndarray:
    counts = np.asarray(counts)
    if counts.ndim != 1 or counts.dtype.kind not in "ui":
        raise ParameterError("Counts must be whole numbers.", code="parameter-type")
    if counts.size and (counts.min() < 0 or counts.sum(dtype=np.float64) >= _TOTAL_LIMIT):
        raise ParameterError("Counts must not be negative, and their sum must fit 62 bits.", code="parameter-range")
    return counts.astype(np.int64)


def _with_codes(column: Column, codes: np.ndarray) -> Column:
    """The same column with other codes, which are known to be among its own and so need no check."""
    copy = object.__new__(Column)
    copy.__dict__.update(column.__dict__, codes=_frozen(codes.astype(column.codes.dtype, copy=False)))
    return copy


def _frozen(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def _arrow(column: Column, codes: np.ndarray, plain: bool, repeats: np.ndarray | None = None) -> pa.Array:
    """The values of some codes, each as often as `repeats` says."""
    import pyarrow as pa

    # Looked for once in each cell, and not by Arrow once more in each record.
    if codes.size and int(codes.max()) >= len(column.labels):
        raise InternalError("a column holds a code without a label")
    texts = [label for label in column.labels if label is not None]
    # Signed indices: pandas cannot take unsigned ones.
    signed = codes.astype(np.min_scalar_type(-len(column.labels) - 1))
    missing = None
    if len(texts) < len(column.labels):
        gap = column.labels.index(None)
        missing = codes == gap
        signed -= codes > gap
    if repeats is not None:
        signed = np.repeat(signed, repeats)
        missing = None if missing is None else np.repeat(missing, repeats)
    encoded = pa.DictionaryArray.from_arrays(arrow_integers(signed, missing), arrow_texts(texts), safe=False)
    return encoded.dictionary_decode() if plain else encoded


def _column_of(name: str, values: pa.ChunkedArray, labels: Sequence[str | None] | None) -> Column:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        texts = values.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise DataError(
            f"Column {name!r} holds values that cannot be written as text ({values.type}).", code="column-type"
        ) from None
    if labels is None:
        # Sorted by Python: by code point, wherever this runs.
        occurring: list[str | None] = sorted(pc.unique(texts.drop_null()).to_pylist())
        labels = [*occurring, None] if texts.null_count else occurring
    codes = pc.index_in(texts, pa.array(labels, type=pa.string()), skip_nulls=False)
    if codes.null_count:
        raise DataError(
            f"Column {name!r} holds {codes.null_count} values outside its labels.",
            code="values-outside-domain",
            details={"columns": {name: {"outside": codes.null_count}}},
        )
    return Column(name, tuple(labels), codes.to_numpy().astype(smallest_type(len(labels))))


def _counts_of(values: pa.ChunkedArray, name: str) -> np.ndarray:
    import pyarrow as pa

    try:
        counts: np.ndarray = values.cast(pa.int64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        counts = np.array([-1])
    if values.null_count or counts.dtype != np.int64 or (counts < 0).any():
        raise DataError(f"Column {name!r} must hold whole numbers, none below zero.", code="counts-invalid")
    return counts
