"""From an empty studio to a drafted, confirmed policy: three examples, and a file that is not in UTF-8."""

import shutil

import pytest

from incrowd import api
from incrowd.studio.folders import Folders
from studio_pages import LONG, column, confirm_all, policy_of, quiet, unfold, until, wait_for_text

pytestmark = pytest.mark.xdist_group("browser")

SIZES, SCHEMES = ((1280, 900), (390, 844)), ("light", "dark")


def looks(page, shoot, name):
    """The page at both widths, light and dark: nothing is wider than the screen, and every text can be read."""
    for width, height in SIZES:
        page.set_viewport_size({"width": width, "height": height})
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{name} at {width}"
            quiet(page)
            shoot(page, f"{name}-{width}-{scheme}")
    page.set_viewport_size({"width": 1280, "height": 900})


def steps(page):
    """What the journey says of each step: done or not, and what it has come to."""
    return page.evaluate(
        "[...document.querySelectorAll('[data-step]')].map((step) => "
        "[step.classList.contains('done'), step.querySelector('small').textContent])"
    )


@pytest.fixture(scope="module")
def studio(lasting_studio):
    rows = ["Größe;Ort;Einkommen;geboren"]
    for i in range(400):
        place = ("Köln", "München", "Düsseldorf", "Ulm")[i % 4]
        rows.append(
            f"{150 + i % 50};{place};{1000 + 13 * i},{i % 90 + 10};{i % 28 + 1:02d}.{i % 12 + 1:02d}.{1940 + i % 60}"
        )
    (lasting_studio.folder / "umfrage.csv").write_text("\n".join(rows) + "\n", encoding="latin-1")
    return lasting_studio


def test_the_census_is_one_click_from_a_rehearsal(studio, enter, shoot):
    page = enter("start")
    assert page.locator(".recent button").all_inner_texts() == ["umfrage.csv", "town.csv", "town.yaml"]
    looks(page, shoot, "start")
    page.get_by_role("button", name="Try a census").click()
    page.wait_for_url("**/data", timeout=LONG)
    page.locator(".shape").first.wait_for(timeout=LONG)
    page.locator("#policy-state.yes").wait_for()
    policy = studio.folder / "example-census.yaml"
    assert policy_of(page) == policy.read_text(encoding="utf-8")
    assert steps(page)[:3] == [[True, "example-census.csv"], [True, "example-census.yaml"], [False, ""]]
    assert not page.locator("#policy").is_visible()  # the text is folded away
    page.get_by_text("Its text, which is what counts").click()
    page.wait_for_function("() => document.querySelector('#policy').scrollTop > 0")  # below the remarks above it

    # Sorted, filtered, and the true table is marked as such.
    names = page.locator("#columns button")
    page.get_by_role("button", name="Column", exact=True).click()
    assert names.all_inner_texts() == sorted(names.all_inner_texts())
    page.get_by_role("button", name="Column", exact=True).click()
    assert names.first.inner_text() == "zip"
    page.get_by_label("Find a column").fill("sta")
    assert names.all_inner_texts() == ["marital_status"]
    page.get_by_label("Find a column").fill("")
    assert page.get_by_text("The pictures show the true table: for your eyes only.").is_visible()
    looks(page, shoot, "census")

    # A second click finds what is there, and the page comes back as it was left.
    page.goto(f"{studio.address}/start")
    page.get_by_role("button", name="Try a census").click()
    page.locator(".shape").first.wait_for(timeout=LONG)
    assert sorted(path.name for path in studio.folder.glob("example-census*")) == [
        "example-census.csv",
        "example-census.yaml",
    ]
    page.get_by_role("link", name="Go on to the rehearsal").click()
    page.wait_for_url("**/release")
    assert page.locator("[data-step=rehearsal] [aria-current=step]").is_visible()
    quiet(page)


