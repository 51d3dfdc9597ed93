"""Ways out of the studio's folders, and out of its silence, that are shut."""

import asyncio
import json
import zipfile

import pytest

from incrowd.core.errors import IncrowdError, InputError

pytest.importorskip("starlette", reason="the studio's packages are not installed")

from incrowd.mechanisms.certificate import FORMAT
from incrowd.studio import publishing, work
from incrowd.studio.folders import Folders
from incrowd.studio.guard import Guard

ROWS = "a,b\n" + "".join(f"{i % 7},{i % 3}\n" for i in range(200))


def talk(app, path="/plan"):
    """One request by someone who has been let in, and all that is answered."""
    guard = Guard(app, "http://127.0.0.1:8000", token="t", headers={"X-Content-Type-Options": "nosniff"})
    headers = [(b"host", b"127.0.0.1:8000"), (b"cookie", f"{guard.cookie}={guard.key}".encode())]
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers}
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    asyncio.run(guard(scope, receive, send))
    return sent


def test_a_bug_is_answered_like_everything_else_and_quotes_nothing():
    async def broken(scope, receive, send):
        raise RuntimeError("Ms Smith, 47, diabetes")

    start, body = talk(broken)
    assert start["status"] == 500
    assert b"content-security-policy" in dict(start["headers"])
    error = json.loads(body["body"])["error"]
    assert error["code"] == "internal"
    assert "RuntimeError" in error["message"]
    assert b"Smith" not in body["body"]


def test_a_bug_after_the_answer_began_ends_quietly():
    async def broken(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError("Ms Smith")

    assert [message["type"] for message in talk(broken)] == ["http.response.start"]


def test_a_folder_with_brackets_in_its_name_opens_no_other(tmp_path):
    for name in ("d[1]", "d1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "s.csv").write_text(ROWS)
    folders = Folders.of([tmp_path / "d[1]"])
    assert folders.table("*.csv") == [str(tmp_path / "d[1]" / "s.csv")]


def test_a_policys_other_files_are_no_patterns(tmp_path):
    root, out = tmp_path / "root", tmp_path / "out"
    for folder in (root / "sub", out):
        folder.mkdir(parents=True)
    (root / "sub" / "led.db").write_bytes(b"")
    (root / "[s]ub").symlink_to(out)
    text = (
        "incrowd: 1\nattributes: {a: {domain: [x]}}\n"
        'ledger: {path: "[s]ub/led.db", dataset: d, epsilon: 1, delta: 1e-6}\n'
    )
    with pytest.raises(IncrowdError) as refused:
        Folders.of([root]).require_policy(text, root)
    assert refused.value.code == "path-outside"


def test_a_draft_reads_only_what_was_looked_through(tmp_path, monkeypatch):
    root = tmp_path / "root"
    for folder in (root / "pat", root / "other", tmp_path / "outside"):
        folder.mkdir(parents=True)
    for path in (root / "pat" / "b.csv", root / "other" / "x.csv", tmp_path / "outside" / "secret.csv"):
        path.write_text(ROWS)
    (root / "pat" / "a.csv").symlink_to(root / "other" / "x.csv")
    (root / "other" / "evil.csv").symlink_to(tmp_path / "outside" / "secret.csv")
    monkeypatch.chdir(root)  # the work changes it
    checked = Folders.of([root]).table("pat/*.csv")
    with pytest.raises(InputError) as refused:
        work._draft({"data": checked, "pattern": "*.csv"}, tmp_path, lambda *_: None)
    assert refused.value.code == "path-outside"


def test_names_that_no_file_system_knows(tmp_path):
    folders = Folders.of([tmp_path])
    for name in ("x" * 5000, "no/such/folder"):
        with pytest.raises(InputError):
            folders.listing(name, "table")


def test_a_stopped_release_removes_its_own_traces_only(tmp_path):
    for name in (".a.0123abcd.part", ".a.internal.0123abcd.part", ".a.b.0123abcd.part", ".a.notes.part"):
        (tmp_path / name).mkdir()
    assert not publishing.undoing(tmp_path / "a")()
    assert sorted(p.name for p in tmp_path.iterdir()) == [".a.b.0123abcd.part", ".a.notes.part"]
    assert not publishing.undoing(tmp_path / "nowhere" / "a")()


def test_a_download_has_what_is_certified_and_nothing_from_elsewhere(tmp_path):
    """Files beside the table too; not those that a forged certificate names elsewhere."""
    folder, internal = tmp_path / "out", tmp_path / "out.internal"
    for place in (folder, internal):
        place.mkdir()
        (place / "report.html").write_text(place.name)
    (folder / "mapping.json").write_text("{}")
    named = ["report.html", "mapping.json", str(internal / "report.html"), "../out.internal/report.html", "absent.csv"]
    (folder / "certificate.json").write_text(json.dumps({"format": FORMAT, "files": {key: {} for key in named}}))
    _, packed = publishing.archive(Folders.of([tmp_path]), "out", tmp_path)
    with zipfile.ZipFile(packed) as found:
        assert sorted(found.namelist()) == ["out/certificate.json", "out/mapping.json", "out/report.html"]
