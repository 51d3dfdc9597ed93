"""What is kept of a record, and what is not."""

import hashlib
import itertools
import secrets
import sqlite3
import stat
import time
from contextlib import closing

import pytest

from incrowd.core.errors import DataError, InputError, UnreachableError
from incrowd.core.signing import load_secret_key, make_keys
from incrowd.policy import Policy
from incrowd.survey import Question, Questionnaire
from incrowd.survey.collector.collection import as_float, close_and_count, policy_of, rehearse, tabulate
from incrowd.survey.collector.sqlite import Sqlite
from incrowd.survey.collector.store import Store, StoredRecord
from incrowd.survey.questionnaire import numerator64


@pytest.fixture
def store(tmp_path, questionnaire):
    opened = Store(str(tmp_path / "s.sqlite"), questionnaire)
    yield opened
    opened.close()


def asked(tmp_path, question):
    with closing(sqlite3.connect(tmp_path / "s.sqlite")) as connection:
        return connection.execute(question).fetchall()


def entry(store, codes=(0, 1, 42), nonce=None):
    return store.entry(nonce or secrets.token_hex(16), codes)


def test_records_are_counted_and_a_second_sending_is_recognised(store):
    first, second = entry(store), entry(store)
    assert store.add([first, second, entry(store, (1, 4, 99))]) == [True, True, True]
    assert store.add([first]) == [False]
    assert store.add([entry(store, nonce="a" * 32), entry(store, (1, 0, 0), nonce="a" * 32)]) == [True, False]
    assert store.cells() == {(0, 1, 42): 3, (1, 4, 99): 1}


def test_another_connection_sees_what_was_acknowledged(store, tmp_path):
    store.add([entry(store)])
    assert asked(tmp_path, "SELECT count(*) FROM records") == [(1,)]


def test_it_goes_on_where_it_was(store, tmp_path, questionnaire):
    sent = entry(store)
    store.add([sent])
    with closing(Store(str(tmp_path / "s.sqlite"), questionnaire)) as again:
        assert again.add([sent, entry(again)]) == [False, True]
    with closing(Store(str(tmp_path / "s.sqlite"))) as again:
        assert again.cells() == {(0, 1, 42): 2}


def test_a_closed_collection_takes_nothing_and_forgets_nonces(store, tmp_path):
    store.add([entry(store), entry(store)])
    store.finish()
    with pytest.raises(InputError) as caught:
        store.add([entry(store)])
    assert caught.value.code == "collection-closed"
    store.finish()
    assert store.cells() == {(0, 1, 42): 2}
    assert asked(tmp_path, "SELECT count(*) FROM nonces") == [(0,)]


def test_a_store_is_for_one_questionnaire(store, tmp_path):
    other = Questionnaire.make("T", [Question("a", "A?", ("x", "y"), ("x", "y"), 5)], records=10)
    with pytest.raises(InputError) as caught:
        Store(str(tmp_path / "s.sqlite"), other)
    assert caught.value.code == "store-other"


def test_what_is_no_store_is_refused(tmp_path, questionnaire):
    (tmp_path / "text").write_text("not a database, but long enough to be looked at" * 50)
    sqlite3.connect(tmp_path / "other.sqlite").execute("CREATE TABLE meta (key, value)").connection.close()
    cases = [("text", questionnaire), ("other.sqlite", questionnaire), ("absent", None), (".", questionnaire)]
    for name, given in cases:
        with pytest.raises(InputError) as caught:
            Store(str(tmp_path / name), given)
        assert caught.value.code == "store-unavailable"
    assert not (tmp_path / "absent").exists()


def test_the_file_is_for_its_owner_only(store, tmp_path):
    store.add([entry(store)])
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def content(path):
    """All of a database file but the counters of its header, which count transactions."""
    data = path.read_bytes()
    return data[:24] + data[28:92] + data[100:]


def files_by_order(tmp_path, questionnaire, *, mix):
    """The files that the same records leave behind, having come in other orders and other batches."""
    rows = [
        (secrets.token_bytes(16), StoredRecord(secrets.token_bytes(16), bytes([i % 2, i % 5, i % 100])))
        for i in range(600)
    ]
    orders = [rows, rows[::-1], sorted(rows)]
    files = []
    for number, (order, size) in enumerate(itertools.product(orders, (1, 60))):
        backend = Sqlite(str(tmp_path / f"{number}.sqlite"))
        backend.open(questionnaire.to_bytes())
        backend._connection.execute("PRAGMA synchronous=OFF")  # faster, and no part of what is tested
        for start in range(0, len(order), size):
            keys, entries = zip(*order[start : start + size], strict=True)
            assert len(backend.add(entries, keys)) == len(entries)
        if mix:
            backend.mix()
            assert not (tmp_path / f"{number}.sqlite-wal").stat().st_size
        else:
            backend._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        backend.close()
        files.append(content(tmp_path / f"{number}.sqlite"))
    return files


