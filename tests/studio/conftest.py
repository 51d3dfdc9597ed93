"""A studio in a process of its own, and browsers that look at it."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("starlette", reason="the extra 'studio' is not installed")
pytest.importorskip("uvicorn", reason="the extra 'studio' is not installed")
pytest.importorskip("jinja2", reason="the extra 'studio' is not installed")

POLICY = """\
incrowd: 1
title: A small town
data: {path: town.csv}
attributes:
  # how old, in completed years
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}}
  sex: {domain: [female, male]}
  district: {domain: [north, south, east, west]}
  illness: {role: sensitive, domain: [none, flu, asthma]}
release:
  mechanism: sampled_crowd
  epsilon: 1
  delta: 1e-6
  selection_epsilon: 0.1
"""


def write_town(path, rows=4000):
    people = random.Random(7)
    lines = ["age,sex,district,illness"]
    for _ in range(rows):
        place = people.choice(["north", "south", "east", "west"])
        ill = people.choice(["none", "none", "flu", "asthma"])
        lines.append(f"{people.randrange(100)},{people.choice(['female', 'male'])},{place},{ill}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def start_studio(folder, temporary, *options):
    """A running studio: its process, its address with the token, and where its private folder is."""
    temporary.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "incrowd", "studio", str(folder), "--json", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    line = process.stdout.readline()
    assert line, process.stderr.read()
    entrance = json.loads(line)["address"]

    def stop():
        if process.stdout.closed:
            return ""
        process.terminate()
        return "".join(process.communicate(timeout=20))  # what it said since it started

    return SimpleNamespace(
        process=process,
        entrance=entrance,
        address=entrance.split("/enter")[0],
        folder=Path(folder),
        temporary=temporary,
        stop=stop,
    )


def make_town(above):
    folder = above / "town"
    folder.mkdir()
    write_town(folder / "town.csv")
    (folder / "town.yaml").write_text(POLICY, encoding="utf-8")
    return folder


@pytest.fixture
def town(tmp_path):
    return make_town(tmp_path)


@pytest.fixture
def start():
    started = []

    def begin(*given):
        started.append(start_studio(*given))
        return started[-1]

    yield begin
    for running in started:
        running.stop()


@pytest.fixture
def studio(town, tmp_path, start):
    return start(town, tmp_path / "private")


@pytest.fixture(scope="module")
def lasting_studio(tmp_path_factory):
    """One for several tests, which leave its folder as it was or do not mind."""
    above = tmp_path_factory.mktemp("studio")
    running = start_studio(make_town(above), above / "private")
    yield running
    running.stop()


@pytest.fixture
def shoot(tmp_path_factory):
    """Take a picture of a page, to be looked at: set INCROWD_SCREENSHOTS to the folder that they should go to."""
    named = os.environ.get("INCROWD_SCREENSHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)

    def take(page, name):
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=folder / f"{name}.png", full_page=True)

    return take


@pytest.fixture(scope="module")
def admitted(browser, lasting_studio):
    """The cookie of the browser that was let in."""
    context = browser.new_context()
    context.set_default_timeout(90_000)
    page = context.new_page()
    page.goto(lasting_studio.entrance)
    page.wait_for_url("**/start")
    state = context.storage_state()
    context.close()
    return state


@pytest.fixture
def enter(browser, lasting_studio, admitted):
    """A page in a browser that was let in. Whatever goes wrong in it, or is asked of anyone else, is collected."""
    opened = []

    def go(page="plan", *, context=None, **options):
        context = context or browser.new_context(
            storage_state=admitted, **{"viewport": {"width": 1280, "height": 900}, **options}
        )
        opened.append(context)
        context.set_default_timeout(90_000)  # nothing here depends on the machine's speed
        shown = context.new_page()
        shown.wrong, shown.elsewhere = [], []
        shown.on("console", lambda m: shown.wrong.append(m.text) if m.type == "error" else None)
        shown.on("pageerror", lambda error: shown.wrong.append(str(error)))
        own = (lasting_studio.address, "data:", "blob:")
        shown.on("request", lambda r: None if r.url.startswith(own) else shown.elsewhere.append(r.url))
        shown.goto(f"{lasting_studio.address}/{page}")
        return shown

    yield go
    for context in opened:
        context.close()
