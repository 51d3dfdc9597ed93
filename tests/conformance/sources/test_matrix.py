"""What is read from each kind of file, found by reading one; the table stands in docs/sources.md.

Whoever adds a reader, or changes one, writes the table anew: `python tests/conformance/sources/test_matrix.py`.
"""

import bz2
import gzip
import lzma
import sqlite3
import tempfile
import warnings
import zipfile
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from incrowd.domain import Categories, Coding, IntegerRange
from incrowd.sources import open_source
from incrowd.sources.datapackage import all_labels

PAGE = Path(__file__).parents[3] / "docs" / "sources.md"
BEGIN, END = "<!-- what is read from each kind of file -->\n", "<!-- end -->\n"
HEADINGS = ("file", "records", "numbers come as", "labels for `init`", "missing values", "counted")
PEOPLE = pd.DataFrame(
    {"sex": [1.0, 2.0, 2.0, None, 9.0], "town": ["Ulm", "Bonn", "Ulm", "Ulm", "Ulm"], "age": [30, 41, 41, 7, 7]}
)
EXPECTED = {("1", "Ulm", 30): 1, ("2", "Bonn", 41): 1, ("2", "Ulm", 41): 1, (None, "Ulm", 7): 1, ("9", "Ulm", 7): 1}
LABELS = {"variable_value_labels": {"sex": {1: "male", 2: "female"}}, "column_labels": ["Sex", "Town", "Age"]}
REFUSED = {"missing_ranges": {"sex": [{"lo": 9, "hi": 9}]}}
COUNTED = {
    "ArrowTable": "by DuckDB, as Arrow hands it over",
    "DelimitedFiles": "by DuckDB, from the file",
    "JsonLines": "by DuckDB, from the file",
    "ParquetFiles": "by DuckDB, from the file",
    "Database": "in the database",
}


def table():
    return pa.Table.from_pandas(PEOPLE, preserve_index=False)


def text():
    return PEOPLE.to_csv(index=False).encode()


def zipped(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("people.csv", text())


def statistics(kind, **options):
    def write(path):
        import pyreadstat

        getattr(pyreadstat, f"write_{kind}")(PEOPLE, path, **options)

    return write


def workbook(path):
    PEOPLE.to_excel(path, index=False)


def sqlite(path):
    with sqlite3.connect(path) as connection:
        PEOPLE.to_sql("people", connection, index=False)
    connection.close()


def duckdb(path):
    import duckdb as engine

    with engine.connect(str(path)) as connection:
        connection.register("given", table())
        connection.execute("CREATE TABLE people AS FROM given")


def arrow(module, name):
    def write(path):
        import importlib

        getattr(importlib.import_module(module), name)(table(), str(path))

    return write


def parquet(path):
    import pyarrow.parquet as pq

    pq.write_table(table(), path)


def orc(path):
    from pyarrow import orc

    orc.write_table(table(), path)


def partitions(path):
    import pyarrow.parquet as pq

    pq.write_to_dataset(table(), path, partition_cols=["town"])


def delta(path):
    import deltalake

    deltalake.write_deltalake(str(path), table())


FORMATS = {
    "CSV, TSV (.csv, .tsv, .txt, .dat)": ("people.csv", lambda path: path.write_bytes(text())),
    "the same, packed (.gz, .zst, .bz2, .xz, .zip)": (
        ("people.csv.gz", lambda path: path.write_bytes(gzip.compress(text()))),
        ("people.csv.bz2", lambda path: path.write_bytes(bz2.compress(text()))),
        ("people.csv.xz", lambda path: path.write_bytes(lzma.compress(text()))),
        ("people.csv.zip", zipped),
    ),
    "JSON lines (.jsonl, .ndjson)": ("people.jsonl", lambda path: PEOPLE.to_json(path, orient="records", lines=True)),
    "Parquet": ("people.parquet", parquet),
    "Arrow, Feather (.arrow, .feather, .ipc)": ("people.feather", arrow("pyarrow.feather", "write_feather")),
    "ORC": ("people.orc", orc),
    "DuckDB (.duckdb)": ("people.duckdb", duckdb),
    "SQLite": ("people.db", sqlite),
    "SPSS (.sav)": ("people.sav", statistics("sav", **LABELS, **REFUSED)),
    "SPSS (.zsav)": ("people.zsav", statistics("sav", **LABELS, **REFUSED, compress=True)),
    "SPSS portable (.por)": ("people.por", statistics("por", column_labels=LABELS["column_labels"])),
    "Stata (.dta)": ("people.dta", statistics("dta", **LABELS)),
    "SAS transport (.xpt)": ("people.xpt", statistics("xport", column_labels=LABELS["column_labels"])),
    "Excel (.xlsx, .xlsm, .xlsb, .xls)": ("people.xlsx", workbook),
    "Partitions (town=Ulm/…)": ("people", partitions),
    "Delta": ("delta", delta),
}


def found(path):
    """The cells of a format, from one of its files."""
    source = open_source(path)
    kinds = {column.name: column.kind for column in source.columns()}
    same = {name.lower(): name for name in kinds}
    codings = (
        Coding(same["sex"], Categories((1, 2, 9)), missing="keep"),
        Coding(same["town"], Categories(("Bonn", "Ulm"))),
        Coding(same["age"], IntegerRange(0, 99)),
    )
    counts = source.count_by(codings)
    rows = zip(*([column.labels[code] for code in column.codes] for column in counts.columns), strict=True)
    read = {(sex, town, int(age)): int(n) for (sex, town, age), n in zip(rows, counts.counts, strict=True)}
    said = all_labels(path) if path.is_file() else None
    labels = [] if said is None else ["variables"] * bool(said.variables) + ["values"] * bool(said.values)
    declared = "; codes declared to mean it are kept apart" if said is not None and said.missing else ""
    return (
        ("every one" if read == EXPECTED else "") + ("" if set(same) == set(kinds) else ", names in capitals"),
        kinds[same["age"]],
        " and ".join(labels) or "—",
        f"empty cells{declared}",
        COUNTED[type(source._table).__name__],
    )


def lines():
    """The lines of the table."""
    with tempfile.TemporaryDirectory() as scratch, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what writes the files
        for name, files in FORMATS.items():
            each = set()
            for file, write in [files] if isinstance(files[0], str) else files:
                path = Path(scratch) / file
                write(path)
                each.add(found(path))
            (cells,) = each
            yield f"| {' | '.join((name, *cells))} |\n"


def test_the_page_says_what_is_read_from_each_kind_of_file():
    for library in ("pyreadstat", "fastexcel", "openpyxl", "deltalake"):
        pytest.importorskip(library)
    page = PAGE.read_text(encoding="utf-8")
    shown = page[page.index(BEGIN) + len(BEGIN) :].split(END)[0].splitlines(keepends=True)[2:]
    assert shown == list(lines())
    assert all("| every one" in line for line in shown)


def main():
    written = [f"| {' | '.join(HEADINGS)} |\n", f"|{'---|' * len(HEADINGS)}\n", *lines()]
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(before + BEGIN + "".join(written) + END + rest.partition(END)[2], encoding="utf-8")


if __name__ == "__main__":
    main()