def test_after_mixing_the_file_shows_nothing_of_the_order(tmp_path, questionnaire):
    files = files_by_order(tmp_path, questionnaire, mix=True)
    assert all(file == files[0] for file in files)


def test_without_mixing_the_file_would_show_it(tmp_path, questionnaire):
    files = files_by_order(tmp_path, questionnaire, mix=False)
    assert len(set(files)) > 1


def test_nothing_leads_from_a_nonce_to_its_record(store, tmp_path):
    """Within a batch the ranks of nonces and of records are unrelated: 40 batches of 8 would else agree by chance."""
    agreeing = 0
    for _ in range(40):
        batch = [entry(store, (0, 0, code)) for code in range(8)]
        before = rows(tmp_path)
        store.add(batch)
        nonces, records = (new - old for new, old in zip(rows(tmp_path), before, strict=True))
        by_nonce = [sent.record for sent in sorted(batch)]
        by_key = [record for _, record in sorted(records)]
        assert {nonce for (nonce,) in nonces} == {sent.nonce for sent in batch}
        agreeing += by_nonce == by_key
    assert agreeing <= 2  # each agrees with probability 1/40320: three or more with less than 2e-10


def test_what_the_live_log_shows_is_what_the_documentation_says(store, tmp_path):
    """Each single record since the last mixing is linked to its nonce, commit by commit; none that was mixed is."""
    sent = [entry(store, (i % 2, i % 5, i)) for i in range(40)]
    for one in sent[:20]:
        store.add([one])
    store.mix()
    assert linked(tmp_path) == []
    for one in sent[20:]:
        store.add([one])
    assert linked(tmp_path) == [(one.nonce, one.record) for one in sent[20:]]
    store.mix()
    assert linked(tmp_path) == []


def linked(tmp_path):
    """What a copy of a live store with its log gives away: the nonce and the record of every commit in the log."""
    log = (tmp_path / "s.sqlite-wal").read_bytes()
    size = 24 + int.from_bytes(log[8:12], "big")
    starts = range(32, len(log), size)
    ends = [32, *(start + size for start in starts if any(log[start + 4 : start + 8]))]  # of whole transactions
    stolen = tmp_path / "stolen"
    stolen.mkdir(exist_ok=True)
    states = []
    for end in ends if log else []:
        (stolen / "s.sqlite").write_bytes((tmp_path / "s.sqlite").read_bytes())
        (stolen / "s.sqlite-wal").write_bytes(log[:end])
        states.append(rows(stolen))
        for path in stolen.iterdir():
            path.unlink()
    new = [[now - then for now, then in zip(later, state, strict=True)] for state, later in itertools.pairwise(states)]
    return [(nonce, record) for nonces, records in new for (nonce,) in nonces for _, record in records]


def rows(tmp_path):
    return set(asked(tmp_path, "SELECT nonce FROM nonces")), set(asked(tmp_path, "SELECT key, record FROM records"))


@pytest.mark.parametrize(("size", "width"), [(2, 1), (256, 1), (257, 2)])
def test_keys_have_128_bits_and_codes_as_few_bytes_as_they_need(size, width, tmp_path):
    values = tuple(map(str, range(size)))
    asking = Questionnaire.make("Sizes", [Question("a", "a?", values, values, numerator64(0.3))], records=1000)
    with closing(Store(str(tmp_path / "s.sqlite"), asking)) as store:
        store.add([entry(store, (size - 1,))])
        assert store.cells() == {(size - 1,): 1}
    lengths = "SELECT length(nonce), length(key), length(record) FROM nonces, records"
    assert asked(tmp_path, lengths) == [(16, 16, width)]


def test_there_are_no_times_counters_or_senders(store, tmp_path):
    store.add([entry(store)])
    tables = asked(tmp_path, "SELECT name, sql FROM sqlite_schema WHERE sql NOT NULL")
    assert {name: sql.split("(", 1)[1] for name, sql in tables} == {
        "meta": "key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
        "records": "key BLOB PRIMARY KEY, record BLOB NOT NULL) WITHOUT ROWID",
        "nonces": "nonce BLOB PRIMARY KEY) WITHOUT ROWID",
    }


