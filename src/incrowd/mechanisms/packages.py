"""Published tables for statistics packages and spreadsheets: written, and read again from a file that anyone made.

In SPSS and Stata a column of whole numbers holds these; any other holds codes with value labels: the policy's own where
all its labels have one, else 1, 2, 3, … in the order of the labels. A spreadsheet holds texts. What a format cannot
hold exactly is found by a trial with every label before anything is charged.
"""

from __future__ import annotations

import datetime as dt
import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from incrowd.core.errors import DataError, MissingLibraryError, PolicyError
from incrowd.core.machine import library
from incrowd.hierarchy import CodedAttribute
from incrowd.histogram import Column, Histogram
from incrowd.policy import Attribute
from incrowd.sources.programs import read_program, statistics

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

PACKAGES = {"sav": "SPSS", "dta": "Stata", "xlsx": "Excel"}
MOST_ROWS = {"xlsx": (1 << 20) - 1}  # the first one names the columns
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,8}", re.ASCII)
_SHEET = "release"
_EPOCH = dt.datetime(2000, 1, 1)  # noqa: DTZ001 - for headers: when a file was written is none of its readers' business
_SAV_CLOCK = slice(92, 109)  # of the header of an SPSS file


@dataclass(frozen=True)
class Variable:
    """A column as a statistics package has it.

    Attributes:
        name: of the column.
        labels: all that it could show; None is a missing value.
        codes: the number that stands for each label.
        title: what it is called for people; nothing if the policy does not say.
    """

    name: str
    labels: tuple[str | None, ...]
    codes: tuple[int | None, ...]
    title: str | None

    @property
    def value_labels(self) -> dict[int, str]:
        """What the codes mean; nothing where they are the very numbers that are published."""
        pairs = [(c, text) for c, text in zip(self.codes, self.labels, strict=True) if c is not None]
        return {} if all(str(c) == text for c, text in pairs) else {c: text for c, text in pairs if text is not None}


def variable(name: str, labels: Sequence[str | None], attribute: Attribute | None) -> Variable:
    """How a column is coded: from its labels and its attribute in the policy alone, so that everyone gets the same."""
    own = {} if attribute is None or not isinstance(attribute.labels, Mapping) else dict(attribute.labels)
    known = {text: code for code, text in {**own, **((attribute and attribute.codes) or {})}.items()}
    codes = [None if text is None else known.get(text, text) for text in labels]
    whole = all(code is None or _WHOLE.fullmatch(code) for code in codes) and len(set(codes)) == len(codes)
    numbers = count(1)
    found = [None if code is None else int(code) if whole else next(numbers) for code in codes]
    return Variable(name, tuple(labels), tuple(found), None if attribute is None else attribute.title)


def variables(labels: Mapping[str, Sequence[str | None]], attributes: Mapping[str, Attribute]) -> list[Variable]:
    """Those of a table."""
    return [variable(name, of, attributes.get(name)) for name, of in labels.items()]


def write_package(published: Histogram, output: str, sink: BinaryIO, attributes: Mapping[str, Attribute]) -> None:
    """The records in canonical order; the same bytes for the same records and versions."""
    known = variables({c.name: c.labels for c in published.columns}, attributes)
    sink.write(_WRITERS[output](published, known))


def read_package(
    path: Path, output: str, labels: Mapping[str, Sequence[str | None]], attributes: Mapping[str, Attribute]
) -> tuple[pa.Table, bool]:
    """The table in a file, columns encoded by dictionaries, and whether its notes are those that it should have.

    Raises:
        ValueError: it holds something else.
    """
    refusals: tuple[type[Exception], ...] = (DataError, *_own_errors(output))
    try:
        return _READERS[output](path, variables(labels, attributes))
    except MissingLibraryError:
        raise
    except refusals:
        raise ValueError("a file cannot be read") from None


