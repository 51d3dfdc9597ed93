"""A first use is declared, what was charged is said, and what is spent is told with every release."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from incrowd import api
from incrowd.cli import incrowd as command
from incrowd.cli._shell import run
from incrowd.core.errors import BudgetError, InputError, ParameterError, PolicyError
from incrowd.policy import Policy
from incrowd.releases import folders
from incrowd.releases import release as release_module
from incrowd.releases.ledger import Ledger

TEXT = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}, level: 1}
  sex: {domain: [f, m]}
release: {mechanism: sampled_crowd, epsilon: 1, delta: 1e-5, beta: 0.4}
"""
LEDGER = "ledger: {path: ledger.sqlite, dataset: town, epsilon: 5, delta: 1e-3}\n"


@pytest.fixture(scope="module")
def people():
    return pd.DataFrame({"age": [i % 100 for i in range(3000)], "sex": ["f", "m", "f"] * 1000})


@pytest.fixture
def policy(tmp_path):
    (tmp_path / "policy.yaml").write_text(TEXT + LEDGER, encoding="utf-8")
    return tmp_path / "policy.yaml"


def statement(folder):
    return api.ledger_statement(folder / "ledger.sqlite", "town").to_dict()


# --- the first use ----------------------------------------------------------------------------------------------


def test_a_first_use_is_an_explicit_act(people, policy, tmp_path):
    for _ in range(2):
        with pytest.raises(BudgetError) as caught:
            api.release(people, policy, folder=tmp_path / "out")
        assert (caught.value.code, caught.value.exit_code) == ("ledger-new", 3)
        assert "--new-ledger" in caught.value.remedy
    assert [path.name for path in tmp_path.iterdir()] == ["policy.yaml"]
    api.release(people, policy, folder=tmp_path / "out", new_ledger=True)
    api.release(people, policy, folder=tmp_path / "again")
    with pytest.raises(ParameterError, match="knows 'town' already"):
        api.release(people, policy, folder=tmp_path / "third", new_ledger=True)
    assert len(statement(tmp_path)["releases"]) == 2


def test_a_budget_is_a_first_use_too(people, policy, tmp_path):
    api.ledger_budget(tmp_path / "ledger.sqlite", "village", epsilon=5, delta=1e-3)
    with pytest.raises(BudgetError) as caught:  # a ledger, but no such data set
        api.release(people, policy, folder=tmp_path / "out")
    assert caught.value.code == "ledger-new"
    api.ledger_budget(tmp_path / "ledger.sqlite", "town", epsilon=5, delta=1e-3)
    assert api.release(people, policy, folder=tmp_path / "out").account["budget"]["epsilon"] == 5


def test_a_ledger_that_was_moved_away_is_not_started_anew(people, policy, tmp_path):
    api.release(people, policy, new_ledger=True)
    (tmp_path / "ledger.sqlite").rename(tmp_path / "away.sqlite")
    for new in (False, True):
        with pytest.raises(BudgetError) as caught:
            api.release(people, policy, new_ledger=new)
        assert caught.value.code == "ledger-missing"
        assert "'town': epsilon = " in caught.value.message
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_policy_without_a_ledger_has_no_new_one(people):
    with pytest.raises(ParameterError, match="names no ledger"):
        api.release(people, Policy.from_text(TEXT), new_ledger=True)
    assert api.release(people, Policy.from_text(TEXT)).account is None


def test_a_refused_first_release_leaves_no_ledger(people, policy, tmp_path):
    policy.write_text(TEXT + LEDGER.replace("epsilon: 5", "epsilon: 0.1"), encoding="utf-8")
    with pytest.raises(BudgetError) as caught:
        api.release(people, policy, new_ledger=True)
    assert caught.value.code == "budget-overspent"
    assert [path.name for path in tmp_path.iterdir()] == ["policy.yaml"]


@pytest.mark.parametrize("rule", ["rule: order", "rule: unit, unit: 'k=10,beta=0.4'"])
def test_a_policy_names_the_rule(people, policy, tmp_path, rule):
    policy.write_text(TEXT + LEDGER.replace("delta: 1e-3", f"delta: 1e-3, {rule}"), encoding="utf-8")
    made = api.release(people, policy, new_ledger=True)
    assert made.account["rule"] == rule.split(",")[0].removeprefix("rule: ")
    api.release(people, policy)
    policy.write_text(TEXT + LEDGER, encoding="utf-8")
    with pytest.raises(PolicyError) as caught:
        api.release(people, policy)
    assert caught.value.code == "ledger-budget-differs"


