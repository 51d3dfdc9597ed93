"""Estimates of every mechanism: intervals, means, totals, and what is made of them."""

import json
import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest

import incrowd
from incrowd import api
from incrowd.cli import incrowd as command
from incrowd.cli._shell import run
from incrowd.core.errors import ParameterError
from incrowd.mechanisms.generalization.estimate import left_out_at_most
from incrowd.policy import Policy
from incrowd.randomness import RandomSource

HEAD = """
incrowd: 1
attributes:
  town: {domain: [a, b, c], ROLE}
  age: {type: integer, domain: {from: 0, to: 79}, hierarchy: {widths: [10, 20]}, ROLE, level: 1}
release: {RELEASE}
"""
CROWD = "mechanism: sampled_crowd, epsilon: 1, delta: 1e-6, beta: 0.4"


def policy(release, *, quasi=False, level=True):
    text = HEAD.replace(", ROLE", ", role: quasi" if quasi else "").replace("RELEASE", release)
    return Policy.from_text(text if level else text.replace(", level: 1", ""))


@pytest.fixture(scope="module")
def people():
    """Many in a, some in b, few in c, who are old."""
    rng = np.random.default_rng(5)
    town = np.repeat(["a", "b", "c"], [8000, 900, 30])
    return pd.DataFrame({"town": town, "age": np.where(town == "c", 75, rng.integers(0, 80, len(town)))})


@pytest.fixture(scope="module")
def crowds(people):
    return api.release(people, policy(CROWD))


def by_values(estimates):
    return {row.values: row for row in estimates.rows}


def near(row, there):
    """Whether the interval holds the true number, or nearly: an interval of 95 % may miss it, by five errors it cannot.

    How often intervals hold is measured in tests/statistical.
    """
    margin = 4 * (row.standard_error or 0)
    return row.low - margin <= there <= row.high + margin


def test_every_declared_cell_is_listed_and_what_is_missing_is_allowed_for(people, crowds):
    rows = by_values(incrowd.estimate(crowds, "town"))
    assert set(rows) == {("a",), ("b",), ("c",)}
    assert rows["a",].crowds == rows["a",].crowds_possible == 8
    assert rows["a",].standard_error > 0
    assert rows["c",].estimate is None
    assert rows["c",].standard_error is None
    assert rows["c",].crowds == 0
    for town, there in Counter(people.town).items():
        assert near(rows[town,], there)


def test_a_total_makes_upper_ends_smaller(people, crowds):
    alone, within = (by_values(incrowd.estimate(crowds, "town", total=total)) for total in (None, len(people)))
    assert within["c",].high < alone["c",].high
    for town, there in Counter(people.town).items():
        assert near(within[town,], there)
    assert not any("give it as the total" in note for note in incrowd.estimate(crowds, "town", total=9000).notes)


