"""Tables in databases, on the command line alone: from the first look at them to a release that others can check."""

import json
import random
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from incrowd.core.errors import DataError
from incrowd.policy import Policy
from incrowd.sources import open_source


def people(n):
    r = random.Random(5)
    towns = ["north", "south", "east", "west"]
    return [
        (i, r.randint(18, 93), r.choice("fm"), r.choice(towns), r.choice(["flu", "none", "none"])) for i in range(n)
    ]


EVERYBODY = people(2500)
VISITS = EVERYBODY[:1500]


@pytest.fixture
def sqlite_file(tmp_path):
    path = tmp_path / "office.db"
    with closing(sqlite3.connect(path)) as database, database:
        for name, records in (("visits", VISITS), ("everybody", EVERYBODY)):
            database.execute(f"CREATE TABLE {name} (id INTEGER, age INTEGER, sex TEXT, town TEXT, illness TEXT)")
            database.executemany(f"INSERT INTO {name} VALUES (?, ?, ?, ?, ?)", records)
    return path


@pytest.fixture
def postgresql(postgresql_server):
    """The address of a database of this test's own, with two tables in a schema."""
    import adbc_driver_postgresql.dbapi as postgresql

    with postgresql.connect(postgresql_server, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS hospital")
        cursor.execute("CREATE DATABASE hospital")
    address = urlsplit(postgresql_server)._replace(path="/hospital").geturl()
    with postgresql.connect(address, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE SCHEMA office")
        for name, records in (("visits", VISITS), ("everybody", EVERYBODY)):
            cursor.execute(f"CREATE TABLE office.{name} (id int, age int, sex text, town text, illness text)")
            values = ", ".join(f"({i}, {age}, '{sex}', '{town}', '{ill}')" for i, age, sex, town, ill in records)
            cursor.execute(f"INSERT INTO office.{name} VALUES {values}")
    return address


@pytest.fixture(params=["SQLite file", "SQLite address", "PostgreSQL"])
def place(request, tmp_path):
    """Where the tables are, and what stands before their names."""
    if request.param == "PostgreSQL":
        return request.getfixturevalue("postgresql"), "office."
    path = request.getfixturevalue("sqlite_file")
    if request.param == "SQLite file":
        return str(path), ""
    pytest.importorskip("adbc_driver_sqlite", reason="the driver for SQLite is not installed")
    return f"sqlite:///{path}", ""


def answer(call, *arguments):
    code, out, err = call(*arguments, "--json")
    assert (code, err) == (0, ""), err
    return json.loads(out)


def confirm(draft):
    """As if a person had looked at it."""
    draft.write_text(draft.read_text(encoding="utf-8").replace("# CONFIRM", "#"), encoding="utf-8")


def test_from_a_first_look_to_a_release_that_anyone_can_check(call, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data, schema = place
    draft = answer(call, "init", data, "--table", f"{schema}visits")
    assert {column["name"]: column["role"] for column in draft["columns"]}["id"] == "drop"
    path = Path(draft["policy"])
    assert path.resolve().parent == tmp_path.resolve()
    policy = Policy.from_file(path)
    assert policy.data.table == f"{schema}visits"
    confirm(path)
    made = answer(call, "release", path, "-o", "out")
    assert made["guarantee"]["epsilon"] > 0
    assert answer(call, "verify", "out")["valid"]
    others = answer(call, "release", path, "-o", "others", "--table", f"{schema}everybody")
    internal = [Path(where["internal"], "report.html").read_text("utf-8") for where in (made, others)]
    assert ["1,500" in internal[0], "2,500" in internal[1]] == [True, True], "another table than the policy's"
    whole = "".join(file.read_text("utf-8") for file in Path("out").iterdir() if file.suffix in {".json", ".html"})
    assert "127.0.0.1" not in whole


def test_every_verb_that_reads_a_table_can_be_told_which(call, place):
    data, schema = place
    table = ("--table", f"{schema}visits")
    audit = answer(call, "audit", data, *table, "--quasi", "age,sex", "--population-table", f"{schema}everybody")
    here, there = (Counter((age, sex) for _, age, sex, _, _ in part) for part in (VISITS, EVERYBODY))
    assert (audit["records"], audit["k"]) == (len(VISITS), min(here.values()))
    links = sum(n / there[group] for group, n in here.items())
    assert audit["risks"]["journalist"]["expected"] == pytest.approx(links)
    columns = ("--columns", "sex,town")
    compared = answer(call, "compare", data, *table, *columns, "--epsilon", "1", "--runs", "1")
    assert (compared["records"], compared["cells"]) == (len(VISITS), 2 + 4 + 2 * 4)
    plan = answer(call, "plan", "sample", data, *table, "--columns", "age,sex", "--epsilon", "1", "--delta", "0.1")
    assert plan["distinct"] == len(here)
    code, out, _ = call("audit", data, "--quasi", "age", "--json")
    error = json.loads(out)["error"]
    assert (code, error["code"]) == (2, "data-format")
    assert "visits" in error["message"]
    assert "--table" in error["remedy"]


def test_a_password_does_not_get_into_a_draft(call, postgresql, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    secret = postgresql.replace("@", ":hush@") + "?password=hush&connect_timeout=9"
    draft = answer(call, "init", secret, "--table", "office.visits")
    text = Path(draft["policy"]).read_text(encoding="utf-8")
    assert "hush" not in text
    assert Policy.from_file(draft["policy"]).data.path == f"{postgresql}?connect_timeout=9"
    assert answer(call, "release", draft["policy"], "-o", "out", "--rehearse")["release"]


def test_how_a_file_is_written_stands_in_the_policy_if_there_is_one(call, sqlite_file):
    policy = answer(call, "init", sqlite_file, "--table", "visits")["policy"]
    assert policy == str(sqlite_file.with_name("office-visits.yaml"))
    code, out, _ = call("compare", policy, "--delimiter", ";", "--json")
    assert (code, json.loads(out)["error"]["code"]) == (2, "parameter-combination")


@pytest.mark.parametrize("verb", [("init",), ("audit", "--quasi", "age"), ("compare",), ("plan", "sample")])
@pytest.mark.parametrize("given", [(), ("--table", "visits"), ("--engine", "local[1]")])
def test_without_a_table_nothing_is_read(call, verb, given):
    code, out, _ = call(*verb, *given, "--json")
    assert (code, json.loads(out)["error"]["code"]) == (2, "usage")


def test_a_table_that_is_named_is_not_passed_over(call, sqlite_file, tmp_path):
    """Where nothing but the one table can be meant, another name is a mistake, and not to be published under."""
    policy = Path(answer(call, "init", sqlite_file, "--table", "visits")["policy"])
    confirm(policy)
    file = tmp_path / "visits.csv"
    lines = [",".join(map(str, record)) for record in VISITS]
    file.write_text("\n".join(["id,age,sex,town,illness", *lines]), encoding="utf-8")
    commands = [("init", file), ("audit", file, "--quasi", "age"), ("compare", file), ("plan", "sample", file)]
    for command in (*commands, ("release", policy, "-o", tmp_path / "a", "--data", file)):
        code, out, _ = call(*command, "--table", "visits", "--json")
        assert (code, json.loads(out)["error"]["code"]) == (2, "data-format"), command
    assert answer(call, "release", policy, "-o", tmp_path / "b", "--data", file)["release"], "the policy's is a default"
    with pytest.raises(DataError, match="one table already"):
        open_source(tmp_path / "parts", engine="local[1]", table="visits")
