"""Folders that are more than the files in them: tables of a lake, and tables cut into partitions; and object stores.

A lake's table has a log that says which of its files count. Others may hold records that were deleted or replaced, so
its files are not read without their log: Delta's is read by deltalake, Iceberg's by pyiceberg. The folders of a
partitioned table hold a column in their names; given whole, such a folder is read with it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from incrowd.core.errors import DataError
from incrowd.core.machine import library
from incrowd.sources.memory import ArrowTable, check_names, open_memory

MARKS = {"_delta_log": "Delta", "metadata/*.metadata.json": "Iceberg", ".hoodie": "Hudi"}
"""What lies in the folder of a lake's table, and whose it then is."""

STORES = ("s3://", "gs://", "gcs://", "abfs://", "abfss://", "hdfs://")
"""Addresses of object stores and cluster file systems that Arrow reads; credentials come from the environment."""

_PATIENCE = 10  # seconds


def open_lake(thing: Any) -> ArrowTable | None:
    """A table of Delta or Iceberg, by its folder or as an object, a partitioned folder, or Parquet in an object store.

    A folder may name a version: ``census@12``, for Iceberg a snapshot. None if it is neither.
    """
    owner = type(thing).__module__.partition(".")[0]
    if owner == "deltalake":
        return _read("Delta", lambda: open_memory(thing.to_pyarrow_dataset()))
    if owner == "pyiceberg" and hasattr(type(thing), "scan"):
        return _read("Iceberg", lambda: _iceberg(thing, None))
    if isinstance(thing, str) and thing.startswith(STORES):
        return _stored(thing)
    if not isinstance(thing, str | Path) or "://" in str(thing):
        return None
    found = _folder(str(thing))
    if found is None:
        return None
    folder, version = found
    kinds = {kind for mark, kind in MARKS.items() if any(folder.glob(mark))}
    if "Delta" in kinds:
        return _read("Delta", lambda: _delta(str(folder), version))
    if "Iceberg" in kinds:
        return _read("Iceberg", lambda: _iceberg(_static(folder), version))
    if not kinds and version is None and any(folder.glob("*=*/")):
        return _read("partitioned", lambda: _dataset(str(folder)))
    return None


def _folder(name: str) -> tuple[Path, int | None] | None:
    """The folder of that name and the version that is named with it; None if there is no such folder."""
    versioned = re.fullmatch(r"(.+)@(\d+)", name)
    try:
        if Path(name).is_dir():
            return Path(name), None
        if versioned and not Path(name).exists() and Path(versioned[1]).is_dir():
            return Path(versioned[1]), int(versioned[2])
    except (OSError, ValueError):  # no file can have that name
        pass
    return None


def _read(kind: str, work: Any) -> ArrowTable:
    """What a reader hands over; what it finds wrong becomes an error of ours, since its words may hold values."""
    try:
        found = work()
    except (DataError, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - each library has errors of its own
        why = "its files are damaged, or are not all Parquet files of the same columns"
        if kind in MARKS.values():
            why = (
                "its log or its files are damaged, there is no such version, or it uses a feature that its reader "
                "does not know"
            )
        raise DataError(
            f"The {kind} table cannot be read: {why}.",
            code="data-unreadable",
            remedy="Check that it is complete and that the version exists, or save the table as one Parquet file.",
        ) from None
    if not isinstance(found, ArrowTable):
        raise DataError(f"The {kind} table is empty.", code="data-empty", remedy="Check that it is the right one.")
    return found


def _delta(place: str, version: int | None) -> ArrowTable | None:
    return open_memory(library("deltalake", "lake").DeltaTable(place, version=version).to_pyarrow_dataset())


def _static(folder: Path) -> Any:
    """The table of the newest metadata in a folder; a catalogue may know better, and hands over an object."""
    newest = max(folder.glob("metadata/*.metadata.json"), key=_number)
    return library("pyiceberg.table", "lake").StaticTable.from_metadata(str(newest))


def _number(metadata: Path) -> tuple[int, str]:
    """Of a metadata file: 00012-….metadata.json or v12.metadata.json."""
    found = re.match(r"v?(\d+)", metadata.name)
    return (int(found[1]) if found else -1, metadata.name)


def _iceberg(table: Any, snapshot: int | None) -> ArrowTable:
    names = [field.name for field in table.schema().fields]
    check_names(names)

    def read(positions: list[int]) -> Any:
        wanted = tuple(names[i] for i in positions)
        return table.scan(selected_fields=wanted, snapshot_id=snapshot).to_arrow().select(list(wanted))

    if snapshot is not None and table.snapshot_by_id(snapshot) is None:
        raise DataError(
            "The Iceberg table has no such snapshot.", code="data-not-found", remedy="Name one that it has, after @."
        )
    return ArrowTable(tuple(names), None, read)


def _dataset(place: Any, **options: Any) -> ArrowTable | None:
    from pyarrow import dataset

    return open_memory(dataset.dataset(place, format="parquet", partitioning="hive", **options))


def _with_endpoint(address: str) -> str:
    """The address, with the server that the environment names for S3: Arrow looks for it in the address only.

    Google's store is not asked again and again for a quarter of an hour, as it otherwise is where it cannot be reached.
    """
    if address.startswith(("gs://", "gcs://")) and "?" not in address:
        return f"{address}?retry_limit_seconds={_PATIENCE}"
    server = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if not server or not address.startswith("s3://") or "?" in address:
        return address
    scheme, _, host = server.rstrip("/").rpartition("://")
    return f"{address}?scheme={scheme or 'https'}&endpoint_override={host}"


def _stored(address: str) -> ArrowTable:
    """Parquet files, or a table of Delta, in an object store."""
    from pyarrow import fs

    try:
        system, path = fs.FileSystem.from_uri(_with_endpoint(address))
        kind = system.get_file_info(path).type
        log = system.get_file_info(f"{path.rstrip('/')}/_delta_log").type
        iceberg = system.get_file_info(f"{path.rstrip('/')}/metadata").type
    except Exception:  # noqa: BLE001 - each store has errors of its own
        raise DataError(
            "The object store cannot be reached, or does not let this user in.",
            code="data-connection",
            remedy="Check the address, and the credentials in the environment (AWS_ACCESS_KEY_ID, say).",
        ) from None
    if log != fs.FileType.NotFound:
        return _read("Delta", lambda: _delta(address, None))
    if kind == fs.FileType.NotFound:
        raise DataError("There is nothing at this address.", code="data-not-found", remedy="Check it.")
    if iceberg != fs.FileType.NotFound:
        raise lake(address, "Iceberg")
    return _read("stored", lambda: _dataset(path, filesystem=system))


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
    return DataError(
        f"{folder} is a table of {kind}: its files may hold records that were deleted, and only its log says which.",
        code="data-format",
        remedy="Give the folder of the table, not its files, or the table as its own reader hands it over."
        if kind in ("Delta", "Iceberg")
        else "Give the table as its own reader hands it over: saved as one Parquet file.",
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
        remedy=f"Give the folder itself, {folder}, which is read with that column. Or rename the folders.",
    )
