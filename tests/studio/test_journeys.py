"""Whole journeys through the studio, in a real browser."""

import json
import sqlite3
import zipfile

import pytest

from incrowd import Policy, api
from studio_pages import (
    LONG,
    column,
    confirm_all,
    look_at,
    open_policy,
    policy_of,
    quiet,
    unfold,
    wait_for_text,
    write_policy,
)

pytestmark = pytest.mark.xdist_group("browser")

GENERALIZATION = """\
  mechanism: generalization
  adversaries: [{name: a neighbour, belief_ratio: 6, stubbornness: 200}]
  require: [{k: 5}]
  suppression: 0.05
"""


def publish(page, folder):
    page.get_by_role("link", name="Release", exact=True).click()
    page.get_by_label("A new folder for the release").fill(folder)
    page.get_by_role("button", name="Publish").click()


def wait_for_release(page):
    page.get_by_role("button", name="Verify").wait_for(timeout=LONG)


@pytest.fixture
def studio(lasting_studio):
    return lasting_studio


def see_and_check(page, shoot):
    """Everything that is shown of a release, and whether it is valid."""
    for part in ("public", "groups", "compare", "internal"):
        page.locator(f"#tab-{part}").click()
        page.frame_locator(f"#panel-{part} iframe").locator("h1").wait_for()
    shoot(page, "release-internal")
    page.get_by_role("button", name="Verify").click()
    page.get_by_text("every check holds").wait_for(timeout=LONG)
    quiet(page)


def test_from_a_plan_to_a_verified_download(studio, enter, shoot, tmp_path):
    page = enter()
    page.locator(".reading").wait_for()
    page.locator("#epsilon-number").fill("2")
    page.locator("[data-answer*='\"epsilon\": 2.0']").wait_for(state="attached")
    assert "50 to 50" in page.locator(".reading").inner_text()
    planned = json.loads(page.locator("#crowd-results [data-answer]").get_attribute("data-answer"))
    assert planned == {
        "beta": 0.2,
        "delta": 1e-6,
        "epsilon": 2.0,
        "k": api.plan_crowd(epsilon=2, delta=1e-6, beta=0.2).k,
    }
    quiet(page)
    shoot(page, "plan-crowd")
    page.locator("#use-crowd").click()
    page.get_by_text("ready for the policy").wait_for()

    page.get_by_role("link", name="Policy", exact=True).click()
    look_at(page)
    assert "4,000 records" in page.locator("#table-said").inner_text()
    shoot(page, "data-draft")
    confirm_all(page)
    page.get_by_role("button", name="Use the plan").click()
    page.locator("#policy-state.no").wait_for()  # nothing is left of ε to choose how coarse ages become: say it
    column(page, "age").get_by_label("Published at").select_option("3")
    column(page, "illness").get_by_label("others want to know it").check()
    page.locator("#policy-state.yes").wait_for()
    quiet(page)
    page.get_by_label("Its file").fill("mine.yaml")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved as").wait_for()
    saved = studio.folder / "mine.yaml"
    assert saved.read_text(encoding="utf-8") == policy_of(page)
    assert Policy.from_file(saved).attributes["illness"].role == "sensitive"
    with page.expect_download() as taken:
        page.get_by_role("button", name="Download").click()
    assert taken.value.suggested_filename == "mine.yaml"

    publish(page, "town-2026")
    wait_for_release(page)
    shoot(page, "release-certificate")
    certificate = json.loads((studio.folder / "town-2026" / "certificate.json").read_bytes())
    assert (certificate["promise"]["epsilon"], certificate["mechanism"]["k"]) == (2.0, planned["k"])
    see_and_check(page, shoot)
    with page.expect_download() as taken:
        page.get_by_role("link", name="Download the public folder").click()
    taken.value.save_as(tmp_path / "public.zip")
    with zipfile.ZipFile(tmp_path / "public.zip") as packed:
        names = ["certificate.json", "datapackage.json", "release.parquet", "report.html"]
        assert sorted(packed.namelist()) == [f"town-2026/{name}" for name in names]
        packed.extractall(tmp_path / "unpacked")
    assert api.verify(tmp_path / "unpacked" / "town-2026").valid


