"""Every page of the studio by axe-core, light and dark; and folders of others that are verified and not kept."""

import asyncio
import base64
import json
import shutil
from concurrent.futures import ThreadPoolExecutor

import pytest

from incrowd import Policy, api
from incrowd.core.errors import InputError
from incrowd.studio.pages import PAGES
from incrowd.studio.uploads import Dropped

pytestmark = pytest.mark.xdist_group("browser")

LONG = 120_000  # milliseconds for what needs a process of its own: the machine may be busy


@pytest.fixture
def studio(lasting_studio):
    return lasting_studio


@pytest.fixture(scope="module")
def released(lasting_studio, tmp_path_factory):
    """The folder of a release, not among the studio's own."""
    folder = tmp_path_factory.mktemp("somebody") / "town-2026"
    town = lasting_studio.folder / "town.csv"
    api.release(town, Policy.from_file(town.with_suffix(".yaml")), folder=folder)
    return folder


def require_readable(page, axe):
    """Nothing that matters is found, light or dark. Contrast is looked for in both, everything else once."""
    page.wait_for_function("!document.querySelector('main').inert")
    found = axe(page)
    page.emulate_media(color_scheme="dark")
    found += axe(page, contrast_alone=True)
    page.emulate_media(color_scheme="light")
    assert [one for one in found if one[1] in {"serious", "critical"}] == []


@pytest.mark.parametrize("name", PAGES)
def test_everyone_can_use_every_page(name, studio, enter, axe):
    page = enter(name, bypass_csp=True)
    if name == "attacks":
        for story in page.locator(".story").all():
            story.get_by_role("button").click()
        page.locator(".lesson").nth(3).wait_for(timeout=LONG)
    if name == "plan":
        page.locator(".reading").wait_for()
    require_readable(page, axe)
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.wrong == []
    assert page.elsewhere == []


def test_an_attack_is_drawn_again(studio, enter, shoot):
    page = enter("attacks")
    story = page.locator("[data-attack=extreme-values]")
    story.get_by_role("button", name="Attack").click()
    story.locator(".lesson").wait_for(timeout=LONG)
    first = story.locator(".unsafe").inner_text()
    assert "What she sees" in first
    shoot(page, "attacks")
    story.get_by_role("button", name="Draw again").click()
    page.wait_for_function(
        "first => document.querySelector('[data-attack=extreme-values] .unsafe').innerText !== first", arg=first
    )
    assert "900,001 or more" in story.locator(".safe").inner_text()
    assert page.wrong == []


def test_a_folder_of_somebody_else_is_verified_and_not_kept(studio, enter, released, tmp_path, shoot, axe):
    forged = tmp_path / "forged"
    shutil.copytree(released, forged)
    certificate = json.loads((forged / "certificate.json").read_bytes())
    certificate["promise"]["epsilon"] = 0.1
    (forged / "certificate.json").write_text(json.dumps(certificate), encoding="utf-8")
    page = enter("verify", bypass_csp=True)
    page.get_by_label("the folder").set_input_files(released)
    page.get_by_text("Valid: every check holds.").wait_for(timeout=LONG)
    many = len(list(released.iterdir()))
    assert f"{many} files were looked at; none of them is kept." in page.locator("#said").inner_text()
    assert "Not signed." in page.locator("#result").inner_text()
    require_readable(page, axe)
    page.get_by_label("the folder").set_input_files(forged)
    page.get_by_text("Not valid").wait_for(timeout=LONG)
    failed = page.locator("#result .no").all_inner_texts()
    assert any("digest" in text or "sealed" in text for text in failed), failed
    assert page.locator("#result li").first.get_attribute("class") == "no"
    require_readable(page, axe)
    shoot(page, "verify")
    # The same files, dropped on the page.
    sent = {path.name: base64.b64encode(path.read_bytes()).decode() for path in released.iterdir()}
    page.evaluate(
        """files => {
          const carried = new DataTransfer();
          for (const [name, content] of Object.entries(files)) {
            carried.items.add(new File([Uint8Array.from(atob(content), (c) => c.charCodeAt(0))], name));
          }
          const dropped = new DragEvent('drop', { dataTransfer: carried, bubbles: true });
          document.getElementById('drop').dispatchEvent(dropped);
        }""",
        sent,
    )
    page.get_by_text("Valid: every check holds.").wait_for(timeout=LONG)
    # One file alone is no release, and says so.
    page.get_by_label("or its files, one by one").set_input_files(forged / "report.html")
    page.locator("#error .problem").wait_for(timeout=LONG)
    (private,) = studio.temporary.glob("incrowd-studio-*")
    assert list((private / "dropped").iterdir()) == []
    assert page.wrong == []


def receive(dropped, folder, name, *parts):
    async def sent():
        for part in parts:
            yield part

    with ThreadPoolExecutor(1) as aside:  # where no loop of the browser's runs
        aside.submit(asyncio.run, dropped.receive(folder, name, sent())).result()


@pytest.mark.parametrize(
    "name", ["", "..", "../out", "/etc/passwd", "a/b/c", ".hidden", "a//b", "a\\b", "C:x", "a\x00b", "x" * 300]
)
def test_a_dropped_file_has_a_plain_name(name, tmp_path):
    dropped = Dropped(tmp_path, 100)
    with pytest.raises(InputError, match="in no release"):
        receive(dropped, dropped.open(), name, b"x")
    assert list(tmp_path.iterdir()) == []


def test_dropped_folders_are_bounded(tmp_path):
    dropped = Dropped(tmp_path, 10)
    folder = dropped.open()
    receive(dropped, folder, "certificate.json", b"12345")
    receive(dropped, folder, "views/001.parquet", b"123", b"4")
    assert (tmp_path / folder / "views" / "001.parquet").read_bytes() == b"1234"
    with pytest.raises(InputError, match="may have"):  # together, not each
        receive(dropped, folder, "more", b"12")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="gone"):
        receive(dropped, folder, "more", b"1")
    folder = dropped.open()
    receive(dropped, folder, "one", b"")
    with pytest.raises(InputError, match="same name"):
        receive(dropped, folder, "one", b"")
    opened = [dropped.open() for _ in range(20)]
    assert len(list(tmp_path.iterdir())) == 12
    with pytest.raises(InputError, match="gone"):
        dropped[opened[0]]
    place = dropped[opened[-1]]
    place.rmdir()  # by the work that has verified it
    dropped.forget(opened[-1])
    dropped.forget(opened[-1])
