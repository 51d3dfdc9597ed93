"""Advice: every number is that of a table which was really recoded, and can be had by following the advice."""

import numpy as np
import pandas as pd
import pytest

from incrowd import api
from incrowd.hierarchy import codings
from incrowd.mechanisms.sample import advice as sample_advice
from incrowd.mechanisms.sample.advice import Scale, advise, in_order, observed_scales, scales
from incrowd.mechanisms.sample.settle import recode
from incrowd.policy import Policy
from incrowd.sources import open_source
from incrowd.theory import sampling

TEXT = """
incrowd: 1
attributes:
  age: {{type: integer, domain: {{from: 0, to: 99}}, hierarchy: {age}}}
  region: {region}
  sex: {{domain: [f, m]}}
release: {{mechanism: sample, epsilon: 0.5, delta: 0.05}}
"""
REGIONS = "{domain: [n, s, e, w, isle, heath]}"
PLAIN = TEXT.format(age="{widths: [10, 50]}, level: 0", region=REGIONS)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(5)
    n = 20_000
    return pd.DataFrame(
        {
            "age": np.minimum(99, rng.gamma(7, 6, n)).astype(int),
            "region": rng.choice(["n", "s", "e", "w", "isle", "heath"], n, p=[0.3, 0.3, 0.2, 0.195, 0.002, 0.003]),
            "sex": rng.choice(["f", "m"], n),
        }
    )


def shown(people, text):
    policy = Policy.from_text(text)
    attributes = codings(policy)
    table = open_source(people).count_by([a.coding for a in attributes])
    levels = {a.name: policy.attributes[a.name].level or 0 for a in attributes}
    return recode(table, attributes, levels, {}), scales(attributes, levels)


@pytest.fixture(scope="module")
def advice(people):
    return advise(*shown(people, PLAIN), epsilon=0.5, delta=0.05)


def rate(frame):
    return sampling.largest_rate(frame.value_counts().to_numpy(), 0.5, 0.05).rate


def step(advice, action, column):
    return next(s for s in advice.steps if (s.action, s.column) == (action, column))