@pytest.mark.parametrize("rule", ["rule: best", "rule: unit", "unit: 'k=17,beta=0.3'", "rule: unit, unit: 'k=0'"])
def test_rules_that_are_none(people, policy, rule):
    policy.write_text(TEXT + LEDGER.replace("delta: 1e-3", f"delta: 1e-3, {rule}"), encoding="utf-8")
    with pytest.raises((PolicyError, ParameterError)):
        api.release(people, policy, new_ledger=True)


# --- words before anything is made ------------------------------------------------------------------------------


def test_a_budget_beyond_all_bounds_is_said_to_be_the_ledgers(people, policy, tmp_path, capsys):
    policy.write_text(TEXT + LEDGER.replace("epsilon: 5", "epsilon: 1000"), encoding="utf-8")
    with pytest.raises(PolicyError, match=r"ledger.epsilon"):
        api.release(people, policy, new_ledger=True)
    arguments = ["ledger", "budget", "town", "--epsilon", "1000", "--delta", "0", "--ledger", str(tmp_path / "l.db")]
    assert run(command, arguments) == 2
    assert "ledger's budget" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["policy.yaml"]


@pytest.mark.parametrize("copies", [100_000_000_000, 10_001, 0, -1])
def test_more_copies_than_anyone_makes_are_refused_in_words(people, policy, tmp_path, copies):
    with pytest.raises(ParameterError, match="copies"):
        api.release_copies(people, policy, copies=copies, folder=tmp_path / "out", new_ledger=True)
    people.to_csv(tmp_path / "people.csv", index=False)
    arguments = ["release", str(policy), "-o", str(tmp_path / "out"), "--data", str(tmp_path / "people.csv")]
    assert run(command, [*arguments, "--new-ledger", "--copies", str(copies)]) == 2
    assert not (tmp_path / "ledger.sqlite").exists()


# --- copies -----------------------------------------------------------------------------------------------------


def test_copies_are_charged_as_so_many(people, policy, tmp_path):
    made = api.release_copies(people, policy, copies=3, folder=tmp_path / "out", new_ledger=True)
    (line,) = statement(tmp_path)["releases"]
    assert (line["copies"], line["state"]) == (3, "published")
    assert statement(tmp_path)["spent"]["releases"] == 3
    assert statement(tmp_path)["spent"]["delta"] == 3e-5
    one = api.release(people, policy).account["spent"]["epsilon"] - made[0].account["spent"]["epsilon"]
    assert statement(tmp_path)["releases"][0]["cost"]["epsilon"] > 1.2 * one / 2


# --- every release tells ----------------------------------------------------------------------------------------


def test_every_release_tells_what_is_spent_and_left(people, policy, tmp_path, capsys, monkeypatch):
    people.to_csv(tmp_path / "people.csv", index=False)

    def release(folder, *more):
        arguments = ["release", str(policy), "-o", str(tmp_path / folder), "--data", str(tmp_path / "people.csv")]
        assert run(command, [*arguments, *more]) == 0
        return capsys.readouterr().out

    out = release("out", "--new-ledger")
    line = r"Spent on town: ε = 0\.\d+ at δ = 10⁻⁵; remaining ε = 4\.\d+ of 5, δ = 9\.9 · 10⁻⁴ of 0\.001\."
    assert re.search(line, out)
    told = json.loads(release("second", "--json"))["ledger"]
    assert (told["dataset"], told["rule"], told["spent"]["delta"]) == ("town", "sum", 2e-5)
    assert told["spent"]["epsilon"] + told["remaining"]["epsilon"] == pytest.approx(5)
    monkeypatch.setenv("INCROWD_STATE", str(tmp_path / "people.csv"))
    assert "INCROWD_STATE" in release("third")
    policy.write_text(TEXT, encoding="utf-8")
    assert "No ledger counts this release" in release("fourth")
    assert json.loads(release("fifth", "--json"))["ledger"] is None


