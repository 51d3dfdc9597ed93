"""People with several rows: what every mechanism promises them, says of it, and refuses."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from incrowd import api
from incrowd.core.errors import BudgetError, GuaranteeError, IncrowdError, ParameterError, PolicyError
from incrowd.core.signing import canonical
from incrowd.domain import Recode
from incrowd.hierarchy import Hierarchy, codings
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.base import Publication
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.pram.blocks import Block
from incrowd.mechanisms.pram.settle import PramPromise, each_of
from incrowd.mechanisms.promises import Budget, CrowdPromise, Entry, as_unit, promise_from_dict, promise_to_dict
from incrowd.mechanisms.registry import mechanism_named
from incrowd.mechanisms.sampled_crowd.section import SampledCrowd
from incrowd.mechanisms.sampled_crowd.settle import solve
from incrowd.policy import Policy
from incrowd.recoding.demands import Demand
from incrowd.recoding.search import search
from incrowd.releases.pipeline import count_table
from incrowd.releases.rules import counting, dominates, settled
from incrowd.sources.people import WHOSE
from incrowd.theory import crowd, shuffling
from incrowd.theory.profile import Relation
from incrowd.theory.randomisation import RetentionReplacement
from incrowd.theory.requirements import KAnonymity

RELEASES = {
    "sampled_crowd": "{mechanism: sampled_crowd, epsilon: 1, delta: 1e-6, beta: 0.2}",
    "pram": "{mechanism: pram, epsilon: 6, delta: 1e-6}",
    "sample": "{mechanism: sample, epsilon: 0.5, delta: 0.05}",
    "generalization": "{mechanism: generalization, require: {k: 20}}",
    "views": "{mechanism: views, epsilon: 4, delta: 1e-5, by: noise}",
    "views by crowds": "{mechanism: views, epsilon: 4, delta: 1e-5}",
}


def policy(release, at_most=3, more=""):
    people = "" if at_most is None else f"people: {{column: who, at_most: {at_most}}}"
    return Policy.from_text(
        f"""incrowd: 1
