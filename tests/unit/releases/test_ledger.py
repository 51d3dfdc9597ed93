"""The ledger: what it lets through, what it refuses, what it says, and what files it opens."""

import itertools
import json
import math
import os
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import numpy as np
import pytest

from incrowd.core.errors import BudgetError, InputError, ParameterError, RelationError
from incrowd.mechanisms.promises import Budget, CrowdPromise, Entry, Point, Uncomposable
from incrowd.releases import ledger as module
from incrowd.releases.costs import at_least, at_most, meaning
from incrowd.releases.ledger import Ledger
from incrowd.theory.crowd import CrowdProfile
from incrowd.theory.profile import Relation, compose, to_replace_one
from spending import spent

ADD, REPLACE = Relation.ADD_REMOVE, Relation.REPLACE_ONE


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.db")


def point(epsilon, delta=0.0, relation=ADD, **more):
    return Entry("external", Point(epsilon, delta, relation), **more)


def crowd(k=20, beta=0.2, selection_epsilon=0.0, delta=None, **more):
    return Entry("sampled-crowd", CrowdPromise(k, beta, selection_epsilon, delta), **more)


def alone(notion="belief ratio of 3", **more):
    return Entry("generalization", Uncomposable(notion), **more)


def refused(ledger, dataset, entry, code, error=BudgetError):
    """The entry is refused with this code and leaves no trace."""
    before = ledger.statement(dataset) if dataset in ledger.datasets() else None
    with pytest.raises(error) as caught:
        ledger.charge(dataset, entry)
    assert caught.value.code == code
    assert caught.value.exit_code == 3
    assert caught.value.remedy
    after = ledger.statement(dataset) if dataset in ledger.datasets() else None
    assert before == after
    return caught.value


# --- sums are what a person means -------------------------------------------------------------------------------


def test_fifty_fresh_samples_at_two_hundredths_make_one(ledger):
    """Li, Qardaji, Su, section 2.7: 50 releases at (0.2, 0.02, 0) are 1-DP together."""
    ledger.set_budget("d", 1, 0, ADD)
    for _ in range(50):
        ledger.charge("d", point(0.02))
    statement = ledger.statement("d")
    assert (statement.spent.epsilon, statement.remaining, statement.spent.releases) == (1.0, 0.0, 50)
    refused(ledger, "d", point(1e-12), "budget-overspent")


def test_sums_are_exact_where_floats_are_not(ledger):
    assert 0.1 + 0.1 + 0.1 > 0.3
    ledger.set_budget("d", 0.3, 3e-7, ADD)
    for _ in range(3):
        ledger.charge("d", point(0.1, 1e-7))
    assert spent([point(0.1)] * 3, ADD, 0.0) == 0.3
    refused(ledger, "d", point(0.0, 1e-12), "budget-overspent")


def test_a_computed_number_is_its_exact_binary_value():
    computed = 0.1 + 0.2
    assert meaning(0.3) == Fraction(3, 10)
    assert meaning(computed) == Fraction(computed) > Fraction(3, 10)
    assert meaning(1e-300) == Fraction(1, 10**300)
    assert at_least(Fraction(1, 3)) > Fraction(1, 3) > at_most(Fraction(1, 3))
    assert at_least(Fraction(3, 10)) == at_most(Fraction(3, 10)) == 0.3


def test_numbers_from_numpy_are_plain_numbers():
    entry = crowd(np.int64(20), np.float64(0.25), np.float64(0.1))
    assert json.loads(json.dumps(entry.to_dict()))["promise"]["beta"] == 0.25
    assert spent([point(np.float64(0.1))] * 3, ADD, 0.0) == 0.3


# --- budgets ----------------------------------------------------------------------------------------------------


def test_an_overspending_release_is_told_what_it_asked_what_is_left_and_the_difference(ledger):
    ledger.set_budget("d", 1, 0, ADD)
    ledger.charge("d", point(0.7))
    error = refused(ledger, "d", point(0.5), "budget-overspent")
    wanted = {"requested": 0.5, "remaining": 0.3, "before": 0.7, "after": 1.2, "excess": 0.2, "budget": 1.0}
    assert error.details == {**wanted, "delta": 0.0, "relation": "add/remove", "rule": "sum"}
    for number in ("0.5", "0.3", "0.7", "1.2", "0.2"):
        assert number in error.message
    ledger.charge("d", point(0.3))