def test_a_file_that_was_left_blank_by_a_crash_is_no_ledger(people, policy, tmp_path):
    (tmp_path / "ledger.sqlite").touch()
    with pytest.raises(BudgetError) as caught:
        api.release(people, policy)
    assert caught.value.code == "ledger-new"
    with pytest.raises(InputError, match="it is empty"):
        statement(tmp_path)
    api.release(people, policy, new_ledger=True)
    assert len(statement(tmp_path)["releases"]) == 1


def test_what_cannot_appear_is_not_charged(people, policy, tmp_path, monkeypatch):
    with pytest.raises(InputError):
        api.release_copies(people, policy, copies=2, folder=tmp_path / ("e" * 239), new_ledger=True)

    def refuses(*_, **__):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(Path, "symlink_to", refuses)
    with pytest.raises(InputError, match="symbolic links"):
        api.release_copies(people, policy, copies=2, folder=tmp_path / "out", new_ledger=True)
    assert [path.name for path in tmp_path.iterdir()] == ["policy.yaml"]


# --- what was charged is said -----------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError(28, "No space left on device"), RuntimeError("SECRET")])
def test_whatever_stops_a_release_after_the_charge_says_so(people, policy, tmp_path, monkeypatch, capsys, stop):
    people.to_csv(tmp_path / "people.csv", index=False)

    def fails(*_):
        raise stop

    monkeypatch.setattr(release_module, "write_around", fails)
    arguments = ["release", str(policy), "-o", str(tmp_path / "out"), "--data", str(tmp_path / "people.csv")]
    code = run(command, [*arguments, "--new-ledger"])
    said = capsys.readouterr().err
    assert code == {KeyboardInterrupt: 130}.get(stop, 2 if isinstance(stop, OSError) else 1)
    assert re.search(r"ledger.sqlite was charged for it: epsilon = 0\.\d+, delta = 10⁻⁵\. Nothing was published", said)
    assert "SECRET" not in said
    assert [line["state"] for line in statement(tmp_path)["releases"]] == ["charged"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ledger.sqlite", "people.csv", "policy.yaml"]


def test_before_the_charge_nothing_is_said_to_be_charged(people, policy, tmp_path, monkeypatch, capsys):
    people.to_csv(tmp_path / "people.csv", index=False)

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("incrowd.releases.driver._count_asked", stop)
    arguments = ["release", str(policy), "-o", str(tmp_path / "out"), "--data", str(tmp_path / "people.csv")]
    assert run(command, [*arguments, "--new-ledger"]) == 130
    assert capsys.readouterr().err.strip().endswith("incrowd: stopped. Nothing was written.")


def test_where_no_ledger_counts_nothing_is_said_of_a_charge(people, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(release_module, "write_around", stop)
    with pytest.raises(KeyboardInterrupt) as caught:
        api.release(people, Policy.from_text(TEXT), folder=tmp_path / "out")
    assert not hasattr(caught.value, "__notes__")


def test_stopped_inside_the_charge(people, policy, tmp_path, monkeypatch):
    """Just after the record is on disk, and just before."""

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "_said", stop)
        with pytest.raises(KeyboardInterrupt) as caught:
            api.release(people, policy, new_ledger=True)
    assert not hasattr(caught.value, "__notes__")
    assert statement(tmp_path)["releases"] == []
    remember = Ledger._remember

    def after(self, dataset):
        remember(self, dataset)
        raise KeyboardInterrupt

    monkeypatch.setattr(Ledger, "_remember", after)
    with pytest.raises(KeyboardInterrupt) as caught:
        api.release(people, policy)
    assert "was charged for it" in caught.value.__notes__[0]
    assert len(caught.value.__notes__) == 1


def test_stopped_inside_the_charge_when_the_ledger_cannot_be_looked_at(people, policy, tmp_path, monkeypatch):
    api.release(people, policy, new_ledger=True)

    def unmounted(self, _dataset):
        self.path.rename(self.path.with_name("elsewhere"))
        raise KeyboardInterrupt

    monkeypatch.setattr(Ledger, "_remember", unmounted)
    with pytest.raises(KeyboardInterrupt) as caught:
        api.release(people, policy)
    assert "may have been charged for it: epsilon" in caught.value.__notes__[0]


def test_stopped_after_it_appeared(people, policy, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Ledger, "settle", stop)
    with pytest.raises(KeyboardInterrupt) as caught:
        api.release(people, policy, folder=tmp_path / "out", new_ledger=True)
    assert f"It was published: {tmp_path / 'out'}." in caught.value.__notes__[0]
    assert api.verify(tmp_path / "out").valid
    monkeypatch.setattr(folders, "_exchange_links", stop)
    with pytest.raises(KeyboardInterrupt) as caught:
        api.release_copies(people, policy, copies=2, folder=tmp_path / "two")
    assert "It was published: " in caught.value.__notes__[0]
    assert all(api.verify(tmp_path / f"two-{i}").valid for i in (1, 2))


def rename_then_stop(monkeypatch, last):
    """A signal that comes while the system renames is raised just after it."""
    rename = Path.rename

    def stopped(path, target):
        renamed = rename(path, target)
        if Path(target).name == last or Path(target).suffix == last:
            raise KeyboardInterrupt
        return renamed

    monkeypatch.setattr(Path, "rename", stopped)


@pytest.mark.parametrize("how", ["one", "copies", "saved"])
def test_stopped_by_a_signal_that_came_during_the_last_rename(people, policy, tmp_path, monkeypatch, how):
    made = api.release(people, policy, new_ledger=True)
    staged = folders.staged

    def stop_later(folders):
        with staged(folders) as stage:
            rename_then_stop(monkeypatch, ".copies" if how == "copies" else "out")
            yield stage

    if how == "copies":  # what copies need is tried out first, by a rename as well
        monkeypatch.setattr(folders, "staged", contextmanager(stop_later))
    else:
        rename_then_stop(monkeypatch, "out")
    copies = 2 if how == "copies" else 1
    publish = made.save if how == "saved" else partial(api.release_copies, people, policy, copies=copies)
    with pytest.raises(KeyboardInterrupt) as caught:
        publish(folder=tmp_path / "out")
    assert "It was published: " in caught.value.__notes__[0]
    assert statement(tmp_path)["releases"][-1]["state"] == "published"
    assert all(api.verify(tmp_path / name).valid for name in (("out-1", "out-2") if how == "copies" else ("out",)))


def test_a_second_folder_that_fails_does_not_hide_the_first(people, policy, tmp_path, monkeypatch):
    made = api.release(people, policy, new_ledger=True)
    made.save(tmp_path / "first")

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "rename", stop)
    with pytest.raises(KeyboardInterrupt) as caught:
        made.save(tmp_path / "second")
    assert f"It was published: {tmp_path / 'first'}." in caught.value.__notes__[0]


