"""The tables that benchmarks share: made here, or found where the benchmark tables are."""

from __future__ import annotations

import atexit
import datetime as dt
import math
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from incrowd.domain import Categories, Coding, DateRange, IntegerRange
from incrowd.hierarchy import CodedAttribute, codings
from incrowd.histogram import Histogram
from incrowd.papers.examples.census import write_census
from incrowd.policy import Policy
from incrowd.sources import open_source

if TYPE_CHECKING:
    import pyarrow as pa

PART = 5_000_000
FIRST_DAY = dt.date(2020, 1, 1)


@cache
def scratch() -> Path:
    """A folder that is removed in the end."""
    folder = tempfile.mkdtemp(prefix="incrowd-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def new_folder() -> Path:
    """An empty one within it."""
    return Path(tempfile.mkdtemp(dir=scratch()))


# --- people, as many as wanted ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Field:
    """A column: its name, how many values it has, and of what kind they are."""

    name: str
    size: int
    kind: Literal["text", "integer", "date"] = "text"

    @property
    def labels(self) -> list[str]:
        """The values of a text."""
        return [f"{self.name} number {i}" for i in range(self.size)]

    @property
    def coding(self) -> Coding:
        """How it is counted."""
        if self.kind == "text":
            return Coding(self.name, Categories(tuple(self.labels)))
        if self.kind == "date":
            return Coding(self.name, DateRange(FIRST_DAY, self.last_day))
        return Coding(self.name, IntegerRange(0, self.size - 1))

    @property
    def last_day(self) -> dt.date:
        """Of a date."""
        return FIRST_DAY + dt.timedelta(days=self.size - 1)

    def attribute(self, level: int | None) -> str:
        """Its line in a policy, with a fixed level or a free one."""
        if self.kind == "text":
            parts = [f"domain: [{', '.join(self.labels)}]"]
        elif self.kind == "date":
            parts = ["type: date", f"domain: {{from: {FIRST_DAY}, to: {self.last_day}}}", "hierarchy: {dates: [year]}"]
        else:
            widths = [10, 50] if self.size == 100 else [2**i for i in range(1, (self.size - 1).bit_length())]
            parts = ["type: integer", f"domain: {{from: 0, to: {self.size - 1}}}", f"hierarchy: {{widths: {widths}}}"]
        if level is not None:
            parts.append(f"level: {0 if self.kind == 'text' else level}")
        return f"  {self.name}: {{{', '.join(parts)}}}"


FIELDS = (
    Field("age", 100, "integer"),
    Field("admitted", 365, "date"),
    Field("sex", 2),
    Field("race", 5),
    Field("marital status", 7),
    Field("education", 16),
    Field("occupation", 14),
    Field("native country", 41),
)
MORE_FIELDS = (*FIELDS, Field("rooms", 8), Field("town", 50), Field("trade", 20), Field("household", 6))
NUMBERS = tuple(Field(field.name, field.size, "integer") for field in FIELDS)


@cache
def people(rows: int, tuples: int, fields: Sequence[Field] = FIELDS, *, even: bool = False) -> str:
    """The pattern of Parquet files with so many rows, drawn from a fixed number of tuples.

    Their frequencies are very unequal, or, if `even`, all the same.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = new_folder()
    for part, start in enumerate(range(0, rows, PART)):
        rng = np.random.default_rng(part)
        size = min(PART, rows - start)
        chosen = (np.arange(start, start + size) % tuples if even else tuples * rng.random(size) ** 3).astype(np.uint64)
        columns: dict[str, Any] = {}
        for number, field in enumerate(fields):
            values = scattered(chosen, number, field.size).astype(np.int32)
            if field.kind == "date":
                values += np.int32((FIRST_DAY - dt.date(1970, 1, 1)).days)
                columns[field.name] = pa.array(values).cast(pa.date32())
            elif field.kind == "text":
                columns[field.name] = pa.DictionaryArray.from_arrays(pa.array(values), pa.array(field.labels))
            else:
                columns[field.name] = pa.array(values)
        pq.write_table(pa.table(columns), folder / f"part-{part:03}.parquet")
    return f"{folder}/*.parquet"


def scattered(numbers: np.ndarray, stream: int, size: int) -> np.ndarray:
    """A fixed value below `size` for each number, different in each stream."""
    mixed = (numbers + np.uint64(stream * 7919 + 1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(31))) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(33)) % np.uint64(size)


@cache
def as_csv(pattern: str) -> str:
    """The same rows as one CSV file."""
    import duckdb

    path = new_folder() / "people.csv"
    with duckdb.connect() as connection:
        connection.sql(f"COPY (SELECT * FROM read_parquet('{pattern}')) TO '{path}' (HEADER)")
    return str(path)


def policy_text(fields: Sequence[Field] = FIELDS, *, free: int = 0, level: int = 1) -> str:
    """A policy for `people`: the levels of the first `free` fields are chosen privately; of the others, numbers and
    dates are shown at the given level and texts as they are."""
    lines = [field.attribute(None if i < free else level) for i, field in enumerate(fields)]
    chosen = ", selection_epsilon: 0.2" if free else ""
    release = f"release: {{mechanism: sampled_crowd, epsilon: 2, delta: 1e-6, beta: 0.5{chosen}}}"
    return "\n".join(["incrowd: 1", "attributes:", *lines, release, ""])


def bare_group_by(pattern: str, fields: Sequence[Field] = FIELDS) -> pa.Table:
    """DuckDB's own GROUP BY, with its own settings but for the order, which nobody needs."""
    import duckdb

    with duckdb.connect(config=BARE_SETTINGS) as connection:
        return connection.sql(bare_query(pattern, fields)).to_arrow_table()


BARE_SETTINGS = {"preserve_insertion_order": "false"}


def bare_query(pattern: str, fields: Sequence[Field] = FIELDS) -> str:
    """What it is asked."""
    columns = ", ".join(f'"{field.name}"' for field in fields)
    return f"SELECT {columns}, count(*) FROM read_parquet('{pattern}') GROUP BY ALL"


def require_same(ours: Histogram, bare: pa.Table) -> None:
    """Every group that was counted by an engine itself, the count behind its columns, is ours, and no other is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    our_keys, its_keys = np.zeros(len(ours), np.int64), np.zeros(bare.num_rows, np.int64)
    assert math.prod(len(column.labels) for column in ours.columns) < 2**63, "keys must fit"
    for column, values in zip(ours.columns, bare.columns, strict=False):
        labels = pa.array(column.labels, pa.string())
        found = pc.index_in(values.cast(pa.string()), value_set=labels)
        assert found.null_count == 0, "an engine found a value that is not ours"
        our_keys = our_keys * len(labels) + column.codes
        its_keys = its_keys * len(labels) + found.to_numpy()
    our_order, its_order = np.argsort(our_keys), np.argsort(its_keys)
    assert np.array_equal(our_keys[our_order], its_keys[its_order]), "both must find the same groups"
    its_counts = bare.column(len(ours.columns)).to_numpy()
    assert np.array_equal(ours.counts[our_order], its_counts[its_order]), "both must count the same"


# --- census -------------------------------------------------------------------------------------------------------


@cache
def census(rows: int) -> tuple[Histogram, tuple[CodedAttribute, ...]]:
    """The built-in census, counted."""
    path = new_folder() / "census.parquet"
    write_census(path, rows)
    coded = codings(Policy.from_file(path.with_suffix(".yaml")))
    return open_source(path).count_by([a.coding for a in coded]), tuple(coded)


# --- the benchmark tables -----------------------------------------------------------------------------------------

FILES = {
    "adult": ("adult.csv", "adult_hierarchy_"),
    "fars10": ("fars_subset.csv", "fars_hierarchy_"),
    "ihis_syn": ("ihis_int_syn.csv.gz", "ihis_int_hierarchy_"),
    "creditcard": ("creditcard_int.csv", "creditcard_int_hierarchy_"),
}
ABSENT = "the benchmark tables are not here (INCROWD_BENCHMARK_DATA, or ../shared/data beside the project)"


def table_folder(name: str) -> Path | None:
    """Where a benchmark table is, if it is anywhere."""
    given = os.environ.get("INCROWD_BENCHMARK_DATA")
    place = (Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data") / name
    return place if (place / FILES[name][0]).is_file() else None


def benchmark_policy(name: str, folder: Path, release: str = "") -> str:
    """A policy for all columns of a benchmark table, in the order of the files of their hierarchies."""
    file, prefix = FILES[name]
    names = [path.name.removeprefix(prefix).removesuffix(".csv") for path in sorted(folder.glob(f"{prefix}*.csv"))]
    attributes = "\n".join(f"  {n}: {{hierarchy: {{file: {folder}/{prefix}{n}.csv, delimiter: ';'}}}}" for n in names)
    return f"incrowd: 1\ndata: {{path: {folder}/{file}, delimiter: ';'}}\nattributes:\n{attributes}\n{release}"


def load(name: str, folder: Path) -> tuple[Histogram, tuple[CodedAttribute, ...]]:
    """A benchmark table, counted, and its columns."""
    coded = codings(Policy.from_text(benchmark_policy(name, folder)))
    return open_source(folder / FILES[name][0], delimiter=";").count_by([a.coding for a in coded]), tuple(coded)
