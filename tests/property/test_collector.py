"""Whatever is sent to the collector, it answers as its OpenAPI description says, and never with a failure."""

import asyncio
import json
import re

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from incrowd.survey import Question, Questionnaire
from incrowd.survey.collector.openapi import NONCE, describe
from incrowd.survey.collector.store import Store

pytest.importorskip("starlette", reason="the extra 'collect' is not installed")

VALUES = ("x", "y", "ü", None)
MADE = Questionnaire.make(
    "Any",
    [Question("a", "A?", ("0", "1"), ("0", "1"), 2**62), Question("b", "B?", VALUES, ("x", "y", "ü", "-"), 2**60)],
    records=1000,
)
API = describe(MADE)
SCHEMA = API["paths"]["/records"]["post"]["requestBody"]["content"]["application/json"]["schema"]

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def described(schema):
    """Values that a schema of the description allows."""
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "const" in schema:
        return st.just(schema["const"])
    if schema.get("type") == "object":
        return st.fixed_dictionaries({key: described(inner) for key, inner in schema["properties"].items()})
    return st.from_regex(schema["pattern"], fullmatch=True)


@st.composite
def nearly(draw):
    """An allowed request with one place changed into anything."""
    envelope = draw(described(SCHEMA))
    path = draw(
        st.sampled_from([("questionnaire",), ("nonce",), ("record",), ("record", "a"), ("record", "b"), ("c",)])
    )
    place = envelope
    for key in path[:-1]:
        place = place[key]
    if draw(st.booleans()):
        place.pop(path[-1], None)
    else:
        place[path[-1]] = draw(anything)
    return envelope


bodies = st.builds(lambda value: json.dumps(value).encode(), described(SCHEMA) | nearly() | anything) | st.binary(
    max_size=300
)
kinds = st.sampled_from(
    ["application/json"] * 4 + ["Application/JSON; charset=utf-8", "text/plain", "", "application/json\x00"]
)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """A function that sends one request to a running application."""
    from incrowd.survey.collector.service import application

    service = application(Store(str(tmp_path_factory.mktemp("store") / "s.sqlite"), MADE))
    loop = asyncio.new_event_loop()
    life = service.router.lifespan_context(service)
    loop.run_until_complete(life.__aenter__())

    async def ask(method, path, body, kind):
        said = []
        sent = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive():
            return sent.pop() if sent else {"type": "http.disconnect"}

        async def send(message):
            said.append(message)

        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "path": path,
            "query_string": b"",
            "root_path": "",
        }
        scope |= {"scheme": "http", "headers": [(b"content-type", kind.encode())]}
        await service(scope, receive, send)
        headers = dict(said[0]["headers"])
        return said[0]["status"], headers, b"".join(message.get("body", b"") for message in said[1:])

    yield lambda *request: loop.run_until_complete(ask(*request))
    loop.run_until_complete(life.__aexit__(None, None, None))
    loop.close()


def allowed(content):
    return (
        isinstance(content, dict)
        and set(content) == {"questionnaire", "nonce", "record"}
        and content["questionnaire"] == MADE.digest
        and isinstance(content["nonce"], str)
        and re.fullmatch(NONCE.strip("^$"), content["nonce"]) is not None
        and isinstance(content["record"], dict)
        and set(content["record"]) == {"a", "b"}
        and content["record"]["a"] in ["0", "1"]
        and any(content["record"]["b"] is value or content["record"]["b"] == value for value in VALUES)
    )


@settings(deadline=None, max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=bodies, kind=kinds)
def test_a_record_is_answered_as_described(answers, body, kind):
    status, headers, content = answers("POST", "/records", body, kind)
    response = API["paths"]["/records"]["post"]["responses"]
    assert str(status) in response
    assert status < 500
    assert headers[b"content-type"] == b"application/json"
    said = json.loads(content)
    if status == 201:
        assert said == {"stored": True}
        assert allowed(json.loads(body))
    else:
        assert set(said) == {"error"}
        assert set(said["error"]) == {"code", "message", "remedy"}
        assert said["error"]["code"] in response[str(status)]["description"]


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(envelope=described(SCHEMA))
def test_what_the_description_allows_is_stored_once(answers, envelope):
    body = json.dumps(envelope).encode()
    first = answers("POST", "/records", body, "application/json")[0]
    assert first in (201, 409)
    assert answers("POST", "/records", body, "application/json")[0] == 409


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    method=st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"]),
    path=st.sampled_from([*API["paths"], "/page.js", "/randomizer.js"]) | st.text(max_size=20).map(lambda t: f"/{t}"),
    body=st.binary(max_size=50),
)
def test_other_requests_get_a_page_or_one_shape_of_error(answers, method, path, body):
    assume("\ud800" not in path)
    status, headers, content = answers(method, path, body, "application/json")
    assert status in (200, 400, 404, 405)
    assert b"set-cookie" not in headers
    if status != 200:
        assert set(json.loads(content)["error"]) == {"code", "message", "remedy"}