def test_the_hospital_counts_people_and_not_rows(studio, enter, shoot, axe):
    page = enter("start", bypass_csp=True)  # for axe-core
    page.get_by_role("button", name="Try a hospital").click()
    page.locator(".spread").wait_for(timeout=LONG)
    found = dict(api.rows_of_people(str(studio.folder / "example-hospital.csv"), ["patient_id"]))
    assert sum(found.values()) == 6000
    cells = page.locator(".spread tbody tr").all_inner_texts()
    assert cells[0].split("\t")[:2] == ["1", f"{found[1]:,}"]
    counted = sum(min(rows, 3) * people for rows, people in found.items())
    assert f"With 3 of each, {counted:,} of" in page.locator("#people").inner_text()
    page.get_by_label("rows of each that count").fill("2")
    page.keyboard.press("Tab")
    page.get_by_text("With 2 of each").wait_for()
    assert api.policy_outline(policy_of(page))["people"]["at_most"] == "2"
    assert "# So it is said whose each row is" in policy_of(page) or "# A row is a visit" in policy_of(page)

    # Values are dragged into groups, and cut points are set on the histogram, by keys too.
    region = column(page, "region")
    tree = region.get_by_role("tree")
    tree.get_by_role("treeitem", name="Capital").locator(".leaf").drag_to(
        tree.get_by_role("treeitem", name="north").locator(".leaf").first
    )
    wait_for_text(page, "Lakeland, Capital")
    age = column(page, "age")
    age.get_by_label("Given as").nth(1).select_option("cuts")
    cuts = age.get_by_role("slider", name="Cut")
    cuts.first.wait_for()
    before = [float(one.get_attribute("aria-valuenow")) for one in cuts.all()]
    assert before == [50, 100]
    cuts.first.focus()
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("ArrowUp")
    age.get_by_text("0 to 48 · 49 to 119").wait_for()
    said = api.policy_outline(policy_of(page))["attributes"]["age"]["hierarchy"]
    assert said == {"cuts": [["0", "49", "100", ".inf"], ["0", "49", ".inf"]]}
    assert age.get_by_label("cuts of each level").input_value() == "0, 49, 100, .inf\n0, 49, .inf"
    age.get_by_role("button", name="Add a cut").click()
    cuts.nth(2).wait_for()
    page.keyboard.press("Delete")
    cuts.nth(2).wait_for(state="detached")
    assert [one for one in axe(page) if one[1] in {"serious", "critical"}] == []
    looks(page, shoot, "hospital")


def test_the_survey_leads_to_its_collector(studio, enter, shoot):
    page = enter("start")
    page.get_by_role("button", name="Try a survey").click()
    page.wait_for_url("**/collect", timeout=LONG)
    page.wait_for_function("() => document.querySelector('#texts').value.endsWith('example-survey.texts.yaml')")
    assert steps(page)[:2] == [[True, "asked of respondents"], [True, "example-survey.yaml"]]
    page.get_by_label("How many people are expected").fill("2500")
    page.get_by_role("button", name="Make it").click()
    page.locator("#questionnaire-title").wait_for(timeout=LONG)
    made = api.open_questionnaire(studio.folder / "example-survey.json")
    assert made.records == 2500
    shown = page.locator("#questionnaire").inner_text()
    assert "Have you ridden a bus without a ticket this year?" in shown
    assert "I do not remember" in shown
    assert made.promise["in_words"][0] in shown
    assert f"incrowd collect {studio.folder}/example-survey.json --store {studio.folder}/example-survey.sqlite" in shown
    assert "Nothing has been collected yet" in shown
    looks(page, shoot, "survey")

    # Another one of that name is refused until it is said that it may be replaced; and a store is looked into.
    page.get_by_role("button", name="Make it").click()
    page.locator("#make-error code", has_text="output-exists").wait_for()
    page.wrong.clear()  # the browser reports what was refused
    page.get_by_label("Replace the questionnaire").check()
    page.get_by_role("button", name="Make it").click()
    page.locator("#make-error code").wait_for(state="detached")
    fill_store(studio.folder / "example-survey.sqlite", made)
    page.get_by_role("button", name="Look again").click()
    page.locator("#collection .facts").wait_for(timeout=LONG)
    assert page.locator("#collection dd").all_inner_texts() == ["3", "2,500"]

    # Three of 2,500 are too few, unless it is said that fewer will do; then the collection is closed and published.
    page.get_by_role("button", name="Close the collection").click()
    page.locator("#close-error code", has_text="collection-small").wait_for(timeout=LONG)
    page.get_by_label("Publish although fewer").check()
    page.get_by_role("button", name="Close the collection").click()
    page.get_by_role("heading", name="Closed and published").wait_for(timeout=LONG)
    assert api.verify(studio.folder / "example-survey-release").valid
    looks(page, shoot, "published-survey")


def fill_store(path, questionnaire):
    from incrowd.survey.collector.store import Store

    store = Store(str(path), questionnaire)
    codes = [0] * len(questionnaire.questions)
    store.add([store.entry(f"nonce {i}", codes) for i in range(3)])
    store.close()