def test_every_rate_is_that_of_a_recoded_table(people, advice):
    assert advice.rate == rate(people)
    assert step(advice, "drop", "age").rate == rate(people[["region", "sex"]])
    coarser = people.assign(age=people.age // 10)
    found = step(advice, "level", "age")
    assert (found.rate, found.distinct) == (rate(coarser), len(coarser.value_counts()))
    counts = people.region.value_counts()
    for found in advice.steps:
        if found.action == "threshold":
            least = int(found.what.split("fewer than ")[1].split()[0].replace(",", ""))
            merged = people.assign(region=people.region.where(people.region.map(counts) >= least, "other"))
            assert found.rate == rate(merged)
    assert [s.rate for s in advice.steps] == sorted((s.rate for s in advice.steps), reverse=True)
    assert all(s.rate > advice.rate for s in advice.steps)


def test_following_the_advice_in_the_policy_gives_the_rate(people, advice):
    top = step(advice, "top", "age")
    assert top.how.endswith("level: 1")
    value = top.how.split("top: ")[1].split("}")[0]
    table, _ = shown(people, TEXT.format(age=f"{{top: {value}}}, level: 1", region=REGIONS))
    assert sampling.largest_rate(table.counts, 0.5, 0.05).rate == top.rate
    assert int(value) % 5 == 0  # a round number
    merged = step(advice, "threshold", "region")
    assert merged.how.startswith("other: other")
    kept = ["n", "s", "e", "w"]
    table, _ = shown(people, TEXT.format(age="{widths: 10}, level: 0", region=f"{{domain: {kept}, other: other}}"))
    assert sampling.largest_rate(table.counts, 0.5, 0.05).rate == merged.rate


def regions(people):
    """One with few records is missing, so that it is itself below every threshold at which others are."""
    rng = np.random.default_rng(8)
    region = people.region.where(rng.random(len(people)) > 0.001, None)
    return people.assign(region=region.where(rng.random(len(people)) > 0.001, "elsewhere"))


@pytest.mark.parametrize("bucket", [False, True])
def test_following_a_threshold_where_values_are_missing_or_outside(people, bucket):
    """`other` takes in values outside the domain and never missing ones; a bucket that is there is the one."""
    people = regions(people)
    declared = ["n", "s", "e", "w", "isle", "heath"] if bucket else ["n", "s", "e", "w", "isle", "heath", "elsewhere"]
    other = ", other: rest" if bucket else ""
    ages = "{widths: [10, 50]}, level: 1"
    before = TEXT.format(age=ages, region=f"{{domain: [{', '.join(declared)}]{other}, missing: keep}}")
    table, ways = shown(people, before)
    found = [s for s in advise(table, ways, epsilon=0.5, delta=0.05).steps if s.action == "threshold"]
    assert found
    sizes = people.region.value_counts()
    for one in found:
        assert one.how == ("a domain without them" if bucket else "other: other, and a domain without them")
        least = int(one.what.split("fewer than ")[1].split()[0].replace(",", ""))
        kept = [name for name in declared if sizes[name] >= least]
        assert f"the {len(declared) - len(kept)} values" in one.what
        region = f"{{domain: [{', '.join(kept)}], other: {'rest' if bucket else 'other'}, missing: keep}}"
        after, _ = shown(people, TEXT.format(age=ages, region=region))
        assert (len(after), sampling.largest_rate(after.counts, 0.5, 0.05).rate) == (one.distinct, one.rate)


def test_missing_values_of_a_table_without_a_policy_stay_missing(people):
    people = regions(people).drop(columns="age")
    found = api.advise_sample(api.look_at(people), epsilon=0.5, delta=0.05)
    least = next(s for s in found.steps if s.action == "threshold")
    few = people.region.value_counts()[lambda n: n < 300].index
    merged = people.assign(region=people.region.where(~people.region.isin(few), "other"))
    counts = merged.value_counts(dropna=False).to_numpy()
    assert least.rate == sampling.largest_rate(counts, 0.5, 0.05).rate


def test_the_path_builds_up_without_dropping(people, advice):
    assert len(advice.path) > 1
    assert all(s.action != "drop" for s in advice.path)
    rates = [s.rate for s in advice.path]
    assert rates == sorted(rates)
    assert advice.path[0].rate == max(s.rate for s in advice.steps if s.action != "drop")


def test_blame(people, advice):
    for part in (advice.by_size,):
        assert sum(b.share for b in part) == pytest.approx(1)
        assert sum(b.rows for b in part) == advice.distinct
        assert sum(b.records for b in part) == len(people)
    assert advice.by_size[0].high == 1
    assert {next(iter(b.values.items()))[0] for b in advice.by_value} <= {"age", "region", "sex"}
    assert ("region", "isle") in {next(iter(b.values.items())) for b in advice.by_value}
    assert advice.rarest[0].records <= 2
    counts = people.value_counts()
    first = advice.rarest[0]
    assert counts[(int(first.values["age"]), first.values["region"], first.values["sex"])] == first.records


def test_shares_of_risk_are_those_of_the_exact_delta():
    counts = np.array([1, 2, 30, 500, 500])
    found = sampling.largest_rate(counts, 0.5, 0.05).rate
    risks = sampling.tuple_risks(counts, found, 0.5)
    assert 1 - np.prod(1 - risks) == pytest.approx(0.05, rel=1e-6)
    assert risks[0] == pytest.approx(found)  # a unique row must not be sampled at all
    assert risks[1] == pytest.approx(1 - (1 - found) ** 2)


def test_no_more_is_tried_than_allowed(people, monkeypatch):
    tried = []
    largest = sampling.largest_rate
    monkeypatch.setattr(sampling, "largest_rate", lambda *a: tried.append(1) or largest(*a))
    table, ways = shown(people, PLAIN)
    few = advise(table, ways, epsilon=0.5, delta=0.05, most=5)
    assert len(tried) <= 6
    assert few.left_out > 0
    assert few.rate == rate(people)


def test_a_large_table_is_tried_less_often(monkeypatch):
    monkeypatch.setattr(sample_advice, "_WORK", 0)
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({f"c{i}": rng.integers(0, 5, 500) for i in range(7)})
    table = api.look_at(frame).table
    assert len(advise(table, observed_scales(table), epsilon=0.5, delta=0.05).steps) <= sample_advice._FEWEST


def test_a_table_without_a_policy(people):
    looked = api.look_at(people)
    assert looked.scales["age"].ordered
    assert not looked.scales["region"].ordered
    found = api.advise_sample(looked, epsilon=0.5, delta=0.05)
    assert found.rate == rate(people)
    assert {s.action for s in found.steps} >= {"top", "drop", "threshold"}


def test_codes_are_not_numbers():
    assert in_order(["1", "2", "10"]) == 3
    assert in_order(["10000", "20000", "99999"]) == 0
    assert in_order(["01", "02", "10"]) == 0
    assert in_order(["1990", "1991"]) == 2
    assert in_order(["a", "b"]) == 0
    assert in_order(["0", "1"]) == 2


def test_a_single_column_is_never_dropped():
    table = api.look_at(pd.DataFrame({"x": [1] * 50 + [2] * 3})).table
    assert advise(table, {"x": Scale()}, epsilon=0.5, delta=0.05).steps == ()