def test_what_people_see(crowds, tmp_path, capsys):
    found = incrowd.estimate(crowds, "town")
    last = found.rows[-1]
    for shown in (repr(found), found._repr_html_()):
        assert f"0 to {last.high:,}" in shown
        for note in found.notes:
            assert note in shown
    crowds.save(tmp_path / "out")
    assert incrowd.estimate(tmp_path / "out", "town").rows == found.rows
    assert run(command, ["estimate", str(tmp_path / "out"), "--by", "town", "--mean", "age", "--total", "8930"]) == 0
    shown = capsys.readouterr().out
    assert "0 to " in shown
    assert "mean" in shown
    assert run(command, ["estimate", str(tmp_path / "out"), "--by", "town", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert rows[-1]["estimate"] is None
    assert rows[-1]["high"] == last.high


def test_tables_and_pictures(crowds, tmp_path):
    found = incrowd.estimate(crowds, ["town", "age"])
    frame = found.to_pandas()
    assert list(frame.columns[:2]) == ["town", "age"]
    assert len(frame) == len(found.rows) == 24
    assert frame.high.tolist() == found.to_polars()["high"].to_list()
    with_means = incrowd.estimate(crowds, ["town"], mean="age")
    means = {one.values[0]: (one.mean, one.low) for one in with_means.means}
    assert len(means) > 1
    for row in with_means.to_polars().iter_rows(named=True):
        assert (row["mean"], row["mean_low"]) == means.get(row["town"], (None, None))
    picture = found.plot(tmp_path / "people.svg")
    assert picture.svg.startswith("<svg")
    assert (tmp_path / "people.svg").read_text(encoding="utf-8") == picture._repr_svg_()
    assert picture.save(tmp_path / "again.svg").exists()


@pytest.mark.parametrize(
    "release",
    [
        CROWD,
        "mechanism: sample, epsilon: 1, delta: 0.3",
        "mechanism: pram, rho: 0.8",
        "mechanism: generalization, require: {k: 40}, suppression: 0.05",
        "mechanism: sampled_crowd, epsilon: 2, delta: 1e-6, recoding: tree",
        "mechanism: views, epsilon: 2, delta: 1e-6",
        "mechanism: views, epsilon: 2, delta: 1e-6, by: noise",
    ],
)
def test_means_hold_the_truth(people, release):
    tree = "tree" in release
    made = api.release(people, policy(release, quasi="generalization" in release, level=not tree))
    truth = (people.age if tree else people.age // 10 * 10 + 4.5).groupby(people.town).mean()
    found = incrowd.estimate(made, "town", mean="age")
    for row in found.means:
        if row.mean is not None:
            assert row.low <= row.mean <= row.high
            margin = 2 * (row.standard_error or 0)  # in one release of twenty, 1.96 standard errors are not enough
            assert row.low - margin <= truth[row.values[0]] <= row.high + margin
    assert any(row.mean is not None for row in found.means)
    with pytest.raises(ParameterError, match="numbers"):
        incrowd.estimate(made, "age", mean="town")
    with pytest.raises(ParameterError) as error:
        incrowd.estimate(made, "town", mean="name")
    assert error.value.code == "column-unknown"


AGES = """
incrowd: 1
attributes:
  town: {domain: [a, b, c]}
  age: {type: integer, AGE}
release: {mechanism: sample, epsilon: 1, delta: 0.3}
"""


def mean_of_all(people, age, folder="."):
    made = api.release(people, Policy.from_text(AGES.replace("AGE", age), folder))
    found = incrowd.estimate(made, "town", mean="age").means
    return {row.values[0]: row for row in found}


def test_numbers_that_name_groups_are_not_taken_for_ages(people, tmp_path):
    """The values that a label covers decide; those of a file are not in the certificate, unless its labels say them."""
    lines = [f"{age};{1000 + age // 20};*" for age in range(80)]
    (tmp_path / "age.csv").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ParameterError, match="called by numbers"):
        mean_of_all(people, "hierarchy: {file: age.csv}, level: 1", tmp_path)
    lines = [f"{age};{age // 20 * 20}-{age // 20 * 20 + 19};*" for age in range(80)]
    (tmp_path / "age.csv").write_text("\n".join(lines), encoding="utf-8")
    said = mean_of_all(people, "hierarchy: {file: age.csv}, level: 1", tmp_path)
    groups = ", ".join(f"{1000 + a}: [{', '.join(map(str, range(20 * a, 20 * a + 20)))}]" for a in range(4))
    known = mean_of_all(people, f"hierarchy: {{taxonomy: {{{groups}}}}}, level: 1", tmp_path)
    truth = (people.age // 20 * 20 + 9.5).groupby(people.town).mean()
    for found in (said, known):
        assert found["a"].low - 3 < truth["a"] < found["a"].high + 3


def test_codes_among_numbers_are_left_out_of_a_mean(people):
    coded = people.assign(age=people.age.where(people.index % 3 != 0, -9))
    found = mean_of_all(coded, "domain: {from: 0, to: 79}, codes: {-9: refused}")
    truth = people.age[people.index % 3 != 0].groupby(people.town).mean()
    assert found["a"].low - 3 < truth["a"] < found["a"].high + 3
    assert 30 < found["a"].mean < 50


def test_one_record_has_no_standard_error(people):
    alone = people[people.town != "c"]
    found = mean_of_all(alone.assign(age=7), "domain: {from: 0, to: 79}")
    assert found["a"].mean == 7
    assert found["a"].standard_error is None


def test_a_mean_of_crowds_reaches_as_far_as_what_is_hidden(people):
    """All who are left out are old: the mean of published crowds is too low, its interval is not."""
    old = pd.concat([people, pd.DataFrame({"town": "b", "age": [75] * 20 + [65] * 20})])
    few = old[(old.town != "b") | (old.age >= 60) | (old.age < 30)]
    made = api.release(few, policy(CROWD))
    row = incrowd.estimate(made, "town", mean="age").means[1]
    assert row.standard_error is None
    assert row.high > row.mean + 4


def test_records_that_were_left_out_may_be_anywhere(people):
    made = api.release(people, policy("mechanism: generalization, require: {k: 40}, suppression: 0.05", quasi=True))
    assert made.histogram.total == len(people) - 30
    rows = by_values(incrowd.estimate(made, "town"))
    truth = Counter(people.town)
    for town in "abc":
        assert rows[town,].low <= truth[town] <= rows[town,].high
        assert rows[town,].standard_error is None
    assert rows["c",].estimate is None
    assert rows["a",].high - rows["a",].low == left_out_at_most(0.05, made.histogram.total)
    known = by_values(incrowd.estimate(made, "town", total=len(people)))
    assert known["c",].high == 30


def test_how_many_were_left_out_at_the_most_by_brute_force():
    for share in (0.0, 0.01, 0.05, 0.3, 0.5, 0.9):
        for published in (1, 7, 95, 1000):
            most = max(out for out in range(20_000) if out <= int(share * (published + out) + 1e-9))
            assert left_out_at_most(share, published) == most


def test_a_label_of_local_recoding_has_what_lies_within_and_may_have_what_lies_above(people):
    text = "mechanism: generalization, require: {k: 40}, recoding: local"
    made = api.release(people, policy(text, quasi=True, level=False))
    truth = Counter(people.age.astype(str))
    rows = by_values(incrowd.estimate(made, "age"))
    for age, there in truth.items():
        assert rows[age,].low <= there <= rows[age,].high
    whole = rows["*",]
    assert (whole.low, whole.high) == (len(people), len(people))
    decade = rows["70 to 79",]
    assert decade.low <= int((people.age >= 70).sum()) <= decade.high
    assert all(row.low <= row.estimate <= row.high for row in rows.values() if row.estimate is not None)
    assert whole.estimate == len(people)
    # Spread evenly, the values of the column add up to all people.
    assert sum(rows[str(age),].estimate or 0 for age in range(80)) == pytest.approx(len(people))


def test_a_file_is_no_release_and_an_audit_is_named(tmp_path, capsys):
    (tmp_path / "table.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    for words in (["verify", str(tmp_path / "table.csv")], ["estimate", str(tmp_path / "table.csv"), "--by", "a"]):
        assert run(command, words) == 2
        assert "incrowd audit TABLE --quasi ... --require k=5" in " ".join(capsys.readouterr().err.split())


def test_a_sum_is_estimated_from_a_plain_sample_alone(people, tmp_path, capsys):
    text = HEAD.replace("level: 1", "level: 0").replace("RELEASE", "mechanism: sample, epsilon: 1, delta: 0.3")
    plan = Policy.from_text(text.replace(", ROLE", ""))
    made = api.release(people, plan, folder=tmp_path / "out", _source=RandomSource.seeded(1))
    found = incrowd.estimate(made, "town", sum_of="age")
    rate = made.certificate["mechanism"]["rate"]
    sampled = made.to_pandas()
    ages = sampled.age.astype(int).groupby(sampled.town)
    for one in found.sums:
        town = one.values[0]
        assert one.sum == pytest.approx(ages.sum()[town] / rate)
        squares = float((ages.get_group(town) ** 2).sum())
        assert one.standard_error == pytest.approx(math.sqrt((1 - rate) * squares) / rate)
        assert one.low <= int(people.age[people.town == town].sum()) <= one.high
    assert run(command, ["estimate", str(tmp_path / "out"), "--by", "town", "--sum", "age"]) == 0
    assert "sum" in capsys.readouterr().out
    with pytest.raises(ParameterError, match="sum_of"):
        incrowd.estimate(api.release(people, policy(CROWD)), "town", sum_of="age")


def test_options_without_a_meaning_are_refused(people):
    made = api.release(people, policy("mechanism: pram, rho: 0.8"))
    with pytest.raises(ParameterError) as error:
        incrowd.estimate(made, "town", total=9000)
    assert error.value.code == "parameter-combination"
    with pytest.raises(ParameterError):
        incrowd.estimate(made, "town", mean="age", method="magic")


def test_cells_that_are_too_many_are_counted_and_not_listed(people, monkeypatch):
    monkeypatch.setattr("incrowd.mechanisms.grid.MOST_LISTED", 5)
    made = api.release(people, policy(CROWD))
    found = incrowd.estimate(made, ["town", "age"])
    assert 0 < len(found.rows) < 24
    assert any("not listed" in note for note in found.notes)
