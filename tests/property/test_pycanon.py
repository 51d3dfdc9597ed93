"""Agreement with pycanon, an independent program, on k, distinct ℓ and t, for tables on which it is right.

Where it is not, as verified here (pycanon 1.0.1):

- index labels are used as positions, so a table whose index is permuted is judged by the wrong rows;
- records with a missing quasi-identifier are dropped by the grouping, and the rest is judged;
- a numerical sensitive column with a single value divides by zero;
- of t-closeness it has the distance by the kind of the column: ordered for numbers, equal for texts.
"""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import incrowd

anonymity = pytest.importorskip("pycanon.anonymity", reason="pycanon is a development dependency")

QUASI = ["a", "b"]  # two: with one, pandas warns of pycanon's grouping


def people(sensitive):
    row = st.tuples(st.sampled_from("xyz"), st.sampled_from("pq"), sensitive)
    return st.lists(row, min_size=2, max_size=40).map(lambda rows: pd.DataFrame(rows, columns=[*QUASI, "s"]))


def ours(frame):
    return incrowd.audit(frame, QUASI, "s")


@settings(deadline=None, max_examples=25)
@given(people(st.sampled_from(["flu", "cold", "cancer"])))
def test_texts(frame):
    audit = ours(frame)
    assert audit.k == anonymity.k_anonymity(frame, QUASI)
    assert audit.l_diversity == anonymity.l_diversity(frame, QUASI, ["s"])
    assert audit.t_closeness == pytest.approx(anonymity.t_closeness(frame, QUASI, ["s"]))


@settings(deadline=None, max_examples=25)
@given(people(st.integers(0, 3)).filter(lambda frame: frame["s"].nunique() > 1))
def test_numbers(frame):
    audit = ours(frame)
    assert audit.k == anonymity.k_anonymity(frame, QUASI)
    assert audit.l_diversity == anonymity.l_diversity(frame, QUASI, ["s"])
    assert audit.sensitive[0].t_ordered.value == pytest.approx(anonymity.t_closeness(frame, QUASI, ["s"]))


def test_a_permuted_index():
    frame = pd.DataFrame({"a": list("xxyy"), "b": list("pppp"), "s": ["1", "1", "2", "2"]}, index=[0, 2, 1, 3])
    assert ours(frame).l_diversity == 1
    assert anonymity.l_diversity(frame, QUASI, ["s"]) == 2  # the fault
    assert anonymity.l_diversity(frame.reset_index(drop=True), QUASI, ["s"]) == 1


def test_a_missing_quasi_identifier():
    frame = pd.DataFrame({"a": ["x"] * 5 + [None], "b": ["p"] * 6, "s": ["1", "2"] * 3})
    assert ours(frame).k == 1
    assert anonymity.k_anonymity(frame, QUASI) == 5  # the fault
