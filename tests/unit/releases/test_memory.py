"""A ledger that is gone, or older than it was, is noticed; one that nothing is missing from is never refused."""

import os
import re
import shutil
import sqlite3
import stat
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest

from incrowd import api
from incrowd.core.errors import BudgetError, InputError
from incrowd.mechanisms.promises import CrowdPromise, Entry, Point
from incrowd.policy import Policy
from incrowd.releases import chain, memory
from incrowd.releases.ledger import Ledger, accept_loss
from incrowd.releases.memory import Memory
from incrowd.theory.profile import Relation

ADD = Relation.ADD_REMOVE


def point(epsilon=0.1, delta=0.0, **more):
    return Entry("m", Point(epsilon, delta, ADD), **more)


@pytest.fixture
def ledger(tmp_path):
    made = Ledger(tmp_path / "ledger.db")
    made.set_budget("town", 1, 1e-6, ADD)
    made.charge("town", point())
    return made


def refused(call, code, *says):
    with pytest.raises(BudgetError) as caught:
        call()
    assert (caught.value.code, caught.value.exit_code) == (code, 3)
    for text in says:
        assert text in caught.value.message
    assert "stays spent" in caught.value.remedy
    return caught.value


def openings(path):
    """Every way to use a ledger."""
    return (
        lambda: Ledger(path),
        lambda: Ledger(path, create=False),
        lambda: api.ledger_statement(path, "town"),
        lambda: api.ledger_budget(path, "town", epsilon=1, delta=1e-6),
        lambda: api.ledger_add(path, "town", epsilon=0.1, delta=0, relation="add/remove", description="x"),
    )


def test_a_missing_ledger_is_refused_with_what_was_last_seen(ledger):
    ledger.path.rename(ledger.path.with_name("moved.db"))
    for call in openings(ledger.path):
        error = refused(call, "ledger-missing", "2 record(s)", "'town': epsilon = 0.1 at delta = 0 (add/remove) spent")
        assert error.details["records"] == 2
    assert not ledger.path.exists()
    # Moved with its policy it is the same ledger. Its old place is free when a person says so.
    assert Ledger(ledger.path.with_name("moved.db")).statement("town").spent.epsilon == 0.1
    refused(lambda: Ledger(ledger.path), "ledger-missing", "moved.db")
    accept_loss(ledger.path)
    Ledger(ledger.path)
    Ledger(ledger.path.with_name("moved.db")).charge("town", point())


def test_a_copy_that_was_looked_at_does_not_hide_that_the_ledger_is_gone(ledger, tmp_path):
    shutil.copy(ledger.path, tmp_path / "backup.db")
    api.ledger_statement(tmp_path / "backup.db", "town")
    ledger.path.unlink()
    for call in openings(ledger.path):
        refused(call, "ledger-missing", "2 record(s)")


@pytest.mark.parametrize("gone", ["the link", "the file", "led elsewhere"])
def test_a_ledger_behind_a_link_is_known_by_both_names(ledger, tmp_path, gone):
    link = tmp_path / "link.db"
    link.symlink_to(ledger.path)
    Ledger(link)
    if gone == "the file":
        ledger.path.unlink()
        refused(lambda: Ledger(ledger.path), "ledger-missing")
        refused(lambda: Ledger(link), "ledger-missing")
        return
    link.unlink()
    if gone == "the link":
        refused(lambda: Ledger(link), "ledger-missing")
        Ledger(ledger.path)
        return
    link.symlink_to(Ledger(tmp_path / "other.db").path)
    refused(lambda: Ledger(link), "ledger-older", "is not the ledger")


ORDER, UNIT = {"rule": "order"}, {"rule": "unit", "unit": Point(0.1, 0.0, ADD)}


