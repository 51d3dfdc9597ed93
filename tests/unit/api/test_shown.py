"""Whatever scripts get back shows itself, at a prompt and in a notebook, and says whether it may be published."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import incrowd
from incrowd import api
from incrowd.core.display import INTERNAL
from incrowd.mechanisms.sample import plan as sample

NASTY = "<img src=x onerror=alert(1)>"
TEXT = """
incrowd: 1
title: "<script>alert(2)</script>"
attributes:
  name: {role: drop}
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}, level: 1}
  job: {domain: [office, shop, farm, "<img src=x onerror=alert(1)>"]}
release: {mechanism: sampled_crowd, epsilon: 1, delta: 1e-5}
ledger: {path: LEDGER, dataset: people, epsilon: 5, delta: 1e-3}
"""


class Elements(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found, self.said = set(), []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.add(tag)

    def handle_data(self, data):
        self.said.append(data)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(4)
    jobs = rng.choice(["office", "shop", "farm", NASTY], 4000)
    return pd.DataFrame({"name": np.arange(4000), "age": rng.integers(0, 100, 4000), "job": jobs})


@pytest.fixture(scope="module")
def results(people, tmp_path_factory):
    """One of each kind, by its name."""
    here = tmp_path_factory.mktemp("shown")
    policy = incrowd.Policy.from_text(TEXT.replace("LEDGER", str(here / "ledger.sqlite")))
    release = incrowd.release(people, policy, folder=here / "out", new_ledger=True)
    return {
        "policy": policy,
        "draft": incrowd.draft_policy(people),
        "release": release,
        "verification": incrowd.verify(here / "out"),
        "audit": incrowd.audit(people, ["age", "job"]),
        "sensitive audit": incrowd.audit(people, ["age"], "job"),
        "estimates": incrowd.estimate(here / "out", ["job"]),
        "statement": api.ledger_statement(here / "ledger.sqlite", "people"),
        "compared": incrowd.compare(policy, people, epsilons=[1.0], runs=1),
        "advised": incrowd.advise(policy, people),
        "choice": incrowd.choose_privately(policy, people, share=0.25),
        "crowd": incrowd.plan_crowd(epsilon=0.5, delta=1e-6, beta=0.2),
        "amplification": incrowd.plan_amplify(epsilon=1, delta=1e-6, from_beta=0.5, to_beta=0.1),
        "pram": incrowd.plan_pram(records=1000, domain=[10, 3], epsilon=1.0),
        "sample": incrowd.plan_sample([100, 200, 300], epsilon=0.5, delta=1e-3),
        "views": incrowd.plan_views(epsilon=1, delta=1e-6, columns=10, rows=50_000),
    }


# What each says, and whether it is for the publisher's eyes only.
SAYS = {
    "policy": ("2 columns, released by sampled_crowd", False),
    "draft": ("decisions are left to a person", True),
    "release": ("Release by sampled_crowd", False),
    "verification": ("The release is valid", False),
    "audit": ("4,000 records in", True),
    "sensitive audit": ("distinct ℓ", True),
    "estimates": ("job", False),
    "statement": ("people: 1 releases", False),
    "compared": ("4,000 records", True),
    "advised": ("4,000 records of age, job", True),
    "choice": ("Private choice", False),
    "crowd": ("Crowd plan", False),
    "amplification": ("Amplification", False),
    "pram": ("Pram plan", False),
    "sample": ("Sample plan", True),
    "views": ("Views budget", False),
}


@pytest.mark.parametrize("name", SAYS)
def test_a_result_shows_itself(results, name):
    said, internal = SAYS[name]
    page, text = results[name]._repr_html_(), repr(results[name])
    elements = Elements(page)
    assert elements.found <= {
        "div",
        "p",
        "b",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "ul",
        "li",
        "details",
        "summary",
        "pre",
    }
    assert "table" in elements.found
    for shown in (text, " ".join(elements.said)):
        assert said in shown
        assert any(words in shown for words in (INTERNAL, sample.INTERNAL)) == internal


def test_values_of_a_table_reach_the_page_as_text(results):
    """The twin of the test above: there is something to escape."""
    assert any(NASTY in text for text in Elements(results["estimates"]._repr_html_()).said)
    assert any("<script>" in text for text in Elements(results["policy"]._repr_html_()).said)


@pytest.mark.parametrize("name", ["compared", "advised", "estimates", "release"])
def test_what_can_be_drawn_is(results, name, tmp_path):
    drawn = results[name].plot(path=tmp_path / "drawn.svg")
    assert drawn._repr_svg_().startswith("<svg")
    assert (tmp_path / "drawn.svg").read_text(encoding="utf-8") == drawn.svg
    assert "<img" not in drawn.svg


def test_a_release_is_drawn_by_the_columns_asked_for(results):
    release = results["release"]
    assert release.plot("job") == release.plot(["job"]) != release.plot()
    assert release.plot().svg == release.plot("age").svg


def test_an_empty_release_is_one(people, tmp_path):
    policy = incrowd.Policy.from_text(TEXT.replace("LEDGER", str(tmp_path / "ledger.sqlite")))
    made = incrowd.release(people[:3], policy, new_ledger=True)
    assert len(made) == 0
    assert made
