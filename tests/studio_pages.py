"""What tests do on the studio's pages, and what must hold on each of them."""

from incrowd import api

LONG = 120_000  # milliseconds for what needs a process of its own: the machine may be busy
NAMED = """element => {
  const fields = [...document.querySelectorAll('input,select,textarea,iframe')].filter((one) => one.offsetParent);
  const named = (one) => one.labels?.length || one.getAttribute('aria-label') || one.title;
  return fields.filter((one) => !named(one)).map((one) => one.outerHTML);
}"""
# Text that is too faint on what is behind it (WCAG 2: a contrast of 4.5, or 3 for large letters).
FAINT = """() => {
  const read = (text) => text.match(/[\\d.]+/g).map(Number);
  const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const colour = read(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0.5) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const one of document.querySelectorAll('main *, .bar *, .journey *, footer *')) {
    const said = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!said || !one.offsetParent || one.closest('svg, :disabled, .unseen, option')) continue;
    const style = getComputedStyle(one);
    const [a, b] = [light(read(style.color)), light(ground(one))].sort((x, y) => y - x);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && style.fontWeight >= 600);
    if ((a + 0.05) / (b + 0.05) < (large ? 3 : 4.5)) found.push(one.outerHTML.slice(0, 200));
  }
  return found;
}"""


def look_at(page, path="town.csv"):
    page.get_by_label("The table, by its path").fill(path)
    page.get_by_role("button", name="Look at it").click()
    page.locator("#columns button").first.wait_for(timeout=LONG)


def open_policy(page, name="town.yaml"):
    page.get_by_role("button", name="Open a policy").click()
    page.get_by_role("dialog").get_by_role("button", name=name).click()
    page.locator("#policy-state.yes").wait_for()


def column(page, name):
    page.locator("#columns button", has_text=name).click()
    page.locator("#column").get_by_role("heading", name=name).wait_for()
    return page.locator("#column")


def policy_of(page):
    return page.locator("#policy").input_value()


def wait_for_text(page, text):
    """Until the policy says so."""
    page.wait_for_function("said => document.querySelector('#policy').value.includes(said)", arg=text)


def until(page, holds):
    """Until something is so that only the text tells."""
    for _ in range(300):
        if holds():
            return
        page.wait_for_timeout(100)
    raise AssertionError("it has not come to be so")


def unfold(page):
    """Show the policy's text, which is folded away."""
    page.locator("#policy-fold").evaluate("element => { element.open = true; }")


def write_policy(page, text):
    unfold(page)
    page.locator("#policy-state").evaluate("element => { element.textContent = ''; element.className = ''; }")
    page.locator("#policy").fill(text)
    page.locator("#policy-state.yes").wait_for(timeout=LONG)


def quiet(page):
    """Nothing went wrong, nothing was asked of anyone else, every field has a name and every text can be read."""
    assert page.wrong == []
    assert page.elsewhere == []
    assert page.evaluate(NAMED) == []
    assert page.evaluate(FAINT) == []


def confirm_all(page):
    """Confirm what the draft has read off the data: each column, then the rest."""
    for name in filter(None, api.unconfirmed(policy_of(page))):
        column(page, name)
        page.get_by_role("button", name="I confirm what it says").click()
        page.get_by_role("button", name="I confirm what it says").wait_for(state="detached")
    page.get_by_role("button", name="I confirm the rest").click()
    page.get_by_role("button", name="I confirm the rest").wait_for(state="detached")
    assert api.unconfirmed(policy_of(page)) == {}
