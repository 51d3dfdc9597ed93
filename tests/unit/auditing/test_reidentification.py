"""Risks of being found, when something is known of the population."""

import math

import mpmath
import numpy as np
import pyarrow as pa
import pytest

import incrowd
from incrowd.auditing.reidentification import by_rate, individual_risk, risks, zayatz


@pytest.mark.parametrize("size", [1, 2, 3, 10, 63, 64, 65, 1000])
@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.3, 0.4999, 0.5, 0.5001, 0.9, 0.999999, 1.0])
def test_the_individual_risk_is_the_hypergeometric_function_of_the_paper(size, rate):
    """Benedetti and Franconi: (p^f/f)·₂F₁(f, f; f+1; 1−p), in forty digits."""
    with mpmath.workdps(40):
        p = mpmath.mpf(rate)
        # Euler's transformation, for which mpmath converges.
        expected = float(p / size * mpmath.hyp2f1(1, 1, size + 1, 1 - p))
    [risk] = individual_risk(np.array([size]), np.array([rate]))
    assert risk == pytest.approx(expected, rel=2e-14)


def test_its_known_closed_forms():
    p = np.array([0.01, 0.2, 0.7])
    assert individual_risk(np.array([1, 1, 1]), p) == pytest.approx(p / (1 - p) * -np.log(p))
    assert individual_risk(np.array([2, 2, 2]), p) == pytest.approx(p / (1 - p) ** 2 * (p * np.log(p) + 1 - p))
    assert individual_risk(np.array([4]), np.array([1.0])) == pytest.approx([0.25])


def test_it_lies_between_the_two_simpler_ones():
    sizes, rate = np.array([1, 2, 5, 40]), 0.1
    found = risks(sizes, by_rate(sizes, rate))
    assert found.journalist.mean < found.individual.mean < found.prosecutor.mean


def test_weights():
    people = pa.table(
        {"a": ["x", "x", "y", "z"], "s": ["1", "2", "1", "1"], "w": [10.0, 30.0, 4.0, 0.5], "t": ["1", "2 ", "3", "4"]}
    )
    audit = incrowd.audit(people, "a", "s", weights="w")
    journalist = audit.risks.journalist
    assert journalist.highest == 1  # a weight of 1/2 cannot be: the record is there
    assert journalist.expected == pytest.approx(2 / 40 + 1 / 4 + 1)
    assert audit.risks.marketer == pytest.approx(journalist.expected / 4)
    assert any("1 of the groups seemed" in note for note in audit.notes)
    assert "sum of the weights" in journalist.estimator
    model, _ = audit.risks.population_uniques
    assert (model.in_table, model.exact) == (pytest.approx(1 / 4 + 1), False)
    assert "estimate" in model.estimator
    texts = incrowd.audit(people, "a", "s", weights="t").risks.journalist
    assert texts.expected == pytest.approx(2 / 3 + 1 / 3 + 1 / 4)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, None])
def test_what_is_no_weight(bad):
    people = pa.table({"a": ["x", "x"], "w": [2.0, bad]})
    with pytest.raises(incrowd.InputError) as error:
        incrowd.audit(people, "a", weights="w")
    assert (error.value.code, error.value.details["records"]) == ("weights-invalid", 1)


def test_weights_are_summed_where_missing_values_become_one():
    people = pa.table({"a": [None, "", "x"], "w": [2, 3, 4]})
    audit = incrowd.audit(people, "a", weights="w")
    assert audit.risks.journalist.expected == pytest.approx(2 / 5 + 1 / 4)


def test_a_population_table():
    sample = pa.table({"a": ["x", "x", "y", None, "w"], "b": [1, 1, 2, 3, 9]})
    everybody = pa.table(
        {"b": [1] * 5 + [2] + [3] * 2 + [7], "a": ["x"] * 5 + ["y"] + [None] * 2 + ["q"], "c": [0] * 9}
    )
    audit = incrowd.audit(sample, "a,b", population=everybody)
    journalist = audit.risks.journalist
    assert journalist.expected == pytest.approx(2 / 5 + 1 + 1 / 2 + 1)  # w,9 is in no population: taken as one
    assert any("1 of the groups seemed" in note for note in audit.notes)
    [uniques] = audit.risks.population_uniques
    assert (uniques.in_table, uniques.in_population, uniques.exact) == (2, 2, True)
    assert audit.risks.individual is None


def test_zayatz_by_the_hypergeometric_distribution():
    sizes, people = np.array([1, 1, 1, 2, 2, 5]), 60

    def once(size):  # P(exactly one of so many is among the n drawn)
        return size * math.comb(people - size, 11) / math.comb(people, 12)

    expected = 3 * once(1) / (3 * once(1) + 2 * once(2) + once(5))
    assert zayatz(sizes, people) == pytest.approx(expected, rel=1e-12)
    assert zayatz(np.array([2, 3]), 50) == 0
    assert zayatz(sizes, 12) == 1  # everybody is in the table


def test_a_table_of_everybody_has_one_risk():
    sizes = np.array([1, 3, 8])
    found = risks(sizes, by_rate(sizes, 1.0))
    assert found.journalist.mean == pytest.approx(found.prosecutor.mean)
    assert found.individual.mean == pytest.approx(found.prosecutor.mean)
    assert [u.in_table for u in found.population_uniques] == pytest.approx([1, 1])


def test_a_risk_on_the_threshold_is_not_above_it():
    assert risks(np.array([5, 4]), threshold=0.2).prosecutor.above == pytest.approx(4 / 9)
    assert risks(np.array([3, 2]), threshold=1 / 3).prosecutor.above == pytest.approx(2 / 5)
