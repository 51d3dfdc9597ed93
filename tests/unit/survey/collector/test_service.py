"""The service, without a network: requests go straight to the application."""

import asyncio
import json
import logging
import secrets

import pytest

from incrowd.core.errors import InputError
from incrowd.survey import Question, Questionnaire, Randomizer
from incrowd.survey.collector import batches, service
from incrowd.survey.collector.batches import Batches
from incrowd.survey.collector.openapi import LEAST_LIMIT, describe, largest_body
from incrowd.survey.collector.store import Store

pytest.importorskip("starlette", reason="the extra 'collect' is not installed")

ANSWERS = {"sex": "f", "commute": None, "age": "42"}


class Client:
    """Speaks ASGI to an application: as little as is needed."""

    def __init__(self, application):
        self.application = application

    async def request(self, method, path, body=b"", headers=(("content-type", "application/json"),), parts=None):
        sent = [{"type": "http.request", "body": part, "more_body": True} for part in parts or [body]]
        sent[-1]["more_body"] = False
        answers = []

        async def receive():
            return sent.pop(0) if sent else {"type": "http.disconnect"}

        async def send(message):
            answers.append(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(name.encode(), value.encode()) for name, value in headers],
            "server": ("127.0.0.1", 80),
            "client": ("192.0.2.77", 4711),
        }
        await self.application(scope, receive, send)
        content = b"".join(message.get("body", b"") for message in answers[1:])
        found = {name.decode(): value.decode() for name, value in answers[0]["headers"]}
        return answers[0]["status"], found, content


def talk(application, *requests):
    """The answers to several requests made at once, each given as the arguments of `Client.request`."""

    async def run():
        async with application.router.lifespan_context(application):
            client = Client(application)
            return await asyncio.gather(*(client.request(*request[:2], **dict(request[2:])) for request in requests))

    return asyncio.run(run())


@pytest.fixture
def application(tmp_path, questionnaire):
    from incrowd.survey.collector.service import application

    return application(Store(str(tmp_path / "s.sqlite"), questionnaire))


def post(envelope, **more):
    body = envelope if isinstance(envelope, bytes) else json.dumps(envelope).encode()
    return ("POST", "/records", ("body", body), *more.items())


def stored(tmp_path):
    return sum(Store(str(tmp_path / "s.sqlite")).cells().values())


def test_records_are_stored(application, questionnaire, tmp_path):
    randomizer = Randomizer(questionnaire)
    answers = talk(application, *(post(randomizer.envelope(ANSWERS)) for _ in range(50)))
    assert [status for status, _, _ in answers] == [201] * 50
    assert stored(tmp_path) == 50


def test_a_replay_is_stored_once(application, questionnaire, tmp_path):
    envelope = Randomizer(questionnaire).envelope(ANSWERS)
    answers = talk(application, *[post(envelope)] * 5)
    assert sorted(status for status, _, _ in answers) == [201, 409, 409, 409, 409]
    assert {json.loads(body)["error"]["code"] for status, _, body in answers if status == 409} == {"record-replayed"}
    assert stored(tmp_path) == 1


def wrong_envelopes(questionnaire):
    good = {"questionnaire": questionnaire.digest, "nonce": "0" * 32, "record": ANSWERS}
    yield b"", 400, "request-malformed"
    yield b"{", 400, "request-malformed"
    yield b"\xff\xfe", 400, "request-malformed"
    yield b"[" * 60_000, 400, "request-malformed"
    yield b'{"a":1,"a":2}', 400, "request-malformed"
    yield b"9" * 6000, 400, "request-malformed"
    yield [], 400, "request-malformed"
    yield None, 400, "request-malformed"
    yield {**good, "more": 1}, 400, "request-malformed"
    yield {"record": ANSWERS}, 400, "request-malformed"
    for nonce in ("0" * 31, "0" * 33, "G" * 32, "0" * 32 + "\n", 0, None, ["0" * 32]):
        yield {**good, "nonce": nonce}, 400, "request-malformed"
    for digest in ("0" * 64, None, 1, [questionnaire.digest]):
        yield {**good, "questionnaire": digest}, 409, "questionnaire-other"
    for record in (
        {},
        [],
        None,
        "f",
        {**ANSWERS, "name": "x"},
        {**ANSWERS, "age": "100"},
        {**ANSWERS, "age": 42},
        {**ANSWERS, "age": None},
        {**ANSWERS, "sex": ["f"]},
        {**ANSWERS, "sex": float("nan")},
        {**ANSWERS, "sex": {"f": 1}},
    ):
        yield {**good, "record": record}, 422, "answers-invalid"


