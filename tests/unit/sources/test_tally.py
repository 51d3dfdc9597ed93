"""From counted codes to a histogram: which records are dropped, kept and refused."""

import numpy as np
import pytest

from incrowd.core.errors import DataError
from incrowd.domain import Categories, Coding, Recode
from incrowd.sources.tally import conclude, missing_code, outside_code, require_all, value_codes

X, Y = 0, 1
DROP = Coding("a", Categories(("x", "y")), missing="drop")
KEEP = Coding("b", Categories(("u", "v")), missing="keep", other="else")
STRICT = Coding("c", Categories(("p", "q")))


def cells(histogram):
    labels = [[column.labels[code] for code in column.codes] for column in histogram.columns]
    return dict(zip(zip(*labels, strict=True), histogram.counts.tolist(), strict=True))


def test_only_records_without_a_value_are_dropped():
    absent = missing_code(DROP)
    codes = [np.array([X, Y, absent, X, absent]), np.array([0, 1, 0, missing_code(KEEP), outside_code(KEEP)])]
    found = conclude([DROP, KEEP], codes, np.array([2, 3, 5, 7, 11]))
    assert cells(found) == {("x", "u"): 2, ("y", "v"): 3, ("x", KEEP.labels[missing_code(KEEP)]): 7}


def test_a_value_outside_is_refused_where_missing_ones_are_dropped():
    codes = [np.array([X, outside_code(DROP), missing_code(DROP)])]
    with pytest.raises(DataError) as caught:
        conclude([DROP], codes, np.array([2, 3, 5]))
    assert caught.value.code == "values-outside-domain"
    assert caught.value.details == {"columns": {"a": {"outside": 3, "missing": 0}}}


def test_a_dropped_record_is_not_judged_by_its_other_values():
    codes = [np.array([missing_code(DROP), X]), np.array([outside_code(STRICT), 1])]
    assert cells(conclude([DROP, STRICT], codes, np.array([4, 6]))) == {("x", "q"): 6}


def test_what_is_refused_is_counted_column_by_column():
    codes = [np.array([X, Y, X]), np.array([outside_code(STRICT), missing_code(STRICT), 0])]
    with pytest.raises(DataError, match="'c' has 4 records with a value outside its domain; 'c' has 1 record without"):
        conclude([DROP, STRICT], codes, np.array([4, 1, 6]))
    with pytest.raises(DataError) as caught:
        conclude([STRICT], [np.array([missing_code(STRICT)])], np.array([2]))
    assert caught.value.code == "values-missing"


@pytest.mark.parametrize("counts", [[], [0]])
def test_a_table_of_nothing_is_refused(counts):
    with pytest.raises(DataError) as caught:
        conclude([STRICT], [np.zeros(len(counts), dtype=int)], np.array(counts, dtype=np.int64))
    assert caught.value.code == "data-empty"


def test_a_table_of_which_nothing_is_left_is_refused():
    with pytest.raises(DataError, match="Every record") as caught:
        conclude([DROP], [np.array([missing_code(DROP)])], np.array([3]))
    assert caught.value.code == "data-empty"


def test_counts_that_differ_are_refused():
    require_all(5, 5)
    require_all(5, None)
    for expected in (4, 6, 0):
        with pytest.raises(DataError) as caught:
            require_all(5, expected)
        assert caught.value.details == {"read": 5, "held": expected}


def test_codes_behind_a_coarser_recoding():
    plain = Coding("b", Categories(("u", "v", "w")), missing="keep", other="else")
    assert (value_codes(plain).tolist(), outside_code(plain), missing_code(plain)) == ([0, 1, 2], 3, 4)
    coarse = Coding(
        "b", Categories(("u", "v", "w")), missing="keep", other="else",
        recode=Recode(np.array([1, 1, 0, 2, 0]), ("w or none", "u or v", "else")),
    )  # fmt: skip
    assert (value_codes(coarse).tolist(), outside_code(coarse), missing_code(coarse)) == ([1, 1, 0], 2, 0)
