"""Folders that are more than the files in them: tables of a lake, and tables cut into partitions.

A lake's table has a log that says which of its files count. Others may hold records that were deleted or replaced, so
its files are not read without their log. The folders of a partitioned table hold a column in their names, which would
be lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

from incrowd.core.errors import DataError

MARKS = {"_delta_log": "Delta", "metadata/*.metadata.json": "Iceberg", ".hoodie": "Hudi"}
"""What lies in the folder of a lake's table, and whose it then is."""

_READERS = {
    "Delta": "deltalake.DeltaTable(folder).to_pyarrow_dataset()",
    "Iceberg": "pyiceberg's table.scan().to_arrow()",
}


def refuse_lakes(files: Iterable[Path]) -> None:
    """Refuses files, and folders, of a table whose log is not read.

    Raises:
        DataError: such a log lies in a folder above one of them.
    """
    for folder in sorted({parent for file in files for parent in (file / "any").resolve().parents}):
        for mark, kind in MARKS.items():
            if any(folder.glob(mark)):
                raise lake(folder, kind)


def lake(folder: Path | str, kind: str) -> DataError:
    """The error for a folder of a lake's table."""
    reader = f", or what {_READERS[kind]} gives in Python" if kind in _READERS else ""
    return DataError(
        f"{folder} is a table of {kind}: its files may hold records that were deleted, and only its log says which.",
        code="data-format",
        remedy=f"Give the table as its own reader hands it over: saved as one Parquet file{reader}.",
    )


def refuse_partitions(files: Iterable[Path], known: Iterable[str] = ()) -> None:
    """Refuses files in folders that are named ``column=value``, unless such columns are known.

    Raises:
        DataError: a column would be lost.
    """
    columns = set(known)
    for file in files:
        for folder in file.absolute().parents:
            column, sign, _ = folder.name.partition("=")
            if not (column and sign):
                break
            if unquote(column) not in columns:
                raise partitioned(folder.parent)


def partitioned(folder: Path) -> DataError:
    """The error for a folder of partitions."""
    return DataError(
        f"{folder} is a table in partitions: folders in it are named column=value, and that column would be lost.",
        code="data-format",
        remedy=f"Let Spark read it (--engine 'local[*]', --data {folder}), save it as one Parquet file, or give "
        "pyarrow.dataset.dataset(folder, partitioning='hive') in Python. Or rename the folders.",
    )