def test_wrong_requests_get_clear_errors_and_store_nothing(application, questionnaire, tmp_path):
    cases = list(wrong_envelopes(questionnaire))
    answers = talk(application, *(post(envelope) for envelope, _, _ in cases))
    for (envelope, status, code), (said, headers, body) in zip(cases, answers, strict=True):
        error = json.loads(body)["error"]
        assert (said, error["code"]) == (status, code), envelope
        assert set(error) == {"code", "message", "remedy"}
        assert error["message"]
        assert headers["content-type"] == "application/json"
        assert "100" not in error["message"]
    assert stored(tmp_path) == 0


def test_large_requests_are_cut_off(application):
    cases = [
        post(b"x" * (LEAST_LIMIT + 1)),
        ("POST", "/records", ("parts", [b"x" * 40_000] * 1000)),
        post(b"x" * LEAST_LIMIT),
    ]
    answers = talk(application, *cases)
    assert [status for status, _, _ in answers] == [413, 413, 400]
    assert json.loads(answers[0][2])["error"]["code"] == "request-too-large"


def test_other_types_methods_and_paths(application, questionnaire):
    envelope = Randomizer(questionnaire).envelope(ANSWERS)
    answers = talk(
        application,
        post(envelope, headers=(("content-type", "text/plain"),)),
        post(envelope, headers=()),
        post(envelope, headers=(("content-type", "application/JSON; charset=utf-8"),)),
        ("GET", "/records"),
        ("OPTIONS", "/records"),
        ("DELETE", "/"),
        ("GET", "/../etc/passwd"),
        ("GET", "/static/page.js"),
    )
    assert [status for status, _, _ in answers] == [415, 415, 201, 405, 405, 405, 404, 404]
    allowed = [set(headers["allow"].split(", ")) for _, headers, _ in answers[3:6]]
    assert allowed == [{"POST"}, {"POST"}, {"GET", "HEAD"}]
    codes = [json.loads(body).get("error", {}).get("code") for _, _, body in answers]
    assert codes[:2] == ["request-type"] * 2
    assert codes[3:6] == ["method-not-allowed"] * 3
    assert codes[6:] == ["not-found"] * 2