def require_exact(
    output: str, attributes: Mapping[str, Attribute], coded: Sequence[CodedAttribute], *, known: bool
) -> None:
    """Refuse what a format cannot hold exactly, at whatever levels the columns will be shown.

    Args:
        output: the format.
        attributes: what the policy says of the columns.
        coded: the columns that are published.
        known: whether only labels of their levels are shown.

    Raises:
        PolicyError: it cannot, or what will be shown is not known beforehand.
        DataError: what writes it is not installed.
    """
    if output not in PACKAGES:
        return
    if not known:
        raise _refused(output, "the labels of a local recoding are only known when it has been made")
    if output == "xlsx" and all(None in a.hierarchy.recode(0).labels for a in coded):
        raise _refused(output, "a record may have nothing but missing values, and would be no row")
    for level in range(max(a.hierarchy.height for a in coded) + 1):
        labels = {a.name: a.hierarchy.recode(min(level, a.hierarchy.height)).labels for a in coded}
        rows = np.arange(max(map(len, labels.values())))
        trial = Histogram.of([Column(name, tuple(of), rows % len(of)) for name, of in labels.items()])
        require_labels(trial, output, attributes)


def require_labels(trial: Histogram, output: str, attributes: Mapping[str, Attribute]) -> None:
    """Refuse a table that would not be read as it is written."""
    if output in PACKAGES and not _comes_back(trial, output, attributes):
        alone = [c for c in trial.columns if not _comes_back(_beside_another(c), output, attributes)]
        where = f" of column {alone[0].name!r}" if alone else ""
        raise _refused(
            output, f"a name, a title or a label{where} is too long for it, or holds what it has no place for"
        )


def _beside_another(column: Column) -> Histogram:
    """A column and one that can always be written, so that no row is empty."""
    name = "y" if column.name.casefold() == "x" else "x"
    return Histogram.of([column, Column(name, ("x",), np.zeros_like(column.codes))])


def require_rows(output: str, rows: int | None) -> None:
    """Refuse a table that may have more rows than fit.

    Args:
        output: the format.
        rows: how many there will be at most; None if nobody can tell.
    """
    most = MOST_ROWS.get(output)
    if most is not None and (rows is None or rows > most):
        why = "how many rows there will be is not known; set 'rows'" if rows is None else "the table may have more rows"
        raise _refused(output, f"a sheet has at most {most:,} rows, and {why}")


def _refused(output: str, why: str) -> PolicyError:
    return PolicyError(
        f"The release cannot be written exactly as {PACKAGES[output]}: {why}.",
        code="output-inexact",
        remedy="Choose another format (--format): parquet, csv or arrow holds everything.",
    )


def _comes_back(trial: Histogram, output: str, attributes: Mapping[str, Attribute]) -> bool:
    labels = {c.name: c.labels for c in trial.columns}
    if output == "sav" and len({name.casefold() for name in labels}) < len(labels):
        return False  # SPSS takes them for one
    refusals: tuple[type[Exception], ...] = (ValueError, *_own_errors(output))
    with TemporaryDirectory(prefix="incrowd-") as place:
        path = Path(place, f"trial.{output}")
        try:
            with path.open("wb") as file:
                write_package(trial, output, file, attributes)
            table, plain = read_package(path, output, labels, attributes)
        except refusals:
            return False
    return plain and bool(table.equals(trial.expand().cast(table.schema)))


def _own_errors(output: str) -> tuple[type[Exception], ...]:
    """How the libraries behind a format say that something cannot be written or read."""
    if output == "xlsx":
        return (
            library("fastexcel", "stat").FastExcelError,
            library("xlsxwriter.exceptions", "stat").XlsxWriterException,
        )
    pyreadstat = library("pyreadstat", "stat")
    return pyreadstat.PyreadstatError, pyreadstat.ReadstatError


# --- statistics packages ----------------------------------------------------------------------------------------------


def _frame(published: Histogram, known: Sequence[Variable], kinds: Callable[[Variable], Any]) -> pd.DataFrame:
    pandas = library("pandas", "stat")
    columns = {}
    for column, of in zip(published.columns, known, strict=True):
        codes = np.array([np.nan if code is None else code for code in of.codes], dtype=np.float64)
        columns[column.name] = pandas.array(np.repeat(codes[column.codes], published.counts)).astype(kinds(of))
    return pandas.DataFrame(columns)


def _sav(published: Histogram, known: Sequence[Variable]) -> bytes:
    writer = library("pyreadstat", "stat")
    with TemporaryDirectory(prefix="incrowd-") as place:
        path = Path(place, "table.sav")
        writer.write_sav(
            _frame(published, known, lambda _: "float64"),
            str(path),
            column_labels={v.name: v.title for v in known if v.title},
            variable_value_labels={v.name: v.value_labels for v in known if v.value_labels},
            variable_format={v.name: "F10.0" for v in known},
            row_compress=True,
        )
        content = bytearray(path.read_bytes())
    content[_SAV_CLOCK] = f"{_EPOCH:%d %b %y%H:%M:%S}".encode()
    return bytes(content)


