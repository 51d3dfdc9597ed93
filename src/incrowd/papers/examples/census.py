"""Example data: the census of an imaginary country, as large as wanted, and the policy to publish it with."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from incrowd.core.errors import InputError
from incrowd.core.files import appearing, named, require_absent, write_whole
from incrowd.papers.examples import _weights as weights
from incrowd.papers.examples._population import Codes, Country
from incrowd.theory._numbers import require_count

if TYPE_CHECKING:
    import pyarrow as pa

SEED = 1890  # the year of the first census that was counted by machine
BATCH = 1 << 16
FORMATS = (".csv", ".csv.gz", ".parquet")

_ROW_GROUP = 16  # batches: a million rows, which readers like
_LABELS: dict[str, Sequence[str]] = {
    "sex": weights.SEXES,
    "marital_status": weights.MARITAL,
    "race": weights.RACES,
    "education": weights.EDUCATION,
    "occupation": weights.OCCUPATIONS,
    "region": [region.name for region in weights.REGIONS],
    "zip": [place.code for place in weights.ZIPS],
    "condition": weights.CONDITIONS,
}


def census_batches(rows: int, seed: int = SEED, batch: int = BATCH) -> Iterator[pa.RecordBatch]:
    """The first `rows` people of the census, at most `batch` at a time.

    Person i is the same whatever `rows` and `batch` are. Text columns are dictionaries; an unanswered question is null.

    Raises:
        ParameterError: `rows` or `seed` is not a whole number of 0 or more, or `batch` not one of 1 or more.
    """
    rows = require_count("rows", rows, least=0)
    seed = require_count("seed", seed, least=0)
    batch = require_count("batch", batch)
    return (_record_batch(first, min(first + batch, rows), seed) for first in range(0, rows, batch))


def write_census(
    path: str | Path, rows: int, progress: Callable[[int], None] | None = None, *, overwrite: bool = False
) -> list[Path]:
    """Write a census of `rows` people, and beside it, under the same name with .yaml, the policy to publish it with.

    Memory stays the same however many rows there are. Each file appears when it is complete.

    Args:
        path: where to; its ending says how: .csv, .csv.gz or .parquet.
        rows: how many people.
        progress: called now and then with the number of people written so far.
        overwrite: whether files of these names may be replaced.

    Returns:
        The table and its policy.

    Raises:
        InputError: the name has another ending, a file is in the way, or the folder cannot be written to.
        ParameterError: `rows` is not a whole number of 1 or more.
    """
    table = named(path)
    ending = _ending(table)
    policy = table.with_name(table.name[: -len(ending)] + ".yaml")
    rows = require_count("rows", rows)
    for target in () if overwrite else (table, policy):
        require_absent(target)
    batches = _reported(census_batches(rows), progress)
    with appearing(table) as file:
        _WRITERS[ending](file, batches)
    return [table, write_whole(policy, census_policy(table.name, rows).encode())]


def census_policy(file: str, rows: int) -> str:
    """The policy to publish a census of `rows` people with, for a table that lies beside it under the name `file`."""
    codes = [f'"{place.code}"' for place in weights.ZIPS]
    lines = [", ".join(codes[i : i + 12]) for i in range(0, len(codes), 12)]
    return _POLICY.format(
        file=json.dumps(file, ensure_ascii=False),
        zips=(",\n" + " " * 6).join(lines),
        # At most a tenth of 1/rows. It is public: the rows were asked for on the command line, not counted in a table.
        delta=f"1.0e-{max(6, len(str(rows)) + 1)}",
    )


@cache
def _country() -> Country:
    return Country()


def _record_batch(first: int, last: int, seed: int) -> pa.RecordBatch:
    import pyarrow as pa

    columns: dict[str, pa.Array] = {"person_id": _array(np.arange(first + 1, last + 1, dtype=np.int64), pa.int64())}
    for name, codes in _country().people(first, last, seed).items():
        if name in _LABELS:
            columns[name] = pa.DictionaryArray.from_arrays(_array(codes, pa.uint8()), _texts(_LABELS[name]))
        else:
            columns[name] = _array(codes, pa.int32())
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _array(codes: Codes, kind: pa.DataType) -> pa.Array:
    """An Arrow array, null where the code is negative. Made of its buffers, since the usual way loads pandas."""
    import pyarrow as pa

    values = codes.astype(kind.to_pandas_dtype())
    present = codes >= 0
    bitmap = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    return pa.Array.from_buffers(kind, len(codes), [bitmap, pa.py_buffer(values)])


def _texts(values: Sequence[str]) -> pa.Array:
    """An Arrow array of texts, made likewise."""
    import pyarrow as pa

    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))


def _reported(batches: Iterator[pa.RecordBatch], progress: Callable[[int], None] | None) -> Iterator[pa.RecordBatch]:
    """The same batches; `progress` hears of each when the next one is asked for."""
    done = 0
    for batch in batches:
        yield batch
        done += len(batch)
        if progress is not None:
            progress(done)


def _write_parquet(file: BinaryIO, batches: Iterator[pa.RecordBatch]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    first = next(batches)
    with pq.ParquetWriter(
        file,
        first.schema,
        compression="zstd",
        use_dictionary=[name for name in first.schema.names if name != "person_id"],
        column_encoding={"person_id": "DELTA_BINARY_PACKED"},
        store_schema=False,  # so that readers see plain text, not Arrow's dictionaries
    ) as writer:
        group = [first]
        for batch in batches:
            if len(group) == _ROW_GROUP:
                writer.write_table(pa.Table.from_batches(group))
                group = []
            group.append(batch)
        writer.write_table(pa.Table.from_batches(group))


def _write_csv(file: BinaryIO | gzip.GzipFile, batches: Iterator[pa.RecordBatch]) -> None:
    import pyarrow as pa
    from pyarrow import csv

    # None of the values needs quotes; unanswered questions are left empty.
    options = csv.WriteOptions(include_header=False, quoting_style="none")
    for number, batch in enumerate(batches):
        if number == 0:
            plain = pa.schema(
                (field.name, pa.string() if field.name in _LABELS else field.type) for field in batch.schema
            )
            file.write((",".join(plain.names) + "\n").encode())
        csv.write_csv(pa.Table.from_batches([batch]).cast(plain), file, options)


def _write_gzip(file: BinaryIO, batches: Iterator[pa.RecordBatch]) -> None:
    with gzip.GzipFile(filename="", mode="wb", compresslevel=4, fileobj=file, mtime=0) as packed:
        _write_csv(packed, batches)


_WRITERS: dict[str, Callable[[BinaryIO, Iterator[pa.RecordBatch]], None]] = dict(
    zip(FORMATS, (_write_csv, _write_gzip, _write_parquet), strict=True)
)


def _ending(table: Path) -> str:
    for ending in FORMATS:
        if table.name.lower().endswith(ending) and len(table.name) > len(ending):
            return ending
    raise InputError(
        f"{table.name} does not say in which format to write.",
        code="output-format",
        remedy=f"Let the name end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}.",
    )


_POLICY = """\
# How to publish the census of an imaginary country: incrowd release THIS_FILE -o DIR
#
# The table beside this file was made by `incrowd example census`. Nobody in it is real, so change whatever you like
# here and see what becomes of the release.
incrowd: 1
title: Census of an imaginary country

