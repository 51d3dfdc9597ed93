"""The journey of the person who decides: what if, the ledger before and after, signed copies, and what others see."""

import json

import pytest

from incrowd import api

pytestmark = pytest.mark.xdist_group("browser")

LONG = 120_000  # milliseconds: the machine may be busy
WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 390, "height": 844}


@pytest.fixture
def studio(lasting_studio):
    return lasting_studio


def fine(page, axe):
    assert page.wrong == []
    assert page.elsewhere == []
    assert [one for one in axe(page) if one[1] in {"serious", "critical"}] == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def begin(page, studio, text):
    said = {"text": text, "base": str(studio.folder), "path": str(studio.folder / "town.yaml"), "valid": True}
    page.evaluate("said => sessionStorage.setItem('desk', JSON.stringify(said))", said)


def dots(page, many):
    page.wait_for_function("many => document.querySelectorAll('[data-dot]').length >= many", arg=many, timeout=LONG)


def jobs_left(studio):
    (private,) = studio.temporary.glob("incrowd-studio-*")
    return list(private.glob("jobs/*/scratch"))


def test_what_if_is_moved_tried_and_written_back(studio, enter, shoot, axe):
    text = (studio.folder / "town.yaml").read_text(encoding="utf-8")
    page = enter("plan", viewport=WIDE, bypass_csp=True)
    begin(page, studio, text)
    page.goto(f"{studio.address}/whatif")
    page.locator("#seen .seen").wait_for(timeout=LONG)
    dots(page, 1)
    assert "Internal" in page.locator("#whatif-mark").inner_text()
    page.get_by_label("ε", exact=True).fill("3")
    page.keyboard.press("Tab")
    dots(page, 2)
    page.get_by_label("age", exact=True).uncheck()
    dots(page, 3)
    page.get_by_text("not published").wait_for()
    fine(page, axe)
    shoot(page, "whatif-wide")
    page.get_by_label("Mechanism").select_option("views")
    dots(page, 4)
    page.get_by_role("button", name="Undo").click()
    dots(page, 5)
    page.get_by_role("button", name="Try what lies around").click()
    dots(page, 7)
    page.get_by_role("button", name="Write into the policy").click()
    page.locator("#write-said a").first.wait_for()
    written = json.loads(page.evaluate("sessionStorage.getItem('desk')"))["text"]
    said = api.policy_outline(written)
    assert (said["release"]["mechanism"], said["release"]["epsilon"]) == ("sampled_crowd", "3")
    assert said["attributes"]["age"]["role"] == "drop"
    assert "# how old, in completed years" in written  # what is edited stands alone
    page.set_viewport_size(NARROW)
    page.emulate_media(color_scheme="dark")
    fine(page, axe)
    shoot(page, "whatif-narrow-dark")
    page.goto(f"{studio.address}/plan")  # the table is forgotten with its page
    for _ in range(600):
        if not jobs_left(studio):
            break
        page.wait_for_timeout(100)
    assert not jobs_left(studio)


def test_signed_copies_with_the_ledger_before_and_after_and_what_others_see(studio, enter, shoot, axe):
    text = (studio.folder / "town.yaml").read_text(encoding="utf-8")
    page = enter("plan", viewport=NARROW, bypass_csp=True)
    begin(page, studio, f"{text}ledger: {{path: copies.sqlite, dataset: town, epsilon: 3, delta: 1e-5}}\n")
    page.goto(f"{studio.address}/release")
    page.get_by_text("Format, copies, signature").click()
    page.get_by_label("Independent copies").fill("2")
    page.get_by_label("Format").select_option("csv")
    page.get_by_role("button", name="Make them").click()
    fingerprint = page.locator("#keys-said code").inner_text()
    page.get_by_role("button", name="Rehearse").click()
    page.locator("#foreseen table").wait_for(timeout=LONG)
    foreseen = page.locator("#foreseen").inner_text()
    assert "first release" in foreseen
    assert not (studio.folder / "copies.sqlite").exists()
    page.get_by_label("This is the first release of the dataset").check()
    page.get_by_label("A new folder for the release").fill("copies")
    fine(page, axe)
    shoot(page, "release-narrow")
    page.get_by_role("button", name="Publish").click()
    page.get_by_text("Published: 2 copies").wait_for(timeout=LONG)
    statement = api.ledger_statement(studio.folder / "copies.sqlite", "town")
    assert [line.recorded.entry.copies for line in statement.releases] == [2]
    found = api.verify(studio.folder / "copies-2", studio.folder / "public.pem")
    assert found.valid
    assert found.signed_by == fingerprint
    page.get_by_role("link", name="See what others see").click()
    page.locator("#rows table").wait_for(timeout=LONG)
    page.set_viewport_size(WIDE)
    page.emulate_media(color_scheme="dark")
    page.locator("#group-by").get_by_label("district").check()
    page.locator("#rows .meter-cell").first.wait_for()
    rows = page.locator("#rows tbody tr")
    told = {row.values[0]: row.estimate for row in api.estimate(studio.folder / "copies-1", ["district"]).rows}
    shown = {cells[0]: cells[2] for cells in (row.locator("td").all_inner_texts() for row in rows.all())}
    assert {name: f"{round(value):,}" for name, value in told.items()} == shown
    page.locator("#filters").get_by_label("district").fill("=north")
    page.wait_for_function("() => document.querySelectorAll('#rows tbody tr').length === 1")
    fine(page, axe)
    shoot(page, "browse-wide-dark")
    page.get_by_role("tab", name="Estimate").click()
    page.locator("#estimate-by").get_by_label("sex").check()
    page.get_by_role("button", name="Estimate", exact=True).click()
    page.locator("#estimated svg").wait_for()
    fine(page, axe)
    shoot(page, "browse-estimate")
    page.get_by_role("tab", name="Download").click()
    with page.expect_download(timeout=LONG) as taken:
        page.get_by_role("button", name="Parquet").click()
    assert taken.value.suggested_filename == "release.parquet"
    fine(page, axe)
