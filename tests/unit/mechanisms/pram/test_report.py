"""Reports on randomised tables: what they say, what they must not, and that they are well-formed."""

import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from incrowd import api
from incrowd.hierarchy import codings
from incrowd.histogram import Column, Histogram
from incrowd.marginals import Marginals
from incrowd.mechanisms.pram import comparison_page as pram_comparison
from incrowd.mechanisms.pram import report as pram_report
from incrowd.mechanisms.registry import MECHANISMS
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.releases.pipeline import count_table

BASE = """
incrowd: 1
title: Health & habits
attributes:
  age: {{type: integer, domain: {{from: 0, to: 99}}, hierarchy: {{widths: [10, 50]}}, level: 1}}
  sex: {{domain: [f, m]}}
  "smo,ker<b>": {{domain: [no, yes, "<i>often</i>"], missing: keep}}
release: {{mechanism: pram, {}}}
"""
KEYS = [
    "k: 7.5",
    "rho: {sex: 0.5, age: 0, 'smo,ker<b>': 0.5}",
    "rho: 0.3, matrix: {sex: [[0.9, 0.1], [1/3, 2/3]]}, joint: [{of: [age, 'smo,ker<b>']}]",
    "rho: 0.5, invariant: true",
]


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    habits = np.array(["no", "yes", "<i>often</i>", None], dtype=object)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 100, 5000),
            "sex": rng.choice(["f", "m"], 5000),
            "smo,ker<b>": habits[rng.choice(4, 5000, p=[0.6, 0.2, 0.1, 0.1])],
        }
    )


@pytest.mark.parametrize("keys", KEYS)
def test_both_reports_are_well_formed_and_escape_what_is_in_the_data(people, keys):
    made = api.release(people, Policy.from_text(BASE.format(keys)))
    for content in (made.report, made.internal["report.html"]):
        text = content.decode()
        ET.fromstring(text.removeprefix("<!DOCTYPE html>\n").replace("&nbsp;", " "))
        assert "<i>often</i>" not in text
        assert "Health &amp; habits" in text
        assert "<script" not in text
        assert "nan" not in text.replace("Finance", "")
    assert "never publish" in made.internal["report.html"].decode()
    assert "never publish" not in made.report.decode()


@pytest.mark.parametrize("keys", KEYS)
def test_counts_by_few_columns_are_enough_for_the_reports(people, keys):
    """Of a table that no machine can hold, nothing else is known."""
    policy = Policy.from_text(BASE.format(keys))
    attributes = codings(policy)
    table = count_table(people, policy, attributes, show_values=False, progress=lambda part: None)
    pram = MECHANISMS["pram"]
    settled, truth_table = pram.prepare(pram.settle(policy, attributes, 1), table, lambda *_: None)
    made = pram.draw(settled, truth_table, RandomSource.seeded(1))
    sets = pram_comparison.looked_at(settled)
    truth, published = (Marginals(h.columns, tuple(map(h.project, sets))) for h in (truth_table, made.published))
    reports = [
        pram_report.public_report(policy, settled, table, made.statement, void="because of a test")
        for table in (made.published, published)
    ]
    assert reports[0] == reports[1]
    whole, known = (
        pram_report.compared(policy, attributes, settled, *tables, void="because of a test").decode()
        for tables in ((truth_table, made.published), (truth, published))
    )
    for part in ("</header>", 'id="generalization"'):
        whole, known = whole.partition(part)[0 if "id" in part else 2], known.partition(part)[0 if "id" in part else 2]
    assert whole == known
    assert "Errors of reconstructed counts" in known


def test_the_public_report_says_the_three_promises_on_the_safe_side(people):
    made = api.release(people, Policy.from_text(BASE.format("k: 7.5")))
    text = made.report.decode()
    for said in (
        "k = 7.5",
        "1 in 7.5",
        "Corollary 5",
        "replace-one",
        "privacy blanket",
        "incrowd estimate FOLDER --by age,sex",
    ):
        assert said in text
    promise = made.certificate["promise"]
    shown = float(text.split("ε₀ = ")[1].split("<")[0])
    assert promise["local_epsilon"] <= shown < promise["local_epsilon"] * 1.001


def test_the_public_report_is_made_of_public_things_alone(people):
    """Two tables with the same release have the same report: here one, read twice with another truth behind it."""
    from incrowd.hierarchy import codings
    from incrowd.mechanisms.pram import report as pram_report
    from incrowd.mechanisms.pram.draw import collected
    from incrowd.releases.certificate import digest_without
    from incrowd.releases.verdict import public_block
    from incrowd.reports.page import completed

    policy = Policy.from_text(BASE.format("rho: 0.4"))
    made = api.release(people, policy)
    settings, again = collected(MECHANISMS["pram"].settle(policy, codings(policy), 1), made.histogram)
    page = pram_report.public_report(policy, settings, again.published, again.statement, void=None)
    text = completed(page, public_block(made.verdict), digest_without("report.html", made.certificate)).decode()
    assert (
        text.replace("its owner", "the publisher").split('id="assumptions"')[0]
        == made.report.decode().split('id="assumptions"')[0]
    )


def test_a_seeded_release_says_that_it_is_void(people):
    made = api.release(people, Policy.from_text(BASE.format("k: 5")), _source=RandomSource.seeded(1))
    assert "This release promises nothing" in made.report.decode()


def test_invariant_pram_claims_no_number(people):
    text = api.release(people, Policy.from_text(BASE.format("rho: 0.5, invariant: true"))).report.decode()
    assert "Nothing is proved about this table" in text
    assert "What generalization would have cost" not in text
    assert "ε₀ =" not in text


def test_the_internal_report_compares_with_a_generalization_to_the_same_k(people):
    text = api.release(people, Policy.from_text(BASE.format("k: 20"))).internal["report.html"].decode()
    assert "generalized to groups of 20" in text
    assert "query error" in text
    assert "expected" in text


def test_what_cannot_be_answered_counts_as_wholly_wrong_on_both_sides(people):
    """Nothing is known of any column: no average of errors, and a query error of 100%."""
    text = api.release(people, Policy.from_text(BASE.format("rho: 0"))).internal["report.html"].decode()
    cells = ET.fromstring(text.removeprefix("<!DOCTYPE html>\n").replace("&nbsp;", " ")).iter()
    shown = " ".join(" ".join(part.itertext()) for part in cells if part.tag.endswith("body"))
    shown = " ".join(shown.split())
    assert "this release 100%" in shown
    assert "error of one column —" in shown or "— error of one column" in shown


def test_both_sides_are_asked_for_the_same_counts(people):
    found = {("a",): 0.2, ("b",): 0.4, ("a", "b"): 0.9, ("c",): 0.1}
    assert pram_comparison.query_error([("a",), ("b",)], found) == pytest.approx(0.3)
    assert pram_comparison.query_error([("a",), ("x",)], found) == pytest.approx(0.6)
    wide = Histogram.of([Column(n, tuple(map(str, range(80))), np.array([0, 1])) for n in "ab"])
    assert pram_comparison.workload(wide) == [("a",), ("b",)]  # 6,400 pairs are too many
    assert pram_comparison.workload(wide.project(["a"])) == [("a",)]


def test_the_k_of_the_comparison_is_the_policys():
    for asked, reached, k in ((20.0, 20.0000003, 20), (7.5, 7.5, 8), (None, 12.0000000001, 12), (None, 12.3, 13)):
        promise = SimpleNamespace(k=reached)
        assert pram_comparison.group_size(SimpleNamespace(promise=promise, section=SimpleNamespace(k=asked))) == k