def test_mixing_is_due_when_something_is_new_and_it_does_not_take_all_the_time(store, monkeypatch):
    now = time.monotonic()
    monkeypatch.setattr("incrowd.survey.collector.store.time.monotonic", lambda: now)
    store.mix()
    now += 11
    assert not store.due
    store.add([entry(store)])
    assert store.due
    store.mix()
    store.add([entry(store)])
    now += 0.9
    assert not store.due
    now += 0.2  # what came is unmixed for about a second, as docs/local.md says
    assert store.due
    store._took = 1.0
    assert not store.due
    now += 50
    assert store.due


def test_a_collection_as_a_table(store, questionnaire):
    store.add([entry(store, (0, 4, 99)), entry(store, (1, 0, 0)), entry(store, (0, 4, 99))])
    table = close_and_count(store, fewer=True)
    assert table.total == 3
    assert table.names == ("sex", "commute", "age")
    assert table.decode().to_pylist() == [
        {"sex": "f", "commute": None, "age": "99", "count": 2},
        {"sex": "m", "commute": "car", "age": "0", "count": 1},
    ]
    assert tabulate({}, questionnaire).total == 0


def test_one_record_is_not_published(store):
    store.add([entry(store)])
    with pytest.raises(DataError) as caught:
        close_and_count(store)
    assert caught.value.code == "collection-empty"
    assert store.add([entry(store)]) == [True]  # it is still open


def test_the_policy_of_a_questionnaire(questionnaire):
    policy = policy_of(questionnaire)
    assert isinstance(policy, Policy)
    assert list(policy.published) == ["sex", "commute", "age"]
    assert policy.attributes["commute"].missing == "keep"
    assert policy.release.rho == {q.name: float(q.retention) for q in questionnaire.questions}


def test_fewer_records_than_expected_are_published_only_if_asked(store):
    store.add([entry(store), entry(store)])
    with pytest.raises(DataError) as caught:
        close_and_count(store)
    assert caught.value.code == "collection-small"
    assert store.add([entry(store)]) == [True]  # it is still open
    assert close_and_count(store, fewer=True).total == 3