def test_a_release_saved_later_says_it_too(people, policy, tmp_path):
    made = api.release(people, policy, new_ledger=True)
    (tmp_path / "taken").mkdir()
    with pytest.raises(InputError) as caught:
        made.save(tmp_path / "taken")
    assert "was charged for it" in caught.value.__notes__[0]
    made.save(tmp_path / "out")
    assert [line["state"] for line in statement(tmp_path)["releases"]] == ["published"]


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("swallowed", [False, True], ids=["plain", "in a library that raises an error of its own"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_stop_a_command_as_ctrl_c_does(people, policy, tmp_path, number, swallowed):
    people.to_csv(tmp_path / "people.csv", index=False)
    program = (
        "import sys, time, pathlib\n"
        "from incrowd.releases import release\n"
        "def wait(*_):\n"
        "    pathlib.Path(sys.argv[0] + '.drawn').touch()\n"
        "    try:\n"
        "        time.sleep(600)\n"
        "    except BaseException:\n"
        f"        if not {swallowed}: raise\n"
        "    raise RuntimeError('Query interrupted') from None\n"
        "release.write_around = wait\n"
        "from incrowd.cli import main\n"
        "main()\n"
    )
    script = tmp_path / "program"
    script.write_text(program)
    arguments = ["release", policy, "-o", tmp_path / "out", "--data", tmp_path / "people.csv", "--new-ledger"]
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("these tests run where the signal is ignored, as under nohup")
    running = subprocess.Popen([sys.executable, script, *arguments], stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "program.drawn").exists():
        assert running.poll() is None, running.stderr.read()
        time.sleep(0.05)
    running.send_signal(number)
    _, said = running.communicate(timeout=120)
    assert running.returncode == 128 + number
    assert "was charged for it" in said
    assert "bug" not in said
    assert not [p.name for p in tmp_path.iterdir() if p.name.startswith((".", "out"))]