data:
  path: {file} # relative to this file
  missing_values: [""] # an unanswered question

# Every column of the table has a role. Domains are declared, never read off the data: a value that only one person
# has would otherwise show by its mere presence.
attributes:
  person_id: drop # points at one person

  age:
    role: quasi
    type: integer
    domain: {{from: 0, to: 119}}
    hierarchy: {{widths: [5, 10, 20, 40]}}

  sex:
    role: quasi
    type: text
    domain: [female, male]

  marital_status:
    role: quasi
    type: text
    domain: [never married, married, partnership, separated, divorced, widowed]
    hierarchy:
      taxonomy:
        "*":
          couple: [married, partnership]
          single: [never married, separated, divorced, widowed]

  # Every further column makes the crowds smaller, so two that this release does not need are left out.
  race: drop
  occupation: drop

  education:
    role: quasi
    type: text
    domain:
      - no schooling
      - primary school
      - lower secondary
      - upper secondary
      - vocational training
      - some college
      - bachelor
      - master
      - professional degree
      - doctorate
    missing: keep # published as missing, if enough people share it
    hierarchy:
      taxonomy:
        "*":
          school:
            basic: [no schooling, primary school, lower secondary]
            secondary: [upper secondary, vocational training]
          college:
            undergraduate: [some college, bachelor]
            graduate: [master, professional degree, doctorate]

  income: # a year; [0, 1) means none at all
    role: quasi
    type: number
    domain: {{cuts: [0, 1, 10000, 20000, 30000, 40000, 50000, 60000, 80000, 100000, 150000, 250000, .inf]}}
    missing: keep
    hierarchy:
      cuts:
        - [0, 20000, 40000, 60000, 100000, .inf]
        - [0, 40000, 100000, .inf]

  region: drop # the first digit of the zip code says it

  zip:
    role: quasi
    type: text # leading zeros count
    domain:
      [
      {zips}
      ]
    hierarchy: {{mask: [2, 4, 5]}} # 00718, its district 007**, its region 0****, and *****

  condition:
    role: sensitive
    type: text
    domain:
      - none reported
      - hypertension
      - diabetes
      - asthma
      - heart disease
      - cancer
      - depression
      - arthritis
      - lung disease
      - dementia
      - epilepsy
      - HIV

release:
  mechanism: sampled_crowd
  epsilon: 2
  delta: {delta} # well below one over the number of people
  recoding: tree # each record as finely as its group allows; lattice: one level for each column
  splits: binary # in two, anywhere; hierarchy: into the groups of the hierarchies above
  output: parquet
"""
