"""Ways out of the studio's folders, and out of its silence, that are shut."""

import asyncio
import json
import os
import shutil
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from incrowd import api
from incrowd.core.errors import IncrowdError, InputError

pytest.importorskip("starlette", reason="the studio's packages are not installed")

from incrowd.mechanisms.certificate import FORMAT
from incrowd.studio import answers, explored, plans, releases, service, work
from incrowd.studio.folders import Folders
from incrowd.studio.guard import Guard
from incrowd.studio.private import Private
from incrowd.studio.uploads import Dropped

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
    assert not releases.undoing(tmp_path / "a")()
    assert sorted(p.name for p in tmp_path.iterdir()) == [".a.b.0123abcd.part", ".a.notes.part"]
    assert not releases.undoing(tmp_path / "nowhere" / "a")()


def test_a_download_has_what_is_certified_and_nothing_from_elsewhere(tmp_path):
    """Files beside the table too; not those that a forged certificate names elsewhere."""
    folder, internal = tmp_path / "out", tmp_path / "out.internal"
    for place in (folder, internal):
        place.mkdir()
        (place / "report.html").write_text(place.name)
    (folder / "mapping.json").write_text("{}")
    named = ["report.html", "mapping.json", str(internal / "report.html"), "../out.internal/report.html", "absent.csv"]
    (folder / "certificate.json").write_text(json.dumps({"format": FORMAT, "files": {key: {} for key in named}}))
    _, packed = releases.archive(Folders.of([tmp_path]), "out", tmp_path)
    with zipfile.ZipFile(packed) as found:
        assert sorted(found.namelist()) == ["out/certificate.json", "out/mapping.json", "out/report.html"]


@pytest.fixture
def studio(tmp_path, monkeypatch):
    """One without a server, whose work is only written down."""
    pytest.importorskip("jinja2", reason="the studio's packages are not installed")
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    private = Private()
    made = service.Studio(Folders.of([root]), private.folder, 100)
    started = []

    def start(kind, arguments, undo=None):
        started.append(SimpleNamespace(kind=kind, arguments=arguments, undo=undo, to_dict=dict))
        return started[-1]

    made.jobs = SimpleNamespace(start=start, unfinished=lambda: iter(started), started=started)
    yield made
    private.remove()


def request(body, **path):
    """A request with a JSON body, as far as answers look at it."""

    async def stream():
        yield json.dumps(body).encode()

    return SimpleNamespace(headers={"content-type": "application/json"}, path_params=path, stream=stream)


@pytest.mark.parametrize("what", ["look", "around", "by_mechanism"])
def test_a_kept_tables_policies_are_looked_for_where_its_work_looks(studio, tmp_path, what):
    """A path that is inside as seen from another base leads out as seen from the work's own."""
    (tmp_path / "h.csv").write_text("x,secret\n")
    root, asked = tmp_path / "root", []
    job = SimpleNamespace(kind="explore", arguments={"base": str(root)}, result={}, ask=asked.append)
    studio.jobs = {"id": job}
    text = "incrowd: 1\nattributes: {a: {domain: [x], hierarchy: {file: ../h.csv}}}\n"
    body = {"text": text, "base": str(root / "sub"), "number": 0, "mechanism": "views"}
    with pytest.raises(IncrowdError) as refused:
        asyncio.run(studio._exploring(getattr(explored, what))(request(body, id="id")))
    assert (refused.value.code, asked) == ("path-outside", [])


def test_no_table_of_an_audit_lies_outside(studio, tmp_path):
    root = tmp_path / "root"
    for path in (tmp_path / "out.csv", root / "in.csv", root / "sub" / "all.csv"):
        path.write_text("a,b\n1,2\n", encoding="utf-8")
    body = {"data": {"path": "in.csv"}, "quasi": ["a"], "sensitive": ["b"]}
    for more in (
        {"adversaries": ["I earlier=../out.csv"]},
        {"adversaries": [f'I "earlier={tmp_path}/out.csv" b=1']},
        {"adversaries": ["I earlier=postgresql://elsewhere/x"]},
        {"population": "../out.csv"},
    ):
        with pytest.raises(IncrowdError) as refused:
            studio._start_audit(body | more)
        assert refused.value.code == "path-outside", more
    more = {"adversaries": ["I earlier=sub/all.csv b=1", "II sigma=10", 'I "'], "population": "sub/all.csv"}
    studio._start_audit(body | more | {"threshold": "0.5", "sampling_rate": "", "require": ["k=5"]})
    [job] = studio.jobs.started
    options = job.arguments["options"]
    assert options["adversaries"] == [f"I earlier={root}/sub/all.csv b=1", "II sigma=10", 'I "']
    assert options["population"] == [f"{root}/sub/all.csv"]
    assert (options["threshold"], "sampling_rate" in options, job.arguments["require"]) == (0.5, False, ["k=5"])
    for wrong in ({"threshold": "x"}, {"threshold": [1]}, {"sampling_rate": "nan"}, {"worst": "1.5"}):
        with pytest.raises(IncrowdError) as refused:
            studio._start_audit(body | wrong)
        assert refused.value.code == "request-malformed", wrong


