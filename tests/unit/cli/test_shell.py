"""What every command does alike: names that no file can have, outputs that fail, and colours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import incrowd
from incrowd.cli import incrowd as verbs
from incrowd.cli._shell import run
from incrowd.core.errors import InputError
from incrowd.papers.examples.census import write_census

LONG, NUL, LONE = "a" * 300, "a\0b", "a\ud800b"
NEW = {"release -o": ["release", "c.yaml", "-o"], "init -o": ["init", "c.csv", "-o"], "gallery -o": ["gallery", "-o"],
       "audit --html": ["audit", "c.csv", "--html"], "example -o": ["example", "census", "--rows", "10", "-o"],
       "survey -o": ["example", "survey", "-o"], "keys -o": ["keys", "-o"], "collected -o": ["collected", "s", "-o"],
       "ledger": ["ledger", "show", "--ledger"]}  # fmt: skip
OLD = {"release": ["release", "-o", "out"], "release --data": ["release", "c.yaml", "-o", "out", "--data"],
       "release --sign-with": ["release", "c.yaml", "-o", "out", "--sign-with"], "init": ["init"], "audit": ["audit"],
       "verify": ["verify"], "estimate": ["estimate"], "collect": ["collect", "--store", "s"],
       "store": ["collect", "q", "--store"]}  # fmt: skip


@pytest.fixture
def census(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_census("c.csv", rows=100)
    return tmp_path


@pytest.mark.parametrize("name", [LONG, "a/" * 3000 + "b", NUL, LONE], ids=["long", "very long", "NUL", "surrogate"])
@pytest.mark.parametrize("command", [*NEW.values(), *OLD.values()], ids=[*NEW, *OLD])
def test_a_name_that_no_file_can_have_is_bad_input(call, census, command, name):
    before = sorted(census.iterdir())
    code, _, err = call(*command, name)
    assert code == 2
    assert "bug" not in err
    assert len(err.splitlines()) <= 3
    assert sorted(census.iterdir()) == before


@pytest.mark.parametrize("name", [".", "", "/"])
@pytest.mark.parametrize("more", [[], ["--copies", "2"]], ids=["one", "copies"])
def test_a_release_is_not_written_to_where_something_is(call, census, name, more):
    before = sorted(census.iterdir())
    code, _, err = call("release", "c.yaml", "-o", name, *more)
    assert code == 2
    assert "[output-exists]" in err or "[file-name]" in err
    assert sorted(census.iterdir()) == before


@pytest.mark.parametrize("name", [".", "", "/", NUL, LONG])
def test_the_python_interface_says_so_too(census, name):
    for attempt in (
        lambda: incrowd.release("c.csv", "c.yaml", folder=name),
        lambda: incrowd.release(name or None, name, folder="out"),
        lambda: incrowd.audit(name, ["age"]),
    ):
        with pytest.raises(InputError):
            attempt()


# --- standard output --------------------------------------------------------------------------------------------------


def process(*arguments, redirect="", **environment):
    command = f'exec "{sys.executable}" -m incrowd "$@" {redirect}'
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")} | environment
    return subprocess.run(
        ["sh", "-c", command, "sh", *arguments], capture_output=True, text=True, check=False, timeout=120, env=env
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["schema"], ["verify", "--json", "none"]], ids=str)
def test_a_full_standard_output_is_said_in_one_line(arguments):
    done = process(*arguments, redirect=">/dev/full")
    assert done.returncode == 2
    assert "Standard output cannot be written: No space left on device." in done.stderr
    assert "[output-unwritable]" in done.stderr
    assert len(done.stderr.splitlines()) == 3


def test_a_closed_standard_output_is_written_to_by_nobody(census):
    """Without care the next file that is opened takes its number, and is printed into."""
    done = process("release", "c.yaml", "-o", "out", redirect=">&- 2>&- <&-")
    assert done.returncode == 0
    assert process("verify", "out").returncode == 0
    assert process("verify", "none", redirect=">&-").returncode == 2


def test_a_reader_that_leaves_is_no_error(census):
    assert process("release", "c.yaml", "-o", "out").returncode == 0
    done = process("verify", "out", redirect="| true")
    assert done.stderr == ""


def test_what_the_terminal_cannot_show_is_no_bug(census):
    assert process("plan", "crowd", "--help", PYTHONIOENCODING="ascii").returncode == 0


# --- colours ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "colored"),
    [({}, False), ({"FORCE_COLOR": "1"}, True), ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False)],
    ids=["pipe", "forced", "refused"],
)
def test_errors_have_colours_as_the_environment_says(environment, colored):
    assert ("\x1b[" in process("verify", "none", **environment).stderr) is colored


@pytest.mark.parametrize(("no_color", "colored"), [("1", False), ("", True)])
def test_a_terminal_shows_no_colours_if_told_not_to(no_color, colored, tmp_path):
    pty = pytest.importorskip("pty")
    parent, child = pty.openpty()
    env = {**os.environ, "NO_COLOR": no_color, "TERM": "xterm"}
    subprocess.run([sys.executable, "-m", "incrowd", "verify", "none"], stderr=child, env=env, check=False, timeout=60)
    os.close(child)
    shown = os.read(parent, 10_000)
    os.close(parent)
    assert b"error: " in shown
    assert (b"\x1b[" in shown) is colored


def test_the_shell_is_not_in_the_way_of_a_command_that_ends_well(capsys):
    assert run(verbs, ["--version"]) == 0
    assert capsys.readouterr().out.startswith("incrowd")


def test_settings_of_spark_are_pairs_and_need_an_engine(call, census):
    audit = ["audit", "c.csv", "--quasi", "age", "--conf"]
    assert call(*audit, "spark.executor.memory=1g")[0] == 2
    code, _, err = call(*audit, "spark.executor.memory", "--engine", "local[1]")
    assert (code, "KEY=VALUE" in err) == (2, True)
    code, _, err = call(*audit, "executor.memory=1g", "--engine", "local[1]")
    assert (code, "begin with 'spark.'" in err) == (2, True)
