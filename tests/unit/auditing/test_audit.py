"""Audits of small tables, from any source, with missing values, declared domains, several sensitive attributes."""

import dataclasses
import json
import math
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import incrowd
from incrowd.auditing.disclosure import MOST_NEGATED, MOST_VALUES
from incrowd.auditing.groups import Grouping
from incrowd.core.errors import DataError, InputError, ParameterError
from incrowd.histogram import Histogram

PEOPLE = {
    "zip": ["130", "130", "130", "148", "148", "148", "148"],
    "age": [29, 29, 29, 41, 41, 41, 41],
    "name": list("abcdefg"),
    "disease": ["heart", "heart", "heart", "heart", "viral", "cancer", "cancer"],
}


def test_a_small_table_by_hand():
    audit = incrowd.audit(pa.table(PEOPLE), "zip,age", "disease", ["III shape=table", "II sigma=10"])
    assert (audit.records, audit.groups, audit.k, audit.l_diversity) == (7, 2, 3, 1)
    [d] = audit.sensitive
    assert (d.values, d.homogeneous_groups, d.homogeneous_records) == (3, 1, 3)
    assert d.t.value == pytest.approx(3 / 7)  # both groups are 3/7 and 9/28 off
    assert d.largest_share.group == d.distinct_l.group == 1
    assert audit.belief_ratio == {"III shape=table": math.inf, "II sigma=10": math.inf}
    assert audit.risks.prosecutor.expected == pytest.approx(2)
    assert audit.contributions[0].k_without == 3  # either column alone makes the same groups
    assert d.stubbornness == ()


@pytest.mark.parametrize(
    "make",
    [
        pa.table,
        pl.DataFrame,
        lambda columns: pl.DataFrame(columns).lazy(),
        pd.DataFrame,
        lambda columns: pd.DataFrame(columns, index=[5, 3, 3, 0, 1, 9, 2]),
        lambda columns: pa.table(columns).to_reader(max_chunksize=2),
        lambda columns: duckdb.from_arrow(pa.table(columns)),
    ],
)
def test_any_kind_of_table(make):
    expected = incrowd.audit(pa.table(PEOPLE), "zip,age", "disease", show_values=True)
    assert incrowd.audit(make(PEOPLE), ["zip", "age"], ["disease"], show_values=True) == expected


@pytest.mark.parametrize("ending", ["csv", "parquet", "csv.gz"])
def test_files(tmp_path, ending):
    path = tmp_path / f"people.{ending}"
    frame = pd.DataFrame(PEOPLE)
    frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False)
    expected = incrowd.audit(pa.table(PEOPLE), "zip,age", "disease", show_values=True)
    assert incrowd.audit(path, "zip,age", "disease", show_values=True) == expected


def test_missing_values_are_a_value_of_their_own():
    people = {"a": ["x", "x", None, "x", ""], "s": [1.0, float("nan"), 2.0, None, 1.0]}
    audit = incrowd.audit(pa.table(people), "a", "s")
    assert (audit.records, audit.groups, audit.k) == (5, 2, 2)
    assert audit.missing == {"a": 2}
    [d] = audit.sensitive
    assert (d.values, d.missing) == (3, 2)  # 1, 2 and missing
    assert d.t_ordered is None
    assert sum("missing" in note for note in audit.notes) == 2


def test_a_declared_domain_counts_what_nobody_has():
    people = pa.table({"a": ["x"] * 4, "s": ["1", "2", "1", "2"]})
    read = incrowd.audit(people, "a", "s", "III shape=uniform predicates=negations")
    assert read.belief_ratio == {"III shape=uniform predicates=negations": 1}
    assert not read.sensitive[0].declared
    assert any("taken to be the 2 values that occur" in note for note in read.notes)
    declared = incrowd.audit(
        people, "a", "s", "III shape=uniform predicates=negations", domains={"s": ["1", "2", "3"]}, show_values=True
    )
    [belief] = declared.sensitive[0].beliefs
    assert belief.ratio == math.inf  # everybody is known not to be a 3
    assert (belief.negated, belief.statement) == (True, "3")
    with pytest.raises(DataError) as error:
        incrowd.audit(people, "a", "s", domains={"s": ["1", "3"]})
    assert error.value.code == "values-outside-domain"
    with pytest.raises(InputError):
        incrowd.audit(people, "a", "s", domains={"s": ["1", "2", "1"]})


def test_orders():
    people = {"a": ["x", "x", "y", "y"], "n": ["2", "10", "2", "9"], "w": ["low", "high", "mid", "low"]}
    audit = incrowd.audit(pa.table(people), "a", "n,w")
    numbers, words = audit.sensitive
    # 2 < 9 < 10 as numbers: shares 1/2, 1/4, 1/4 against 1/2, 0, 1/2 and 1/2, 1/2, 0.
    assert numbers.t_ordered.value == pytest.approx(1 / 8)
    assert words.t_ordered is None
    ordered = incrowd.audit(pa.table(people), "a", "w", domains=["w=low,mid,high"], ordered="w").sensitive[0]
    assert ordered.t_ordered.value == pytest.approx(1 / 8)