@pytest.fixture
def reader(store, tmp_path):
    """Another program in the middle of reading, after some records came."""
    store.add([entry(store) for _ in range(5)])
    with closing(sqlite3.connect(tmp_path / "s.sqlite", isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT count(*) FROM records").fetchone()
        yield connection


def test_a_log_that_cannot_be_emptied_is_an_error_and_tried_again(store, reader, tmp_path, monkeypatch):
    monkeypatch.setattr("incrowd.survey.collector.sqlite._PATIENCE_WITH_READERS", 0.01)
    store.add([entry(store)])
    log = tmp_path / "s.sqlite-wal"
    size = log.stat().st_size
    for _ in range(2):
        with pytest.raises(InputError, match="another program reads it") as caught:
            store.mix()
        assert caught.value.code == "store-unavailable"
        assert log.stat().st_size == size  # trying does not make it longer
    later = time.monotonic() + 1000
    monkeypatch.setattr("incrowd.survey.collector.store.time.monotonic", lambda: later)
    assert store.due
    reader.execute("COMMIT")
    store.mix()
    assert log.stat().st_size == 0
    assert asked(tmp_path, "PRAGMA integrity_check") == [("ok",)]
    assert store._backend._connection.execute("PRAGMA busy_timeout").fetchone() == (20_000,)


def test_publishing_fails_rather_than_leave_nonces_behind(store, reader, tmp_path, monkeypatch):
    monkeypatch.setattr("incrowd.survey.collector.sqlite._PATIENCE_WITH_READERS", 0.01)
    with pytest.raises(InputError) as caught:
        close_and_count(store, fewer=True)
    assert caught.value.code == "store-unavailable"
    reader.execute("COMMIT")
    assert close_and_count(store, fewer=True).total == 5


def test_a_closed_collection_has_no_nonce_in_any_file(store, tmp_path):
    sent = [entry(store, nonce=f"{i:032x}") for i in range(300)]
    store.add(sent)

    def found():
        content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        return sum(hashlib.sha256(f"{i:032x}".encode()).digest()[:16] in content for i in range(300))

    assert found() == 300
    store.finish()
    assert found() == 0
    assert (tmp_path / "s.sqlite-wal").stat().st_size == 0


def test_the_settings_that_keep_records_safe_and_secret(store):
    expected = {
        "journal_mode": "wal",
        "synchronous": 2,  # FULL
        "secure_delete": 1,
        "temp_store": 2,  # MEMORY
        "journal_size_limit": 0,
        "auto_vacuum": 0,
    }
    execute = store._backend._connection.execute
    assert {name: execute(f"PRAGMA {name}").fetchone()[0] for name in expected} == expected


class Spy:
    """In place of a database: notes in which order rows are written."""

    def __init__(self):
        self.entries = []

    def add(self, entries, keys):
        self.entries.append(list(entries))
        return {one.nonce for one in entries}


def test_nonces_are_written_in_the_order_of_their_digests(store, monkeypatch):
    spy = Spy()
    monkeypatch.setattr(store, "_backend", spy)
    batch = sorted((entry(store) for _ in range(20)), reverse=True)
    store.add(batch)
    assert spy.entries == [sorted(batch)]
    monkeypatch.undo()


def test_records_are_written_in_the_order_of_their_keys(tmp_path, questionnaire):
    backend = Sqlite(str(tmp_path / "t.sqlite"))
    backend.open(questionnaire.to_bytes())
    written = []
    backend._connection.set_trace_callback(lambda text: written.append(text) if "INTO records" in text else None)
    keys = [bytes([9 - i]) * 16 for i in range(9)]
    backend.add([StoredRecord(bytes([i]) * 16, b"abc") for i in range(9)], keys)
    backend.close()
    assert [text.split("'")[1].lower() for text in written] == [key.hex() for key in sorted(keys)]


def test_somebody_elses_file_is_not_changed(tmp_path, questionnaire):
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE meta (key, value)")
    before = path.read_bytes()
    with pytest.raises(InputError):
        Store(str(path), questionnaire)
    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir()] == ["other.sqlite"]


@pytest.mark.parametrize(
    "address", ["postgresql+psycopg://u:hunter2@h/db", "POSTGRESQL://u:hunter2@h", "mysql:/hunter2"]
)
def test_an_unknown_kind_of_address_is_refused_and_not_repeated(address, tmp_path, monkeypatch, questionnaire):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        Store(address, questionnaire)
    assert caught.value.code == "store-unavailable"
    assert "hunter2" not in str(caught.value.to_dict())
    assert list(tmp_path.iterdir()) == []


def test_a_signature_that_came_later_is_served(store, tmp_path, questionnaire):
    (tmp_path / "secret.pem").write_bytes(make_keys()[0])
    signed = questionnaire.signed(load_secret_key(tmp_path / "secret.pem"))
    with closing(Store(str(tmp_path / "s.sqlite"), signed)) as again:
        assert again.questionnaire.to_bytes() == signed.to_bytes()


def test_a_retention_is_rounded_up_to_a_floating_point_number():
    for numerator in (2**63 + 1, 2**64 // 3, 5, 2**62):
        made = Question("a", "A?", ("x", "y"), ("x", "y"), numerator)
        assert made.retention <= as_float(made) < float(made.retention) * (1 + 1e-15)
    assert as_float(Question("a", "A?", ("x", "y"), ("x", "y"), 2**63 + 1)) > 0.5


@pytest.mark.parametrize("values", [(None, "x", "y"), ("x", None, "y"), ("x", "y", None)])
def test_a_missing_value_may_stand_anywhere(values, tmp_path):
    labels = tuple(value or "-" for value in values)
    made = Questionnaire.make("T", [Question("a", "A?", values, labels, 2**62)], records=3)
    rehearse(made)
    with closing(Store(str(tmp_path / "t.sqlite"), made)) as opened:
        for times, value in enumerate(("x", "y", None), start=1):
            opened.add([entry(opened, made.codes({"a": value})) for _ in range(times)])
        table = close_and_count(opened)
    assert {row["a"]: row["count"] for row in table.decode().to_pylist()} == {"x": 1, "y": 2, None: 3}


def test_nothing_is_closed_if_nothing_can_be_promised(tmp_path):
    made = Questionnaire.make("T", [Question("a", "A?", ("x", "y"), ("x", "y"), 2**64 - 1)], records=2)
    with pytest.raises(UnreachableError):
        rehearse(made)
    with closing(Store(str(tmp_path / "t.sqlite"), made)) as opened:
        opened.add([entry(opened, (0,)), entry(opened, (1,))])
        with pytest.raises(UnreachableError):
            close_and_count(opened)
        assert opened.add([entry(opened, (1,))]) == [True]
