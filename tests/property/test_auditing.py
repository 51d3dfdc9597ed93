"""Every figure of an audit against plain loops over plain rows."""

import math
from collections import Counter, defaultdict
from fractions import Fraction
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.auditing import groups as auditing_groups
from incrowd.auditing.audit import audit as audit_histogram
from incrowd.auditing.reidentification import by_rate
from incrowd.auditing.suspects import DEFAULT, read_adversary
from incrowd.histogram import Histogram

QUASI, SENSITIVE = ("a", "b", "c"), "s"


def rows(values=3):
    row = st.tuples(
        st.sampled_from(["x", "y", None]), st.integers(0, 2), st.sampled_from(["p", "q"]), st.integers(0, values - 1)
    )
    return st.lists(row, min_size=1, max_size=30)


def table(people):
    columns = [list(column) for column in zip(*people, strict=True)]
    types = [pa.string(), pa.int64(), pa.string(), pa.int64()]
    arrays = [pa.array(column, type=type_) for column, type_ in zip(columns, types, strict=True)]
    return pa.table(arrays, names=[*QUASI, SENSITIVE])


def groups_of(people, columns=(0, 1, 2), value=3):
    found = defaultdict(Counter)
    for person in people:
        found[tuple(person[i] for i in columns)][person[value]] += 1
    return found


def audited(people, *adversaries, rate=None, **options):
    histogram = Histogram.from_arrow(table(people))
    population = None if rate is None else by_rate(histogram.project(QUASI).counts, rate)
    suspects = tuple(map(read_adversary, adversaries)) or DEFAULT
    return audit_histogram(histogram, QUASI, [SENSITIVE], suspects, population=population, **options)


@settings(deadline=None, max_examples=60)
@given(rows())
def test_syntactic_measures(people):
    audit = audited(people)
    groups = groups_of(people)
    whole = Counter(person[3] for person in people)
    n = len(people)
    sizes = {name: sum(counts.values()) for name, counts in groups.items()}
    [d] = audit.sensitive
    assert audit.records == n
    assert audit.groups == d.groups == len(groups)
    assert audit.k == d.k == min(sizes.values())
    assert d.values == len(whole)
    assert audit.l_diversity == d.distinct_l.value == min(map(len, groups.values()))
    entropies = [
        math.exp(-sum(m / sizes[name] * math.log(m / sizes[name]) for m in counts.values()))
        for name, counts in groups.items()
    ]
    assert d.entropy_l.value == pytest.approx(min(entropies), rel=1e-12)
    for l in (2, 3):  # noqa: E741
        rest = [(max(c.values()), sum(sorted(c.values(), reverse=True)[l - 1 :])) for c in groups.values()]
        assert d.recursive_c[l].value == max(top / r if r else math.inf for top, r in rest)
    shares = {s: Fraction(m, n) for s, m in whole.items()}
    inside = {name: {s: Fraction(c[s], sizes[name]) for s in shares} for name, c in groups.items()}
    assert d.t.value == float(max(sum(abs(q[s] - shares[s]) for s in shares) / 2 for q in inside.values()))
    assert audit.t_closeness == d.t.value
    ordered = sorted(shares)
    steps = max(len(ordered) - 1, 1)
    moved = [
        sum(abs(sum(q[s] - shares[s] for s in ordered[: i + 1])) for i in range(len(ordered) - 1)) / steps
        for q in inside.values()
    ]
    assert d.t_ordered.value == float(max(moved))
    assert d.largest_share.value == float(max(max(q.values()) for q in inside.values()))
    gains = [(q[s] - shares[s]) / shares[s] for q in inside.values() for s in shares]
    assert d.beta.value == float(max(gains))
    capped = [
        math.inf if g > 0 and float(g) >= -math.log(p) else float(max(g, 0))
        for q in inside.values()
        for s, p in shares.items()
        for g in [(q[s] - p) / p]
    ]
    assert d.beta_enhanced.value == max(capped)
    logs = [abs(math.log(q[s] / shares[s])) if q[s] else math.inf for q in inside.values() for s in shares]
    assert d.delta.value == pytest.approx(max(logs), rel=1e-12, abs=1e-15)
    same = [sizes[name] for name, counts in groups.items() if len(counts) == 1]
    assert (d.homogeneous_groups, d.homogeneous_records) == (len(same), sum(same))


