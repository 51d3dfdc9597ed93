"""Who is let in, what may be asked, and how far a path may lead."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from urllib.parse import quote, urlsplit

import pytest

pytestmark = pytest.mark.xdist_group("browser")


class Asker:
    """Asks the studio as no well-behaved browser would."""

    def __init__(self, studio):
        self.parts = urlsplit(studio.entrance)
        self.host = self.parts.netloc
        self.cookie = None

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection(self.parts.hostname, self.parts.port, timeout=20)
        sent = {"Host": self.host, **({"Cookie": self.cookie} if self.cookie else {})}
        if isinstance(body, dict):
            body, sent["Content-Type"] = json.dumps(body), "application/json"
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, {name: value for name, value in sent.items() if value is not None})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer, content

    def enter(self):
        answer, _ = self.ask("GET", f"{self.parts.path}?{self.parts.query}")
        assert answer.status == 200
        self.said = answer.headers["Set-Cookie"]
        self.cookie = self.said.split(";")[0]
        return self

    def post(self, path, body, **headers):
        return self.ask("POST", path, body, **{"Origin": f"http://{self.host}", **headers})


def code(answer):
    return json.loads(answer[1])["error"]["code"]


@pytest.fixture(scope="module")
def asker(lasting_studio):
    return Asker(lasting_studio).enter()


def test_nobody_gets_in_without_the_cookie(studio):
    stranger = Asker(studio)
    for path in ("/", "/plan", "/files", "/jobs/x", "/releases/download?folder=x", "/plan/crowd?k=5"):
        answer = stranger.ask("GET", path)
        assert (answer[0].status, code(answer)) == (403, "request-refused")
    stranger.cookie = f"incrowd-studio-{stranger.parts.port}=guess"
    assert stranger.ask("GET", "/plan")[0].status == 403
    assert stranger.ask("GET", "/enter?token=guess")[0].status == 403
    assert stranger.enter().ask("GET", "/plan")[0].status == 200


def test_the_token_opens_once(studio):
    first = Asker(studio).enter()
    flags = {part.strip().lower() for part in first.said.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= flags
    assert first.said.startswith(f"incrowd-studio-{first.parts.port}=")
    again = Asker(studio).ask("GET", f"{first.parts.path}?{first.parts.query}")
    assert again[0].status == 403
    assert "Set-Cookie" not in again[0].headers
    assert first.ask("GET", "/plan")[0].status == 200


def test_changes_come_from_the_studio_itself(asker):
    body = {"text": "incrowd: 1"}
    assert asker.post("/policy/check", body)[0].status == 200
    for origin in (None, "null", "http://evil.example", f"https://{asker.host}", "http://127.0.0.1:1"):
        answer = asker.post("/policy/check", body, Origin=origin)
        assert (answer[0].status, code(answer)) == (403, "request-refused")
    for method, path in (("DELETE", "/jobs/x"), ("DELETE", "/uploads/x"), ("POST", "/uploads")):
        assert asker.ask(method, path)[0].status == 403
    assert asker.ask("GET", "/plan", Sec_Fetch_Site="same-site")[0].status == 403
    assert asker.ask("GET", "/plan", Sec_Fetch_Site="cross-site")[0].status == 403


def test_other_names_lead_nowhere(asker):
    port = asker.parts.port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", f"10.0.0.1:{port}", ""):
        answer, _ = asker.ask("GET", "/plan", Host=host)
        assert answer.status == 400, host
    assert asker.ask("GET", "/plan", Host=f"localhost:{port}")[0].status == 200


def test_every_answer_is_strict(asker):
    for path in ("/plan", "/files", "/static/studio.js", "/nothing", "/plan/crowd?epsilon=1&delta=1e-6&beta=0.2"):
        headers = asker.ask("GET", path)[0].headers
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert "Server" not in headers


OUTSIDE = ["/etc/passwd", "../outside.csv", "leads/out.csv", "../*.csv", "leads/*.csv", "file:///etc/passwd",
           "postgresql://localhost/x", "a\x00b", ""]  # fmt: skip


@pytest.fixture(scope="module")
def outside(lasting_studio):
    folder = lasting_studio.folder
    secret = folder.parent / "outside"
    secret.mkdir()
    (secret / "out.csv").write_text("a,b\n1,2\n")
    (folder.parent / "outside.csv").write_text("a,b\n1,2\n")
    (folder / "leads").symlink_to(secret)
    return secret


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_leads_out(asker, outside, path):
    for kind in ("draft", "columns", "audit", "count"):
        answer = asker.post("/jobs", {"kind": kind, "data": {"path": path}})
        assert (answer[0].status, code(answer)) == (403, "path-outside"), kind
    if path:
        assert code(asker.post("/policy/save", {"path": f"{path}.yaml", "text": "x"})) == "path-outside"
        for route in ("/policy/open?path=", "/ledger/view?path=", "/releases/view?folder=", "/files?folder="):
            assert code(asker.ask("GET", route + quote(path))) == "path-outside", route


def test_what_lies_outside_is_not_even_listed(asker, outside):
    found = json.loads(asker.ask("GET", "/files?kind=table")[1])
    assert [one["name"] for one in found["files"]] == ["town.csv"]
    assert "leads" not in [one["name"] for one in found["folders"]]
    assert found["parent"] is None


def test_no_policy_leads_out(asker, outside, lasting_studio):
    studio = lasting_studio
    policies = {
        "data": "data: {path: ../outside.csv}\nattributes: {a: {domain: [x]}}",
        "domain": "attributes: {a: {domain: {file: leads/out.csv}}}",
        "hierarchy": "attributes: {a: {hierarchy: {file: /etc/passwd}}}",
        "ledger": "attributes: {a: {domain: [x]}}\nledger: {path: ../l.sqlite, dataset: d, epsilon: 1, delta: 0}",
    }
    release = "release: {mechanism: sampled_crowd, epsilon: 1, delta: 1e-6, selection_epsilon: 0.1}"
    for name, text in policies.items():
        body = {"text": f"incrowd: 1\n{text}\n{release}", "base": str(studio.folder)}
        checked = json.loads(asker.post("/policy/check", body)[1])
        assert checked["error"]["code"] == "path-outside", name
        answer = asker.post("/jobs", {"kind": "release", "folder": "new", "data": {"path": "town.csv"}, **body})
        assert code(answer) == "path-outside", name
    text = (studio.folder / "town.yaml").read_text()
    for folder in ("../new", "/tmp/new", "leads/new", "."):
        answer = asker.post("/jobs", {"kind": "release", "text": text, "base": "", "folder": folder})
        assert code(answer) in {"path-outside", "output-exists"}, folder
    answer = asker.post("/jobs", {"kind": "release", "text": text, "base": "..", "folder": "new"})
    assert code(answer) == "path-outside"


def test_a_report_is_a_document_of_its_own(asker, lasting_studio):
    studio = lasting_studio
    folder = studio.folder / "fake"
    folder.mkdir()
    (folder / "certificate.json").write_text('{"format": "incrowd-certificate-1"}')
    (folder / "report.html").write_text("<script>alert(1)</script>")
    answer, content = asker.ask("GET", "/releases/report?which=public&folder=fake")
    assert content == b"<script>alert(1)</script>"
    policy = answer.headers["Content-Security-Policy"]
    assert "sandbox" in policy
    assert "script-src" not in policy
    assert "default-src 'none'" in policy
    secret = studio.folder.parent / "secret.html"
    secret.write_text("x")
    (folder / "report.html").unlink()
    (folder / "report.html").symlink_to(secret)
    assert code(asker.ask("GET", "/releases/report?which=public&folder=fake")) == "path-outside"


def test_uploads_are_limited_and_named_harmlessly(tmp_path, town, start):
    running = start(town, tmp_path / "temporary", "--largest-upload", "1")
    asker = Asker(running).enter()
    origin = {"Origin": f"http://{asker.host}"}
    large = asker.ask("POST", "/uploads", b"x" * (1 << 20) + b"y", X_File_Name="large.csv", **origin)
    assert (large[0].status, code(large)) == (413, "request-too-large")
    (private,) = running.temporary.glob("incrowd-studio-*")
    assert list((private / "uploads").iterdir()) == []
    answer = asker.ask("POST", "/uploads", b"a\n1\n", X_File_Name=quote("../../../evil\x00name.sh"), **origin)
    assert json.loads(answer[1])["name"] == "evil_name.sh"
    (path,) = (private / "uploads").glob("*/*")
    assert path.stat().st_mode & 0o777 == 0o600
    asker.ask("DELETE", f"/uploads/{json.loads(answer[1])['upload']}", **origin)
    assert list((private / "uploads").iterdir()) == []


def test_what_a_killed_studio_left_is_removed_by_the_next(tmp_path, town, start):
    killed = start(town, tmp_path / "temporary")
    asker = Asker(killed).enter()
    asker.ask("POST", "/uploads", b"a\n1\n", X_File_Name="a.csv", Origin=f"http://{asker.host}")
    beside = start(town, tmp_path / "temporary")
    os.kill(killed.process.pid, signal.SIGKILL)
    killed.process.wait()
    assert len(list((tmp_path / "temporary").glob("*/uploads/*/a.csv"))) == 1
    start(town, tmp_path / "temporary")
    assert not list((tmp_path / "temporary").glob("*/uploads/*/a.csv"))
    assert Asker(beside).enter().ask("GET", "/plan")[0].status == 200  # one that runs is left alone
    assert len(list((tmp_path / "temporary").iterdir())) == 2


def test_errors_have_one_shape_and_quote_nothing(asker):
    for answer in (
        asker.ask("GET", "/nothing"),
        asker.ask("GET", "/plan/crowd?k=secret"),
        asker.ask("GET", "/jobs/secret"),
        asker.post("/jobs", {"kind": "secret"}),
        asker.ask("POST", "/jobs", b"secret", Origin=f"http://{asker.host}"),
        asker.ask("PUT", "/plan", Origin=f"http://{asker.host}"),
    ):
        assert answer[0].status >= 400
        assert set(json.loads(answer[1])["error"]) == {"code", "message", "remedy", "details"}
        assert b"secret" not in answer[1]
    page = asker.ask("GET", "/nothing", Sec_Fetch_Dest="document")
    assert page[0].headers["Content-Type"].startswith("text/html")


WRONG = [None, True, 1, 1.5, "a", "\ud800", [], {}, [None], [1], ["a", 1], {"place": []}, ["a"] * 500]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: ascii(wrong)[:20])
def test_a_malformed_change_is_refused_in_the_one_shape(asker, wrong):
    for changes in (wrong or "", [wrong], [{"place": wrong, "content": "x"}], [{"confirm": wrong}]):
        if changes == [{"confirm": "a"}]:
            continue  # there is no such attribute, which is no error
        answer = asker.post("/policy/edit", {"text": "title: x\n", "changes": changes})
        assert (answer[0].status, code(answer)) == (400, "request-malformed"), answer[1]


@pytest.mark.parametrize("body", [
    {"text": "\ud800"}, {"text": "title: x\n", "changes": [{"place": ["title"], "content": "a\udfff"}]},
    {"text": "title: x\n", "changes": [{"place": ["title"], "content": {"\ud800": 1}}]},
    {"text": "title: x\n", "changes": [{"place": ["title"], "content": float("nan")}]},
    {"text": "title: x\n", "changes": [{"place": ["title"], "content": json.loads("[" * 500 + "]" * 500)}]},
], ids=["text", "content", "key", "number", "nesting"])  # fmt: skip
@pytest.mark.parametrize("path", ["/policy/check", "/policy/edit"])
def test_what_could_not_be_written_down_is_refused_in_the_one_shape(asker, path, body):
    answer = asker.post(path, body)
    assert (answer[0].status, code(answer)) == (400, "request-malformed"), answer[1]


def test_a_text_that_is_no_yaml_is_no_bug(asker):
    for text in ("- [", "\x00", "a: b: c", "\x85"):
        answer = asker.post("/policy/edit", {"text": text, "changes": [{"confirm": "sex"}]})
        assert (answer[0].status, code(answer)) == (400, "policy-syntax"), answer[1]
    for text in ("", "# nothing\n"):
        answer = asker.post("/policy/edit", {"text": text, "changes": [{"place": ["title"], "content": "x"}]})
        assert answer[0].status == 200
        assert json.loads(answer[1])["content"] == {"title": "x"}


def test_others_are_let_in_only_on_request(tmp_path, town):
    def run(*options):
        return subprocess.run(
            [sys.executable, "-m", "incrowd", "studio", *options],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    missing = run(str(tmp_path / "nowhere"), "--json")
    assert missing.returncode == 2
    assert json.loads(missing.stdout)["error"]["code"] == "path-outside"
    taken = run(str(town), "--json", "--host", "203.0.113.1", "--port", "1")
    assert "Others can reach" in taken.stderr
    assert json.loads(taken.stdout)["error"]["code"] == "collector-address"


def test_more_slow_clients_than_file_handles_do_not_stop_it(tmp_path, town, start):
    studio = start(town, tmp_path / "private", "--no-browser")
    resource = pytest.importorskip("resource")
    if not hasattr(resource, "prlimit"):
        pytest.skip("the limit of another process cannot be set here")
    resource.prlimit(studio.process.pid, resource.RLIMIT_NOFILE, (40, 40))
    asker = Asker(studio).enter()
    with ExitStack() as slow:
        for number in range(100):
            client = slow.enter_context(socket.create_connection((asker.parts.hostname, asker.parts.port), timeout=20))
            with suppress(ConnectionError):  # it may have been closed already
                client.sendall(b"GET /" if number % 2 else b"")
        assert asker.ask("GET", "/plan")[0].status == 200
    assert "Traceback" not in studio.stop()
