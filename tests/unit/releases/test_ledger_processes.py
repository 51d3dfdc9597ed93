"""Many processes at one ledger, and processes that are killed.

Run as a program this file is a nursery: it imports the ledger once and forks children from there, because starting a
Python for each of hundreds of processes would take minutes. The children are real processes all the same.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

import pytest

from incrowd.core.errors import BudgetError
from incrowd.mechanisms.promises import Entry, Point
from incrowd.releases import chain
from incrowd.releases.ledger import Ledger, _now, _to_json
from incrowd.theory.profile import Relation

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and kill -9")

STEP, BUDGET = 0.05, 1.0
FITTING = 20  # of these steps into that budget


def entry(description=""):
    return Entry("test", Point(STEP, 0.0, Relation.ADD_REMOVE), description)


# --- in the nursery ---------------------------------------------------------------------------------------------


class CarelessLedger(Ledger):
    """Broken on purpose: decides in one transaction and records in the next."""

    def charge(self, dataset, entry):
        with self._transaction() as db:
            account = self._account(db, dataset)
        account.admit(entry)
        time.sleep(0.02)
        with self._transaction(writing=True) as db:
            columns = {"dataset": dataset, "time": _now(), "value": _to_json(entry.to_dict())}
            chain.append(db, "entries", columns)


def in_child(work):
    """Fork; the child does its work with a pipe to report through, and never returns."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    status = 1
    try:
        os.close(reading)
        work(writing)
        status = 0
    finally:
        os._exit(status)


def lines(reading):
    with os.fdopen(reading, encoding="ascii") as pipe:
        return pipe.read().split()


def race(path, kind, processes):
    """All at once: make the file, set the same budget, charge until refused."""
    gate, opener = os.pipe()

    def spend(report):
        os.close(opener)
        os.read(gate, 1)  # until the parent opens it
        ledger = kind(path)
        ledger.set_budget("d", BUDGET, 0.0, Relation.ADD_REMOVE)
        for _ in range(FITTING + 1):
            try:
                ledger.charge("d", entry())
            except BudgetError as error:
                os.write(report, f"{error.code}\n".encode())
                return
            os.write(report, b"charged\n")

    children = [in_child(spend) for _ in range(processes)]
    os.close(opener)
    reports = [lines(reading) for _, reading in children]
    statuses = [os.waitpid(pid, 0)[1] for pid, _ in children]
    total = Ledger(path).statement("d").spent
    return {"reports": reports, "statuses": statuses, "recorded": total.releases}


def kills(folder, number, *, boast=False):
    """Four processes at a time charge one ledger until they are killed, each at its own moment.

    After each round the file must open, and hold at least the charges that were reported. With `boast` the processes
    report before they charge, which must be noticed.
    """
    moments, longest = random.Random(20110), 0.02
    seen = {"kills": 0, "reported": 0, "recorded": 0, "lost": 0, "unasked": 0, "journals": 0}
    for turn in range(number // 4):
        path = folder / f"{turn // 5}.db"  # five rounds on each file, the first while it is being made

        def spend(report, path=path, turn=turn):
            ledger = Ledger(path)
            for step in count():
                name = f"{turn}.{os.getpid()}.{step}"
                if boast:
                    os.write(report, f"{name}\n".encode())
                ledger.charge("d", entry(name))
                if not boast:
                    os.write(report, f"{name}\n".encode())

        children = [in_child(spend) for _ in range(4)]
        for pid, _ in children:
            time.sleep(moments.uniform(0.0, longest))
            os.kill(pid, signal.SIGKILL)
        statuses = [os.waitpid(pid, 0)[1] for pid, _ in children]
        seen["kills"] += sum(os.WIFSIGNALED(status) for status in statuses)
        seen["journals"] += path.with_name(path.name + "-journal").exists()
        reported = {name for _, reading in children for name in lines(reading)}
        longest = longest if reported else 2 * longest  # a slow machine gets more time
        ledger = Ledger(path)
        releases = ledger.statement("d").releases if "d" in ledger.datasets() else ()
        recorded = {line.recorded.entry.description for line in releases}
        of_turn = {name for name in recorded if name.startswith(f"{turn}.")}
        seen["reported"] += len(reported)
        seen["recorded"] += len(of_turn)
        seen["lost"] += len(reported - recorded)
        # A process has at most one charge under way when it dies.
        seen["unasked"] += max(0, len(of_turn - reported) - len(children))
    return seen


def main(task, folder):
    path = Path(folder)
    return {
        "race": lambda: race(path / "race.db", Ledger, 32),
        "careless race": lambda: race(path / "race.db", CarelessLedger, 8),
        "kills": lambda: kills(path, 200),
        "boastful kills": lambda: kills(path, 40, boast=True),
    }[task]()


# --- the tests --------------------------------------------------------------------------------------------------


def nursery(task, folder):
    done = subprocess.run(
        [sys.executable, __file__, task, str(folder)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_32_processes_racing_for_one_budget_spend_exactly_that(tmp_path):
    outcome = nursery("race", tmp_path)
    assert outcome["statuses"] == [0] * 32
    assert all(report[-1] == "budget-overspent" for report in outcome["reports"])
    assert sum(report.count("charged") for report in outcome["reports"]) == FITTING
    assert outcome["recorded"] == FITTING


def test_the_race_would_notice_a_ledger_that_decides_and_records_separately(tmp_path):
    outcome = nursery("careless race", tmp_path)
    assert outcome["recorded"] > FITTING


def test_after_200_kills_every_reported_charge_is_in_a_sound_file(tmp_path):
    seen = nursery("kills", tmp_path)
    assert seen["kills"] == 200
    assert seen["reported"] > 0
    assert seen["lost"] == 0
    assert seen["unasked"] == 0


def test_the_kills_would_notice_a_charge_reported_too_early(tmp_path):
    assert nursery("boastful kills", tmp_path)["lost"] > 0


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