def test_a_latin_1_file_leads_to_a_confirmed_policy(studio, enter, shoot):
    page = enter("start")
    page.locator(".recent button", has_text="umfrage.csv").click()
    page.wait_for_url("**/data")
    page.locator("#preview table").wait_for(timeout=LONG)
    assert "It can be read as windows-1252" in page.locator("#look-error").inner_text()
    assert page.locator("#preview th").all_inner_texts() == ["Größe", "Ort", "Einkommen", "geboren"]
    assert page.locator("#preview").get_by_text("for your eyes only").is_visible()
    page.get_by_label("Encoding").select_option("cp850")
    page.locator("#preview th", has_text="Gr÷").wait_for()
    looks(page, shoot, "latin-1-preview")
    page.get_by_label("Encoding").select_option("latin-1")
    page.locator("#preview th", has_text="Größe").wait_for()
    page.get_by_role("button", name="Read it so").click()
    page.locator("#columns button", has_text="Einkommen").wait_for(timeout=LONG)
    wait_for_text(page, "decimal:")  # how it is read is written last
    said = api.policy_outline(policy_of(page))
    assert said["data"] == {"path": "umfrage.csv", "encoding": "latin-1", "decimal": ",", "missing_values": [""]}
    assert policy_of(page).startswith("incrowd: 1\n")  # no wall of remarks above it
    assert column(page, "geboren").get_by_label("Dates are written as").input_value() == "dd.mm.yyyy"

    # Labels are given to values, several columns are confirmed at once, and the text says all that.
    place = column(page, "Ort")
    place.get_by_text("Labels: what values are published as").click()
    place.get_by_label("Label of Ulm").fill("Ulm (Donau)")
    page.keyboard.press("Tab")
    wait_for_text(page, "Ulm: Ulm (Donau)")
    page.get_by_label("Choose all that are to be confirmed").check()
    page.get_by_role("button", name="Confirm 4 columns").click()
    page.locator("#confirm-several").wait_for(state="hidden")
    until(page, lambda: list(api.unconfirmed(policy_of(page))) == [""])
    confirm_all(page)
    unfold(page)
    looks(page, shoot, "latin-1")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved as").wait_for()
    made = api.policy_from_text(policy_of(page), studio.folder)
    assert dict(made.attributes["Ort"].labels) == {"Ulm": "Ulm (Donau)"}
    until(page, lambda: steps(page)[1] == [True, "umfrage.yaml"])

    # Where it was, and as it was, after a look at another page.
    page.get_by_role("link", name="Audit").click()
    page.get_by_role("link", name="Policy", exact=True).click()
    page.locator(".shape").first.wait_for(timeout=LONG)
    assert page.get_by_label("Encoding").input_value() == "latin-1"


def test_a_latin_1_file_is_audited_and_its_rows_are_counted(studio, enter, shoot):
    page = enter("audit")
    page.get_by_label("The table, by its path").fill("umfrage.csv")
    page.get_by_role("button", name="Show its columns").click()
    page.locator("#preview table").wait_for(timeout=LONG)
    assert "It can be read as windows-1252" in page.locator("#look-error").inner_text()
    page.get_by_label("Before decimals").select_option(",")
    page.get_by_role("button", name="Read it so").click()
    page.get_by_label("Ort: others may know it").check(timeout=LONG)
    page.get_by_label("Einkommen: others want to know it").check()
    page.get_by_text("Several rows of a person, weights").click()
    page.get_by_label("Whose a row is, says").select_option("geboren")
    page.get_by_label("What the table must have").fill("k=100, l=101")
    page.get_by_role("button", name="Audit", exact=True).click()
    page.frame_locator("#result iframe").locator("h1").wait_for(timeout=LONG)
    assert page.locator("#result .facts dd").nth(2).inner_text().startswith("100")
    assert page.locator("#result .facts dt", has_text="k of people").is_visible()
    assert page.locator("#result .checks li").all_inner_texts() == [
        "holds: k = 100; the table has 100", "fails: l = 101 of Einkommen; the table has 100"]  # fmt: skip
    assert "ordered" in page.frame_locator("#result iframe").locator("main, body").first.inner_text()
    page.wrong.clear()  # the browser reports what was refused
    looks(page, shoot, "latin-1-audit")

    page.goto(f"{studio.address}/plan")
    page.get_by_role("tab", name="Plain sample").click()
    page.get_by_role("button", name="Count a table").click()
    page.get_by_role("dialog").get_by_role("button", name="umfrage.csv").click()
    page.locator("#preview table").wait_for(timeout=LONG)
    page.get_by_label("The columns that make up a row").fill("Ort, Größe")
    page.get_by_role("button", name="Read it so").click()
    page.get_by_text("100 distinct rows among 400 records.").wait_for(timeout=LONG)
    page.wrong.clear()
    looks(page, shoot, "latin-1-count")


def test_what_is_recent_stays_in_the_folders(tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "release").mkdir(parents=True)
    (inside / "release.internal").mkdir()
    outside.mkdir()
    for path in (
        inside / "a.csv",
        inside / ".hidden.csv",
        inside / "a.texts.yaml",
        inside / "ledger.sqlite",
        outside / "b.csv",
    ):
        path.write_text("x\n1\n", encoding="utf-8")
    (inside / "release" / "certificate.json").write_text("{}", encoding="utf-8")
    for path in (inside / "release" / "release.parquet", inside / "release.internal" / "true.csv"):
        path.write_text("x\n", encoding="utf-8")
    (inside / "b.csv").symlink_to(outside / "b.csv")
    found = Folders.of([inside]).recent()
    assert {kind: [one["name"] for one in listed] for kind, listed in found.items()} == {
        "table": ["a.csv"],
        "policy": [],
        "release": ["release"],
    }
    shutil.rmtree(inside / "release")
    assert Folders.of([inside]).recent()["release"] == []