def test_a_collection_is_published_where_nothing_is(studio, tmp_path):
    root = tmp_path / "root"
    (root / "s.sqlite").write_bytes(b"x")
    asked = {"store": "s.sqlite", "folder": "out", "fewer": True}
    for more, said in (({"store": "../s.sqlite"}, "path-outside"), ({"store": "none.sqlite"}, "data-not-found"),
                       ({"folder": ""}, "output-unwritable"), ({"folder": "sub"}, "output-exists"),
                       ({"sign_with": "/etc/key.pem"}, "path-outside")):  # fmt: skip
        with pytest.raises(IncrowdError) as refused:
            studio._start_collected(asked | more)
        assert refused.value.code == said, more
    studio._start_collected(asked)
    [job] = studio.jobs.started
    assert job.arguments == {"store": f"{root}/s.sqlite", "folder": f"{root}/out", "copies": 1,
                             "fewer": True, "sign_with": None}  # fmt: skip
    with pytest.raises(IncrowdError, match="Another window"):
        studio._start_collected(asked)


def test_a_lost_ledger_is_given_up(studio, tmp_path):
    path = tmp_path / "root" / "budget.sqlite"
    api.ledger_budget(path, "town", epsilon=4, delta=1e-5)
    api.ledger_add(path, "town", epsilon=1, delta=0, relation="add/remove", description="before")
    older = path.read_bytes()
    api.ledger_add(path, "town", epsilon=2, delta=0, relation="add/remove", description="after")
    path.write_bytes(older)
    with pytest.raises(IncrowdError):
        studio._statement("budget.sqlite", "town")
    shown = studio._change_ledger({"what": "accept-loss", "path": "budget.sqlite"}).body.decode()
    assert "town" in shown
    assert "stays spent" in shown
    assert "before" in studio._statement("budget.sqlite", "town")
    assert "Nothing is remembered" in studio._change_ledger({"what": "accept-loss", "path": "no.sqlite"}).body.decode()
    with pytest.raises(IncrowdError) as refused:
        studio._change_ledger({"what": "accept-loss", "path": "../budget.sqlite"})
    assert refused.value.code == "path-outside"


def test_what_cannot_be_read_is_left_out(tmp_path, monkeypatch):
    shut = tmp_path / "lost+found"
    for folder in (shut, tmp_path / "open"):
        folder.mkdir()
        (folder / "a.csv").write_text(ROWS)
    (tmp_path / "led.csv").symlink_to(shut / "a.csv")
    (tmp_path / "gone.csv").symlink_to(tmp_path / "nowhere.csv")
    (tmp_path / "ring").symlink_to(tmp_path / "ring")
    real = {"stat": os.stat, "scandir": os.scandir}

    def refuse(path, *more, name, **options):
        place = Path(os.path.realpath(path)) if isinstance(path, str | os.PathLike) else None
        if place is not None and (place.parent == shut or (place == shut and name == "scandir")):
            raise PermissionError(13, "Permission denied")
        return real[name](path, *more, **options)

    for name in real:
        monkeypatch.setattr(
            os, name, lambda path, *more, name=name, **options: refuse(path, *more, name=name, **options)
        )
    folders = Folders.of([tmp_path])
    assert [one["path"] for one in folders.recent()["table"]] == [str(tmp_path / "open" / "a.csv")]
    found = folders.listing(None, "table")
    assert [one["name"] for one in found["folders"]] == ["lost+found", "open"]
    assert found["files"] == []
    with pytest.raises(InputError) as refused:
        folders.listing("lost+found", "table")
    assert refused.value.code == "not-found"


def together(*tasks):
    async def run():
        return await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(run())


async def slowly(*parts, before=lambda _: None):
    """Parts of a file, between which others have their turn."""
    for i, part in enumerate(parts):
        await asyncio.sleep(0)
        before(i)
        yield part


