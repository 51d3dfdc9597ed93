"""How everything is measured here: what is compared takes turns in one run, and medians of several turns are given.

Beside elapsed time stands the processor's, which is less disturbed by what else a machine does. What a process needs
at most of memory is taken from a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Spent:
    """What a piece of work took: elapsed seconds, the processor's, and the most memory of its process, if known.

    Each is the median of so many turns.
    """

    seconds: float
    cpu: float
    megabytes: float | None = None
    turns: int = 1


@dataclass(frozen=True)
class Row:
    """One line of a benchmark.

    Attributes:
        key: how it is found again, the same whatever its size; unique within its benchmark.
        name: what was measured.
        ours: what it took.
        against: what it is compared with.
        other: what that took, in the same run.
        target: what the ratio (or the seconds, the processor's seconds, or the megabytes) should not exceed.
        target_for: which of them.
        figures: other numbers.
        note: what must be said about it; why it was not measured.
    """

    key: str
    name: str
    ours: Spent | None = None
    against: str = ""
    other: Spent | None = None
    target: float | None = None
    target_for: Literal["ratio", "seconds", "cpu", "megabytes"] = "ratio"
    figures: Mapping[str, float] = field(default_factory=dict)
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Elapsed time to that of what it is compared with."""
        return None if self.ours is None or self.other is None else self.ours.seconds / self.other.seconds

    @property
    def cpu_ratio(self) -> float | None:
        """The same of the processor's time; None where the other takes none that could be measured."""
        return None if self.ours is None or self.other is None or not self.other.cpu else self.ours.cpu / self.other.cpu

    @property
    def turns(self) -> str:
        """How often it was measured; and the other, if that was more or less often."""
        found = [str(took.turns) for took in (self.ours, self.other) if took is not None]
        return found[0] if len(set(found)) == 1 else " against ".join(found)

    @property
    def reached(self) -> float | None:
        """What the target is about."""
        if self.target_for == "ratio":
            return self.ratio
        return None if self.ours is None else getattr(self.ours, self.target_for)

    @property
    def missed(self) -> bool:
        """Whether there is a target, and it was not reached."""
        return self.target is not None and self.reached is not None and self.reached > self.target

    def to_dict(self) -> dict[str, Any]:
        """Everything that is known, numbers to four digits, for JSON."""
        known = {name: value for name, value in asdict(self).items() if value not in (None, "", {})}
        if self.target is None:
            del known["target_for"]
        return _rounded(known)

    @classmethod
    def from_dict(cls, known: Mapping[str, Any]) -> Row:
        """A row that was written with `to_dict`."""
        spent = {name: Spent(**known[name]) for name in ("ours", "other") if name in known}
        return cls(**{**known, **spent})


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _rounded(part) for key, part in value.items() if part is not None}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def spent(work: Callable[[], object], cpu: Callable[[], float] = time.process_time) -> Spent:
    """What a call takes; one that returns what something else took, is believed."""
    busy, start = cpu(), time.perf_counter()
    result = work()
    elapsed, busy = time.perf_counter() - start, cpu() - busy
    return result if isinstance(result, Spent) else Spent(elapsed, busy)


def in_turns(
    works: Mapping[str, Callable[[], object]], repeats: int, cpu: Callable[[], float] = time.process_time
) -> dict[str, Spent]:
    """The medians of what each takes; they take turns, so that a machine that slows down does so for all."""
    turns = [{name: spent(work, cpu) for name, work in works.items()} for _ in range(repeats)]
    return {name: median([turn[name] for turn in turns]) for name in works}


def median(times: Sequence[Spent]) -> Spent:
    """Of each figure by itself."""
    memory = [t.megabytes for t in times if t.megabytes is not None]
    return Spent(
        statistics.median(t.seconds for t in times),
        statistics.median(t.cpu for t in times),
        statistics.median(memory) if memory else None,
        sum(t.turns for t in times),
    )


