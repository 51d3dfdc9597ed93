"""Memory follows the machine, and too little of it is said in words."""

import os
import subprocess
import sys

import pyarrow as pa
import pytest

from incrowd.core import machine
from incrowd.core.errors import DataError
from incrowd.domain import Categories, Coding
from incrowd.sources import open_source
from incrowd.sources.duckdb import _connection
from incrowd.sources.options import Options

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are set otherwise there")


def settings(tmp_path, options):
    connection = _connection(options, tmp_path)
    [(limit,)] = connection.execute("SELECT current_setting('memory_limit')").fetchall()
    return limit


@pytest.mark.parametrize(("container", "space", "expected"), [
    ([], [], 64 * 10**9),
    ([8 * 10**9], [], 8 * 10**9),
    ([8 * 10**9], [6 * 10**9], 3 * 10**9),
    ([2**63], [], 64 * 10**9),
])  # fmt: skip
def test_the_least_limit_counts(monkeypatch, container, space, expected):
    monkeypatch.setattr(machine, "_installed", lambda: 64 * 10**9)
    monkeypatch.setattr(machine, "_container_limits", lambda: container)
    monkeypatch.setattr(machine, "_address_space", lambda: space)
    assert machine.memory() == expected


def test_a_container_says_what_it_may_use(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    assert machine._container_limits() == []
    (tmp_path / "memory.max").write_text("max\n", encoding="ascii")
    assert machine._container_limits() == []
    (tmp_path / "memory.max").write_text("1073741824\n", encoding="ascii")
    assert machine._container_limits() == [2**30]


def test_the_engine_takes_half_and_never_next_to_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr("incrowd.sources.duckdb.memory", lambda: 16 * 2**30)
    assert settings(tmp_path, Options()) == "8.0 GiB"
    assert settings(tmp_path, Options(memory_limit="1GiB")) == "1.0 GiB"
    monkeypatch.setattr("incrowd.sources.duckdb.memory", lambda: 2**20)
    assert settings(tmp_path, Options()) == "512.0 MiB"


def test_a_hundred_columns_are_counted(tmp_path):
    table = pa.table({f"c{i}": [str((row * (i + 3)) % 10) for row in range(20_000)] for i in range(100)})
    path = tmp_path / "t.csv"
    with path.open("w", encoding="utf-8") as file:
        file.write(",".join(table.column_names) + "\n")
        file.writelines(",".join(row) + "\n" for row in zip(*table.to_pydict().values(), strict=True))
    codings = [Coding(name, Categories(tuple(map(str, range(10))))) for name in table.column_names]
    assert open_source(path).count_by(codings).total == 20_000


def test_a_remedy_names_no_setting_that_cannot_be_set(tmp_path):
    table = pa.table({"a": [str(i) for i in range(200_000)]})
    coding = Coding("a", Categories(tuple(str(i) for i in range(200_000))))
    with pytest.raises(DataError) as caught:
        open_source(table, memory_limit="1MB", temp_directory=tmp_path).count_by([coding])
    assert caught.value.code == "data-memory"
    assert "TMPDIR" in caught.value.remedy
    assert "memory_limit" not in caught.value.remedy


@pytest.mark.parametrize("megabytes", [300, 500, 800, 1200])
@pytest.mark.parametrize("command", [["init", "t.csv", "-o", "-"], ["audit", "t.csv", "--quasi", "a"]])
def test_little_address_space_is_one_clear_message(tmp_path, command, megabytes):
    (tmp_path / "t.csv").write_text("a,b\n" + "x,1\n" * 100, encoding="utf-8")

    def limit():
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (megabytes * 10**6, megabytes * 10**6))

    done = subprocess.run(
        [sys.executable, "-m", "incrowd", *command], cwd=tmp_path, capture_output=True, text=True, check=False,
        preexec_fn=limit, env=os.environ | {"NO_COLOR": "1"},
    )  # fmt: skip
    assert done.returncode == 2
    assert "data-memory" in done.stderr
    assert "ulimit -v" in done.stderr
