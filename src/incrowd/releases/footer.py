"""What a Parquet file says beside its records, and whether it is no more than they say themselves.

A file that Arrow writes from the records alone has nothing to tell but them, though not in the same bytes for every
version of Arrow. So its notes are looked at one by one. Inside a page (its header, how its values are compressed)
nothing is looked at but the values.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_WRITER = re.compile(r"parquet-cpp-arrow version (\d{1,3})\.(\d{1,3})\.(\d{1,3})", re.ASCII)
_MAGIC = b"PAR1"
# Not every version of Arrow shows all of them.
_NEVER_SET = (
    *("file_path", "metadata", "geo_statistics", "bloom_filter_offset", "bloom_filter_length"),
    *("has_column_index", "has_offset_index", "is_stats_set"),
)


def says_nothing_else(path: Path, notes: Mapping[str, str] | None = None) -> bool:
    """Whether all notes, but those given, are those of a file that Arrow wrote from its records, without statistics.

    The name of the writer, the offsets of columns and the sizes of row groups must be exactly those that Arrow writes.
    The smallest and the largest value of a column could be wrong, and need not be there.
    """
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(path)
    given = {key.encode(): value.encode() for key, value in (notes or {}).items()}
    return (metadata.metadata or {}) == given and _are_regular(metadata) and _are_all_bytes(path, metadata)


def _are_all_bytes(path: Path, metadata: Any) -> bool:
    """Whether every byte belongs to a column or to the notes, and the notes have no fields but those known here."""
    import pyarrow as pa

    with path.open("rb") as file:
        size = file.seek(0, io.SEEK_END)
        end = size - metadata.serialized_size - 2 * len(_MAGIC)
        file.seek(max(0, end))
        notes = file.read()
        file.seek(0)
        whole = file.read(len(_MAGIC)) == _MAGIC
        chunks = _chunks(metadata)
        starts = [_start(chunk) for chunk in chunks] + [end]
        whole &= starts[0] == len(_MAGIC)
        for chunk, start, following in zip(chunks, starts, starts[1:], strict=False):
            behind = start + chunk.total_compressed_size
            file.seek(behind)
            # Before version 18, Arrow wrote here once more what the footer says of the column.
            known = behind == following or (
                chunk.file_offset == behind < following <= behind + len(notes)
                and file.read(following - behind) in notes
            )
            whole &= known
    written_by = _WRITER.fullmatch(metadata.created_by)
    if written_by is None or not whole:
        return False
    here = [int(part) for part in re.findall(r"\d+", pa.__version__)[:3]]
    if [int(part) for part in written_by.groups()] > here:
        return True  # a later Arrow may have written fields that this one does not know
    again = io.BytesIO()
    metadata.write_metadata_file(again)
    return again.getvalue() == _MAGIC + notes


def _are_regular(metadata: Any) -> bool:
    """Whether rows are grouped as they come, and no column has notes that Arrow does not make unasked."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    *full, last = [group.num_rows for group in groups] or [0]
    return (
        set(full) <= {max(full, default=0)}
        and (not full or 0 < last <= full[0])
        and not any(group.sorting_columns for group in groups)
        and not any(getattr(chunk, name, None) for chunk in _chunks(metadata) for name in _NEVER_SET)
    )


def _chunks(metadata: Any) -> list[Any]:
    """The columns of each group of rows, as they follow each other."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return [group.column(i) for group in groups for i in range(group.num_columns)]


def _start(chunk: Any) -> int:
    """Where its first page begins."""
    return int(chunk.dictionary_page_offset if chunk.has_dictionary_page else chunk.data_page_offset)
