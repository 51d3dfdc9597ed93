"""Both reports of a sampled crowd: what they say, what they must not say, and that they are pages anyone can open."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from itertools import combinations

import numpy as np
import pytest

from incrowd.core.errors import InternalError
from incrowd.core.numbers import number, percent, percent_down, percent_up
from incrowd.hierarchy import codings
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.base import Made, Publication
from incrowd.mechanisms.sampled_crowd import promise_page as promise
from incrowd.mechanisms.sampled_crowd import report as sampled_crowd_report
from incrowd.mechanisms.sampled_crowd.draw import CrowdOutcome, run
from incrowd.mechanisms.sampled_crowd.settle import CrowdSettings, CrowdSettled
from incrowd.mechanisms.sampled_crowd.state import state
from incrowd.mechanisms.tables import write_table
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.recoding import utility
from incrowd.recoding.utility import Comparison
from incrowd.reports.bars import MOST, largest
from incrowd.reports.frame import MARKING
from incrowd.reports.page import style
from incrowd.theory import crowd

SETTINGS = CrowdSettings(epsilon=2.0, delta=1e-5, selection_epsilon=0.0, k=10, beta=0.3, already_sampled=False)


def settled(policy, settings):
    attributes = codings(policy)
    levels = {a.name: policy.attributes[a.name].level for a in attributes}
    fixed = {name: level or 0 for name, level in levels.items() if level is not None or not settings.selection_epsilon}
    return CrowdSettled(settings, attributes, fixed)


def public_report(policy, settings, published, levels, *, void):
    ready = settled(policy, settings)
    return sampled_crowd_report.public_report(
        policy, ready, Publication(published), state(settings, levels, ready.chosen), void=void
    )


def internal_report(policy, attributes, settings, table, outcome, *, void=None):
    ready = settled(policy, settings)
    made = Made(outcome.published, outcome.levels, state(settings, outcome.levels, ready.chosen), outcome)
    return sampled_crowd_report.internal_report(policy, attributes, ready, table, made, void=void)


def policy_of(attributes, **more):
    release = {"mechanism": "sampled_crowd", "epsilon": "2", "delta": "1e-5", "k": "10", "beta": "0.3"}
    release |= more.pop("release", {})
    content = {"incrowd": 1, "attributes": attributes, "release": release, **more}
    return Policy.from_dict(content)


CENSUS = {
    "age": {
        "type": "integer",
        "domain": {"from": "0", "to": "99"},
        "hierarchy": {"widths": ["10", "50"]},
        "level": "1",
    },
    "sex": {"domain": ["female", "male"], "missing": "keep", "level": "0"},
    "illness": {"domain": ["none", "flu", "rare-disease-x"], "level": "0"},
    "town": {"domain": list("ABCDEFGH"), "level": "0"},
}


def census(records=20_011):
    rng = np.random.default_rng(7)
    policy = policy_of(CENSUS, title="A small census")
    attributes = codings(policy)
    codes = [
        np.minimum(rng.geometric(0.05, records) - 1, 99),
        rng.choice(3, records, p=[0.5, 0.49, 0.01]),
        rng.choice(3, records, p=[0.8, 0.1999, 0.0001]),
        np.minimum(rng.geometric(0.4, records) - 1, 7),
    ]
    table = Histogram.of(
        [Column(a.name, a.coding.base_labels, c) for a, c in zip(attributes, codes, strict=True)],
    )
    return policy, attributes, table


def released(policy, attributes, table, settings=SETTINGS):
    fixed = {name: attribute.level for name, attribute in policy.published.items()}
    return run(table, attributes, fixed, settings, RandomSource.seeded(3))


@pytest.fixture(scope="module")
def made():
    policy, attributes, table = census()
    outcome = released(policy, attributes, table)
    public = public_report(policy, SETTINGS, outcome.published, outcome.levels, void=None)
    internal = internal_report(policy, attributes, SETTINGS, table, outcome)
    return policy, attributes, table, outcome, public, internal


def tree(page):
    """The page as XML: it is well-formed, or this fails."""
    return ET.fromstring(page.decode().removeprefix("<!DOCTYPE html>"))


def words(page):
    return " ".join("".join(tree(page).find("body").itertext()).split())


class Nesting(HTMLParser):
    """What a browser sees: every element closed, in order."""

    VOID = frozenset({"meta", "br", "hr", "col"})

    def __init__(self):
        super().__init__()
        self.open = []
        self.seen = []
        self.links = []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        self.links += [value for name, value in attributes if name in {"href", "src", "action", "data", "srcset"}]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def browsed(page):
    parser = Nesting()
    parser.feed(page.decode())
    parser.close()
    assert not parser.open
    return parser


# --- pages ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [4, 5])
def test_a_page_is_well_formed_and_needs_nothing_else(made, which):
    page = made[which]
    seen = browsed(page)
    tree(page)
    assert not set(seen.seen) & {"script", "link", "iframe", "object", "embed", "img", "form", "base"}
    assert all(link.startswith("#") for link in seen.links)
    text = page.decode().replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|//[a-z]|url\(|@import|javascript:", text)
    assert "default-src 'none'" in page.decode().replace("&#x27;", "'")
    assert len(page) < 100_000


@pytest.mark.parametrize("which", [4, 5])
def test_a_page_can_be_read_aloud(made, which):
    root = tree(made[which])
    assert root.get("lang") == "en"
    assert len(root.findall(".//h1")) == 1
    for heading in root.findall(".//section"):
        assert heading[0].tag == "h2"
    for table in root.iter("table"):
        assert table[0].tag == "caption"
        assert "".join(table[0].itertext()).strip()
    for picture in root.iter("{http://www.w3.org/2000/svg}svg"):
        assert picture.get("role") == "img"
        assert picture.get("aria-label")
    for bar in root.iter("svg"):
        assert bar.get("aria-hidden") == "true"  # the numbers beside it say the same
    anchors = {element.get("id") for element in root.iter() if element.get("id")}
    assert {a.get("href")[1:] for a in root.iter("a")} == {"verdict", *anchors}  # which is put on top later


def contrast(first, second):
    def light(colour):
        colour = colour.removeprefix("#")
        colour = "".join(c * 2 for c in colour) if len(colour) == 3 else colour
        parts = [int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    a, b = sorted((light(first), light(second)))
    return (b + 0.05) / (a + 0.05)


def test_every_text_stands_out_in_light_and_dark_and_print():
    light, dark, paper = (
        dict(re.findall(r"--([\w-]+):(#\w+)", theme)) for theme in re.findall(r":root\{([^}]*)\}", style())
    )
    for theme in (light, light | dark, light | paper):
        for ink in ("ink", "soft", "accent"):
            for ground in ("page", "card", "tint"):
                assert contrast(theme[ink], theme[ground]) >= 4.5, (ink, ground)
        assert contrast(theme["warn"], theme["warn-tint"]) >= 4.5
    assert contrast("#fff", "#b3261e") >= 4.5  # the marking


def test_the_same_release_gives_the_same_page(made):
    policy, attributes, table, outcome, public, internal = made
    assert public == public_report(policy, SETTINGS, outcome.published, outcome.levels, void=None)
    assert internal == internal_report(policy, attributes, SETTINGS, table, outcome)


# --- the public report ------------------------------------------------------------------------------------------------


def test_the_public_report_says_what_is_promised(made):
    text = words(made[4])
    assert "A small census" in text
    assert "ε = 2, δ = 10⁻⁵" in text.replace("\u2003", " ")
    assert "at most 7.39 times" in text
    assert "k = 10" in text
    assert "β = 0.3" in text
    assert "What is not promised" in text
    assert f"δ is in fact {number(crowd.exact_delta(10, 0.3, 2.0), 3)}" in text
    assert f"{made[3].published.total:,} records in {len(made[3].published):,} crowds" in text


def test_nothing_of_the_raw_data_is_in_the_public_report(made):
    _, _, table, outcome, public, _ = made
    sampled, published = outcome.sample.total, outcome.published.total
    secrets = {table.total, sampled, sampled - published}
    small = range(201)  # these may be there for other reasons
    assert not secrets & {*small, published, *outcome.published.counts.tolist()}
    numbers = {int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*(?![\d.])", words(public))}
    assert published in numbers  # it would have found them
    assert not secrets & numbers
    # Of values that were made coarser only the groups' names are there.
    ages = {"".join(e.itertext()) for e in tree(public).iter("bdi")}
    assert "10 to 19" in ages
    assert not ages & set(table["age"].labels)


def test_the_public_report_depends_on_the_published_table_alone(made):
    policy, attributes, table, outcome, public, _ = made
    # Another table and another sample, of which the same was published.
    more = Histogram.of(table.columns, table.counts + 1)
    whole = more.recode({a.name: a.hierarchy.recode(1) for a in attributes})
    other = CrowdOutcome(outcome.published, outcome.levels, whole, whole)
    assert public == public_report(policy, SETTINGS, other.published, other.levels, void=None)


def test_a_release_with_too_small_a_crowd_gets_no_report(made):
    policy, _, _, outcome, _, _ = made
    with pytest.raises(InternalError):
        public_report(policy, SETTINGS, outcome.sample, outcome.levels, void=None)


def test_a_void_promise_is_said_first_and_loudly(made):
    policy, attributes, table, outcome, public, _ = made
    page = public_report(policy, SETTINGS, outcome.published, outcome.levels, void="because of a test")
    alert = tree(page).find(".//header/div[@role='alert']")
    assert "promises nothing" in "".join(alert.itertext())
    assert "alert" not in public.decode()
    inside = internal_report(policy, attributes, SETTINGS, table, outcome, void="because of a test")
    assert tree(inside).find(".//header/div[@role='alert']") is not None


def test_an_empty_release_is_explained(made):
    policy, attributes, table, outcome, _, _ = made
    nothing = outcome.published.where(outcome.published.counts < 0)
    page = public_report(policy, SETTINGS, nothing, outcome.levels, void=None)
    assert "The release is empty." in words(page)
    assert "What a publisher can do about it" in words(page)
    browsed(page)
    hidden = CrowdOutcome(nothing, outcome.levels, outcome.sample, outcome.recoded)
    assert tree(internal_report(policy, attributes, SETTINGS, table, hidden)) is not None
    unsampled = CrowdOutcome(nothing, outcome.levels, nothing, outcome.recoded)
    unlucky = internal_report(policy, attributes, SETTINGS, table, unsampled)
    assert "nan" not in words(unlucky)


def test_a_table_that_is_a_sample_already_says_so(made):
    policy, attributes, table, outcome, _, _ = made
    settings = CrowdSettings(2.0, 1e-5, 0.0, 10, 0.3, already_sampled=True)
    page = words(public_report(policy, settings, outcome.published, outcome.levels, void=None))
    assert "itself a random sample" in page
    whole = table.recode({a.name: a.hierarchy.recode(outcome.levels[a.name]) for a in attributes})
    shown = CrowdOutcome(whole.where(whole.counts >= 10), outcome.levels, whole, whole)
    inside = words(internal_report(policy, attributes, settings, table, shown))
    assert "declared to be a sample already" in inside


def test_levels_that_were_chosen_are_told_from_those_that_were_fixed():
    attributes = {name: dict(attribute) for name, attribute in CENSUS.items()}
    attributes["age"].pop("level")
    policy = policy_of(attributes, release={"selection_epsilon": "0.5"})
    _, coded, table = census()
    settings = CrowdSettings(2.0, 1e-5, 0.5, 15, 0.3, already_sampled=False)
    outcome = released(policy_of(CENSUS), coded, table, settings)
    page = public_report(policy, settings, outcome.published, outcome.levels, void=None)
    captions = ["".join(caption.itertext()) for caption in tree(page).iter("caption")]
    assert "agegrouped into 10 values, chosen privately" in captions
    assert "as it is, fixed beforehand" in words(page)
    assert "ε₁ = 0.5" in words(page)


@pytest.mark.parametrize("output", ["parquet", "csv"])
def test_the_python_shown_runs(made, output, tmp_path, monkeypatch, capsys):
    _, _, _, outcome, _, _ = made
    policy = policy_of(CENSUS, release={"output": output})
    with (tmp_path / f"release.{output}").open("wb") as file:
        write_table(outcome.published, output, file)
    page = public_report(policy, SETTINGS, outcome.published, outcome.levels, void=None)
    (snippet,) = [text for e in tree(page).iter("pre") if "import pandas" in (text := "".join(e.itertext()))]
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(snippet, names)
    assert names["people"].sum() == pytest.approx(outcome.published.total / 0.3)
    assert len(names["people"]) == len(outcome.published.project(["age", "sex"]))
    assert capsys.readouterr().out


# --- hostile and large input ------------------------------------------------------------------------------------------

NASTY = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "&amp; &lt;b&gt;",
    "</style></title><b>",
    "עברית \u202e turned around",
    "tab\tnew\nline \x00\x1b[31m \ud800 end",
    "]]>",
    "x" * 5000,
    "",
    "   ",
    "ordinary",
]


def nasty_release():
    policy = policy_of(
        {"placeholder": {"domain": ["a"], "level": "0"}}, title='<script>alert("title")</script> & "quotes" \u202e'
    )
    attribute = policy.attributes["placeholder"]
    names = ["<b>bold</b>\" onload='x'", "a,b", "ordinary name", "c" * 300]
    policy = policy.model_copy(update={"attributes": dict.fromkeys(names, attribute)})
    codes = np.arange(len(NASTY) + 1)
    columns = [Column(name, (*NASTY, None), np.roll(codes, i)) for i, name in enumerate(names)]
    return policy, Histogram.of(columns, np.full(len(codes), 25))


def test_whatever_names_and_labels_hold_is_text():
    policy, published = nasty_release()
    page = public_report(policy, SETTINGS, published, dict.fromkeys(published.names, 0), void=None)
    seen = browsed(page)
    assert not set(seen.seen) & {"script", "img"}
    root = tree(page)
    shown = {"".join(e.itertext()) for e in root.iter("bdi")}
    assert set(NASTY[:5]) | {"]]>", "ordinary"} <= shown
    assert any(text.startswith("tab\tnew\nline \ufffd\ufffd[31m \ufffd end") for text in shown)
    assert {"missing", "empty text", "blank"} <= {"".join(e.itertext()) for e in root.iter("i")}
    assert all(not re.match("on", name) for e in root.iter() for name in e.attrib)
    assert "".join(root.find(".//h1").itertext()).startswith('<script>alert("title")</script>')
    cut = [e for e in root.iter("bdi") if e.get("title") and e.get("title").startswith("xxx")]
    assert cut
    assert all(len(e.text) == 60 and len(e.get("title")) == 400 for e in cut)
    assert len(page) < 100_000


def test_many_labels_show_the_most_frequent_ones_and_stay_small():
    names = [f"column {i}" for i in range(10)]
    policy = policy_of({name: {"domain": ["a"], "level": "0"} for name in names})
    labels = tuple(f"a rather long label with number {i}" for i in range(3000))
    codes = np.random.default_rng(1).permutation(2000)
    published = Histogram.of(
        [Column(name, labels, np.roll(codes, i)) for i, name in enumerate(names)], np.arange(1000, 3000)
    )
    page = public_report(policy, SETTINGS, published, dict.fromkeys(names, 0), void=None)
    assert len(page) < 500_000
    charts = [t for t in tree(page).iter("table") if t.get("class") == "bars"]
    assert len(charts) == 11  # and the sizes of crowds
    for chart in charts[:10]:
        rows = chart.findall("tbody/tr")
        assert len(rows) == MOST + 1
        assert "".join(rows[-1][0].itertext()) == "and 2,980 more values, 1,000 of them never"
        counts = [int(row[-2].text.replace(",", "")) for row in rows]
        assert counts[:3] == [2999, 2998, 2997]
        assert sum(counts) == published.total


def test_the_internal_report_of_many_labels_is_small_too():
    names = [f"column {i}" for i in range(10)]
    domain = [f"label {i}" for i in range(400)]
    policy = policy_of({name: {"domain": domain, "level": "0"} for name in names})
    attributes = codings(policy)
    codes = np.random.default_rng(1).integers(0, 400, (500, 10))
    table = Histogram.of([Column(n, tuple(domain), codes[:, i]) for i, n in enumerate(names)], np.arange(1, 501))
    outcome = released(policy, attributes, table)
    page = internal_report(policy, attributes, SETTINGS, table, outcome)
    browsed(page)
    assert len(page) < 500_000


# --- the internal report ----------------------------------------------------------------------------------------------


def test_the_internal_report_is_marked_everywhere(made):
    root, page = tree(made[5]), made[5].decode()
    assert root.find("head/title").text.startswith(MARKING)
    assert root.find("body")[0].text == MARKING
    assert root.find("body")[0].get("class") == "marking"
    assert f'@top-center{{content:"{MARKING}"' in page  # in the margin of every printed page
    print_rules = page[page.index("@media print") :]
    assert re.search(r"\.marking\{position:fixed", print_rules)  # and beside the text of every printed page
    assert MARKING not in made[4].decode()


def test_the_internal_report_compares_with_the_table(made):
    _, attributes, table, outcome, _, internal = made
    rows = {}
    for row in tree(internal).iter("tr"):
        rows.setdefault("".join(row[0].itertext()), ["".join(cell.itertext()) for cell in row[1:]])
    sampled, published = outcome.sample.total, outcome.published.total
    assert rows["records in the table"][0] == f"{table.total:,}"
    assert rows["sampled"][:2] == [f"{sampled:,}", percent(sampled / table.total)]
    assert rows["published"][::2] == [f"{published:,}", f"{len(outcome.published):,}"]
    assert rows["suppressed after sampling"][0] == f"{sampled - published:,}"
    c = Comparison(
        table,
        {a.name: a.hierarchy.recode(outcome.levels[a.name]) for a in attributes},
        outcome.sample,
        outcome.published,
        0.3,
    )
    assert rows["information kept"][:2] == [percent(utility.information_kept(c)), "100% to 0%"]  # best to worst
    assert rows["entropy lost"][0] == percent(utility.nonuniform_entropy(c))
    assert rows["discernibility"][0] == f"{utility.discernibility(c):,}"
    size, times = utility.average_class_size(c), utility.normalised_class_size(c, 10)
    assert rows["average crowd"][0] == f"{number(size)} records, {number(times)} times k"
    assert rows["KL divergence"][0] == f"{number(utility.kl_divergence(c))} bits"
    assert rows["pMSE"][0] == number(utility.pmse(c))
    assert rows["query error"][0] == percent(utility.query_error(c))
    assert rows["illness"][-1] == "rare-disease-x"  # lost altogether


def test_the_largest_suppressed_crowds_are_named_with_their_sizes(made):
    _, attributes, table, outcome, _, internal = made
    whole = table.recode({a.name: a.hierarchy.recode(outcome.levels[a.name]) for a in attributes})
    gone = outcome.sample.where(outcome.sample.counts < 10)
    (shown,) = [t for t in tree(internal).iter("table") if "The largest of them" in (t[0].text or "")]
    rows = [tuple("".join(cell.itertext()) for cell in row) for row in shown.findall("tbody/tr")]
    assert len(rows) == min(12, len(gone))
    frame = whole.to_pandas()
    sizes = {
        tuple(v if isinstance(v, str) else "missing" for v in row[:-1]): row[-1]
        for row in frame.astype(object).itertuples(index=False)
    }
    assert [int(row[0]) for row in rows] == sorted(gone.counts.tolist(), reverse=True)[:12]
    for row in rows:
        assert sizes[row[2:]] == int(row[1].replace(",", ""))


@pytest.mark.parametrize("most", [1, 3, 7, 20, 21, 100])
@pytest.mark.parametrize("values", [2, 5, 1000])
def test_the_largest_come_first_and_of_the_same_the_first(most, values):
    counts = np.random.default_rng(values).integers(1, values, 20)
    expected = sorted(range(20), key=lambda i: (-counts[i], i))[:most]
    assert largest(counts, most).tolist() == expected


def test_crowds_are_listed_by_their_size_and_none_is_left_out(made):
    _, attributes, table, outcome, _, internal = made
    whole = table.recode({a.name: a.hierarchy.recode(outcome.levels[a.name]) for a in attributes})
    (shown,) = [t for t in tree(internal).iter("table") if "Crowds of the table by their size" in (t[0].text or "")]
    rows = [["".join(cell.itertext()) for cell in row] for row in shown.findall("tbody/tr")]
    for name, _, crowds, *_ in rows:
        low, high = ([int(n.replace(",", "")) for n in re.findall(r"[\d,]+", name)] * 2)[:2]
        assert int(crowds.replace(",", "")) == int(((whole.counts >= low) & (whole.counts <= high)).sum())
    assert sum(int(row[2].replace(",", "")) for row in rows) == len(whole)
    assert sum(int(row[3].replace(",", "")) for row in rows) == len(outcome.published)


@pytest.mark.parametrize("spent", [0.0, 0.5])
def test_what_is_drawn_is_computed_where_it_is_told(monkeypatch, spent):
    asked = []
    exact = crowd.CrowdProfile.delta

    def delta(profile, epsilon):
        asked.append(epsilon)
        return exact(profile, epsilon)

    monkeypatch.setattr(crowd.CrowdProfile, "delta", delta)
    settings = CrowdSettings(2.0, 1e-5, spent, 10, 0.3, already_sampled=False)
    promise.promise(settings)
    told = len(asked)
    promise._trade_off(settings)
    assert len(asked) - told == told - 1  # the upper half of the picture, from the promise to twice its ε
    assert len(set(asked)) == len(asked)


# --- what the promise means -------------------------------------------------------------------------------------------


def output_law(n, k, beta):
    from scipy.stats import binom

    mass = binom.pmf(np.arange(60), n, beta)
    return np.concatenate([[mass[:k].sum()], mass[k:]])


@pytest.mark.parametrize(("k", "beta", "epsilon"), [(3, 0.3, 1.0), (5, 0.6, 0.8), (2, 0.1, 0.4)])
def test_no_event_changes_more_than_the_report_says(k, beta, epsilon):
    delta = crowd.exact_delta(k, beta, epsilon)
    settings = CrowdSettings(epsilon, delta, 0.0, k, beta, already_sampled=False)
    whole, stated = promise.curve(settings), [(epsilon, delta)]
    best = sharpest = 0.0
    for n in range(1, 40):
        laws = np.array([output_law(n, k, beta), output_law(n - 1, k, beta)])
        laws = laws[:, laws.max(axis=0) > 1e-15]
        for p, q in (laws, laws[::-1]):
            # The most that can be reached at each probability is reached by the outcomes of largest ratio.
            order = np.argsort(-(p / np.maximum(q, 1e-300)))
            for with_it, without in zip(np.cumsum(p[order]), np.cumsum(q[order]), strict=True):
                assert with_it <= promise.at_most(without, whole) + 1e-9
                assert 1 - with_it >= promise.at_least(1 - without, whole) - 1e-9
                assert promise.at_most(without, whole) <= promise.at_most(without, stated)
                best = max(best, with_it / promise.at_most(without, whole)) if without > 0.01 else best
            sharpest = max(sharpest, 0.5 + np.maximum(p - q, 0).sum() / 2)
    assert sharpest <= promise.guess(whole) + 1e-12
    assert sharpest >= promise.guess(whole) - 0.01  # and it says no more than it must
    assert best > 0.95


def test_a_choice_of_levels_weakens_what_can_be_said():
    fixed = promise.curve(CrowdSettings(2.0, 1e-5, 0.0, 10, 0.3, already_sampled=False))
    chosen = promise.curve(CrowdSettings(2.0, 1e-5, 0.5, 10, 0.3, already_sampled=False))
    assert promise.guess(chosen) > promise.guess(fixed)
    assert promise.guess(chosen) >= np.exp(0.5) / (1 + np.exp(0.5))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0, 100.0])
def test_extreme_promises_can_be_read(epsilon, made):
    policy, _, _, outcome, _, _ = made
    settings = CrowdSettings(epsilon, 0.5, 0.0, 10, 0.3, already_sampled=False)
    text = words(public_report(policy, settings, outcome.published, outcome.levels, void=None))
    assert "nan" not in text
    assert "inf" not in text.replace("information", "")


def test_bounds_are_rounded_outwards():
    for value in [0.0, 1e-7, 0.000123456, 0.0123456, 0.123456, 0.5, 0.98765, 1.0]:
        assert float(percent_up(value).rstrip("%")) / 100 >= value * (1 - 1e-12)
        assert float(percent_down(value).rstrip("%")) / 100 <= value * (1 + 1e-12)
    assert promise._up(7.389056, 3) == "7.39"
    assert promise._up(7.3801, 3) == "7.39"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1234567, "1,234,567"),
        (0.3, "0.3"),
        (1e-5, "10⁻⁵"),
        (3.14159e-7, "3.142 · 10⁻⁷"),
        (103.6, "103.6"),
        (12345.6, "12,346"),
        (float("inf"), "∞"),
    ],
)
def test_numbers_for_people(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0, "0%"),
        (0.0001, "< 0.1%"),
        (0.1234, "12.3%"),
        (0.9999, "> 99.9%"),
        (1, "100%"),
        (1.795, "179.5%"),
        (28.559, "2,856%"),
    ],
)
def test_shares_for_people(share, text):
    assert percent(share) == text


def test_every_pair_of_columns_is_among_the_marginals(made):
    _, attributes, table, outcome, _, _ = made
    recodes = {a.name: a.hierarchy.recode(outcome.levels[a.name]) for a in attributes}
    c = Comparison(table, recodes, outcome.sample, outcome.published, 0.3)
    assert [m.names for m in c.marginals][4:] == list(combinations(table.names, 2))
