"""Cells that stay where the table is: what comes is what a full count would have left, in every engine."""

import random
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd.core.errors import DataError, InternalError
from incrowd.domain import Categories, Coding, IntegerRange, Recode
from incrowd.histogram import Histogram
from incrowd.marginals import Crowds
from incrowd.sources import open_source
from incrowd.sources.at_least import CountsCrowds, CrowdsAsked, count_crowds, seem_more
from incrowd.sources.duckdb import DuckDBSource

WARD = Categories(("surgery", "medicine", "maternity"))
CODINGS = (Coding("ward", WARD), Coding("age", IntegerRange(0, 99), missing="drop"), Coding("code", WARD, other="?"))
DECADES = Recode(np.arange(100) // 10, tuple(f"{10 * i}s" for i in range(10)))


def levels(codings=CODINGS):
    """Ages by decades, the rest as it is."""
    whole = {c.column: Recode(np.arange(len(c.labels)), c.labels) for c in codings}
    return whole | {"age": DECADES}


def people(rows=600, seed=3):
    rng = random.Random(seed)
    return pa.table(
        {
            "ward": [rng.choice(WARD.values) for _ in range(rows)],
            "age": [rng.choice((None, *range(20, 60))) for _ in range(rows)],
            "code": [rng.choice((*WARD.values, "other", "unknown")) for _ in range(rows)],
        }
    )


def crowds_of(source, asked, codings=CODINGS):
    found = count_crowds(source, codings, asked)
    if isinstance(found, Histogram):
        assert not isinstance(source, CountsCrowds)  # an engine that only counts hands over all
        pytest.skip("the engine keeps nothing to itself")
    return found


@pytest.mark.parametrize("at_least", [1, 7])
def test_what_comes_is_what_a_full_count_leaves(engine, at_least):
    table = people()
    asked = CrowdsAsked(levels(), at_least)
    full = engine(table).count_by(CODINGS)
    found = crowds_of(engine(table, most_cells=60), asked)
    recoded = full.recode(levels())
    assert found.cells == recoded.where(recoded.counts >= at_least)
    small = Counter(recoded.counts[recoded.counts < at_least].tolist())
    assert {n: cells for n, cells in enumerate(found.smaller.tolist()) if cells} == small
    assert (found.total, found.cells_in_all) == (full.total, len(recoded))
    assert full.total < table.num_rows  # some were dropped
    for coding in CODINGS:
        assert found.whole.project([coding.column]) == full.project([coding.column])


def test_all_cells_come_while_they_are_few(engine):
    table = people()
    found = count_crowds(engine(table, most_cells=10_000), CODINGS, CrowdsAsked(levels(), 7))
    assert found == engine(table).count_by(CODINGS)


def test_what_is_not_declared_is_refused_as_ever(engine):
    """In a cell that no release could have shown, too."""
    strict = (CODINGS[0], Coding("age", IntegerRange(30, 99)), Coding("code", WARD, missing="drop"))
    asked = CrowdsAsked({c.column: Recode(np.arange(len(c.labels)), c.labels) for c in strict}, 50)
    table = people()
    with pytest.raises(DataError) as expected:
        engine(table).count_by(strict)
    with pytest.raises(DataError) as refused:
        count_crowds(engine(table, most_cells=5), strict, asked)
    assert (refused.value.code, refused.value.details) == (expected.value.code, expected.value.details)
    assert expected.value.details["columns"]["age"]["missing"]


def test_a_table_without_records_is_refused(engine):
    dropped = people().set_column(1, "age", pa.array([None] * 600, pa.int64()))
    for table in (people().slice(0, 0), dropped):
        with pytest.raises(DataError) as refused:
            count_crowds(engine(table, most_cells=1), CODINGS, CrowdsAsked(levels(), 2))
        assert refused.value.code == "data-empty"


def test_a_stream_which_can_be_read_once_comes_with_all_its_cells():
    source = open_source(people().to_reader(), most_cells=5)
    assert count_crowds(source, CODINGS, CrowdsAsked(levels(), 7)) == open_source(people()).count_by(CODINGS)


def test_first_rows_tell_a_table_of_very_many_cells(tmp_path, monkeypatch):
    """Then fetching all of them is not even tried."""
    pq.write_table(people(), tmp_path / "people.parquet")
    monkeypatch.setattr(DuckDBSource, "_count", None)
    source = open_source(tmp_path / "people.parquet", most_cells=100)
    assert isinstance(count_crowds(source, CODINGS, CrowdsAsked(levels(), 7)), Crowds)


def test_estimates_are_those_of_chao():
    assert not seem_more([1, 1, 1, 2, 2, 5], 6 + 1)  # 6 seen and 3·2 / (2·3) more
    assert seem_more([1, 1, 1, 2, 2, 5], 6)


def test_the_counts_must_agree():
    found = count_crowds(open_source(people(), most_cells=5), CODINGS, CrowdsAsked(levels(), 7))
    assert isinstance(found, Crowds)
    with pytest.raises(InternalError):
        Crowds(found.cells, 7, found.smaller + np.eye(1, 7, 3, dtype=np.int64)[0], found.whole)
    with pytest.raises(InternalError):
        Crowds(found.cells, 8, np.append(found.smaller, 0), found.whole)