def test_a_delta_beyond_the_budget_is_refused_whatever_the_epsilon(ledger):
    ledger.set_budget("d", 5, 1e-6, ADD)
    error = refused(ledger, "d", point(0.1, 2e-6), "budget-overspent")
    assert (error.details["requested_delta"], error.details["remaining_delta"]) == (2e-6, 1e-6)
    assert "delta = 2 · 10⁻⁶" in error.message
    refused(ledger, "d", crowd(5, 0.5), "budget-overspent")  # 0.5^5 is far above 1e-6


def test_sampled_crowds_cost_their_exact_profile(ledger):
    """To reach (0.5, 1e-6) at a rate of 0.2 a crowd of 18 is enough, and one of 17 is not."""
    ledger.set_budget("d", 0.5, 1e-6, ADD)
    refused(ledger, "d", crowd(17), "budget-overspent")
    ledger.charge("d", crowd(18))
    statement = ledger.statement("d")
    assert statement.spent.epsilon == CrowdProfile(18, 0.2).epsilon(1e-6)
    assert statement.releases[0].epsilon == statement.spent.epsilon


def test_what_no_epsilon_covers_is_infinite_and_never_an_accident():
    assert spent([crowd(), point(0.5, 0.1)], ADD, 1e-6) == math.inf
    assert spent([point(0.0, 1e-6)] * 2, ADD, 1e-6) == math.inf
    assert spent([point(0.0, 1e-6)] * 2, ADD, 2e-6) == 0.0
    assert spent([crowd(1, 0.5)], ADD, 0.1) == math.inf
    assert spent([point(100.0)] * 3, REPLACE, 0.0) == 600.0


def test_very_many_small_promises_add_up_too():
    assert spent([point(0.01, copies=50), point(0.02)], ADD, 0.0) == 0.52
    assert 0.02 < spent([point(0.01, copies=50), point(0.02)], ADD, 1e-6) <= 0.52


def test_choosing_the_mapping_is_paid_for(ledger):
    without, choice = CrowdProfile(20, 0.2).epsilon(1e-6), 0.1
    ledger.set_budget("d", round(without + choice / 2, 3), 1e-6, ADD)
    refused(ledger, "d", crowd(selection_epsilon=choice), "budget-overspent")
    ledger.charge("d", crowd())


def test_several_releases_cost_less_than_their_sum_and_more_than_one(ledger):
    one = CrowdProfile(20, 0.2).epsilon(1e-6)
    total = spent([crowd()] * 4, ADD, 1e-6)
    assert one < total < 4 * one
    # What plain addition refuses, composition accepts.
    ledger.set_budget("d", total, 1e-6, ADD)
    ledger.charge("d", crowd(copies=4))
    assert ledger.statement("d").remaining == 0.0


def test_budgets_can_be_raised_but_not_below_what_is_spent(ledger):
    assert ledger.budget("d") is None
    assert ledger.set_budget("d", 1, 0, ADD) == ledger.budget("d") == Budget(1.0, 0.0, ADD)
    ledger.charge("d", point(0.75))
    ledger.set_budget("d", 2, 1e-6, ADD)
    ledger.set_budget("d", 0.75, 0, "add/remove")
    with pytest.raises(BudgetError) as caught:
        ledger.set_budget("d", 0.7, 0, ADD)
    assert caught.value.code == "budget-below-spent"
    assert caught.value.details["spent"] == 0.75
    statement = ledger.statement("d")
    assert statement.budget == Budget(0.75, 0.0, ADD)
    assert [change.budget.epsilon for change in statement.budgets] == [1.0, 2.0, 0.75]
    assert [change["epsilon"] for change in statement.to_dict()["budgets"]] == [1.0, 2.0, 0.75]


def test_datasets_do_not_share_budgets(ledger):
    ledger.set_budget("a", 0.1, 0, ADD)
    ledger.charge("b", point(1))
    ledger.charge("a", point(0.1))
    assert ledger.datasets() == ("a", "b")
    assert ledger.statement("b").budget is None
    assert ledger.statement("b").remaining is None