def _dta(published: Histogram, known: Sequence[Variable]) -> bytes:
    def kind(of: Variable) -> str:
        return "Int8" if all(c is None or -100 <= c <= 100 for c in of.codes) else "Int32"

    library("pyreadstat", "stat")  # which reads it again
    sink = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that it changes: then the table does not come back
        _frame(published, known, kind).to_stata(
            sink,
            write_index=False,
            time_stamp=_EPOCH,
            version=118,
            variable_labels={v.name: v.title for v in known if v.title},
            value_labels={v.name: v.value_labels for v in known if v.value_labels},
        )
    return sink.getvalue()


def _read_statistics(path: Path, known: Sequence[Variable]) -> tuple[pa.Table, bool]:
    import pyarrow as pa

    frame = read_program(path, None)
    meta = statistics(path, metadataonly=True)[1]
    if list(frame.columns) != [v.name for v in known]:
        raise ValueError("the columns are others")
    plain = (
        [text or None for text in meta.column_labels] == [v.title for v in known]
        and {n: dict(of) for n, of in meta.variable_value_labels.items()}
        == {v.name: v.value_labels for v in known if v.value_labels}
        and not (meta.missing_ranges or meta.missing_user_values or meta.notes or meta.file_label)
    )
    arrays = []
    for of in known:
        values = frame[of.name].to_numpy(dtype=np.float64, na_value=np.nan)
        place = {float(code): i for i, code in enumerate(c for c in of.codes if c is not None)}
        texts = [text for text in of.labels if text is not None]
        missing = np.isnan(values)
        distinct, inverse = np.unique(values[~missing], return_inverse=True)
        if not set(distinct) <= set(place) or (missing.any() and None not in of.labels):
            raise ValueError("a column holds values outside its labels")
        indices = np.zeros(len(values), dtype=np.int32)
        indices[~missing] = np.array([place[value] for value in distinct], dtype=np.int32)[inverse]
        arrays.append(pa.DictionaryArray.from_arrays(pa.array(indices, mask=missing), pa.array(texts, pa.string())))
    return pa.table(arrays, names=[v.name for v in known]), plain


# --- spreadsheets -----------------------------------------------------------------------------------------------------


def _xlsx(published: Histogram, known: Sequence[Variable]) -> bytes:
    library("fastexcel", "stat")  # which reads it again
    sink = io.BytesIO()
    with library("xlsxwriter", "stat").Workbook(sink, {"constant_memory": True}) as book:
        book.set_properties({"created": _EPOCH})
        sheet = book.add_worksheet(_SHEET)
        for place, of in enumerate(known):
            sheet.write_string(0, place, of.name)
        row = 0
        for cell, times in zip(zip(*(c.codes for c in published.columns), strict=True), published.counts, strict=True):
            texts = [column.labels[code] for column, code in zip(published.columns, cell, strict=True)]
            for row in range(row + 1, row + 1 + int(times)):  # noqa: B020 - it goes on where it was
                for place, text in enumerate(texts):
                    if text is not None:
                        sheet.write_string(row, place, text)
    return sink.getvalue()


def _read_sheet(path: Path, known: Sequence[Variable]) -> tuple[pa.Table, bool]:
    import pyarrow as pa

    book = library("fastexcel", "stat").read_excel(path)
    table = pa.Table.from_batches([book.load_sheet(0, dtypes="string").to_arrow()])
    if table.column_names != [v.name for v in known]:
        raise ValueError("the columns are others")
    arrays = []
    for of in known:
        texts = pa.array([text for text in of.labels if text is not None], pa.string())
        values = table[of.name].cast(pa.string()).combine_chunks()
        indices = pa.compute.index_in(values, texts)
        if indices.null_count > values.null_count or (values.null_count and None not in of.labels):
            raise ValueError("a column holds values outside its labels")
        arrays.append(pa.DictionaryArray.from_arrays(indices, texts))
    return pa.table(arrays, names=table.column_names), book.sheet_names == [_SHEET]


_WRITERS = {"sav": _sav, "dta": _dta, "xlsx": _xlsx}
_READERS = {"sav": _read_statistics, "dta": _read_statistics, "xlsx": _read_sheet}
