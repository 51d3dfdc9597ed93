"""Policies and tables on standard input, what is printed and what is not, and manual pages."""

import bz2
import gzip
import io
import lzma
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from incrowd.cli import incrowd as verbs
from incrowd.cli._shell import run

ROOT = Path(__file__).resolve().parents[3]
POLICY = """incrowd: 1
data: {path: people.csv}
attributes:
  age: {type: integer, domain: {from: 0, to: 9}}
  sex: {domain: [f, m]}
release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-4, beta: 0.5, k: 20}
"""


@pytest.fixture
def folder(tmp_path):
    rows = "".join(f"{i % 10},{'fm'[i % 2]}\n" for i in range(2000))
    (tmp_path / "people.csv").write_text("age,sex\n" + rows)
    (tmp_path / "policy.yaml").write_text(POLICY)
    return tmp_path


def incrowd(folder, *arguments, given=b"", **environment):
    import os

    return subprocess.run(
        [sys.executable, "-m", "incrowd", *arguments],
        cwd=folder,
        input=given,
        capture_output=True,
        env={**os.environ, **environment},
        check=False,
    )


def test_a_table_comes_on_standard_input_and_quiet_is_quiet(folder):
    table = (folder / "people.csv").read_bytes()
    (folder / "people.csv").unlink()
    done = incrowd(folder, "release", "policy.yaml", "--data", "-", "-o", "out", "--quiet", given=table)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert incrowd(folder, "verify", "out", INCROWD_QUIET="1").stdout == b""


def test_what_fails_is_said_even_if_nothing_else_is(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert run(verbs, ["audit", "people.csv", "--quasi", "age,sex", "--require", "k=201", "--quiet"]) == 3
    assert capsys.readouterr() == ("", "error: k = 201: the table has 200\n")
    assert run(verbs, ["release", "policy.yaml", "-o", "out", "--quiet"]) == 0
    (folder / "out" / "release.parquet").write_bytes(b"PAR1")
    assert run(verbs, ["verify", "out", "--quiet"]) == 3
    printed = capsys.readouterr()
    assert printed.out == ""
    assert all(line.startswith("error: out is not valid: ") for line in printed.err.splitlines())
    assert printed.err


def as_parquet(text):
    import pyarrow.csv
    import pyarrow.parquet as pq

    pq.write_table(pyarrow.csv.read_csv(io.BytesIO(text)), written := io.BytesIO())
    return written.getvalue()


def as_arrow_stream(text):
    import pyarrow as pa
    import pyarrow.csv

    table = pyarrow.csv.read_csv(io.BytesIO(text))
    with pa.ipc.new_stream(written := io.BytesIO(), table.schema) as writer:
        writer.write_table(table)
    return written.getvalue()


@pytest.mark.parametrize("packed", [as_parquet, as_arrow_stream, bz2.compress, gzip.compress, lzma.compress])
def test_a_table_is_told_by_its_first_bytes(folder, packed, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    given = packed((folder / "people.csv").read_bytes())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
    assert run(verbs, ["audit", "-", "--quasi", "age,sex", "--json"]) == 0
    assert '"k": 200' in capsys.readouterr().out


def test_a_policy_comes_on_standard_input_and_its_paths_start_here(folder):
    done = incrowd(folder, "release", "-", "-o", "out", "--json", given=POLICY.encode())
    assert done.returncode == 0, done.stderr
    assert (folder / "out" / "certificate.json").is_file()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["release", "-", "--data", "-", "-o", "out"], b"not both"),
        (["release", "policy.yaml", "-o", "-"], b"cannot be written to standard output"),
        (["init", "-"], b"save the table to a file first"),
    ],
)
def test_what_cannot_be_piped_is_refused_and_nothing_is_written(folder, arguments, said):
    before = sorted(folder.iterdir())
    done = incrowd(folder, *arguments, given=POLICY.encode())
    assert done.returncode == 2
    assert said in done.stderr
    assert sorted(folder.iterdir()) == before


def test_every_command_has_a_manual_page_that_man_can_read(tmp_path):
    pages = runpy.run_path(str(ROOT / "docs" / "man.py"))["pages"]()
    assert {"incrowd.1", "incrowd-release.1", "incrowd-plan-crowd.1"} <= set(pages)
    assert "\\-\\-rehearse" in pages["incrowd-release.1"]
    assert "\n    " not in pages["incrowd-release.1"]  # as it is indented in the program
    if shutil.which("groff"):
        (tmp_path / "page.1").write_text(pages["incrowd-release.1"], encoding="utf-8")
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-Kutf8", "-ww", tmp_path / "page.1"], capture_output=True, check=False
        )
        assert b"OPTIONS" in done.stdout
        assert not done.stderr
