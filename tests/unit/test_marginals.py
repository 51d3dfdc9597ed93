"""Counts by a few columns of a table that is not at hand as a whole."""

import numpy as np
import pytest

from incrowd.core.errors import InternalError
from incrowd.histogram import Column, Histogram
from incrowd.marginals import Marginals, Tally

SIZES = (3, 4, 2)
SETS = ((0,), (1,), (2,), (0, 1), (2, 0), ())


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(4)
    labels = [tuple(f"{size}.{i}" for i in range(size)) for size in SIZES]
    codes = [rng.integers(0, size, 300) for size in SIZES]
    return Histogram.of([Column("abc"[i], labels[i], codes[i]) for i in range(3)], rng.integers(1, 9, 300))


def test_batches_add_up_to_projections(table):
    tally = Tally(SIZES, SETS)
    for start in range(0, len(table), 7):
        batch = slice(start, start + 7)
        tally.add([column.codes[batch] for column in table.columns], table.counts[batch])
    for columns, counts in zip(SETS, tally.counts, strict=True):
        part = table.project(["abc"[i] for i in columns])
        dense = np.zeros([SIZES[i] for i in columns], dtype=np.int64)
        dense[tuple(column.codes for column in part.columns)] = part.counts if columns else part.total
        assert counts.tolist() == dense.ravel().tolist()


def test_what_was_counted_can_be_asked_for_in_any_order_and_nothing_else(table):
    known = Marginals(table.columns, (table.project("ab"), table.project("c")))
    assert (known.names, known.total) == (table.names, table.total)
    assert known["b"].labels == table["b"].labels
    for names in ("a", "b", "c", "ba"):
        assert known.project(list(names)) == table.project(list(names))
    with pytest.raises(InternalError):
        known.project(["a", "c"])