@pytest.mark.parametrize(
    "make",
    [
        lambda: Budget(-1, 0, ADD),
        lambda: Budget(math.inf, 0, ADD),
        lambda: Budget(1, 1, ADD),
        lambda: Budget(1, 0, "swap"),
        lambda: point(math.nan),
        lambda: point(101),
        lambda: point(1, -1e-9),
        lambda: point("1"),
        lambda: crowd(0),
        lambda: crowd(2, 1.0),
        lambda: crowd(2, 0.5, -1),
        lambda: point(1, copies=0),
        lambda: point(1, copies=10**6),
        lambda: Entry(" ", Point(1, 0, ADD)),
        lambda: Entry(7, Point(1, 0, ADD)),
        lambda: alone("two\nlines"),
        lambda: crowd(selection_epsilon=0.1, already_a_sample=True),
    ],
)
def test_values_that_mean_nothing_are_refused(make):
    with pytest.raises(ParameterError):
        make()


# --- neighbour relations ----------------------------------------------------------------------------------------


def test_a_replace_one_promise_is_not_counted_against_an_add_remove_budget(ledger):
    ledger.set_budget("d", 5, 1e-6, ADD)
    error = refused(ledger, "d", point(0.1, 0, REPLACE), "relation-mismatch", RelationError)
    assert "replace-one" in error.remedy
    ledger.charge("d", alone())
    ledger.set_budget("d", 5, 1e-6, REPLACE)
    ledger.charge("d", point(0.1, 0, REPLACE))
    with pytest.raises(RelationError):
        ledger.set_budget("d", 5, 1e-6, ADD)


def test_add_remove_promises_are_converted_for_a_replace_one_budget(ledger):
    ledger.set_budget("d", 1, 1e-6, REPLACE)
    refused(ledger, "d", point(0.51), "budget-overspent")
    ledger.charge("d", point(0.3))
    ledger.charge("d", point(0.4, 0, REPLACE))
    assert spent([point(0.3), point(0.4, 0, REPLACE)], REPLACE, 0.0) == 1.0
    refused(ledger, "d", point(0.1, 0, REPLACE), "budget-overspent")
    converted = to_replace_one(Point(0.3, 1e-7, ADD).parts(ADD)[0])
    assert Point(0.3, 1e-7, ADD).parts(REPLACE) == (converted,)
    assert converted.at_delta >= (1 + math.exp(0.3)) * 1e-7


def two_cells(n, m, k, beta):
    """The law of two published cells of n and m records."""

    def cell(size):
        law = np.zeros(size + 1)
        for j in range(size + 1):
            law[j if j >= k else 0] += math.comb(size, j) * beta**j * (1 - beta) ** (size - j)
        return law

    law = np.zeros((20, 20))
    law[: n + 1, : m + 1] = np.outer(cell(n), cell(m))
    return law


@pytest.mark.parametrize(("k", "beta"), [(1, 0.3), (2, 0.5), (3, 0.25)])
def test_replacing_a_record_of_a_crowd_is_covered_and_costs_less_than_converting_would(k, beta):
    profile = compose(CrowdPromise(k, beta).parts(REPLACE))
    converted = to_replace_one(CrowdProfile(k, beta))
    for epsilon in (0.0, 0.2, 0.7, 1.5):
        growth = math.exp(epsilon)
        worst = max(
            float(np.maximum(0.0, two_cells(n, m, k, beta) - growth * two_cells(n - 1, m + 1, k, beta)).sum())
            for n, m in itertools.product(range(1, 16), range(15))
        )
        promised = profile.delta(epsilon)
        assert worst <= promised
        if k > 2:  # where beta^k is large, composing is crude
            assert promised <= 1.2 * worst
            assert promised <= converted.delta(epsilon) + 1e-11


def test_without_a_budget_totals_are_shown_for_each_relation(ledger):
    ledger.charge("d", point(0.5))
    assert [t.relation for t in ledger.statement("d").totals] == [ADD]
    ledger.charge("d", point(0.25, 0, REPLACE, copies=2))
    statement = ledger.statement("d")
    add, replace = statement.totals
    assert (add.relation, add.epsilon, add.releases, add.left_out) == (ADD, 0.5, 1, 2)
    assert (replace.relation, replace.epsilon, replace.releases, replace.left_out) == (REPLACE, 1.5, 3, 0)
    assert statement.spent == replace
    assert any("leaves out 2" in note for note in statement.notes)