def test_a_wrong_file_is_explained(studio, enter, shoot):
    (studio.folder / "picture.csv").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    page = enter("data")
    page.get_by_label("The table, by its path").fill("picture.csv")
    page.get_by_role("button", name="Look at it").click()
    problem = page.locator("#look-error .problem")
    problem.wait_for(timeout=LONG)
    assert "data-format" in problem.inner_text()
    assert page.locator("#editor").is_hidden()
    page.get_by_label("The table, by its path").fill("no-such-file.csv")
    page.get_by_role("button", name="Look at it").click()
    page.locator("#look-error code", has_text="data-not-found").wait_for(timeout=LONG)
    page.get_by_label("The table, by its path").fill("/etc/passwd")
    page.get_by_role("button", name="Look at it").click()
    page.locator("#look-error code", has_text="path-outside").wait_for()
    shoot(page, "data-wrong-file")


def test_a_cancelled_run_leaves_nothing_behind(studio, enter, shoot):
    columns = [f"c{i}" for i in range(12)]
    rows = "\n".join(",".join(str((i * (j + 3) + i // 7) % 16) for j in range(12)) for i in range(30_000))
    (studio.folder / "wide.csv").write_text(f"{','.join(columns)}\n{rows}\n", encoding="utf-8")
    said = "{type: integer, domain: {from: 0, to: 15}, hierarchy: {widths: [2, 4, 8]}}"
    attributes = "".join(f"  {name}: {said}\n" for name in columns)
    release = "release: {mechanism: generalization, require: [{k: 50}], time_limit: 300}\n"
    page = enter("data")
    open_policy(page)
    write_policy(page, f"incrowd: 1\ndata: {{path: wide.csv}}\nattributes:\n{attributes}{release}")
    before = sorted(path.name for path in studio.folder.iterdir())
    publish(page, "stopped")
    page.get_by_text("Looking for the best table").wait_for(timeout=LONG)
    shoot(page, "release-running")
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("Stopped. Nothing was left behind.").wait_for(timeout=LONG)
    assert sorted(path.name for path in studio.folder.iterdir()) == before
    (private,) = studio.temporary.glob("incrowd-studio-*")
    assert not list(private.glob("jobs/*/scratch"))
    quiet(page)


def test_two_windows_do_not_disturb_each_other(studio, enter):
    one = enter("data")
    two = enter("data", context=one.context)
    text = (studio.folder / "town.yaml").read_text(encoding="utf-8")
    for page, epsilon in ((one, "1"), (two, "2")):
        open_policy(page)
        write_policy(page, text.replace("epsilon: 1\n", f"epsilon: {epsilon}\n", 1))
    one.reload()
    one.locator("#policy-state.yes").wait_for()
    assert "  epsilon: 1\n" in policy_of(one)
    assert "  epsilon: 2\n" in policy_of(two)
    publish(one, "first")
    publish(two, "second")
    for page, folder, epsilon in ((one, "first", 1.0), (two, "second", 2.0)):
        wait_for_release(page)
        assert page.locator(".release").get_attribute("data-folder") == str(studio.folder / folder)
        certificate = json.loads((studio.folder / folder / "certificate.json").read_bytes())
        assert certificate["promise"]["epsilon"] == epsilon
        quiet(page)


def test_the_policy_is_edited_with_care(studio, enter, shoot):
    page = enter("data")
    open_policy(page)
    before = policy_of(page)
    district = column(page, "district")
    district.get_by_label("Given as").nth(1).select_option("taxonomy")
    tree = district.get_by_role("tree")
    tree.get_by_role("treeitem", name="north").focus()
    page.keyboard.press("Insert")  # a group around it
    page.keyboard.type("cold")
    page.keyboard.press("Enter")
    tree.get_by_role("treeitem", name="cold").wait_for()
    page.keyboard.press("End")  # west
    page.keyboard.press("Insert")
    page.keyboard.type("windy")
    page.keyboard.press("Enter")
    tree.get_by_role("treeitem", name="windy").wait_for()
    page.keyboard.press("ArrowUp")  # east, up to south's place, then into the group before it
    page.keyboard.press("Alt+ArrowUp")
    page.keyboard.press("Alt+ArrowRight")
    district.get_by_text("cold · south · windy").wait_for()
    shoot(page, "data-tree")
    after = policy_of(page)
    assert api.policy_outline(after)["attributes"]["district"]["hierarchy"]["taxonomy"] == {
        "cold": ["north", "east"],
        "south": None,
        "windy": ["west"],
    }
    assert [line for line in before.splitlines() if line not in after.splitlines()] == [
        "  district: {domain: [north, south, east, west]}"
    ]
    assert "# how old, in completed years" in after
    # What is written by hand is checked while it is written, in the library's own words.
    unfold(page)
    page.locator("#policy").fill(before.replace("type: integer", "typ: integer"))
    problem = page.locator("#policy-problems .problem")
    problem.get_by_text("did you mean 'type'?").wait_for()
    problem.get_by_role("button", name="line 6").click()
    assert page.evaluate("document.activeElement.id") == "policy"
    shoot(page, "data-problem")
    quiet(page)


def test_the_form_of_views_writes_keys_within_keys_and_lists(studio, enter):
    text = (studio.folder / "town.yaml").read_text(encoding="utf-8")
    page = enter("data")
    open_policy(page)
    write_policy(page, f"{text[: text.index('  mechanism')]}  mechanism: views\n  epsilon: 2\n  delta: 1e-5\n")

    def put(label, value, key):
        page.get_by_label(label, exact=True).fill(value)
        page.keyboard.press("Tab")
        page.wait_for_function("said => document.querySelector('#policy').value.includes(said)", arg=key)

    page.get_by_label("Views are chosen", exact=True).select_option("adaptive")
    wait_for_text(page, "choose:")
    assert api.policy_outline(page.locator("#policy").input_value())["release"]["choose"] == {"how": "adaptive"}
    page.get_by_label("Views are chosen", exact=True).select_option("")  # what is usual is left unsaid
    page.wait_for_function("() => !document.querySelector('#policy').value.includes('choose')")
    page.get_by_text("More of the mechanism", exact=True).click()
    page.get_by_label("A synthetic table", exact=True).select_option("none")
    wait_for_text(page, "combine: none")
    put("or listed: age, sex; region, income", "age, sex; sex, district", "views:")
    said = api.policy_outline(page.locator("#policy").input_value())["release"]
    assert said["views"] == [["age", "sex"], ["sex", "district"]]
    shown = page.get_by_label("or listed: age, sex; region, income", exact=True)
    assert shown.input_value() == "age, sex; sex, district"
    quiet(page)


def test_a_rehearsal_costs_nothing_and_the_first_release_starts_the_ledger(studio, enter, shoot):
    page = enter("data", viewport={"width": 390, "height": 844})
    open_policy(page)
    ledger = "ledger: {path: rehearsed.sqlite, dataset: rehearsed, epsilon: 3, delta: 1e-5}\n"
    write_policy(page, (studio.folder / "town.yaml").read_text(encoding="utf-8") + ledger)
    page.get_by_label("Releases are counted").select_option("unit")
    page.get_by_label("one unit").wait_for()
    assert api.policy_outline(policy_of(page))["ledger"]["unit"] == "k=17,beta=0.3"
    page.get_by_label("Releases are counted").select_option("order")
    page.get_by_label("one unit").wait_for(state="detached")
    said = api.policy_outline(policy_of(page))["ledger"]
    assert said["rule"] == "order"
    assert "unit" not in said

    page.get_by_role("link", name="Release", exact=True).click()
    before = sorted(path.name for path in studio.folder.iterdir())
    page.get_by_role("button", name="Rehearse").click()
    shown = page.locator(".rehearsal")
    shown.wait_for(timeout=LONG)
    assert "What it is good for" in shown.inner_text()
    assert shown.locator("tbody th").all_inner_texts() == ["age", "sex", "district", "illness"]
    page.get_by_text("The internal report", exact=True).click()
    page.frame_locator(".rehearsal iframe").locator("h1").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    quiet(page)
    shoot(page, "release-rehearsal")
    assert sorted(path.name for path in studio.folder.iterdir()) == before

    publish(page, "rehearsed")
    page.locator("#run-error code", has_text="ledger-new").wait_for(timeout=LONG)
    page.get_by_label("This is the first release of the dataset").check()
    page.get_by_role("button", name="Publish").click()
    wait_for_release(page)
    statement = api.ledger_statement(studio.folder / "rehearsed.sqlite", "rehearsed")
    assert statement.budget.rule == "order"
    assert len(statement.releases) == 1
    quiet(page)


def test_the_lattice_answers(studio, enter, shoot):
    text = (studio.folder / "town.yaml").read_text(encoding="utf-8")
    page = enter("data")
    open_policy(page)
    write_policy(page, text[: text.index("  mechanism")] + GENERALIZATION)
    publish(page, "general")
    wait_for_release(page)
    page.get_by_role("tab", name="Lattice").click()
    detail = page.locator(".lattice-view .detail")
    assert "This one was taken." in detail.inner_text()
    boxes = page.locator("[data-node]")
    assert boxes.count() == 4 * 2 * 2  # age, sex, district
    content = json.loads((studio.folder / "general.internal" / "lattice.json").read_bytes())
    finest = next(one for one in content["nodes"] if one["node"] == [0, 0, 0])
    page.locator('[data-node="0,0,0"]').hover()
    detail.get_by_role("heading", name="age 0, sex 0, district 0").wait_for()
    assert "100%" in detail.inner_text()
    assert finest["information"] == 1.0
    page.locator('[data-node="3,1,1"]').focus()
    page.keyboard.press("ArrowDown")
    detail.get_by_role("heading", name="age 3, sex 1, district 1").wait_for(state="detached")
    assert "Who it withstands" in detail.inner_text()
    shoot(page, "release-lattice")
    quiet(page)


def test_audit_ledger_and_attacks(studio, enter, shoot):
    api.ledger_budget(studio.folder / "budget.sqlite", "town", epsilon=4, delta=1e-5)
    page = enter("audit")
    page.get_by_label("The table, by its path").fill("town.csv")
    page.get_by_role("button", name="Show its columns").click()
    page.get_by_label("age: others may know it").check(timeout=LONG)
    page.get_by_label("sex: others may know it").check()
    page.get_by_label("illness: others want to know it").check()
    page.get_by_role("button", name="Audit", exact=True).click()
    page.frame_locator("#result iframe").locator("h1").wait_for(timeout=LONG)
    found = api.audit(str(studio.folder / "town.csv"), ["age", "sex"], ["illness"])
    assert page.locator("#result .facts dd").nth(2).inner_text().startswith(str(found.k))
    quiet(page)
    shoot(page, "audit")

    page.get_by_role("link", name="Ledger").click()
    page.get_by_role("button", name="Browse").click()
    page.get_by_role("dialog").get_by_role("button", name="budget.sqlite").click()
    page.get_by_role("heading", name="town").wait_for()
    page.get_by_text("Set a budget, or record").click()
    page.get_by_label("What", exact=True).select_option("add")
    page.get_by_label("ε", exact=True).fill("1.5")
    page.get_by_label("δ", exact=True).fill("0")
    page.get_by_label("What it was").fill("a table of 2025")
    page.get_by_role("button", name="Record").click()
    page.get_by_text("a table of 2025").wait_for()
    assert "2.5" in page.locator("#statement .facts").inner_text()
    quiet(page)
    shoot(page, "ledger")

    page.get_by_role("link", name="Attacks").click()
    page.get_by_role("heading", name="Attacks").wait_for()  # `all` waits for nothing
    for i, button in enumerate(page.locator(".story button").all()):
        button.click()
        page.locator(".lesson").nth(i).wait_for(timeout=LONG)
    quiet(page)
    shoot(page, "attacks")
    with sqlite3.connect(studio.folder / "budget.sqlite") as ledger:
        assert ledger.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_on_a_tablet(enter, shoot, scheme):
    page = enter("plan", viewport={"width": 820, "height": 1180}, color_scheme=scheme)
    page.locator(".reading").wait_for()
    for name in ("plan", "data", "release", "audit", "ledger", "attacks"):
        page.goto(page.url.rsplit("/", 1)[0] + f"/{name}")
        if name == "plan":
            page.get_by_role("button", name="Draw them").click()
            page.frame_locator("#figures-place iframe").get_by_text("What k buys").first.wait_for(timeout=LONG)
            page.get_by_role("tab", name="Plain sample").click()
            page.locator("#sample-results .reading").wait_for()
            page.get_by_role("tab", name="Randomised records").click()
            page.locator("#pram-results .reading").wait_for(timeout=LONG)
        if name == "data":
            open_policy(page)
            column(page, "age")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} is wider than the screen"
        quiet(page)
        shoot(page, f"tablet-{scheme}-{name}")


def test_an_uploaded_table_is_used_and_gone_at_the_end(studio, enter, tmp_path):
    people = tmp_path / "people.csv"
    people.write_bytes((studio.folder / "town.csv").read_bytes())
    page = enter("data")
    page.get_by_label("or upload one").set_input_files(people)
    page.locator("#columns button").first.wait_for(timeout=LONG)
    people.unlink()
    (uploaded,) = studio.temporary.glob("incrowd-studio-*/uploads/*/people.csv")
    assert uploaded.stat().st_mode & 0o077 == 0
    confirm_all(page)
    publish(page, "uploaded")
    wait_for_release(page)
    assert api.verify(studio.folder / "uploaded").valid
    quiet(page)
    page.context.close()
    assert studio.stop() == ""  # no log, and no data in it
    assert list(studio.temporary.iterdir()) == []