@pytest.mark.parametrize("rule", [ORDER, UNIT])
@pytest.mark.parametrize("copied", [False, True])
def test_what_was_lost_can_be_recorded_and_nothing_else_spent_before(tmp_path, rule, copied):
    """An ε and a δ are all that is remembered, and only sums can count them."""
    path, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    ledger = Ledger(path)
    ledger.set_budget("town", 2, 1e-5, ADD, **rule)
    ledger.charge("town", point())
    shutil.copy(path, copy)
    ledger.charge("town", point())
    spent = ledger.statement("town").spent
    path.unlink()
    (seen,) = accept_loss(path)
    said = re.search("epsilon = ([^ ]+) at delta = ([^ ]+) ", seen.spent["town"]).groups()
    epsilon, delta = map(float, said)
    assert spent.epsilon <= epsilon
    assert spent.delta <= delta
    if copied:
        shutil.copy(copy, path)
        with pytest.raises(BudgetError) as caught:
            Ledger(path).charge("town", point())
    else:
        with pytest.raises(BudgetError) as caught:
            Ledger(path).set_budget("town", 2, 1e-5, ADD, **rule)
    assert caught.value.code == "budget-fixed"
    assert "'sum'" in caught.value.remedy
    again = Ledger(path)
    again.set_budget("town", 3, 2e-5, ADD)
    again.charge("town", point(epsilon, delta))
    assert again.statement("town").spent.epsilon >= spent.epsilon
    again.set_budget("village", 2, 1e-5, ADD, **rule)  # of which nothing was lost


def test_a_new_ledger_where_one_was_lost_counts_by_sums(tmp_path):
    path = tmp_path / "ledger.db"
    Ledger(path).set_budget("town", 2, 1e-5, ADD, "order")
    path.unlink()
    accept_loss(path)
    policy = Policy.from_text(
        "incrowd: 1\nattributes: {sex: {domain: [f, m]}}\n"
        "release: {mechanism: sampled_crowd, epsilon: 1, delta: 1e-6, beta: 0.4}\n"
        "ledger: {path: ledger.db, dataset: town, epsilon: 2, delta: 1e-5, rule: order}\n",
        base=tmp_path,
    )
    with pytest.raises(BudgetError) as caught:
        api.release(pd.DataFrame({"sex": ["f", "m"] * 50}), policy, new_ledger=True)
    assert caught.value.code == "budget-fixed"
    assert not path.exists()


def test_what_is_remembered_as_spent_is_not_less(tmp_path):
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.charge("town", point(0.12345649, 1.0000004e-7))
    (seen,) = Memory().at(ledger.path)
    assert seen.spent["town"] == "epsilon = 0.123457 at delta = 1.00001e-07 (add/remove)"
    assert str(ledger.statement("town").spent) == seen.spent["town"]


@pytest.mark.parametrize("before", ["nothing", "one"])
def test_an_older_copy_is_refused(ledger, tmp_path, before):
    copy = tmp_path / "copy.db"
    if before == "nothing":
        fresh = Ledger(tmp_path / "fresh.db")
        shutil.copy(fresh.path, copy)
        fresh.charge("town", point())
        ledger = fresh
    else:
        shutil.copy(ledger.path, copy)
        ledger.charge("town", point())
    shutil.copy(copy, ledger.path)
    for call in openings(ledger.path):
        refused(call, "ledger-older", "older than when it was last seen")
    with pytest.raises(BudgetError):
        ledger.charge("town", point())  # an open one notices as well


def test_a_copy_that_went_on_by_itself_is_refused(ledger, tmp_path):
    copy = tmp_path / "copy.db"
    shutil.copy(ledger.path, copy)
    ledger.charge("town", point(0.2))
    refused(lambda: Ledger(copy), "ledger-older", "older")
    state = memory.state_folder()
    other = state.with_name("elsewhere")
    os.environ["INCROWD_STATE"] = str(other)
    for _ in range(2):
        Ledger(copy).charge("town", point(0.3))
    os.environ["INCROWD_STATE"] = str(state)
    refused(lambda: Ledger(copy), "ledger-older", "both have gone on")


def test_another_ledger_in_its_place_is_refused(ledger, tmp_path):
    other = Ledger(tmp_path / "other.db")
    other.path.replace(ledger.path)
    refused(lambda: Ledger(ledger.path), "ledger-older", "is not the ledger")


def test_an_emptied_file_is_refused(ledger):
    ledger.path.write_bytes(b"")
    for call in openings(ledger.path):
        refused(call, "ledger-missing", "2 record(s)")


