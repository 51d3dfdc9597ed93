"""The mechanism behind a generalized table: groups, demands, fixed levels, and single tables of the lattice."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from incrowd.core.errors import InternalError
from incrowd.hierarchy import codings
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.generalization.draw import draw, look_around, prepare, run
from incrowd.mechanisms.generalization.settle import demands_of
from incrowd.mechanisms.registry import MECHANISMS
from incrowd.policy import Policy
from incrowd.recoding.demands import groups_of
from incrowd.recoding.search import search
from incrowd.recoding.utility import Comparison, information_kept
from incrowd.theory.adversaries import AdversaryClass
from incrowd.theory.beliefs import Predicate
from incrowd.theory.requirements import BeliefRatio, EntropyDiversity, LargestShare, TCloseness

POLICY = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 39}, hierarchy: {widths: [5, 10, 20]}}
  sex: {domain: [f, m]}
  town: {domain: [a, b, c, d], hierarchy: {ordinal: 2}%s}
  ill: {role: sensitive, domain: [no, flu, cold], missing: keep}
  pay: {role: sensitive, domain: [low, high]}
release: {mechanism: generalization, %s}
"""


def table(rng, rows=700):
    columns = [
        Column("age", tuple(map(str, range(40))), np.minimum(rng.geometric(0.1, rows) - 1, 39)),
        Column("sex", ("f", "m"), rng.integers(0, 2, rows)),
        Column("town", tuple("abcd"), rng.integers(0, 4, rows)),
        Column("ill", ("no", "flu", "cold", None), rng.choice(4, rows, p=[0.6, 0.2, 0.1, 0.1])),
        Column("pay", ("low", "high"), rng.integers(0, 2, rows)),
    ]
    return Histogram.of(columns)


def settings(release, level=""):
    policy = Policy.from_text(POLICY % (level, release))
    return MECHANISMS["generalization"].settle(policy, codings(policy), 1).generalization


def test_a_table_that_does_not_withstand_what_it_must_is_found_out_before_it_leaves():
    policy, whole = Policy.from_text(POLICY % ("", "require: [{k: 30}]")), table(np.random.default_rng(1))
    settled = MECHANISMS["generalization"].settle(policy, codings(policy), 1)
    _, outcome = prepare(settled, whole, lambda *_: None)
    assert draw(settled, outcome).published == outcome.published
    others = np.arange(len(outcome.published)) != outcome.published.counts.argmax()
    few = outcome.published.with_counts(np.where(others, 1, outcome.published.counts))
    with pytest.raises(InternalError, match="does not withstand"):
        draw(settled, replace(outcome, published=few))


def test_groups_are_those_of_the_quasi_identifiers():
    whole = table(np.random.default_rng(1))
    frame = whole.to_pandas()
    groups = groups_of(whole, ["sex", "town"], ["ill", "pay"])
    assert len(groups.shown) == 8
    for i in range(8):
        sex, town = ("f", "m")[groups.shown["sex"].codes[i]], "abcd"[groups.shown["town"].codes[i]]
        part = frame[(frame["sex"] == sex) & (frame["town"] == town)]
        assert groups.shown.counts[i] == part["count"].sum()
        for j, value in enumerate(("no", "flu", "cold", None)):
            held = part["ill"].isna() if value is None else part["ill"] == value
            assert groups.cells["ill"][i, j] == part.loc[held, "count"].sum()
        assert groups.cells["pay"][i].sum() == groups.shown.counts[i]


