"""The page in a real browser: it randomises there, sends that and nothing else, and talks to nobody else."""

import json
import shutil
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from incrowd.survey import Question, Questionnaire
from incrowd.survey.collector.store import Store

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
ASSETS = ["/", "/style.css", "/page.js", "/randomizer.js", "/questionnaire"]


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def site(tmp_path, collector):
    def start(made):
        (tmp_path / "q.json").write_bytes(made.to_bytes())
        return collector(tmp_path)[1]

    return start


def visit(browser, address, **options):
    """A page, everything it asked for, and whatever went wrong in it."""
    page = browser.new_context(**options).new_page()
    asked, wrong = [], []
    page.on("request", lambda request: asked.append(request))  # noqa: PLW0108 - it marks what it is given
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(address)
    return page, asked, wrong


def fill(page):
    page.get_by_label("Female").check()
    page.get_by_role("group", name="How do you go to work on most days?").get_by_label("By bicycle").check()
    page.get_by_label("How old are you, in completed years?").select_option("42")


def send(page):
    page.get_by_role("button", name="Randomise and send").click()


def test_it_shows_the_promise_and_sends_one_randomised_record(browser, site, asking, tmp_path):
    made = asking()
    address = site(made)
    page, asked, wrong = visit(browser, address)
    page.get_by_role("heading", name=made.title).wait_for()
    assert page.locator("#words li").all_text_contents() == made.promise["in_words"]
    fill(page)
    send(page)
    page.get_by_role("heading", name="Thank you").wait_for()
    page.get_by_text("What was sent").click()
    assert wrong == []
    assert sorted(urlsplit(request.url).path for request in asked if request.method == "GET") == sorted(ASSETS)
    assert all(request.url.startswith(address) for request in asked)
    (posted,) = [request for request in asked if request.method == "POST"]
    envelope = json.loads(posted.post_data)
    assert set(envelope) == {"questionnaire", "nonce", "record"}
    shown = page.locator("#outcome td").all_text_contents()
    labels = [q.labels[q.values.index(envelope["record"][q.name])] for q in made.questions]
    assert shown == labels
    assert page.context.cookies() == []
    assert page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]
    with closing(Store(str(tmp_path / "s.sqlite"))) as store:
        assert store.cells() == {made.codes(envelope["record"]): 1}


@pytest.mark.statistical
def test_what_leaves_the_browser_is_not_what_was_answered(browser, site, asking):
    """With retentions near 0 the records sent are uniform, whatever was answered.

    Of twelve records five or more with the age that was given come with a probability below 2e-7, and twelve with the
    means of transport that was given with one below 1e-8. A page that sent the answers themselves would send only
    these.
    """
    page, asked, wrong = visit(browser, site(asking(rho=0.001)))
    for _ in range(12):
        page.get_by_label("Female").wait_for()
        fill(page)
        send(page)
        page.get_by_role("heading", name="Thank you").wait_for()
        page.reload()
    records = [json.loads(request.post_data)["record"] for request in asked if request.method == "POST"]
    assert wrong == []
    assert len(records) == 12
    assert sum(record["age"] == "42" for record in records) < 5
    assert sum(record["commute"] == "bike" for record in records) < 12


def test_with_a_high_retention_answers_mostly_arrive(browser, site, asking):
    page, asked, _ = visit(browser, site(asking(rho=0.999999999)))
    fill(page)
    send(page)
    page.get_by_role("heading", name="Thank you").wait_for()
    (posted,) = [request for request in asked if request.method == "POST"]
    assert json.loads(posted.post_data)["record"] == {"sex": "f", "commute": "bike", "age": "42"}


def test_unanswered_questions_are_pointed_out_and_nothing_is_sent(browser, site, asking):
    page, asked, _ = visit(browser, site(asking()))
    page.get_by_label("Female").check()
    send(page)
    assert page.locator(".problem:visible").count() == 2
    assert page.evaluate("document.activeElement.name") == "q1"
    assert not [request for request in asked if request.method == "POST"]


def test_a_failed_sending_repeats_the_same_record(browser, site, asking):
    page, asked, _ = visit(browser, site(asking()))
    page.route("**/records", lambda route: route.abort(), times=1)
    fill(page)
    send(page)
    page.get_by_text("Do not reload and do not answer again").wait_for()
    page.get_by_role("button", name="Send again").click()
    page.get_by_role("heading", name="Thank you").wait_for()
    first, second = [request.post_data for request in asked if request.method == "POST"]
    assert first == second


def test_an_answer_that_was_lost_on_the_way_back_is_no_failure(browser, site, asking, tmp_path):
    """The record was stored, but the page did not hear of it: the second sending is recognised."""
    page, _, _ = visit(browser, site(asking()))

    def lose(route):
        route.fetch()
        route.abort()

    page.route("**/records", lose, times=1)
    fill(page)
    send(page)
    page.get_by_role("button", name="Send again").click()
    page.get_by_role("heading", name="Thank you").wait_for()
    with closing(Store(str(tmp_path / "s.sqlite"))) as store:
        assert sum(store.cells().values()) == 1