def test_pages_allow_nothing_from_elsewhere_and_set_no_cookies(application, questionnaire):
    paths = ["/", "/page.js", "/randomizer.js", "/style.css", "/questionnaire", "/openapi.json", "/health"]
    answers = talk(application, *(("GET", path) for path in paths))
    for path, (status, headers, body) in zip(paths, answers, strict=True):
        assert status == 200, path
        assert headers["content-security-policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        assert headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer"
        assert not {"set-cookie", "server", "access-control-allow-origin"} & set(headers)
        assert b"http://" not in body
        assert b"https://" not in body
    page = answers[0][2].decode()
    assert "<style" not in page
    assert " style=" not in page
    assert page.count("<script") == 1
    assert 'src="page.js"></script>' in page
    assert json.loads(answers[4][2]) == questionnaire.document
    assert json.loads(answers[5][2]) == describe(questionnaire)


def test_a_closed_collection_says_so(application, questionnaire, tmp_path):
    other = Store(str(tmp_path / "s.sqlite"))
    other.finish()
    ((status, _, body),) = talk(application, post(Randomizer(questionnaire).envelope(ANSWERS)))
    assert (status, json.loads(body)["error"]["code"]) == (410, "collection-closed")


def test_a_store_that_fails_is_said_and_not_hidden(application, questionnaire, monkeypatch):
    def fail(*_):
        raise InputError("The store cannot be used: no room.", code="store-unavailable")

    monkeypatch.setattr(Store, "add", fail)
    ((status, _, body),) = talk(application, post(Randomizer(questionnaire).envelope(ANSWERS)))
    assert (status, json.loads(body)["error"]["code"]) == (503, "store-unavailable")


def test_requests_share_commits(application, questionnaire, monkeypatch):
    sizes = []
    add = Store.add
    monkeypatch.setattr(Store, "add", lambda self, entries: sizes.append(len(entries)) or add(self, entries))
    randomizer = Randomizer(questionnaire)
    talk(application, *(post(randomizer.envelope(ANSWERS)) for _ in range(200)))
    assert sum(sizes) == 200
    assert len(sizes) <= 5


def test_a_request_that_is_cut_short_is_no_bug(application):
    class Cut(Client):
        async def request(self, *_):
            answers = []

            async def receive():
                return {"type": "http.disconnect"}

            async def send(message):
                answers.append(message)

            scope = {"type": "http", "method": "POST", "path": "/records", "query_string": b"", "root_path": ""}
            scope |= {"headers": [(b"content-type", b"application/json")], "http_version": "1.1", "scheme": "http"}
            await self.application(scope, receive, send)
            return answers

    async def run():
        async with application.router.lifespan_context(application):
            return await Cut(application).request()

    assert asyncio.run(run())[0]["status"] == 400


def test_nonces_are_not_kept_as_they_are(application, questionnaire, tmp_path):
    envelope = Randomizer(questionnaire).envelope(ANSWERS)
    envelope["nonce"] = secrets.token_hex(16)
    talk(application, post(envelope))
    for file in tmp_path.iterdir():
        content = file.read_bytes()
        assert bytes.fromhex(envelope["nonce"]) not in content
        assert envelope["nonce"].encode() not in content
        assert b"192.0.2.77" not in content


def test_a_bug_is_not_shown_and_nothing_is_claimed(application, questionnaire, monkeypatch, caplog):
    """Starlette hands errors that it does not know on to the server, which would print them: none may get there."""

    def fail(_, entries):
        raise RuntimeError(f"secret {entries}")

    monkeypatch.setattr(Store, "add", fail)
    with caplog.at_level(logging.DEBUG):
        ((status, _, body),) = talk(application, post(Randomizer(questionnaire).envelope(ANSWERS)))
    said = json.loads(body)["error"]
    assert (status, said["code"]) == (500, "internal")
    assert "not known whether" in said["message"]
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text + body.decode()
    assert "500" in describe(questionnaire)["paths"]["/records"]["post"]["responses"]


def test_the_longest_record_of_a_questionnaire_fits(tmp_path):
    long = tuple(text * 2000 for text in "üß")
    asked = [Question(f"{number}" + "ü" * 1990, "A?", long, long, 2**60) for number in range(10)]
    made = Questionnaire.make("T", asked, records=10)
    envelope = Randomizer(made).envelope({question.name: long[0] for question in asked})
    assert LEAST_LIMIT < len(json.dumps(envelope)) < largest_body(made)
    answers = talk(
        service.application(Store(str(tmp_path / "l.sqlite"), made)),
        post(envelope),
        post(b"x" * (largest_body(made) + 1)),
    )
    assert [status for status, _, _ in answers] == [201, 413]


def test_it_mixes_while_it_runs_and_goes_on_after_any_failure(tmp_path, questionnaire, monkeypatch, caplog):
    monkeypatch.setattr(batches, "_PAUSE", 0.001)
    monkeypatch.setattr("incrowd.survey.collector.store._LEAST_PAUSE", 0.0)
    monkeypatch.setattr("incrowd.survey.collector.store._MOST_SHARE", 0)
    store = Store(str(tmp_path / "s.sqlite"), questionnaire)
    mix, failing, calls = store.mix, [MemoryError("secret")] * 4 + [InputError("no room", code="store-unavailable")], []

    states, made = set(), Batches(store)

    def sometimes():
        calls.append(1)
        states.add(made.mixes)
        if failing:
            raise failing.pop()
        mix()

    monkeypatch.setattr(store, "mix", sometimes)

    async def run():
        await made.start()
        await made.add(store.entry("0" * 32, (0, 0, 0)))
        while failing or not made.mixes:
            await asyncio.sleep(0.001)
        before = len(calls)
        await made.add(store.entry("1" * 32, (0, 0, 0)))
        while len(calls) == before:
            await asyncio.sleep(0.001)
        await made.stop()

    asyncio.run(asyncio.wait_for(run(), 120))
    assert states == {True, False}
    assert "MemoryError" in caplog.text
    assert "secret" not in caplog.text


def test_health_says_if_records_are_not_mixed(application, questionnaire, monkeypatch):
    monkeypatch.setattr(Batches, "mixes", False)
    ((status, _, body),) = talk(application, ("GET", "/health"))
    assert (status, json.loads(body)["error"]["code"]) == (503, "store-unavailable")
    assert "503" in describe(questionnaire)["paths"]["/health"]["get"]["responses"]


def test_a_store_left_unmixed_is_said_when_it_stops(application, monkeypatch, caplog):
    def fail(_):
        raise MemoryError

    monkeypatch.setattr(Store, "mix", fail)
    talk(application, ("GET", "/health"))
    assert "unmixed" in caplog.text


def test_the_server_keeps_no_log(application, monkeypatch):
    pytest.importorskip("uvicorn", reason="the extra 'collect' is not installed")
    from incrowd.core.connections import Server
    from incrowd.core.server import listen, run

    seen = []
    monkeypatch.setattr(Server, "run", lambda self: seen.append(self.config))
    with listen("127.0.0.1", 0) as listening:
        run(application, listening)
    (config,) = seen
    assert config.access_log is False
    assert config.log_level == "error"
    assert not config.server_header
    assert not config.proxy_headers


@pytest.mark.parametrize("given", ["certfile", "keyfile"])
def test_a_certificate_and_its_key_come_together(tmp_path, questionnaire, given):
    store = Store(str(tmp_path / "s.sqlite"), questionnaire)
    with pytest.raises(InputError) as caught:
        service.serve(store, port=0, **{given: "tls.pem"})
    assert caught.value.code == "collector-address"
    store.close()
