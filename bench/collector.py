"""How many randomised records a second the collector takes in and has on disk before it says so.

A real process, many connections at once over loopback, for a few seconds; then it is killed without warning, started
again on the same store, and every acknowledged record must be there. Needs the extra `collect`."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bench.measuring import Row, main
from incrowd.survey import Question, Questionnaire
from incrowd.survey.collector.store import Store
from incrowd.survey.questionnaire import numerator64

SIZES = (2, 5, 18)
CONNECTIONS = 64
HEAD = "POST /records HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def questionnaire() -> Questionnaire:
    """Three questions, 180 possible records."""
    questions = []
    for number, size in enumerate(SIZES):
        values = tuple(f"v{code}" for code in range(size))
        questions.append(Question(f"a{number}", f"a{number}?", values, values, numerator64(0.3)))
    return Questionnaire.make("Bench", questions, records=10_000)


def start(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """A collector in a process of its own, and its address."""
    command = [sys.executable, "-m", "incrowd", "collect", "q.json", "--store", "s.sqlite", "--port", "0", "--json"]
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())["address"]


async def _client(address: str, digest: str, until: float, waits: list[float], pace: float = 0.0) -> int:
    """Sends records until then, one every `pace` seconds if the service keeps up."""
    place = urlsplit(address)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    stored, due = 0, time.monotonic() + pace * secrets.randbelow(1000) / 1000
    try:
        while time.monotonic() < until:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due += pace
            record = {f"a{i}": f"v{secrets.randbelow(size)}" for i, size in enumerate(SIZES)}
            body = json.dumps({"questionnaire": digest, "nonce": secrets.token_hex(16), "record": record}).encode()
            head = f"{HEAD}Content-Length: {len(body)}\r\n"
            began = time.monotonic()
            writer.write(head.encode() + b"\r\n" + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(h.split(b":")[1]) for h in answer.split(b"\r\n") if h.lower().startswith(b"content-length")
            )
            await reader.readexactly(length)
            waits.append(time.monotonic() - began)
            stored += answer.startswith(b"HTTP/1.1 201")
    except (OSError, asyncio.IncompleteReadError):
        pass  # the service was killed
    finally:
        writer.close()
    return stored


async def _load(
    address: str, digest: str, seconds: float, process: subprocess.Popen[str], pace: float = 0.0
) -> tuple[int, list[float]]:
    waits: list[float] = []
    until = time.monotonic() + seconds
    clients = [_client(address, digest, until + 1, waits, pace) for _ in range(CONNECTIONS)]

    async def kill() -> None:
        await asyncio.sleep(seconds)
        process.send_signal(signal.SIGKILL)

    *stored, _ = await asyncio.gather(*clients, kill())
    return sum(stored), waits


@dataclass(frozen=True)
class Loaded:
    """What a collector took in until it was killed, how long records waited in milliseconds, and what the process took.

    Attributes:
        before: megabytes after a tenth of the time.
        after: and in the end.
    """

    stored: int
    median: float
    most: float
    cpu: float
    before: float
    after: float


def loaded(seconds: float, pace: float = 0.0, memory: Callable[[str], float] | None = None) -> Loaded:
    """Load for some seconds, kill -9, and everything that was acknowledged must be there."""
    made = questionnaire()
    looked: list[float] = []
    ended = sum(os.times()[2:4])  # processor time of children that have ended
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "q.json").write_bytes(made.to_bytes())
        process, address = start(folder)
        if memory is not None:
            looks = [
                threading.Timer(part * seconds, lambda: looked.append(memory(str(process.pid)))) for part in (0.1, 0.99)
            ]
            for look in looks:
                look.start()
        try:
            stored, waits = asyncio.run(_load(address, made.digest, seconds, process, pace))
        finally:
            process.kill()
            process.wait()
        took = sum(os.times()[2:4]) - ended
        process, _ = start(folder)  # it starts on what the other left
        process.terminate()
        process.wait()
        kept = sum(Store(str(folder / "s.sqlite")).cells().values())
    assert kept >= stored, "what was acknowledged must be there after kill -9"
    waits.sort()
    before, after = looked or (0.0, 0.0)
    median, most = (1000 * waits[round((len(waits) - 1) * part)] for part in (0.5, 0.99))
    return Loaded(stored, median, most, took, before, after)


def day_of(records: int, seconds: float, memory: Callable[[str], float]) -> Loaded:
    """So many records, evenly spread over this time."""
    return loaded(seconds, CONNECTIONS * seconds / records, memory)


def run(quick: bool = False) -> Iterator[Row]:
    """Records a second, how long they waited, and that no acknowledged record was lost."""
    seconds = 1.0 if quick else 5.0
    took = loaded(seconds)
    figures = {
        "records a second": round(took.stored / seconds),
        "median wait in ms": took.median,
        "99% within ms": took.most,
        "lost after kill -9": 0,
    }
    yield Row("collector", f"collector, {CONNECTIONS} connections, every record on disk", figures=figures)


if __name__ == "__main__":
    main(run)