def brute_ratio(groups, values, known, p_out):
    """The largest of both ratios over groups and single values, as the definition has them."""
    worst = Fraction(1)
    for counts in groups.values():
        n = sum(counts.values())
        for s in values:
            m = counts[s]
            if m == 0:
                continue
            before = p_out(m, n, s)
            now = Fraction(1) if n - m <= known else Fraction(m, n - known)
            if now <= before:
                continue
            if now == 1 or before == 0:
                return math.inf
            worst = max(worst, now / before, (1 - before) / (1 - now))
    return worst


@settings(deadline=None, max_examples=60)
@given(rows(values=2), st.integers(0, 2), st.integers(2, 50))
def test_belief_ratios(people, known, sigma):
    people = [*people, ("x", 0, "p", 0), ("x", 0, "p", 1)]
    whole = Counter(person[3] for person in people)
    n = len(people)
    names = [
        f"III shape=table b={known}",
        f"II sigma={sigma} b={known}",
        f"I prior=3,{sigma} b={known}",
        f"III shape=uniform b={known}",
    ]
    priors = {0: 3, 1: sigma}
    expected = [
        lambda m, size, s: Fraction(whole[s], n),
        lambda m, size, s: Fraction(m, size + sigma - 1),
        lambda m, size, s: Fraction(m - 1 + priors[s], size - 1 + 3 + sigma),
        lambda m, size, s: Fraction(1, 2),
    ]
    [d] = audited(people, *names).sensitive
    groups = groups_of(people)
    for belief, p_out in zip(d.beliefs, expected, strict=True):
        truth = brute_ratio(groups, (0, 1), known, p_out)
        assert belief.exact == (None if math.isinf(truth) else truth)
        assert belief.ratio >= truth
        if not math.isinf(truth):
            # The group that is named attains it.
            ordered = sorted(groups, key=lambda g: tuple((x is None, x) for x in g))
            named = groups[ordered[belief.group - 1]]
            assert brute_ratio({0: named}, (0, 1), known, p_out) == truth
            assert belief.size == sum(named.values())


@settings(deadline=None, max_examples=60)
@given(rows(), st.floats(0.05, 1.0), st.floats(0.05, 0.95))
def test_risks_and_contributions(people, rate, threshold):
    audit = audited(people, rate=rate, threshold=threshold)
    n, risks = len(people), audit.risks
    size = Counter(person[:3] for person in people)
    alone = [1 / size[person[:3]] for person in people]
    assert risks.prosecutor.highest == max(alone)
    assert risks.prosecutor.mean == pytest.approx(sum(alone) / n)
    assert risks.prosecutor.expected == pytest.approx(len(size))
    assert risks.prosecutor.above == sum(risk > threshold for risk in alone) / n
    assert risks.journalist.highest == pytest.approx(rate * max(alone))
    assert risks.journalist.expected == pytest.approx(rate * len(size))
    assert risks.marketer == pytest.approx(rate * len(size) / n)
    assert risks.sample_uniques == sum(risk == 1 for risk in alone)
    for small in risks.small_groups:
        members = [size[person[:3]] for person in people]
        assert small.records == sum(m < small.below for m in members)
        assert small.groups == sum(m < small.below for m in size.values())
    # The individual risk by its series, the negative binomial written out.
    series = {}
    for f in set(size.values()):
        terms = (
            (1 / h) * math.comb(h - 1, f - 1) * rate**f * (1 - rate) ** (h - f)
            for h in range(f, f + 40 + int(60 * f / rate))
        )
        series[f] = math.fsum(terms)
    assert risks.individual.highest == pytest.approx(max(series.values()), rel=1e-9)
    assert risks.individual.expected == pytest.approx(sum(series[size[person[:3]]] for person in people), rel=1e-9)
    for c in audit.contributions:
        i = QUASI.index(c.name)
        values = Counter(person[i] for person in people)
        rest = Counter(tuple(x for j, x in enumerate(person[:3]) if j != i) for person in people)
        assert c.distinct == len(values)
        assert c.entropy == pytest.approx(-sum(m / n * math.log2(m / n) for m in values.values()), abs=1e-12)
        assert c.uniques == sum(m == 1 for m in values.values())
        assert (c.k_without, c.uniques_without) == (min(rest.values()), sum(m == 1 for m in rest.values()))
        assert c.mean_risk_without == pytest.approx(len(rest) / n)
    assert [c.mean_risk_without for c in audit.contributions] == sorted(
        c.mean_risk_without for c in audit.contributions
    )


