"""Noisy one-way tables beside sampled crowds: from policy to verified folder, and what they promise."""

import json
import math
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest

from incrowd import api
from incrowd.core.errors import PolicyError
from incrowd.mechanisms.base import Publication
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.promises import CrowdPromise
from incrowd.mechanisms.registry import mechanism_named
from incrowd.mechanisms.sampled_crowd.one_way import ONE_WAY, OneWay, read_one_way
from incrowd.mechanisms.sampled_crowd.settle import CrowdSettings
from incrowd.mechanisms.sampled_crowd.state import check_table
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.releases.verify import VOID, read_release
from incrowd.theory.crowd import exact_delta
from incrowd.theory.views import LaplaceStep

ATTRIBUTES = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 79}, hierarchy: {widths: [10, 20, 40]}}
  sex: {domain: [f, m]}
  job: {domain: [none, office, shop, farm], missing: keep}
"""
RELEASE = "mechanism: sampled_crowd, epsilon: 1, delta: 1e-6, selection_epsilon: 0.1, totals: {epsilon: 0.2}"


def policy(release=RELEASE, more=""):
    return Policy.from_text(f"{ATTRIBUTES}{more}release: {{{release}}}\n")


def people(rows=6000, seed=5):
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 80, rows)
    job = rng.choice(["office", "shop", "farm", None], rows, p=[0.6, 0.3, 0.03, 0.07])
    return pd.DataFrame({"age": age, "sex": rng.choice(["f", "m"], rows), "job": np.where(age < 20, "none", job)})


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    folder = tmp_path_factory.mktemp("totals") / "out"
    api.release(people(), policy(), folder=folder, _source=RandomSource.seeded(1))
    return folder


def test_a_release_holds_all_that_is_checked(released):
    assert [check for check in api.verify(released).checks if not check.holds and check.name != VOID] == []
    certificate, published = read_release(released)
    one_way = read_one_way(published.beside[ONE_WAY])
    assert dict(one_way.labels) == certificate.labels
    assert certificate.mechanism.totals.decay == pytest.approx(0.2 / 3)
    assert abs(one_way.total - 6000) < 300
    page = next(released.glob("*report.html")).read_text(encoding="utf-8")
    assert "ε₃ = 0.2" in page
    assert "How many there are" in page


@pytest.mark.parametrize("change", ["noise", "labels", "counts", "gone"])
def test_other_one_way_tables_are_found(released, change):
    certificate, published = read_release(released)
    document = json.loads(published.beside[ONE_WAY])
    if change == "noise":
        document["decay"] *= 2
    if change == "labels":
        document["columns"][1]["values"] = ["f", "x"]
    if change == "counts":
        document["columns"][1]["counts"] = [1]
    from incrowd.core.signing import canonical

    beside = {**published.beside, ONE_WAY: b"" if change == "gone" else canonical(document)}
    found = list(check_table(certificate, Publication(published.table, beside)))
    assert [check.holds for check in found] == [True, False, True, True]


def test_the_crowd_gets_what_is_left_and_the_ledger_counts_all():
    mechanism = mechanism_named("sampled_crowd")
    asked = policy()
    from incrowd.hierarchy import codings

    settled = mechanism.settle(asked, codings(asked), 1)
    crowd = settled.crowd
    assert 0.7 - 1e-12 < crowd.crowd_epsilon <= 0.7
    assert crowd.exact_delta == exact_delta(crowd.k, crowd.beta, crowd.crowd_epsilon) <= 1e-6
    spent = mechanism.spending(settled)
    assert isinstance(spent, CrowdPromise)
    assert Fraction(spent.selection_epsilon) >= Fraction(0.1) + Fraction(0.2)


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ("mechanism: sampled_crowd, epsilon: 1, delta: 1e-6, recoding: tree, totals: {epsilon: 0.1}", "of its own"),
        (
            "mechanism: sampled_crowd, epsilon: 0.2, delta: 1e-6, selection_epsilon: 0.1, totals: {epsilon: 0.1}",
            "leaves",
        ),
        (
            "mechanism: sampled_crowd, epsilon: 1, delta: 1e-6, k: 9, already_sampled: true, totals: {epsilon: 0.1}",
            "sample itself",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(release, words):
    with pytest.raises(PolicyError, match=words):
        policy(release)


def test_a_policy_without_totals_has_the_digest_that_it_had():
    plain = policy("mechanism: sampled_crowd, epsilon: 1, delta: 1e-6, selection_epsilon: 0.1")
    assert "totals" not in plain.release.model_dump()


@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (3, 1), (7, 2), (13, 5)])
def test_the_noise_costs_no_more_than_its_share(columns, rows):
    settings = CrowdSettings(1.0, 1e-6, 0.0, 20, 0.1, False, Persons(rows, True), 0.1)
    decay = Fraction(settings.totals_noise(columns).decay)
    assert decay * columns * rows <= Fraction(0.1) < decay * columns * rows * (1 + Fraction(1, 10**12))


def test_what_is_promised_holds_for_tables_and_crowds_together():
    """Two one-way tables and crowds of two columns with two values: the divergence of all outputs, summed up."""
    k, beta, decay = 2, 0.4, 0.3  # noise of ε = 0.6 for two tables
    far = 60
    noise = np.exp(-decay * np.abs(np.arange(-far, far + 1)))
    noise /= noise.sum()

    def one_way_ratio(shifts):
        """The law of the loss of the noisy counts that differ: for each, noise around x against x − 1."""
        losses, masses = np.array([0.0]), np.array([1.0])
        for _ in range(shifts):
            steps = np.where(np.arange(-far, far + 1) >= 0, decay, -decay)
            losses = np.add.outer(losses, steps).ravel()
            masses = np.multiply.outer(masses, noise).ravel()
            losses, places = np.unique(np.round(losses, 9), return_inverse=True)
            masses = np.bincount(places.ravel(), weights=masses)
        return losses, masses

    def crowd(n):
        law = np.array([math.comb(n, x) * beta**x * (1 - beta) ** (n - x) for x in range(n + 1)])
        shown = np.where(np.arange(n + 1) >= k, law, 0.0)
        shown[0] = law[:k].sum()
        return np.append(shown, np.zeros(12 - n))

    losses, masses = one_way_ratio(2)  # the record's own count in each of the two tables
    for epsilon, n in product((0.7, 1.0, 1.5), range(1, 12)):
        stated = exact_delta(k, beta, epsilon - 0.6)
        p, q = crowd(n), crowd(n - 1)
        delta = sum(
            m * np.maximum(p - math.exp(epsilon - loss) * q, 0.0).sum() for loss, m in zip(losses, masses, strict=True)
        )
        assert delta <= stated * (1 + 1e-9)
    # A table that nobody has paid for breaks it.
    losses, masses = one_way_ratio(6)
    broken = max(
        sum(
            m * np.maximum(crowd(n) - math.exp(0.7 - loss) * crowd(n - 1), 0.0).sum()
            for loss, m in zip(losses, masses, strict=True)
        )
        for n in range(1, 12)
    )
    assert broken > exact_delta(k, beta, 0.1)


def test_a_margin_is_the_quantile_of_its_noise():
    one_way = OneWay(LaplaceStep(0.05), {}, {})
    for surprise in (0.025, 0.001):
        weights = np.exp(-0.05 * np.abs(np.arange(-2000, 2001)))
        above = weights[2001 + one_way.margin(surprise) :].sum() / weights.sum()
        assert surprise * 0.9 < above <= surprise


def test_estimates_add_up_to_the_one_way_tables(released):
    _, published = read_release(released)
    one_way = read_one_way(published.beside[ONE_WAY])
    both = api.estimate(released, ["sex", "job"])
    assert all(row.low <= row.estimate <= row.high for row in both.rows)
    sums = dict.fromkeys(one_way.labels["job"], 0.0)
    for row in both.rows:
        sums[row.values[1]] += row.estimate
    assert list(sums.values()) == pytest.approx(one_way.spread("job").tolist(), rel=0.05, abs=40)
    truth = people().job.value_counts()
    assert abs(sums["office"] - truth["office"]) < 200
    known = api.estimate(released, ["sex", "job"], total=6000).rows
    assert all(row.low <= row.estimate <= row.high for row in known)
    assert api.estimate(released, ["sex"], mean="age").means


def test_people_with_several_rows(tmp_path):
    table = people(3000)
    table["who"] = np.arange(3000) // 2
    asked = Policy.from_text(
        "incrowd: 1\nunlisted: drop\npeople: {column: who, at_most: 2}\n"
        + ATTRIBUTES.replace("\nincrowd: 1\n", "")
        + f"release: {{{RELEASE}}}\n"
    )
    api.release(table, asked, folder=tmp_path / "out", _source=RandomSource.seeded(2))
    certificate, _ = read_release(tmp_path / "out")
    assert certificate.mechanism.totals.decay == pytest.approx(0.2 / 6)
    assert [c.name for c in api.verify(tmp_path / "out").checks if not c.holds] == [VOID]