def test_numbers_with_a_decimal_comma_in_a_latin_1_file(tmp_path):
    file = tmp_path / "people.csv"
    rows = [("Köln", "2,5", "1,5"), ("Köln", "10,0", "1,5"), ("Ulm", "2,5", "3"), ("Ulm", "9,0", "3")]
    lines = "".join(f"{';'.join(row)}\n" for row in rows)
    file.write_text(f"Ort;n;Gewicht\n{lines}", encoding="latin-1")
    how = {"encoding": "latin-1", "decimal": ","}
    with_commas = incrowd.audit(file, "Ort", "n", weights="Gewicht", show_values=True, **how)
    assert with_commas.sensitive[0].t_ordered.value == pytest.approx(1 / 8)  # as above
    assert {group.labels["Ort"] for group in with_commas.smallest} == {"Köln", "Ulm"}
    assert incrowd.audit(file, "Ort", "n", encoding="latin-1").sensitive[0].t_ordered is None
    with pytest.raises(DataError, match="weight"):
        incrowd.audit(file, "Ort", "n", weights="Gewicht", encoding="latin-1")


def test_several_sensitive_attributes_each_alone_or_with_the_others_known():
    people = pa.table({"a": ["x"] * 4, "s": ["1", "1", "2", "2"], "t": ["p", "p", "q", "q"]})
    alone = incrowd.audit(people, "a", "s,t", "III shape=table")
    assert (alone.k, [d.k for d in alone.sensitive]) == (4, [4, 4])
    assert alone.belief_ratio == {"III shape=table": 1}
    known = incrowd.audit(people, "a", "s,t", "III shape=table", others_as_quasi=True)
    assert (known.k, [d.k for d in known.sensitive]) == (4, [2, 2])
    assert known.belief_ratio == {"III shape=table": math.inf}  # the one tells the other
    assert known.l_diversity == 1


def test_an_adversary_about_one_attribute():
    people = pa.table({"a": ["x"] * 4, "s": ["1", "1", "2", "2"], "t": ["p", "q", "q", "r"]})
    audit = incrowd.audit(people, "a", "s,t", ["I prior=2,3 about=s", "I prior=2,3,4 about=t"])
    assert [[b.adversary for b in d.beliefs] for d in audit.sensitive] == [
        ["I prior=2,3 about=s"],
        ["I prior=2,3,4 about=t"],
    ]
    with pytest.raises(ParameterError):
        incrowd.audit(people, "a", "s,t", "I prior=2,3")  # t has three values
    with pytest.raises(ParameterError):
        incrowd.audit(people, "a", "s", "II sigma=9 about=t")


def test_a_single_value_has_nothing_to_learn():
    [d] = incrowd.audit(pa.table({"a": ["x", "y"], "s": ["1", "1"]}), "a", "s").sensitive
    assert (d.beliefs, d.t.value, d.values) == ((), 0, 1)


def test_no_sensitive_attribute_is_fine():
    audit = incrowd.audit(pa.table(PEOPLE), "zip,age")
    assert (audit.sensitive, audit.l_diversity, audit.t_closeness, audit.belief_ratio) == ((), None, None, {})
    assert audit.smallest[0].size == 3


def test_the_stubbornness_curve_ends_where_class_three_begins():
    people = {"a": ["x"] * 5 + ["y"] * 5, "s": list("1112211222")}
    [d] = incrowd.audit(pa.table(people), "a", "s", ["III shape=table", "II sigma=10000", "II sigma=2"]).sensitive
    points = {point.sigma: point for point in d.stubbornness}
    assert points[1e6].table_shape == pytest.approx(d.beliefs[0].ratio, rel=1e-4)
    assert points[1e4].any_shape == d.beliefs[1].ratio
    assert points[2.0].any_shape == d.beliefs[2].ratio
    assert list(points) == sorted(points)


def test_values_are_shown_only_on_request():
    secrets = ["130", "148", "heart", "viral", "cancer"]
    hidden = incrowd.audit(pa.table(PEOPLE), "zip", "disease")
    assert not any(secret in json.dumps(hidden.to_dict(), default=str) + repr(hidden) for secret in secrets)
    shown = incrowd.audit(pa.table(PEOPLE), "zip", "disease", show_values=True)
    worst = shown.sensitive[0].worst[0]
    assert (worst.labels, worst.commonest) == ({"zip": "130"}, "heart")
    assert shown.sensitive[0].beliefs[0].statement == "heart"
    assert shown.smallest[0].labels == {"zip": "130"}