def test_a_loss_is_accepted_openly(ledger, tmp_path):
    copy = tmp_path / "copy.db"
    shutil.copy(ledger.path, copy)
    ledger.charge("town", point(0.25))
    ledger.path.unlink()
    (seen,) = accept_loss(ledger.path)
    assert "epsilon = 0.35" in str(seen)
    assert accept_loss(ledger.path) == ()
    Ledger(ledger.path)
    accept_loss(ledger.path)
    shutil.copy(copy, ledger.path)
    assert Ledger(ledger.path).statement("town").spent.epsilon == 0.1
    # An old copy where a later one was seen.
    Ledger(ledger.path).charge("town", point(0.25))
    shutil.copy(copy, ledger.path)
    refused(lambda: Ledger(ledger.path), "ledger-older")
    assert len(accept_loss(ledger.path)) == 1
    Ledger(ledger.path)


def test_the_memory_may_lag_behind(ledger):
    """Killed after the record, before it was remembered: nothing is refused."""
    ledger._memory.remember = lambda *_, **__: None
    ledger.charge("town", point())
    ledger.charge("town", point())
    again = Ledger(ledger.path)
    assert again.statement("town").spent.releases == 3
    again.charge("town", point())


def test_a_publication_is_a_record_like_any_other(ledger, tmp_path):
    """It is remembered, and not written to a copy that is older than what is remembered."""
    receipt = ledger.charge("town", point())
    shutil.copy(ledger.path, tmp_path / "copy.db")
    ledger.settle(receipt.entry_id, "sha256:1")
    shutil.copy(tmp_path / "copy.db", ledger.path)
    refused(lambda: Ledger(ledger.path), "ledger-older", "3 record(s), and is older")
    refused(lambda: ledger.settle(receipt.entry_id, "sha256:1"), "ledger-older")


def test_the_memory_never_goes_back():
    kept, path = memory.Memory(), Path("/somewhere/ledger.db")
    for records in (3, 2):
        kept.remember(memory.Head("id", records, f"digest{records}"), path, "now")
    assert kept.of("id").head.records == 3


