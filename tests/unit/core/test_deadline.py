"""Work that is given up when its time is up."""

import subprocess
import sys
import threading
import time

import pytest

from incrowd.core.deadline import within


def busy():
    try:
        while True:
            time.sleep(0.001)
    except Exception:  # noqa: BLE001 - what handles errors does not keep it going
        return "kept going"


def test_work_is_given_up_where_it_is():
    begun = time.monotonic()
    assert within(0.05, busy) is None
    assert time.monotonic() - begun < 5
    assert [within(10, lambda i=i: i) for i in range(3)] == [0, 1, 2]


def test_errors_are_those_of_the_work():
    with pytest.raises(ValueError, match="wrong"):
        within(10, lambda: int("wrong"))


def test_only_its_own_thread_is_stopped():
    found = []
    other = threading.Thread(target=lambda: found.append(within(0.05, busy)))
    other.start()
    other.join(10)
    assert found == [None]


def test_who_interrupts_means_all_of_it():
    """Time is up while Ctrl-C is being handled, too."""

    def interrupted():
        try:
            raise KeyboardInterrupt
        finally:
            time.sleep(0.2)

    with pytest.raises(KeyboardInterrupt):
        within(0.05, interrupted)


def test_a_profiler_goes_on_afterwards():
    """Python 3.11 would call for what was taken back without end."""
    script = """
import cProfile, time
from incrowd.core.deadline import within
assert within(60, lambda: 1) == 1
assert within(0.001, lambda: [time.sleep(0.001) for _ in range(100)]) is None
print(cProfile.Profile().runcall(lambda: within(60, lambda: sum(range(9)))))
"""
    made = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert made.stdout == "36\n"


def test_nothing_comes_late():
    """However near the end of the work is to the end of its time, it is given up or done, and nothing after it is."""
    for _ in range(300):
        assert within(0.002, lambda: time.sleep(0.002) or "done") in ("done", None)
        assert sum(range(100)) == 4950