def test_columns_with_commas_in_their_names():
    people = pa.table({"city, state": ["x", "y"], "a": ["1", "1"], "s": ["1", "2"]})
    assert incrowd.audit(people, ["city, state", "a"], "s").groups == 2


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"quasi": "zip,zap", "sensitive": "disease"}, "column-unknown"),
        ({"quasi": "zip", "sensitive": "diseases"}, "column-unknown"),
        ({"quasi": "", "sensitive": "disease"}, "parameter-combination"),
        ({"quasi": "zip,age", "sensitive": "age"}, "parameter-combination"),
        ({"quasi": "zip,zip", "sensitive": "disease"}, "parameter-combination"),
        ({"quasi": "zip", "sensitive": "disease", "threshold": 0}, "parameter-range"),
        ({"quasi": "zip", "sensitive": "disease", "sampling_rate": 1.5}, "parameter-range"),
        ({"quasi": "zip", "sensitive": "disease", "sampling_rate": 0.5, "weights": "age"}, "parameter-combination"),
        ({"quasi": "zip", "sensitive": "disease", "weights": "name"}, "weights-invalid"),
        ({"quasi": "zip", "sensitive": "disease", "domains": {"age": ["1"]}}, "parameter-combination"),
        ({"quasi": "zip", "sensitive": "disease", "ordered": "age"}, "parameter-combination"),
        ({"quasi": "zip", "sensitive": "disease", "adversaries": "II sigma=2"}, "parameter-combination"),
    ],
)
def test_what_is_refused(options, code):
    with pytest.raises(InputError) as error:
        incrowd.audit(pa.table(PEOPLE), **options)
    assert error.value.code == code
    assert not any(value in str(error.value) for value in ("130", "148", "heart", "viral", "cancer"))


def test_an_empty_table_and_a_column_of_amounts_are_refused():
    with pytest.raises(DataError) as error:
        incrowd.audit(pa.table({"a": pa.array([], pa.string()), "s": pa.array([], pa.string())}), "a", "s")
    assert error.value.code == "data-empty"
    many = pa.table({"a": np.zeros(MOST_VALUES + 1), "s": np.arange(MOST_VALUES + 1)})
    with pytest.raises(InputError) as error:
        incrowd.audit(many, "a", "s")
    assert error.value.code == "domain-large"
    assert incrowd.audit(many, "s", "a").k == 1
    with pytest.raises(InputError) as error:
        incrowd.audit(many.slice(0, MOST_NEGATED + 1), "a", "s", "III shape=uniform predicates=subsets")
    assert error.value.code == "domain-large"


def test_a_million_groups_by_a_thousand_values_is_no_table_of_a_billion_cells():
    groups, values = 200_000, 5_000
    histogram = Histogram.from_arrow(
        pa.table({"a": np.arange(groups), "s": np.arange(groups) % values}),
    )
    kinds = Grouping.of(histogram, ["a"], "s").kinds()
    assert len(kinds.first) == values
    assert max(cells.size for _, cells in kinds.blocks()) < groups * values / 100


def test_the_result_cannot_be_changed():
    audit = incrowd.audit(pa.table(PEOPLE), "zip", "disease")
    assert isinstance(audit, incrowd.Audit)
    with pytest.raises(dataclasses.FrozenInstanceError):
        audit.k = 5


WARD = pa.table({"age": ["<40"] * 4 + [">=40"] * 4, "disease": ["flu", "flu", "cold", "cancer"] * 2})


def test_one_and_the_same_value_is_known_of_everybody():
    same = pa.table({"age": ["a", "b"], "disease": ["flu", "flu"]})
    notes = " ".join(incrowd.audit(same, "age", "disease").notes)
    assert "nothing to learn" not in notes
    assert "everybody's value is known" in notes
    assert "--domain" in notes
    declared = incrowd.audit(same, "age", "disease", domains={"disease": ["flu", "cold"]})
    assert "everybody's value is known" not in " ".join(declared.notes)
    assert math.isinf(declared.belief_ratio["II sigma=1000"])
    only = incrowd.audit(same, "age", "disease", domains={"disease": ["flu"]})
    assert "nothing to learn" in " ".join(only.notes)


def test_an_earlier_table_is_what_she_has_seen(tmp_path):
    (tmp_path / "before.csv").write_text("disease,n\nflu,1\nflu,2\ncold,3\n")
    spelled = f"I earlier={tmp_path / 'before.csv'}"
    found = incrowd.audit(WARD, "age", "disease", spelled)
    same = incrowd.audit(WARD, "age", "disease", "I prior=flu:3,cold:2,cancer:1")
    assert found.belief_ratio == {spelled: same.belief_ratio["I prior=flu:3,cold:2,cancer:1"]}
    with pytest.raises(ParameterError, match="not said which"):
        incrowd.audit(WARD.append_column("other", WARD["age"]), "age", ["disease", "other"], spelled)
    for content in ("disease\nplague\n", "illness\nflu\n", "disease\n"):
        (tmp_path / "before.csv").write_text(content)
        with pytest.raises(InputError) as error:
            incrowd.audit(WARD, "age", "disease", spelled)
        assert "plague" not in str(error.value)


def test_a_group_of_values_is_called_by_its_name_if_values_may_be_shown():
    spelled = "III shape=uniform predicates=cough:flu+cold"
    (belief,) = incrowd.audit(WARD, "age", "disease", spelled, show_values=True).sensitive[0].beliefs
    assert (belief.statement, belief.negated) == ("cough", False)
    assert belief.exact == Fraction(1, 3) / Fraction(1, 4)  # doubt shrinks from a third to a quarter
    (silent,) = incrowd.audit(WARD, "age", "disease", spelled).sensitive[0].beliefs
    assert silent.statement is None
