"""Every mechanism's reports in a browser: axe-core finds nothing, light or dark, and a phone shows all of a page."""

import pytest
from conformance_mechanisms import CASES

from incrowd import api
from incrowd.randomness import RandomSource
from incrowd.releases.certificate import digest_without

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def look(browser, axe):
    """What axe-core finds on a page; and what sticks out of a phone."""
    context = browser.new_context(bypass_csp=True, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(120_000)
    page = context.new_page()

    def look(content):
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 1280, "height": 900})
        page.set_content(content)
        found = axe(page)
        page.emulate_media(color_scheme="dark")
        found += axe(page, contrast_alone=True)
        page.set_viewport_size({"width": 390, "height": 800})
        wide = page.evaluate("document.documentElement.scrollWidth")
        return found, wide

    yield look
    context.close()


@pytest.mark.parametrize("name", CASES)
def test_everyone_can_read_both_reports(name, people, look):
    made = api.release(people, CASES[name].policy, _source=RandomSource.seeded(2026))
    for page in (made.report, made.internal["report.html"]):
        assert look(page.decode()) == ([], 390)


def test_axe_finds_what_cannot_be_read(people, look):
    made = api.release(people, CASES["sample"].policy, _source=RandomSource.seeded(2026))
    faint = made.report.decode().replace("--soft:#a8b1bf", "--soft:#303640")  # in the dark alone
    assert [kind for kind, *_ in look(faint)[0]] == ["color-contrast"]
    unnamed = made.report.decode().replace('<html lang="en">', "<html>")
    assert [kind for kind, *_ in look(unnamed)[0]] == ["html-has-lang"]


def test_each_printed_page_has_the_certificates_digest(people, browser):
    made = api.release(people, CASES["sample"].policy, _source=RandomSource.seeded(2026))
    page = browser.new_page()
    page.set_content(made.report.decode())
    page.emulate_media(media="print")
    rules = page.evaluate(
        "[...document.styleSheets[0].cssRules].filter(r => r instanceof CSSPageRule).map(r => r.cssText).join(' ')"
    )
    page.close()
    assert digest_without("report.html", made.certificate) in rules
    assert "counter(pages)" in rules
