"""However a table is ordered, split or stored, its histogram is the same; and it is the right one."""

import csv
import gzip
import io
import itertools
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from incrowd.domain import Bins, Categories, Coding, IntegerRange, Recode
from incrowd.sources import open_source

moderate = settings(
    deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

# Anything may occur in a text but a zero character and a lone carriage return, which text files cannot hold.
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=6)
numbers = st.integers(-3, 12)
reals = st.floats(-2, 4, allow_nan=False)


@st.composite
def tables(draw):
    """Rows of a text, a whole number and a real number, each possibly missing, and how they are to be coded."""
    known = draw(st.lists(texts, min_size=1, max_size=4, unique=True))
    text = st.sampled_from(known) | texts | st.none()
    rows = draw(st.lists(st.tuples(text, numbers | st.none(), reals | st.none()), min_size=1, max_size=25))
    codings = [
        Coding("t", Categories(tuple(known)), missing="keep", other="\0other"),
        Coding("i", IntegerRange(0, 9), missing="keep", other="\0other"),
        Coding("r", Bins((-1.0, 0.0, 0.5, 3.0)), missing="keep", other="\0other"),
    ]
    return rows, codings


def arrow(rows):
    types = (pa.string(), pa.int64(), pa.float64())
    values = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table({name: pa.array(v, t) for name, v, t in zip("tir", values, types, strict=True)})


def as_csv(rows, **dialect):
    sink = io.StringIO(newline="")
    writer = csv.writer(sink, quoting=csv.QUOTE_ALL, **dialect)
    writer.writerow("tir")
    writer.writerows(["" if value is None else str(value) for value in row] for row in rows)
    return sink.getvalue().encode()


def expected(rows, codings):
    """The cells, coded by plain Python."""
    known, cuts = codings[0].domain.values, codings[2].domain.cuts

    def code(row):
        text, whole, real = row
        t = len(known) + 1 if text is None else known.index(text) if text in known else len(known)
        i = 11 if whole is None else whole if 0 <= whole <= 9 else 10
        inside = real is not None and cuts[0] <= real <= cuts[-1]
        r = 4 if real is None else min(sum(real >= cut for cut in cuts[1:]), 2) if inside else 3
        return t, i, r

    return sorted(Counter(map(code, rows)).items())


def cells(h):
    codes = zip(*(column.codes.tolist() for column in h.columns), strict=True)
    return list(zip(codes, h.counts.tolist(), strict=True))


@moderate
@given(tables(), st.randoms(use_true_random=False))
def test_any_order_and_any_format_give_the_same_histogram(tmp_path, table, random):
    rows, codings = table
    base = open_source(arrow(rows)).count_by(codings)
    assert cells(base) == expected(rows, codings)

    rows = random.sample(rows, len(rows))
    (tmp_path / "t.csv").write_bytes(as_csv(rows))
    (tmp_path / "t.tsv.gz").write_bytes(gzip.compress(as_csv(rows, delimiter="\t", lineterminator="\n")))
    pq.write_table(arrow(rows), tmp_path / "t.parquet", row_group_size=3)
    frame = pd.DataFrame(rows, columns=list("tir"), index=random.sample(range(99), len(rows)))
    schema = {"t": pl.String, "i": pl.Int64, "r": pl.Float64}
    things = [
        tmp_path / "t.csv",
        tmp_path / "t.tsv.gz",
        tmp_path / "t.parquet",
        frame,
        pl.DataFrame(rows, schema, orient="row"),
    ]
    for thing in things:
        assert open_source(thing).count_by(codings) == base, thing


@moderate
@given(tables(), st.lists(st.integers(0, 25), max_size=3))
def test_splitting_a_file_changes_nothing(tmp_path, table, cuts):
    rows, codings = table
    base = open_source(arrow(rows)).count_by(codings)
    ends = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    for old in tmp_path.glob("part*"):
        old.unlink()
    for number, (start, stop) in enumerate(itertools.pairwise(ends)):
        (tmp_path / f"part{number}.csv").write_bytes(as_csv(rows[start:stop]))
        pq.write_table(arrow(rows[start:stop]), tmp_path / f"part{number}.parquet")
    assert open_source(tmp_path / "part*.csv").count_by(codings) == base
    assert open_source(tmp_path / "part*.parquet").count_by(codings) == base


@moderate
@given(tables(), st.data())
def test_recoding_while_counting_is_recoding_afterwards(table, data):
    rows, codings = table
    base = open_source(arrow(rows)).count_by(codings)
    recodes = {}
    for coding in codings:
        size = len(coding.base_labels)
        to = np.array(data.draw(st.lists(st.integers(0, 2), min_size=size, max_size=size)))
        recodes[coding.column] = Recode(to, ("p", "q", "r"))
    coarse = [Coding(c.column, c.domain, c.missing, c.other, recodes[c.column]) for c in codings]
    assert open_source(arrow(rows)).count_by(coarse) == base.recode(recodes)


@pytest.mark.parametrize("threads", [1, 4])
def test_large_quoted_files_are_read_whole_by_several_threads(tmp_path, threads):
    """Records full of quoted line ends, across the engine's internal borders, against Python's reader."""
    rng = np.random.default_rng(5)
    choices = ["a", "b\nc", 'd"e', "x,y", "\r\n", "long " * 40 + "\n" * 20, "\n\n\n"]
    rows = [(choices[i], str(j)) for i, j in rng.integers(0, (len(choices), 10), (60_000, 2)).tolist()]
    sink = io.StringIO(newline="")
    writer = csv.writer(sink)
    writer.writerow(("t", "i"))
    writer.writerows(rows)
    path = tmp_path / "t.csv"
    path.write_bytes(sink.getvalue().encode())
    assert path.stat().st_size > 2**21
    codings = [Coding("t", Categories(tuple(choices))), Coding("i", IntegerRange(0, 9))]
    h = open_source(path, threads=threads).count_by(codings)
    wanted = Counter((choices.index(t), int(i)) for t, i in rows)
    assert cells(h) == sorted(wanted.items())
