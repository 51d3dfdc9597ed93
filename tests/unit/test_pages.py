"""The documentation as a site, in a browser."""

import importlib.util
import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("browser")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, and its pages."""
    spec = importlib.util.spec_from_file_location("site_in_a_browser", ROOT / "docs" / "site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("site")
    return folder, {path.stem: path.read_text(encoding="utf-8") for path in module.build(folder)}


def test_the_search_finds_parts_by_their_words_and_leads_to_them(site, browser):
    folder, texts = site
    found = (folder / "search-index.js").read_text(encoding="utf-8").removeprefix("window.incrowdParts = ")
    parts = json.loads(found.rstrip(";\n"))
    assert {part[0] for part in parts} == set(texts)
    for name, anchor, *_ in parts:
        assert not anchor or f'id="{anchor}"' in texts[name], f"{name} has no place {anchor}"
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto((folder / "index.html").as_uri())
    page.get_by_label("Search").fill("invariant pram")
    page.locator("#found a").first.wait_for()
    page.get_by_label("Search").press("Enter")
    page.wait_for_url(lambda address: "index.html" not in address)
    assert "invariant" in page.locator("main").inner_text().lower()
    page.goto((folder / "index.html").as_uri())
    page.get_by_label("Search").fill("no-such-word-anywhere")
    page.get_by_text("Nothing has all of these words.").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.close()


@pytest.mark.parametrize("name", ["index", "cost"])
def test_everyone_can_read_the_site(name, site, browser, axe):
    page = browser.new_page()
    page.set_default_timeout(120_000)
    page.goto((site[0] / f"{name}.html").as_uri())
    found = axe(page)
    page.emulate_media(color_scheme="dark")
    found += axe(page, contrast_alone=True)
    page.close()
    assert [one for one in found if one[1] in {"serious", "critical"}] == []