def test_demands_follow_the_order_of_the_labels():
    asked = (
        "adversaries: [{belief_ratio: 2, sensitive: ill, prior: {(missing): 4, cold: 3, flu: 2, no: 1}, knows: 3}, "
        "{belief_ratio: 2, sensitive: ill, stubbornness: 9, predicates: {sick: {not: [no]}, odd: [cold, (missing)]}}, "
        "{belief_ratio: 2, sensitive: pay, shape: uniform}, "
        "{belief_ratio: 2, sensitive: pay, shape: {high: 1, low: 3}, stubbornness: 8}], "
        "require: [{l: 1.5, kind: entropy, sensitive: ill}, {alpha: .5, values: [cold, no], sensitive: ill}, "
        "{t: .2, distance: hierarchical, sensitive: ill}]"
    )
    release = Policy.from_text(POLICY % ("", asked)).release
    labels = {"ill": ["no", "flu", "cold", None], "pay": ["low", "high"]}
    made = demands_of(
        release, labels, seen=lambda _: [], tree=lambda _: [[0, 0, 0, 1], [0, 0, 0, 0]], hierarchy={}.__getitem__
    )
    beliefs = [demand.belief for demand in made]
    assert [type(belief) for belief in beliefs[:4]] == [BeliefRatio] * 4
    assert beliefs[0].adversary.weights == (1.0, 2.0, 3.0, 4.0)
    assert beliefs[0].adversary.known_records == 3
    assert beliefs[1].predicates == (Predicate((2, 3)), Predicate((1, 2, 3)))
    assert [p.name for p in beliefs[1].predicates] == ["odd", "sick"]
    assert [b.adversary.kind for b in beliefs[:4]] == [
        AdversaryClass.KNOWN_PRIOR,
        AdversaryClass.KNOWN_STUBBORNNESS,
        AdversaryClass.KNOWN_SHAPE,
        AdversaryClass.KNOWN_PRIOR,
    ]
    assert beliefs[3].adversary.weights == (6.0, 2.0)
    assert [demand.requirement for demand in made[4:]] == [
        EntropyDiversity(1.5),
        LargestShare(0.5, (2, 0)),
        TCloseness(0.2, ((0, 0, 0, 1), (0, 0, 0, 0))),
    ]
    assert [demand.sensitive for demand in made] == ["ill", "ill", "pay", "pay", "ill", "ill", "ill"]


@pytest.mark.parametrize("suppression", ["0", "0.1"])
@pytest.mark.parametrize("level", ["", ", level: 1"])
def test_single_tables_agree_with_the_search(suppression, level):
    """The report looks at tables one by one, with groups of its own; the search saw the same."""
    asked = settings(
        "adversaries: {belief_ratio: 3, sensitive: ill, stubbornness: 20}, require: [{k: 8}, {t: .4, sensitive: pay}], "
        f"suppression: {suppression}",
        level,
    )
    whole = table(np.random.default_rng(2))
    found = search(asked.searched(whole), asked.hierarchies, asked.demands, suppression=asked.suppression, every=True)
    kept = 0
    nodes = list(itertools.product(*(range(height + 1) for height in asked.heights)))
    tables = look_around(whole, asked, nodes)
    assert look_around(whole, asked, nodes[3:5]) == {node: tables[node] for node in nodes[3:5]}
    assert list(look_around(whole, asked, nodes, cells=1)) == nodes[:1]
    for node, one in tables.items():
        assert (one.left_out is not None) == bool(found.every.satisfies[node])
        if one.left_out is not None:
            kept += 1
            assert one.left_out == found.every.suppressed[node]
            assert all(one.keeps)
        recodes = {n: h.recode(level) for (n, h), level in zip(asked.hierarchies.items(), node, strict=True)}
        quasi = asked.searched(whole).project(list(asked.hierarchies))
        coarse = quasi.recode(recodes)
        assert one.information == pytest.approx(information_kept(Comparison(quasi, recodes, coarse, coarse)))
    assert 0 < kept < asked.size
    assert asked.size == (30 if not level else 10)


def test_a_fixed_column_stays_where_it_is_and_still_splits_groups():
    whole = table(np.random.default_rng(3))
    asked = settings("require: {k: 8}", ", level: 1")
    outcome = run(whole, asked, lambda *_: None)
    assert outcome.levels["town"] == 1
    assert (
        outcome.published["town"].labels
        == whole.recode({"town": asked.attributes[2].hierarchy.recode(1)})["town"].labels
    )
    assert len(set(outcome.published["town"].codes.tolist())) == 2
    sizes = outcome.published.project(["age", "sex", "town"]).counts
    assert sizes.min() >= 8
    assert outcome.levels | {"ill": 0, "pay": 0} == outcome.levels


def test_tables_that_are_too_large_to_be_counted_are_not_shown(monkeypatch):
    asked = settings("require: {k: 8}")
    whole = table(np.random.default_rng(2))
    top = asked.heights
    nodes = [tuple(0 for _ in top), top]
    assert list(look_around(whole, asked, nodes)) == nodes
    monkeypatch.setattr("incrowd.recoding.demands.MOST_CELLS", 10)
    assert list(look_around(whole, asked, nodes)) == [top]