def test_files_are_for_their_owner(ledger, user_state):
    for path in (ledger.path, user_state / "ledgers.sqlite"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("why", ["a file", "damaged", "no home"])
def test_without_a_memory_ledgers_work_and_say_so(tmp_path, monkeypatch, why):
    state = tmp_path / "state"
    if why == "a file":
        state.write_text("x")
        monkeypatch.setenv("INCROWD_STATE", str(state))
    elif why == "damaged":
        state.mkdir()
        (state / "ledgers.sqlite").write_text("no database, but long enough to be looked at as one. " * 40)
        monkeypatch.setenv("INCROWD_STATE", str(state))
    else:
        monkeypatch.delenv("INCROWD_STATE")
        monkeypatch.delenv("XDG_STATE_HOME", raising=False)

        def homeless():
            raise RuntimeError

        monkeypatch.setattr(memory.Path, "home", homeless)
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.charge("d", point())
    notes = ledger.statement("d").notes
    assert len(notes) == 1
    assert "INCROWD_STATE" in notes[0]
    assert "\n" not in notes[0]


def test_where_the_memory_is(monkeypatch, tmp_path):
    monkeypatch.delenv("INCROWD_STATE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(memory.sys, "platform", "linux")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    assert memory.state_folder() == tmp_path / ".local" / "state" / "incrowd"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "x"))
    assert memory.state_folder() == tmp_path / "x" / "incrowd"
    monkeypatch.setattr(memory.sys, "platform", "darwin")
    assert memory.state_folder() == tmp_path / "Library" / "Application Support" / "incrowd"
    monkeypatch.setattr(memory.sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert memory.state_folder() == tmp_path / "local" / "incrowd"


# --- the chain --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE entries SET value = replace(value, '0.1', '0.01')",
        "DELETE FROM chain WHERE id = 2",
        "UPDATE chain SET digest = 'x' WHERE id = 1",
        "UPDATE budgets SET dataset = 'village'",
        "INSERT INTO budgets (dataset, time, value) VALUES ('town', '', '{}')",
    ],
)
def test_a_record_that_was_changed_by_hand_is_noticed(ledger, change):
    db = sqlite3.connect(ledger.path)
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        db.execute(f"DROP TRIGGER {name}")
    db.execute(change)
    db.commit()
    db.close()
    with pytest.raises((InputError, BudgetError)) as caught:
        Ledger(ledger.path)
    assert caught.value.code in ("ledger-invalid", "ledger-older")
    assert "spent" in caught.value.remedy


# --- ledgers of version 1 ---------------------------------------------------------------------------------------


def old_ledger(path, *entries, budget='{"delta": 1e-05, "epsilon": 3.0, "relation": "add/remove"}'):
    """As version 1 wrote them: no id, no chain, no rule, no δ of a crowd, no cost."""
    db = sqlite3.connect(path, isolation_level=None)
    chain._make(db, chain._TABLES)
    db.execute("PRAGMA user_version = 1")
    db.execute("PRAGMA application_id = 1231962994")
    if budget:
        db.execute(
            "INSERT INTO budgets (dataset, time, value) VALUES ('town', '2025-01-01T00:00:00+00:00', ?)", (budget,)
        )
    for promise in entries:
        value = (
            '{"already_a_sample": false, "copies": 1, "description": "", "mechanism": "m", "policy_digest": "", '
            f'"promise": {promise}, "sample_id": null}}'
        )
        db.execute(
            "INSERT INTO entries (dataset, time, value) VALUES ('town', '2025-01-01T00:00:00+00:00', ?)", (value,)
        )
    db.close()


CROWD = '{"beta": 0.2, "k": 20, "kind": "sampled-crowd", "selection_epsilon": 0.0}'
POINT = '{"delta": 1e-07, "epsilon": 0.5, "kind": "point", "relation": "add/remove"}'


def test_an_old_ledger_is_counted_by_sums(tmp_path):
    path = tmp_path / "old.db"
    old_ledger(path, CROWD, POINT)
    statement = api.ledger_statement(path, "town").to_dict()
    assert statement["rule"] == "sum"
    assert statement["spent"]["delta"] == 1.1e-6
    alone = CrowdPromise(20, 0.2).parts(ADD)[0].epsilon(1e-6)
    assert statement["spent"]["epsilon"] == pytest.approx(alone + 0.5, rel=1e-9)
    ledger = Ledger(path)
    ledger.charge("town", point(0.25))
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone() == (2,)
    assert Ledger(path).statement("town").spent.releases == 3
    shutil.copy(path, tmp_path / "kept.db")
    path.unlink()
    old_ledger(path, CROWD, POINT)  # what it was before
    refused(lambda: Ledger(path), "ledger-older")


def test_an_old_ledger_is_remembered_when_it_was_looked_at(tmp_path):
    path = tmp_path / "old.db"
    old_ledger(path, CROWD, POINT)
    api.ledger_statement(path, "town")
    shutil.copy(path, tmp_path / "kept.db")
    path.unlink()
    refused(lambda: Ledger(path), "ledger-missing", "3 record(s)")
    old_ledger(path, CROWD)
    refused(lambda: Ledger(path), "ledger-older")


def test_an_old_ledger_that_cannot_be_written_is_read_as_it_is(tmp_path, monkeypatch):
    path = tmp_path / "old.db"
    old_ledger(path, CROWD, POINT)
    original = Ledger._open

    @contextmanager
    def read_only(self):
        with original(self) as db:
            db.execute("PRAGMA query_only = ON")
            yield db

    monkeypatch.setattr(Ledger, "_open", read_only)
    assert api.ledger_statement(path, "town").spent.releases == 2
    assert sqlite3.connect(path).execute("PRAGMA user_version").fetchone() == (1,)


def test_an_old_ledger_admits_no_more_than_it_did(tmp_path):
    """Four crowds that composed numerically stayed within 1, and sums do not: nothing more is admitted."""
    path = tmp_path / "old.db"
    old_ledger(path, *[CROWD] * 4, budget='{"delta": 1e-06, "epsilon": 1.0, "relation": "add/remove"}')
    ledger = Ledger(path)
    assert ledger.statement("town").remaining == 0.0
    with pytest.raises(BudgetError) as caught:
        ledger.charge("town", point(1e-6))
    assert caught.value.code == "budget-overspent"
    assert ledger.statement("town").spent.delta == 4e-6