attributes:
  who: {{role: drop}}
  sex: {{role: quasi, type: text, domain: [f, m]}}
  age: {{role: quasi, type: integer, domain: {{from: 0, to: 2}}}}
  ill: {{role: sensitive, type: text, domain: ["no", "yes"]}}
{people}
release: {release}
{more}"""
    )


@pytest.fixture(scope="module")
def visits():
    g = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "who": g.integers(0, 1500, 4000),
            "sex": g.choice(["f", "m"], 4000),
            "age": g.integers(0, 3, 4000),
            "ill": g.choice(["no", "yes"], 4000),
        }
    )


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_a_release_about_people_is_made_verified_and_worded(visits, release, tmp_path):
    made = api.release(visits, policy(release), folder=tmp_path / "r")
    assert api.verify(tmp_path / "r", rigorous=True).valid
    said = made.certified
    assert "at most 3 rows count" in said.assumptions[0]
    estimates = api.estimate(tmp_path / "r", ["sex"])
    assert "are of rows" in estimates.notes[0]
    assert estimates.unit == "rows"
    assert estimates.tables()[0][0][:2] == ["sex", "rows"]
    assert not any("people" in note for note in (*estimates.notes[1:], *made.verdict.lines))
    one = api.release(visits, policy(release, at_most=1), folder=tmp_path / "one")
    assert api.verify(tmp_path / "one").valid
    assert "one row counts" in one.certified.assumptions[0]
    estimates = api.estimate(tmp_path / "one", ["sex"])
    assert estimates.notes[0].startswith("Numbers are of people")
    assert (estimates.unit, estimates.tables()[0][0][1]) == ("people", "people")


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_a_certificate_that_says_fewer_rows_than_it_covers_is_refused(visits, release, tmp_path):
    """The promise of three rows under a policy of twelve."""
    made = api.release(visits, policy(release), folder=tmp_path / "r")
    document = made.certified.document()
    document["policy"]["people"]["at_most"] = 12
    kind = mechanism_named(document["mechanism"]["name"])
    checks = list(kind.check_promise(kind.certificate.model_validate(document)))
    assert not all(check.holds for check in checks)


def test_a_crowd_needs_the_k_of_its_rows():
    release = SampledCrowd(mechanism="sampled_crowd", epsilon=1, delta=1e-6, beta=0.2)
    assert [solve(release, Persons(m, declared=True)).k for m in (1, 2, 3, 5)] == [12, 20, 30, 55]
    with pytest.raises(GuaranteeError) as error:
        solve(release.model_copy(update={"k": 29}), Persons(3, declared=True))
    assert error.value.details["k_needed"] == 30
    interest = solve(release.model_copy(update={"beta": None, "crowd_of_interest": 400}), Persons(2, declared=True))
    assert interest.kept
    assert crowd.exact_delta(interest.k - 1, interest.beta, 1.0, 2) > 1e-6


def test_a_table_that_is_a_sample_cannot_have_its_people_limited(visits):
    release = "{mechanism: sampled_crowd, epsilon: 1, delta: 1e-6, beta: 0.2, already_sampled: true}"
    ledger = "ledger: {path: no.sqlite, dataset: d, epsilon: 1, delta: 1e-6}"
    for at_most in (1, 3):
        with pytest.raises(PolicyError, match="itself a sample"):
            api.release(visits, policy(release, at_most, ledger))


def test_the_report_speaks_of_people(visits):
    page = api.release(visits, policy(RELEASES["sampled_crowd"])).report.decode()
    assert "the rows of one more person, 3 at most" in page
    assert "That covers a person with 3 rows, wherever they are" in page
    assert "Theorem 5" not in page.split("In the words of the certificate")[0]
    assert "≈ 5 rows of the original table" in page
    assert "people of the original" not in page
    page = api.release(visits, policy(RELEASES["pram"])).report.decode()
    assert "A person has 3 records at most" in page
    assert "estimated share of the rows" in page
    page = api.release(visits, policy(RELEASES["sample"])).report.decode()
    assert "rows of the table. A count of x rows stands for about x/p rows" in page
    page = api.release(visits, policy(RELEASES["generalization"])).report.decode()
    assert "is a record of a person" in page
    assert "Rows are people" not in page


# --- the ledger -----------------------------------------------------------------------------------------------------


def test_the_ledger_counts_people():
    several = CrowdPromise(30, 0.2, delta=1e-6, rows_per_person=3)
    budget = settled(Budget(2.0, 1e-5, Relation.ADD_REMOVE))
    cost = counting(budget).price(Entry("sampled_crowd", several))
    assert cost["delta"] == 1e-6
    assert 0.9 < cost["epsilon"] <= 1.0  # the k of three rows at ε = 1
    ignored = counting(budget).price(Entry("sampled_crowd", CrowdPromise(30, 0.2, delta=1e-6)))
    assert ignored["epsilon"] < 0.5 * cost["epsilon"]  # what a ledger that ignores the rows would charge
    assert promise_from_dict(promise_to_dict(several)) == several
    assert "rows_per_person" not in promise_to_dict(CrowdPromise(30, 0.2))


def test_a_unit_of_fewer_rows_does_not_measure_people():
    unit = as_unit("k=30,beta=0.2,rows_per_person=3", "add/remove")
    assert dominates(unit, CrowdPromise(30, 0.2, rows_per_person=3))
    assert dominates(unit, CrowdPromise(40, 0.1, rows_per_person=2))
    assert not dominates(unit, CrowdPromise(90, 0.1, rows_per_person=4))
    assert not dominates(as_unit("k=30,beta=0.2", "add/remove"), CrowdPromise(30, 0.2, rows_per_person=2))
    budget = settled(Budget(3.0, 1e-5, Relation.ADD_REMOVE, "unit", unit))
    assert budget.terms["units"] >= 2
    with pytest.raises(BudgetError):
        counting(budget).price(Entry("sampled_crowd", CrowdPromise(90, 0.1, rows_per_person=4)))


def law(n, k, beta):
    shown = {j: math.comb(n, j) * beta**j * (1 - beta) ** (n - j) for j in range(k, n + 1)}
    return {0: 1 - sum(shown.values()), **shown}


def test_replacing_a_person_is_covered():
    """All tables of two cells with up to 3 other rows: two rows of one person become two rows of another."""
    k, beta, epsilon = 2, Fraction(1, 4), 0.8
    growth = Fraction(math.exp(epsilon))
    from incrowd.theory.profile import compose

    promised = compose(CrowdPromise(k, 0.25, rows_per_person=2).parts(Relation.REPLACE_ONE)).delta(epsilon)
    worst = Fraction(0)
    for others in itertools.product(range(4), repeat=2):
        for old, new in itertools.permutations([(2, 0), (1, 1), (0, 2)], 2):
            p, q = ([law(n + a, k, beta) for n, a in zip(others, rows, strict=True)] for rows in (old, new))
            outcomes = itertools.product(*(sorted({*a, *b}) for a, b in zip(p, q, strict=True)))
            found = sum(
                max(Fraction(0), p[0].get(x, 0) * p[1].get(y, 0) - growth * q[0].get(x, 0) * q[1].get(y, 0))
                for x, y in outcomes
            )
            worst = max(worst, found)
    one = compose(CrowdPromise(k, 0.25).parts(Relation.REPLACE_ONE)).delta(epsilon)
    assert float(one) < worst <= promised  # the promise of one row would not have covered it


# --- randomised records ---------------------------------------------------------------------------------------------


def test_three_records_cost_three_times_the_local_epsilon():
    laws = [RetentionReplacement(0.3, 3), RetentionReplacement(0.3, 2)]
    blocks = [Block((name,), (law.size,), law) for name, law in zip("ab", laws, strict=True)]
    one, three = (PramPromise.of(blocks, 5000, 1e-6, rows) for rows in (1, 3))
    assert three.local_epsilon == pytest.approx(3 * one.local_epsilon)
    assert three.k == one.k
    assert 3 * one.epsilon < three.epsilon < 3.6 * one.epsilon
    assert all(three.holds(blocks).values())
    assert not all(PramPromise(5000, one.k, one.local_epsilon, one.epsilon, 1e-6, one.bound, 3).holds(blocks).values())
    assert each_of(3.0, Persons(3)) == pytest.approx(1.0)
    assert each_of(3.0, Persons()) == 3.0


def test_three_replaced_records_of_a_tiny_table_are_covered():
    """All values of three records that change at once, among two that do not; randomised response, counted."""
    keep, n = Fraction(1, 2), 5
    law = RetentionReplacement(0.5, 2)
    high = keep + (1 - keep) / 2

    def counts(ones):
        """The law of the number of ones shown, which is all that a shuffled table shows."""
        found = {0: Fraction(1)}
        for i in range(n):
            p = high if i < ones else 1 - high
            found = {j: found.get(j, 0) * (1 - p) + found.get(j - 1, 0) * p for j in range(i + 2)}
        return found

    for epsilon in (0.3, 1.0, 2.0, 3.0):
        growth = Fraction(math.exp(epsilon))
        promised = shuffling.group_delta([law], n, epsilon, 3).delta
        worst = max(
            sum(max(Fraction(0), counts(a)[j] - growth * counts(b)[j]) for j in range(n + 1))
            for a, b in itertools.product(range(n + 1), repeat=2)
            if abs(a - b) <= 3
        )
        assert worst <= promised
        if epsilon < 1:
            assert worst > shuffling.central_delta([law], n, epsilon).delta  # that of one record does not cover it


def test_epsilon_and_delta_of_several_records_fit():
    laws = [RetentionReplacement(0.4, 4)]
    for rows in (2, 5, 50):
        found = shuffling.group_epsilon(laws, 3000, 1e-6, rows)
        assert shuffling.group_delta(laws, 3000, found.epsilon, rows).delta <= 1e-6
        assert found.epsilon <= rows * shuffling.local_epsilon(laws) * (1 + 1e-9)


# --- samples and groups ---------------------------------------------------------------------------------------------


def test_a_sample_allows_for_all_rows_of_a_person(visits):
    release = "{mechanism: sample, epsilon: 0.5, delta: 0.05, rows_unknown: 2}"
    said = [api.release(visits, policy(release, m)).certified.promise.rows_unknown for m in (1, 2, 4)]
    assert said == [2, 2, 4]


def test_groups_hold_people_not_rows():
    assert KAnonymity.of_people(20, 1) == KAnonymity(20)
    assert KAnonymity.of_people(20, 3).k == 58
    fewest = {rows: -(-rows // 3) for rows in range(80)}  # people that so many rows can be of
    for k in range(1, 20):
        demanded = KAnonymity.of_people(k, 3).k
        assert fewest[demanded] >= k > fewest[demanded - 1]


def test_one_patient_with_many_visits_is_no_crowd():
    patient = pd.DataFrame({"who": [1] * 200, "sex": ["f"] * 200, "age": [0, 1] * 100, "ill": ["no", "yes"] * 100})
    with pytest.raises(IncrowdError):
        api.release(patient, policy("{mechanism: generalization, require: {k: 50}}", at_most=3))


# --- groups of people -----------------------------------------------------------------------------------------------

COUNTED = "{mechanism: generalization, require: {k: 250}}"


def test_people_are_counted_in_groups_and_the_counts_are_published(visits, tmp_path):
    """250 people would need 748 rows if rows were counted; no group of this table has as many."""
    everything = policy(COUNTED, at_most=12)
    made = api.release(visits, everything, folder=tmp_path / "r")
    assert made.certified.promise.requirements == ("groups of at least 250 people, counted",)
    truth = visits.groupby(["sex", "age"])["who"].nunique()
    told = {(sex, int(age)): people for sex, age, people in json.loads(made.beside["people.json"])["groups"]}
    assert told == truth.to_dict()
    assert 250 <= truth.min() <= visits.groupby(["sex", "age"]).size().max() < 748
    assert api.verify(tmp_path / "r").valid
    assert "counted" in made.report.decode()
    with pytest.raises(IncrowdError):  # one group of all has 1,400 people
        api.release(visits, policy(COUNTED.replace("250", "1500"), at_most=12))


def test_every_table_of_the_lattice_is_judged_by_its_people():
    """Against counting by hand, on tables in which one person fills groups."""
    rng = np.random.default_rng(8)
    levels = (Recode(np.arange(3), ("0", "1", "2")), Recode(np.zeros(3, dtype=np.int64), ("*",)))
    hierarchies = dict.fromkeys("ab", Hierarchy(levels, 3))
    judged = set()
    for _ in range(60):
        rows = rng.integers(0, 3, (30, 2))
        whose = rng.integers(0, rng.integers(2, 20), 30)
        columns = [Column(name, ("0", "1", "2"), rows[:, i]) for i, name in enumerate("ab")]
        table = Histogram.of([*columns, Column(WHOSE, tuple(map(str, range(20))), whose)])
        k = int(rng.integers(2, 7))
        demand = Demand(KAnonymity(k, counted=True), of=(WHOSE,))
        truth = {
            node: all(
                len({int(w) for w, row in zip(whose, rows, strict=True) if shown(row, node) == group}) >= k
                for group in {shown(row, node) for row in rows}
            )
            for node in itertools.product((0, 1), repeat=2)
        }
        judged |= set(truth.values())
        if not any(truth.values()):
            continue
        every = search(table, hierarchies, [demand], every=True).every
        assert {node: bool(every.satisfies[node]) for node in truth} == truth
    assert judged == {True, False}


def shown(row, node):
    return tuple(0 if level else int(value) for value, level in zip(row, node, strict=True))


def test_counts_that_do_not_fit_the_table_are_refused(visits):
    made = api.release(visits, policy(COUNTED, at_most=12))
    kind = mechanism_named("generalization")
    document = json.loads(made.beside["people.json"])
    for change in (lambda people: 249, lambda people: 10 * people):
        groups = [[*labels, change(people)] for *labels, people in document["groups"]]
        forged = canonical({**document, "groups": groups})
        checks = kind.check_table(made.certified, Publication(made.histogram, {"people.json": forged}))
        assert not all(check.holds for check in checks)


def test_rows_without_an_identifier_are_people_of_their_own():
    table = pd.DataFrame({"who": [None] * 6 + [1] * 6, "sex": ["f"] * 6 + ["m"] * 6, "age": 0, "ill": "no"})
    plan = policy("{mechanism: generalization, require: {k: 1}}", at_most=9).changed({("people", "missing"): "own"})
    made = api.release(table, plan)
    assert json.loads(made.beside["people.json"])["groups"] == [["f", "0", 6], ["m", "0", 1]]


def test_where_nobody_can_tell_whose_a_row_is_enough_rows_are_asked_for(visits):
    kind, plan = mechanism_named("generalization"), policy(COUNTED.replace("250", "20"))
    attributes = codings(plan)
    settings = kind.settle(plan, attributes, 1)
    table = count_table(visits, plan, attributes, progress=lambda _: None, show_values=False)
    settings, _ = kind.prepare(settings, table, lambda *_: None)
    assert [demand.name for demand in settings.demands] == [
        "groups of at least 58 records, and so of at least 20 people"
    ]


@pytest.mark.parametrize(
    "asked", ["require: {l: 2}", "require: [{k: 5}, {t: 0.3}]", "adversaries: {stubbornness: 5, belief_ratio: 4}"]
)
def test_what_counts_values_is_refused_where_a_person_has_several(visits, asked):
    release = f"{{mechanism: generalization, {asked}}}"
    with pytest.raises(PolicyError) as error:
        api.release(visits, policy(release, at_most=2))
    assert "at_most: 1" in error.value.remedy
    api.release(visits, policy(release, at_most=1))


def test_what_compares_at_one_row_each_refuses_several(visits):
    looked = api.look_at(policy(RELEASES["sample"]), data=visits)
    assert looked.asked.rows_unknown == 3
    with pytest.raises(ParameterError, match="one row each"):
        api.compare(looked, epsilons=[1.0], delta=1e-6)


def test_a_ledger_says_if_its_releases_count_different_numbers_of_rows(visits, tmp_path):
    ledger = f"ledger: {{path: {tmp_path / 'l.sqlite'}, dataset: d, epsilon: 3, delta: 1e-4}}"
    first = api.release(visits, policy(RELEASES["sampled_crowd"], 3, ledger), new_ledger=True)
    assert not any("rows per person" in note for note in first.charged.account()["notes"])
    second = api.release(visits, policy(RELEASES["sampled_crowd"], 2, ledger))
    account = second.charged.account()
    assert any("different numbers of rows per person" in note for note in account["notes"])
    assert account["spent"]["epsilon"] <= 2.0