def test_without_a_budget_every_release_counts_at_its_own_delta(ledger):
    ledger.charge("d", point(0.5, 1e-5))
    ledger.charge("d", point(0.5, 2e-5))
    assert (ledger.statement("d").spent.epsilon, ledger.statement("d").spent.delta) == (1.0, 3e-5)
    ledger.charge("e", crowd())
    ledger.charge("e", crowd(delta=1e-7))
    statement = ledger.statement("e")
    assert statement.spent.delta == 1.1e-6
    assert [line.delta for line in statement.releases] == [1e-6, 1e-7]
    alone = [CrowdProfile(20, 0.2).epsilon(delta) for delta in (1e-6, 1e-7)]
    assert [line.epsilon for line in statement.releases] == pytest.approx(alone, rel=1e-8)
    assert statement.spent.epsilon == pytest.approx(sum(alone), rel=1e-8)
    ledger.charge("f", crowd(1, 0.5, delta=0.1))
    unreachable = ledger.statement("f")
    assert math.isinf(unreachable.spent.epsilon)
    assert unreachable.to_dict()["spent"]["epsilon"] is None
    assert any("No epsilon reaches" in note for note in unreachable.notes)


# --- samples ----------------------------------------------------------------------------------------------------


def test_a_sample_serves_one_release(ledger):
    ledger.charge("d", point(0.5, sample_id="s1"))
    ledger.charge("d", alone(sample_id="s2"))
    ledger.charge("other", crowd(sample_id="s1"))
    refused(ledger, "d", crowd(sample_id="s1"), "sample-reused")
    refused(ledger, "d", point(0.001, sample_id="s2"), "sample-reused")
    refused(ledger, "d", alone(sample_id="s2"), "sample-reused")


@pytest.mark.parametrize("second", [point(0.001), crowd(), alone(), crowd(already_a_sample=True)])
def test_a_table_that_is_a_sample_serves_one_release(ledger, second):
    ledger.set_budget("d", 10, 1e-6, ADD)
    ledger.charge("d", crowd(already_a_sample=True))
    refused(ledger, "d", second, "sample-reused")
    statement = ledger.statement("d")
    assert statement.remaining == 0.0
    assert any("no other is allowed" in note for note in statement.notes)


@pytest.mark.parametrize("first", [point(0.001), crowd(), alone()])
def test_a_table_that_served_before_cannot_be_taken_to_be_a_sample(ledger, first):
    ledger.charge("d", first)
    refused(ledger, "d", crowd(already_a_sample=True), "sample-reused")


@pytest.mark.parametrize("more", [{"sample_id": "s"}, {"already_a_sample": True}])
def test_one_sample_cannot_serve_several_copies(more):
    with pytest.raises(BudgetError) as caught:
        crowd(copies=2, **more)
    assert caught.value.code == "sample-reused"


# --- promises that do not compose -------------------------------------------------------------------------------


def test_promises_that_do_not_compose_are_listed_and_never_added(ledger):
    ledger.set_budget("d", 0, 0, ADD)
    ledger.charge("d", alone(copies=3))
    statement = ledger.statement("d")
    assert (statement.spent.epsilon, statement.spent.releases, statement.remaining) == (0.0, 0, 0.0)
    line = statement.to_dict()["releases"][0]
    assert line["composes"] is False
    assert line["promise"] == "belief ratio of 3: does not compose"
    assert line["epsilon"] is line["delta"] is line["relation"] is None
    assert any(note.startswith("3 release(s)") and "do not compose" in note for note in statement.notes)


# --- the record -------------------------------------------------------------------------------------------------


def test_a_release_is_charged_then_published(ledger):
    first, second = (ledger.charge("d", point(0.1)) for _ in range(2))
    assert first.entry_id != second.entry_id
    ledger.settle(first.entry_id, "sha256:1")
    ledger.settle(first.entry_id, "sha256:1")
    lines = ledger.statement("d").to_dict()["releases"]
    assert [(line["state"], line["release_digest"]) for line in lines] == [("published", "sha256:1"), ("charged", None)]
    assert ledger.statement("d").spent.epsilon == 0.2
    for entry_id, digest, code in [(first.entry_id, "sha256:2", "ledger-settled"), (99, "sha256:1", "ledger-unknown")]:
        with pytest.raises(InputError) as caught:
            ledger.settle(entry_id, digest)
        assert caught.value.code == code


