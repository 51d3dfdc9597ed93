"""The same store in a real PostgreSQL server, started for these tests alone."""

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from incrowd.core.errors import InputError
from incrowd.survey.collector.store import Store, StoredRecord


def binaries():
    found = shutil.which("postgres")
    folders = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "initdb").is_file()), None)


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("psycopg", reason="the extra 'postgres' is not installed")
    programs = binaries()
    if programs is None:
        pytest.skip("PostgreSQL's server is not installed")
    identity = {}
    folder = Path(tempfile.mkdtemp(prefix="incrowd-postgres-"))
    if os.geteuid() == 0:  # the server refuses to run as root
        try:
            account = pwd.getpwnam("nobody")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no other user")
        os.chown(folder, account.pw_uid, account.pw_gid)
        identity = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories='' -c fsync=off"

    def run(program, *arguments):
        command = [programs / program, *arguments]
        subprocess.run(command, check=True, cwd=folder, capture_output=True, **identity)

    try:
        run("initdb", "-D", folder / "data", "-A", "trust", "-U", "tester", "--no-sync")
        # The server keeps what it inherits, so its output goes to a file: else the pipe would never end.
        run("pg_ctl", "-D", folder / "data", "-w", "-l", folder / "log", "-o", options, "start")
        yield f"postgresql://tester@127.0.0.1:{port}/postgres"
        run("pg_ctl", "-D", folder / "data", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def address(server):
    """The address of a schema of its own, so that tests do not meet."""
    import psycopg

    schema = f"s{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    return f"{server}?options=-csearch_path%3D{schema}"


def entry(store, codes=(0, 1, 42), nonce=None):
    return store.entry(nonce or secrets.token_hex(16), codes)


def test_it_stores_recognises_and_goes_on(address, questionnaire):
    with closing(Store(address, questionnaire)) as store:
        first = entry(store)
        assert store.add([first, entry(store, (1, 4, 99)), first]) == [True, True, False]
    with closing(Store(address)) as store:
        assert store.questionnaire.digest == questionnaire.digest
        assert store.add([first, entry(store)]) == [False, True]
        assert store.cells() == {(0, 1, 42): 2, (1, 4, 99): 1}
        store.mix()
        assert store.add([first, entry(store)]) == [False, True]
        store.finish()
        assert store.cells() == {(0, 1, 42): 3, (1, 4, 99): 1}
        with pytest.raises(InputError) as caught:
            store.add([entry(store)])
        assert caught.value.code == "collection-closed"


def test_two_collectors_may_share_it(address, questionnaire):
    entries = []
    with closing(Store(address, questionnaire)) as one, closing(Store(address, questionnaire)) as two:
        entries = [entry(one, (0, 0, i % 100)) for i in range(400)]
        batches = [entries[i : i + 20] for i in range(0, 400, 20)]

        def send(store):
            return sum(sum(store.add(batch)) for batch in batches)

        with ThreadPoolExecutor(2) as pool:
            assert sum(pool.map(send, (one, two))) == 400
        assert sum(one.cells().values()) == 400


def test_after_mixing_rows_show_nothing_of_the_order(address, questionnaire):
    """Neither the place of a row nor the number of its transaction: both are there before, and gone after."""
    import psycopg

    def seen():
        with psycopg.connect(address) as connection:
            rows = connection.execute("SELECT key, xmin::text FROM incrowd_records ORDER BY ctid").fetchall()
            nonces = connection.execute("SELECT nonce, xmin::text FROM incrowd_nonces ORDER BY ctid").fetchall()
        return [(list(keys), set(marks)) for keys, marks in (zip(*rows, strict=True), zip(*nonces, strict=True))]

    with closing(Store(address, questionnaire)) as store:
        for code in range(30):
            store.add([entry(store, (0, 0, code))])
        for keys, transactions in seen():
            assert keys != sorted(keys)
            assert len(transactions) == 30
        store.mix()
        for keys, transactions in seen():
            assert keys == sorted(keys)
            assert len(transactions) == 1


def test_a_lost_connection_is_said_and_made_anew(address, questionnaire):
    import psycopg

    with closing(Store(address, questionnaire)) as store:
        with psycopg.connect(address, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        kept = entry(store)
        with pytest.raises(InputError) as caught:
            store.add([kept])
        assert caught.value.code == "store-unavailable"
        assert store.add([kept]) == [True]


def test_an_address_that_leads_nowhere_is_a_clear_error(questionnaire):
    pytest.importorskip("psycopg", reason="the extra 'postgres' is not installed")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(InputError) as caught:
        Store(f"postgresql://tester:secret@127.0.0.1:{port}/postgres", questionnaire)
    assert caught.value.code == "store-unavailable"
    assert "secret" not in str(caught.value)


def test_an_empty_database_holds_no_store(address):
    with pytest.raises(InputError) as caught:
        Store(address)
    assert caught.value.code == "store-unavailable"


def test_the_whole_service_on_it(address, tmp_path, questionnaire, collector):
    import http.client
    import json
    from urllib.parse import urlsplit

    from incrowd.survey import Randomizer

    (tmp_path / "q.json").write_bytes(questionnaire.to_bytes())
    process, place = collector(tmp_path, "--store", address)
    envelope = Randomizer(questionnaire).envelope({"sex": "f", "commute": None, "age": "42"})
    with closing(http.client.HTTPConnection(urlsplit(place).netloc, timeout=20)) as connection:
        statuses = []
        for _ in range(2):
            connection.request("POST", "/records", json.dumps(envelope), {"Content-Type": "application/json"})
            statuses.append(connection.getresponse())
            statuses[-1].read()
    assert [answer.status for answer in statuses] == [201, 409]
    process.terminate()
    process.wait()
    with closing(Store(address)) as store:
        assert sum(store.cells().values()) == 1


def test_entries_are_what_is_stored(questionnaire, tmp_path):
    with closing(Store(str(tmp_path / "s.sqlite"), questionnaire)) as store:
        made = entry(store, nonce="0" * 32)
    assert isinstance(made, StoredRecord)
    assert made.record == bytes([0, 1, 42])
    assert len(made.nonce) == 16


def test_collectors_that_share_it_may_mix_at_any_time(address, questionnaire):
    """Records are added while another collector mixes: both wait for each other, and neither is refused."""
    with closing(Store(address, questionnaire)) as one, closing(Store(address, questionnaire)) as two:
        batches = [[entry(one, (0, 0, i % 100)) for i in range(100)] for _ in range(60)]

        def add():
            return sum(sum(one.add(batch)) for batch in batches)

        with ThreadPoolExecutor(1) as pool:
            adding = pool.submit(add)
            while not adding.done():
                two.mix()
            assert adding.result() == 6000
        assert sum(two.cells().values()) == 6000


def test_tables_are_locked_in_one_order():
    """`add` writes nonces, then records; whoever locks both must begin with the nonces too."""
    from incrowd.survey.collector import postgres

    lock = next(line for line in postgres._MIX.splitlines() if line.startswith("LOCK"))
    assert lock.index("nonces") < lock.index("records")