def test_files_that_arrive_at_once_share_one_limit(tmp_path):
    dropped = Dropped(tmp_path, 100)
    identity = dropped.open()
    found = together(*(dropped.receive(identity, f"{name}.csv", slowly(b"x" * 30, b"x" * 30)) for name in "ab"))
    assert {"request-too-large"} <= {one.code for one in found if one is not None}
    assert list(tmp_path.iterdir()) == []
    identity = dropped.open()
    assert together(*(dropped.receive(identity, f"{name}.csv", slowly(b"x" * 25, b"x" * 25)) for name in "ab")) == [
        None,
        None,
    ]


@pytest.mark.parametrize("goes", [Dropped.forget, lambda dropped, identity: shutil.rmtree(dropped[identity])],
                         ids=["forgotten", "removed by the work"])  # fmt: skip
@pytest.mark.parametrize("name", ["a.csv", "views/a.csv"])
def test_a_dropped_folder_that_is_gone_stays_gone(tmp_path, goes, name):
    dropped = Dropped(tmp_path, 100)
    identity = dropped.open()
    during = slowly(b"x", b"x", before=lambda i: goes(dropped, identity) if i else None)
    found = together(dropped.receive(identity, name, during))
    found += together(dropped.receive(identity, name, slowly(b"x")))
    assert [one.code for one in found] == ["not-found"] * 2
    assert list(tmp_path.iterdir()) == []
    dropped.forget(identity)
    for _ in range(30):  # nothing half remembered stands in the way of others
        dropped.open()


def test_the_places_of_releases_do_not_overlap(studio):
    text = (
        "incrowd: 1\ndata: {path: t.csv}\nattributes: {a: {domain: [x]}}\n"
        "release: {mechanism: generalization, require: [{k: 2}]}\n"
    )
    (studio.folders.roots[0] / "t.csv").write_text("a\nx\n")

    def start(folder, copies=1):
        return studio._start_release({"text": text, "folder": folder, "copies": copies})

    start("out", 3)
    start("one")
    for folder, copies in (("out-2", 1), ("out", 2), ("out-3.internal", 1), ("out-1/in", 1), ("one.internal/in", 2)):
        with pytest.raises(InputError) as refused:
            start(folder, copies)
        assert refused.value.code == "output-exists"
    for folder, copies in (("out", 1), ("out-4", 1), ("one", 2), ("out-2.b", 1)):
        start(folder, copies)
    assert len(studio.jobs.started) == 6


@pytest.mark.parametrize("number", [10**15, -(10**15), 10**400, int("9" * 4000)], ids=lambda n: f"{len(str(n))} signs")
def test_numbers_that_no_page_sends_are_no_bugs(number):
    for body in ({"offset": number}, {"points": [{"score": number}]}, {"epsilon": [number]}):
        with pytest.raises(InputError) as refused:
            asyncio.run(answers.body_of(request(body)))
        assert refused.value.code == "request-malformed"


NUMBERS = ("inf", "nan", "1e400", "9" * 5000, "9" * 400, "-1e300", "x", "")


@pytest.mark.parametrize("text", NUMBERS, ids=lambda text: text[:6] + f"{len(text)}")
def test_numbers_that_a_plan_cannot_take_are_refused(text):
    crowd = {"epsilon": "1", "delta": "1e-6", "beta": "0.2"}
    pram = {"records": "1000", "domain": "2,3", "k": "5"}
    for make, asked in (
        (plans.crowd, crowd | {"k": text or "x"}),
        (plans.pram, pram | {"records": text}),
        (plans.pram, pram | {"domain": text}),
        (plans.solved, {"planner": "views", "columns": text}),
        (plans.solved, {"planner": "amplify", "epsilon": text}),
        (plans.sample, {"sizes": [[1, text]], "epsilon": 1, "delta": 1e-6}),
    ):
        with pytest.raises(IncrowdError):
            make(asked)


@pytest.mark.parametrize("number", [10**15 - 1, 1e19, 1e300, -1.0])
def test_numbers_in_json_that_no_array_holds_are_refused(number):
    for sizes in ([[1, number]], [[float(number) * 10, 1]]):
        with pytest.raises(IncrowdError):
            plans.sample({"sizes": sizes, "epsilon": 1, "delta": 1e-6})
    job = SimpleNamespace(result={"control": [0.5, 0.2]})
    with pytest.raises(InputError):
        explored.plot(None, job, {"points": [{"score": 0.5, "epsilon": -abs(number)}]}, None)