def test_a_statement_holds_the_contract_and_survives_json(ledger):
    entry = crowd(18, 0.2, 0.1, description="Census, first wave", policy_digest="sha256:p", sample_id="s")
    ledger.set_budget("census", 1, 1e-6, ADD)
    receipt = ledger.charge("census", entry)
    found = json.loads(json.dumps(ledger.statement("census").to_dict(), allow_nan=False))
    assert {"dataset", "spent", "remaining", "releases"} <= set(found)
    assert found["dataset"] == receipt.dataset == "census"
    assert found["spent"]["epsilon"] + found["remaining"]["epsilon"] == pytest.approx(1.0, abs=1e-12)
    (line,) = found["releases"]
    assert line["id"] == receipt.entry_id
    assert line["time"] == receipt.time
    assert (line["mechanism"], line["description"]) == ("sampled-crowd", "Census, first wave")
    assert line["epsilon"] == pytest.approx(CrowdProfile(18, 0.2).epsilon(1e-6) + 0.1)
    stamp = datetime.fromisoformat(receipt.time)
    assert stamp.utcoffset() == timedelta(0)
    assert abs(datetime.now(UTC) - stamp) < timedelta(hours=1)
    assert ledger.statement("census").releases[0].recorded.entry == entry


def test_an_unknown_dataset_is_an_error_not_an_empty_account(ledger):
    with pytest.raises(InputError) as caught:
        ledger.statement("nobody")
    assert caught.value.code == "ledger-unknown"
    for call in (
        lambda: ledger.charge("", point(1)),
        lambda: ledger.set_budget("a\nb", 1, 0, ADD),
        lambda: ledger.statement(""),
    ):
        with pytest.raises(ParameterError):
            call()
    assert ledger.datasets() == ()


def test_a_ledger_can_be_opened_again_and_used_in_a_with_statement(ledger):
    ledger.charge("d", point(0.1))
    with Ledger(ledger.path, create=False) as again:
        again.charge("d", point(0.2))
    assert Ledger(str(ledger.path)).statement("d").spent.epsilon == 0.3


def test_the_tables_only_grow(ledger):
    ledger.settle(ledger.charge("d", point(0.1)).entry_id, "x")
    ledger.set_budget("d", 1, 0, ADD)
    db = sqlite3.connect(ledger.path)
    for table in ("entries", "budgets", "publications"):
        for change in (f"DELETE FROM {table}", f"UPDATE {table} SET time = ''"):
            with pytest.raises(sqlite3.IntegrityError, match="only grows"):
                db.execute(change)
    db.close()


# --- files ------------------------------------------------------------------------------------------------------


def fails_to_open(path, code, says, **more):
    with pytest.raises(InputError) as caught:
        Ledger(path, **more)
    assert caught.value.code == code
    assert says in caught.value.message
    assert str(path) in caught.value.message
    assert caught.value.exit_code == 2


def test_places_where_no_ledger_can_be(tmp_path):
    fails_to_open(tmp_path / "no" / "ledger.db", "ledger-unavailable", "folder does not exist")
    fails_to_open(tmp_path, "ledger-unavailable", "is a folder")
    fails_to_open(tmp_path / "ledger.db", "ledger-unavailable", "no such file", create=False)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("x")
    fails_to_open(tmp_path / "file" / "ledger.db", "ledger-unavailable", "folder does not exist")


def test_files_that_are_no_ledger_are_left_as_they_are(tmp_path):
    text, database = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("Not a database, but long enough to be looked at as one. " * 40)
    db = sqlite3.connect(database)
    db.execute("CREATE TABLE t (x)")
    db.commit()
    db.close()
    for path in (text, database):
        content = path.read_bytes()
        fails_to_open(path, "ledger-invalid", "not a ledger")
        assert path.read_bytes() == content


def test_odd_names_and_empty_files_are_fine(tmp_path):
    for name in ("with space?mode=ro#x%41.db", ":memory:", "empty.db"):
        (tmp_path / name).touch()
        Ledger(tmp_path / name).charge("d", point(0.1))
        assert Ledger(tmp_path / name).statement("d").spent.epsilon == 0.1
    assert len(list(tmp_path.iterdir())) == 3


