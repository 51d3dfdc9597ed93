"""Real databases for tests: a PostgreSQL server of their own, and tables put into databases."""

import datetime as dt
import os
import re
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess
import tempfile
import time
from contextlib import closing, contextmanager
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

SUPERUSER = "postgres"


def server_programs() -> Path | None:
    """The folder with PostgreSQL's server programs, wherever the system keeps them."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: float(p.parent.name), reverse=True)
    if shutil.which("pg_config"):
        told = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, check=False)
        folders.append(Path(told.stdout.strip() or "/nowhere"))
    if found := shutil.which("initdb"):
        folders.append(Path(found).resolve().parent)
    needed = ("initdb", "postgres", "pg_isready")
    return next((folder for folder in folders if all((folder / name).is_file() for name in needed)), None)


@contextmanager
def postgresql_server():
    """The address of a server that listens on a free port of this machine, and is gone afterwards."""
    programs = server_programs()
    if programs is None:
        pytest.skip("PostgreSQL's server is not installed (on Debian: apt-get install postgresql)")
    prefix = []
    if os.geteuid() == 0:
        # The server refuses to run as root.
        if shutil.which("setpriv") is None:
            pytest.skip("PostgreSQL's server does not run as root, and there is no setpriv to be somebody else with")
        import pwd

        users = {user.pw_name: user for user in pwd.getpwall()}
        user = users.get("postgres") or users.get("nobody")
        if user is None:
            pytest.skip("PostgreSQL's server does not run as root, and there is no user 'postgres' or 'nobody'")
        prefix = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
    # Whatever ends the tests ends the server too, where the system can see to it.
    bound = [*(prefix or ["setpriv"]), "--pdeathsig", "INT"] if shutil.which("setpriv") else []
    # A short name, as the path of a socket must be.
    with tempfile.TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if prefix:
            os.chown(folder, user.pw_uid, user.pw_gid)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]

        def call(program, *arguments):
            subprocess.run(
                [*prefix, programs / program, "-D", folder / "data", *arguments],
                check=True,
                cwd=folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=120,
            )

        call("initdb", "-A", "trust", "-U", SUPERUSER, "-E", "UTF8", "--no-locale", "--no-sync")
        settings = ["-F", "-c", "listen_addresses=127.0.0.1", "-p", str(port), "-k", folder]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [*bound, programs / "postgres", "-D", folder / "data", *settings], cwd=folder, stdout=log, stderr=log
            )
        try:
            ready = [programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)]
            end = time.monotonic() + 60
            while subprocess.run(ready, check=False).returncode:
                assert server.poll() is None, "PostgreSQL's server does not start"
                assert time.monotonic() < end, "PostgreSQL's server does not get ready"
                time.sleep(0.1)
            yield f"postgresql://{SUPERUSER}@127.0.0.1:{port}/postgres"
        finally:
            server.send_signal(signal.SIGINT)  # ends sessions, then the server
            server.wait(60)


def put_into_sqlite(table, path, types=None, name="t"):
    """Writes an Arrow table into a new SQLite file, as table `name`; without `types`, columns have none."""

    def stored(value):
        if isinstance(value, bool) and types is None:
            return str(value).lower()
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            return str(value)
        if isinstance(value, dt.datetime):
            return value.isoformat(sep=" ")
        return str(value) if isinstance(value, Decimal | dt.date) else value

    with closing(sqlite3.connect(path)) as database, database:
        names = ['"' + column.replace('"', '""') + '"' for column in table.column_names]
        declared = [f"{n} {t}" for n, t in zip(names, types or [""] * len(names), strict=True)]
        database.execute(f"CREATE TABLE {name} ({', '.join(declared)})")
        rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
        marks = ", ".join("?" * len(names))
        database.executemany(f"INSERT INTO {name} VALUES ({marks})", [[stored(value) for value in row] for row in rows])
    return path


_POSTGRESQL = [
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "smallint"),
    (pa.types.is_int16, "smallint"),
    (pa.types.is_int32, "integer"),
    (pa.types.is_uint8, "smallint"),
    (pa.types.is_uint64, "numeric(20, 0)"),
    (pa.types.is_integer, "bigint"),
    (pa.types.is_float32, "real"),
    (pa.types.is_floating, "double precision"),
    (pa.types.is_date, "date"),
    (pa.types.is_string, "text"),
    (pa.types.is_null, "text"),
    (pa.types.is_binary, "bytea"),
    (pa.types.is_list, "bigint[]"),
    (pa.types.is_struct, "jsonb"),
]


def postgresql_type(type_):
    if pa.types.is_decimal(type_):
        return f"numeric({type_.precision}, {type_.scale})"
    if pa.types.is_timestamp(type_):
        return "timestamptz" if type_.tz else "timestamp"
    return next(name for fits, name in _POSTGRESQL if fits(type_))


def put_into_postgresql(table, address):
    """Writes an Arrow table into a new table of a server, and returns its name, which needs quotes."""
    import adbc_driver_postgresql.dbapi as postgresql

    def literal(value):
        if value is None:
            return "NULL"
        if isinstance(value, list):
            value = "{" + ",".join(map(str, value)) + "}"
        if isinstance(value, dict):
            value = "{}"
        text = value.decode() if isinstance(value, bytes) else str(value)
        return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"

    name = f'T "{secrets.token_hex(4)}"'
    quoted = '"' + name.replace('"', '""') + '"'
    with postgresql.connect(address) as connection, connection.cursor() as cursor:
        declared = ['"' + field.name.replace('"', '""') + f'" {postgresql_type(field.type)}' for field in table.schema]
        cursor.execute(f"CREATE TABLE {quoted} ({', '.join(declared)})")
        rows = [
            f"({', '.join(map(literal, row))})" for row in zip(*(c.to_pylist() for c in table.columns), strict=True)
        ]
        if rows:
            cursor.execute(f"INSERT INTO {quoted} VALUES {', '.join(rows)}")
        connection.commit()
    return name


POLICY = """
incrowd: 1
attributes:
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}, level: 1}
  sex: {domain: [f, m]}
release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-5}
"""


def run_page(mark, folder, monkeypatch, instead=None, table=None):
    """Runs what the page on sources shows for one kind of database, in a folder with a policy."""
    page = (Path(__file__).parents[1] / "docs" / "sources.md").read_text(encoding="utf-8")
    [code] = re.findall(rf"^```python {mark}\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    for text, other in (instead or {}).items():
        assert text in code
        code = code.replace(text, other)
    monkeypatch.chdir(folder)
    Path("policy.yaml").write_text(POLICY + (f"data: {{table: {table}}}\n" if table else ""), encoding="utf-8")
    exec(compile(code, f"sources.md, {mark}", "exec"), {})