# The parent's own memory counts as the child's until the child begins, so a small parent starts it.
_SMALL_PARENT = """
import json, os, subprocess, sys, time
start = time.perf_counter()
process = subprocess.Popen(sys.argv[1:])
_, status, used = os.wait4(process.pid, 0)
print(json.dumps([time.perf_counter() - start, used.ru_utime + used.ru_stime, used.ru_maxrss]))
sys.exit(os.waitstatus_to_exitcode(status))
"""


def command(*arguments: str | Path) -> Spent:
    """Runs a command in a process of its own; a first argument of "python" or "incrowd" is this environment's.

    Python keeps what it compiles, as it does where pip has installed something, whatever this process was told.
    """
    programs = {"python": [sys.executable], "incrowd": [sys.executable, "-m", "incrowd"]}
    whole = [*programs.get(str(arguments[0]), [str(arguments[0])]), *map(str, arguments[1:])]
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    starter = [sys.executable, "-I", "-S", "-c", _SMALL_PARENT, *whole]
    done = subprocess.run(starter, capture_output=True, text=True, check=False, cwd=ROOT, env=kept)
    if done.returncode:
        raise RuntimeError(f"{' '.join(whole)} failed:\n{done.stderr}")
    seconds, cpu, memory = json.loads(done.stdout.splitlines()[-1])
    return Spent(seconds, cpu, memory / (2**20 if sys.platform == "darwin" else 2**10))


# --- printing -----------------------------------------------------------------------------------------------------

HEADS = (
    "what",
    "time",
    "processor time",
    "memory",
    "against",
    "its time",
    "ratio",
    "of processor time",
    "target",
    "turns",
)


def cells(row: Row) -> tuple[str, ...]:
    """A row as texts under `HEADS`, figures and notes behind the name."""
    more = "; ".join([*(f"{name} {number(value)}" for name, value in row.figures.items()), *filter(None, [row.note])])
    return (
        f"{row.name} ({more})" if more else row.name,
        *(
            (seconds(row.ours.seconds), seconds(row.ours.cpu), megabytes(row.ours.megabytes))
            if row.ours
            else ("", "", "")
        ),
        row.against,
        seconds(row.other.seconds) if row.other else "",
        times(row.ratio),
        times(row.cpu_ratio),
        target(row),
        row.turns,
    )


def target(row: Row) -> str:
    """The target and whether it was reached."""
    if row.target is None:
        return ""
    shown = {"ratio": times, "seconds": seconds, "cpu": seconds, "megabytes": megabytes}[row.target_for](row.target)
    shown += " of the processor" * (row.target_for == "cpu")
    return f"≤ {shown}{' (missed)' if row.missed else ''}"


def seconds(value: float | None) -> str:
    """Three digits, with a unit that fits."""
    if value is None:
        return ""
    return f"{value * 1000:.3g} ms" if value < 0.9995 else f"{value:.3g} s" if value < 999.5 else f"{value:,.0f} s"


def megabytes(value: float | None) -> str:
    """Whole megabytes."""
    return "" if value is None else f"{value:,.0f} MB"


def times(ratio: float | None) -> str:
    """A ratio: 1.23 ×, or 1/50 × where the other took that much longer."""
    if ratio is None:
        return ""
    return f"{ratio:.2f} ×" if ratio >= 0.1 else f"1/{1 / ratio:.0f} ×"


def number(value: float) -> str:
    """Whole numbers as they are, others with four digits."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.4g}"


def show(rows: Iterable[Row]) -> list[Row]:
    """Prints rows as they come."""
    shown = []
    for row in rows:
        name, *rest = cells(row)
        line = "  ".join(part for part in rest[:-1] if part)
        print(f"  {name}{line and chr(10)}{line and f'      {line}'}", flush=True)
        shown.append(row)
    return shown


def measured(run: Callable[[bool], Iterable[Row]], quick: bool) -> Iterator[Row]:
    """The rows of a benchmark; targets are for the full sizes."""
    for row in run(quick):
        yield replace(row, target=None) if quick else row


def main(run: Callable[[bool], Iterable[Row]]) -> None:
    """What `python -m bench.<name>` does."""
    parser = argparse.ArgumentParser(description=run.__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes and few turns, to see that it works")
    show(measured(run, parser.parse_args().quick))