def test_a_newer_ledger_is_not_touched(ledger):
    db = sqlite3.connect(ledger.path)
    db.execute("PRAGMA user_version = 3")
    db.close()
    fails_to_open(ledger.path, "ledger-invalid", "version 3")
    with pytest.raises(InputError, match="version 3"):
        ledger.charge("d", point(0.1))


@pytest.mark.parametrize("damage", ["zeros", "short"])
def test_a_damaged_ledger_is_noticed(ledger, damage):
    for _ in range(40):
        ledger.charge("d", point(0.01, description="x" * 100))
    content = bytearray(ledger.path.read_bytes())
    if damage == "zeros":
        content[4096:] = bytes(len(content) - 4096)
    else:
        del content[-4096:]
    ledger.path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        Ledger(ledger.path)
    assert caught.value.code == "ledger-invalid"


@pytest.mark.parametrize("value", ["{", "[]", "{}", '{"mechanism": "m", "promise": {"kind": "newer"}}'])
def test_a_record_that_cannot_be_understood_stops_everything(ledger, value):
    """It could not be counted, and what cannot be counted must not be counted as nothing."""
    db = sqlite3.connect(ledger.path)
    db.execute("INSERT INTO entries (dataset, time, value) VALUES ('d', '', ?)", (value,))
    db.commit()
    db.close()
    for call in (lambda: ledger.charge("d", point(0.1)), lambda: ledger.statement("d")):
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.code == "ledger-invalid"


def test_a_ledger_that_was_moved_away_is_not_made_again(ledger):
    ledger.path.unlink()
    for call in (lambda: ledger.charge("d", point(0.1)), lambda: Ledger(ledger.path)):
        with pytest.raises(BudgetError) as caught:
            call()
        assert caught.value.code == "ledger-missing"
        assert not ledger.path.exists()


def test_a_ledger_that_cannot_be_written_can_be_read(ledger, monkeypatch):
    ledger.charge("d", point(0.1))
    connect = sqlite3.connect

    def read_only(place, **options):
        return connect(str(place).replace("mode=rw", "mode=ro"), **options)

    monkeypatch.setattr(module.sqlite3, "connect", read_only)
    assert Ledger(ledger.path, create=False).statement("d").spent.epsilon == 0.1
    with pytest.raises(InputError) as caught:
        ledger.charge("d", point(0.1))
    assert caught.value.code == "ledger-unavailable"
    assert "cannot be written" in caught.value.message


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="permissions do not bind this user")
def test_a_folder_without_permission(tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    fails_to_open(tmp_path / "closed" / "ledger.db", "ledger-unavailable", "cannot be opened")


def test_a_ledger_kept_locked_is_an_error_after_a_while(ledger, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    other = sqlite3.connect(ledger.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(InputError) as caught:
        ledger.charge("d", point(0.1))
    assert caught.value.code == "ledger-unavailable"
    assert "locked" in caught.value.message
    assert ledger.datasets() == ()  # reading does not wait
    other.close()
    ledger.charge("d", point(0.1))


def test_a_refusal_inside_the_transaction_leaves_nothing(ledger, monkeypatch):
    """What counts is the second look, under the lock: another process may have spent in between."""
    ledger.set_budget("d", 0.1, 0, ADD)
    look = Ledger.account

    def overtaken(self, dataset):
        account = look(self, dataset)
        monkeypatch.setattr(Ledger, "account", look)
        ledger.charge("d", point(0.1))
        return account

    monkeypatch.setattr(Ledger, "account", overtaken)
    with pytest.raises(BudgetError):
        ledger.charge("d", point(0.1))
    assert ledger.statement("d").spent.releases == 1


def test_plain_sums_need_no_heavy_library(tmp_path):
    program = (
        "import sys; from incrowd.releases.ledger import Ledger; from incrowd.mechanisms.promises import *\n"
        "ledger = Ledger(sys.argv[1]); ledger.set_budget('d', 1, 1e-6, 'replace-one')\n"
        "ledger.charge('d', Entry('m', Point(0.25, 0, 'add/remove')))\n"
        "ledger.charge('d', Entry('m', Point(0.5, 1e-6, 'replace-one')))\n"
        "print([m for m in ('scipy', 'flint', 'pandas', 'duckdb') if m in sys.modules])"
    )
    arguments = [sys.executable, "-c", program, str(tmp_path / "ledger.db")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