def test_a_dishonest_questionnaire_is_not_shown(browser, site, asking):
    made = asking()
    address = site(made)
    changed = json.loads(json.dumps(made.document))
    changed["attributes"][0]["retention"]["numerator"] = str(2**64 - 1)
    page = browser.new_context().new_page()
    page.route("**/questionnaire", lambda route: route.fulfill(json=changed))
    page.goto(address)
    page.get_by_text("promises what its retentions do not keep").wait_for()
    assert page.get_by_role("button").count() == 0


def test_texts_are_texts(browser, site, asking):
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    page, asked, wrong = visit(browser, site(asking(title=evil)))
    page.get_by_role("heading", name=evil).wait_for()
    assert page.locator("img").count() == 0
    assert wrong == []
    assert len(asked) == len(ASSETS)


def test_every_field_has_a_name_for_those_who_listen(browser, site, asking):
    page, _, _ = visit(browser, site(asking()))
    page.get_by_label("Female").wait_for()
    assert page.get_by_role("radio").count() == 7
    assert page.get_by_role("group", name="What is your sex?").count() == 1
    assert page.get_by_role("combobox", name="How old are you, in completed years?").count() == 1
    unnamed = "[...document.querySelectorAll('input,select')].filter((field) => field.labels.length === 0).length"
    assert page.evaluate(unnamed) == 0
    page.get_by_label("Female").focus()
    page.keyboard.press("Space")
    assert page.get_by_label("Female").is_checked()


def leaving(page):
    """Try to reload, stay if asked, and say whether there was a question."""
    asked = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    page.evaluate("setTimeout(() => location.reload(), 0)")
    page.wait_for_timeout(300)
    return asked


def test_the_page_asks_before_it_is_left_with_a_record_not_acknowledged(browser, site, asking):
    page, _, _ = visit(browser, site(asking()))
    page.route("**/records", lambda route: route.abort(), times=1)
    fill(page)
    send(page)
    page.get_by_text("It may have arrived. Do not reload and do not answer again; use this button").wait_for()
    assert leaving(page) == ["beforeunload"]
    page.get_by_role("button", name="Send again").click()
    page.get_by_role("heading", name="Thank you").wait_for()
    assert leaving(page) == []


FOREIGN = [
    {"status": 200, "body": "<html>Log in to the network</html>", "content_type": "text/html"},
    {"status": 200, "json": {"stored": True}},
    {"status": 201, "json": {"stored": False}},
    {"status": 201, "body": ""},
    {"status": 409, "json": {"error": {"code": "questionnaire-other", "message": "Other.", "remedy": ""}}},
    {"status": 500, "json": None},
    {"status": 502, "body": "<html>bad</html>", "content_type": "text/html"},
]


def test_only_the_services_own_answer_counts(browser, site, asking):
    page, _, wrong = visit(browser, site(asking()))
    fill(page)
    answers = iter(FOREIGN)
    page.route("**/records", lambda route: route.fulfill(**next(answers)), times=len(FOREIGN))
    for attempt in range(len(FOREIGN)):
        with page.expect_response("**/records"):
            page.get_by_role("button", name="Send again" if attempt else "Randomise and send").click()
        page.locator("button:enabled").wait_for()  # or, were it taken for stored, never
        assert page.get_by_text("It may have arrived.").count() == 1
    assert not [text for text in wrong if "status of" not in text]  # the browser itself notes the status
    page.get_by_role("button", name="Send again").click()
    page.get_by_role("heading", name="Thank you").wait_for()


def test_an_attribute_may_have_any_name(browser, site):
    asked = [Question(name, f"{name}?", ("x", "y"), ("x", "y"), 2**60) for name in ("__proto__", "constructor")]
    page, sent, wrong = visit(browser, site(Questionnaire.make("Names", asked, records=100)))
    for question in asked:
        page.get_by_role("group", name=question.text).get_by_label("x").check()
    send(page)
    page.get_by_role("heading", name="Thank you").wait_for()
    (posted,) = [request for request in sent if request.method == "POST"]
    assert set(json.loads(posted.post_data)["record"]) == {"__proto__", "constructor"}
    assert wrong == []


def test_a_record_that_cannot_be_drawn_is_said(browser, site, asking):
    page, asked, _ = visit(browser, site(asking()))
    page.evaluate("crypto.getRandomValues = () => new Uint8Array(0)")
    fill(page)
    send(page)
    page.get_by_text("Nothing was sent.").wait_for()
    assert not [request for request in asked if request.method == "POST"]