@settings(deadline=None, max_examples=60)
@given(rows())
def test_minimal_uniques(people):
    found = audited(people).minimal_uniques
    by_size, by_column, records = Counter(), Counter(), 0
    for person in people:

        def unique(columns, me=person):
            return sum(all(other[i] == me[i] for i in columns) for other in people) == 1

        minimal = [
            chosen
            for size in (1, 2, 3)
            for chosen in combinations(range(3), size)
            if unique(chosen) and not any(unique(part) for part in combinations(chosen, size - 1) if part)
        ]
        records += bool(minimal)
        for chosen in minimal:
            by_size[len(chosen)] += 1
            by_column.update(QUASI[i] for i in chosen)
    assert found.columns_searched == 3
    assert found.records == records
    assert found.by_size == {size: by_size[size] for size in (1, 2, 3)}
    assert found.by_column == {name: by_column[name] for name in QUASI}


@settings(deadline=None, max_examples=40)
@given(rows(), st.randoms(use_true_random=False))
def test_the_order_of_records_changes_nothing(people, random):
    shuffled = people.copy()
    random.shuffle(shuffled)
    assert audited(people, show_values=True) == audited(shuffled, show_values=True)


@settings(deadline=None, max_examples=30)
@given(rows(values=6), st.integers(0, 3))
def test_kinds_of_groups_and_blocks_change_nothing(people, depth):
    """Groups that agree are looked at once, and some at a time: as if each had been looked at, all at once."""
    whole = audited(people, show_values=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auditing_groups, "_DEPTH", depth)
        patch.setattr(auditing_groups, "_BLOCK_CELLS", 7)
        assert audited(people, show_values=True) == whole
    histogram = Histogram.from_arrow(table(people))
    groups = auditing_groups.Grouping.of(histogram, QUASI, SENSITIVE)
    kinds = groups.kinds()
    dense = np.zeros((len(groups), groups.values), dtype=int)
    for group, counts in enumerate(c for _, c in sorted(groups_of(people).items(), key=_in_order)):
        for value, count in counts.items():
            dense[group, [int(label) for label in histogram[SENSITIVE].labels].index(value)] = count
    assert len(kinds.first) == len(np.unique(dense, axis=0))
    [(chosen, cells)] = list(kinds.blocks())
    assert (cells == dense[chosen]).all()
    assert (cells[kinds.of] == dense).all()


def _in_order(item):
    return tuple((x is None, x) for x in item[0])


@settings(deadline=None, max_examples=40)
@given(rows())
def test_worst_groups_come_first(people):
    [d] = audited(people, "II sigma=5", worst=100).sensitive
    assert len(d.worst) == d.groups
    if d.beliefs:
        ratios = [w.ratios[0] for w in d.worst]
        assert ratios == sorted(ratios, reverse=True)
        assert ratios[0] == pytest.approx(d.beliefs[0].ratio)
        assert ratios[0] >= float(d.beliefs[0].exact) if d.beliefs[0].exact else math.isinf(ratios[0])
    assert max(w.t for w in d.worst) == pytest.approx(d.t.value)
    assert min(w.distinct for w in d.worst) == d.distinct_l.value
    assert sorted(w.group for w in d.worst) == list(range(1, d.groups + 1))
