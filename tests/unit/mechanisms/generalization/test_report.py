"""Both reports of a generalized table: what they say, what they must not say, and that they are numbers."""

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from incrowd import api
from incrowd.core.errors import InternalError
from incrowd.core.numbers import exactly, number, number_down, number_up
from incrowd.hierarchy import codings
from incrowd.mechanisms.base import Publication
from incrowd.mechanisms.generalization import draw as generalization
from incrowd.mechanisms.generalization import lattice_page as lattice_tables
from incrowd.mechanisms.generalization import lattice_view
from incrowd.mechanisms.generalization import report as generalization_report
from incrowd.mechanisms.generalization import state as kind
from incrowd.mechanisms.registry import MECHANISMS
from incrowd.policy import Policy
from incrowd.releases.certificate import digest_without
from incrowd.releases.verdict import public_block, verdict
from incrowd.reports.frame import MARKING
from incrowd.reports.page import completed

POLICY = """
incrowd: 1
title: Patients <of> a & b
attributes:
  age: {type: integer, domain: {from: 0, to: 79}, hierarchy: {widths: [10, 20, 40]}}
  sex: {domain: [f, m]}
  illness: {role: sensitive, domain: [flu, "<script>", rare], missing: keep}
release: {mechanism: generalization, %s}
"""
RELEASE = (
    "adversaries: [{name: a <nosy> neighbour, belief_ratio: 3, stubbornness: 50, knows: 1}, "
    "{name: Eve, belief_ratio: 6, shape: {flu: 5, <script>: 3, rare: 1, (missing): 1}, predicates: subsets}, "
    "{name: Ida, belief_ratio: 4, shape: uniform, stubbornness: 100, or_less_stubborn: true}], "
    "require: [{k: 20}, {t: 0.3}], suppression: 0.05"
)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(3)
    rows = 2011
    illness = rng.choice(np.array(["flu", "<script>", "rare", None], dtype=object), rows, p=[0.5, 0.3, 0.1, 0.1])
    ages = np.concatenate([rng.integers(0, 60, rows - 17), np.full(17, 79)])
    return pd.DataFrame({"age": ages, "sex": rng.choice(["f", "m"], rows), "illness": illness})


@pytest.fixture(scope="module")
def made(people):
    return api.release(people, Policy.from_text(POLICY % RELEASE))


def text_of(page: bytes) -> str:
    root = ET.fromstring(page.decode().replace("<!DOCTYPE html>\n", "", 1))
    return re.sub(r"\s+", " ", " ".join(root.itertext()))


def test_both_are_well_formed_and_load_nothing(made):
    for page in (made.report, made.internal["report.html"]):
        ET.fromstring(page.decode().replace("<!DOCTYPE html>\n", "", 1))
        assert b"<script" not in page
        assert not re.search(rb'(?:src|href)="(?!#)', page)


def test_the_public_one_says_what_is_promised_and_what_is_not(made):
    said = text_of(made.report)
    assert "This is not differential privacy" in said
    assert "minimality attack" in said
    assert "do not add up" in said
    for entry in made.certificate["promise"]["adversaries"]:
        assert f"Against {entry['name']}" in said
    assert "seen 46 people" in said  # a stubbornness of 50, and four values
    assert "She knows 1 record of the table beforehand" in said
    assert "certain of these shares, whatever the table shows: flu 50.0%" in said
    assert "not flu" in said  # of the subsets
    assert "less firmly" in said
    assert "groups of at least 20 records" in said
    assert "incrowd verify" in said


def test_the_public_one_is_made_of_public_things_only(made, people):
    said = text_of(made.report)
    left_out = len(people) - made.histogram.total
    assert left_out > 0
    assert f"{len(people):,}" not in said
    assert str(len(people)) not in said
    assert "minimal:" not in said
    assert MARKING not in said
    # From nothing but the policy, the settings and the published table the same page comes out again.
    plan = Policy.from_text(POLICY % RELEASE)
    settled = MECHANISMS["generalization"].settle(plan, codings(plan), 1)
    statement = kind.state(kind._said(made.certified), kind._beliefs(made.certified.promise))
    page = generalization_report.public_report(plan, settled, Publication(made.histogram), statement, void=None)
    digest = digest_without("report.html", made.certificate)
    assert completed(page, public_block(verdict(plan, made.histogram, statement)), digest) == made.report
    assert made.report.count(digest.encode()) == 2  # at the end, and at the foot of each printed page
    assert digest.encode() in made.internal["report.html"]
    assert digest == digest_without("report.html", {**made.certificate, "digest": "", "signature": {}})
    assert digest != digest_without("report.html", {**made.certificate, "randomness": "dice"})


def test_the_internal_one_shows_the_lattice_and_the_worst_groups(made, people):
    page = made.internal["report.html"]
    said = text_of(page)
    assert MARKING in said
    assert f"{len(people):,}" in said
    assert f"{len(people) - made.histogram.total:,}" in said
    assert b'class="lattice"' in page
    assert "10 tables to choose from" in said  # 5 levels of age by 2 of sex
    assert "The search was complete" in said
    assert "p_out" in said
    assert "information kept" in said
    assert len(re.findall(rb'class="lattice-node[^"]*"[^>]*><title>', page)) == 10
    assert len(re.findall(rb'class="lattice-node kept[^"]*chosen"[^>]*><title>', page)) == 1


def test_limits_are_written_out_and_what_is_reached_is_rounded_up(people):
    said = "adversaries: {belief_ratio: 4.00000001, shape: {flu: 4, <script>: 4, rare: 1, (missing): 1}}"
    made = api.release(people, Policy.from_text(POLICY % said))
    reached = made.certificate["promise"]["adversaries"][0]["belief_ratio_reached"]
    said = text_of(made.report)
    assert "≤ 4.00000001" in said
    assert "is at most 4.00000001 ," in said
    assert f"{math.ceil(reached * 1000) / 1000:.4g} reached" in said
    assert math.ceil(reached * 1000) != round(reached * 1000)  # so it is seen which it is


def test_numbers_are_rounded_to_the_side_asked_for():
    assert (number(1.23449), number_up(1.23441), number_down(1.23449)) == (
        "1.234",
        "1.235",
        "1.234",
    )
    assert (number_up(12345.6), number_down(12345.6)) == ("12,350", "12,340")
    assert (number_up(1.0), number_up(math.inf), number_up(3)) == ("1", "∞", "3")
    assert (number_up(1e-5, 3), number_down(0.3, 3)) == ("10⁻⁵", "0.3")  # as they were given
    assert number_up(math.nextafter(1e-5, 1), 3) == "1.01 · 10⁻⁵"
    assert (exactly(2.5), exactly(3.0), exactly(0.1 + 0.2)) == (
        "2.5",
        "3",
        "0.30000000000000004",
    )


def test_the_kind_of_promise_and_of_table_is_said_as_it_is(made):
    said = text_of(made.report)
    assert "theorem about how the release was made" not in said
    assert "a property of this table" in said
    assert "no more coarsely than it takes" not in said


def test_the_tables_around_are_looked_at_once(people, monkeypatch):
    looked = []
    for module in (lattice_view, lattice_tables):
        monkeypatch.setattr(
            module, "look_around", lambda *a, **k: looked.append(a[2]) or generalization.look_around(*a, **k)
        )
    api.release(people, Policy.from_text(POLICY % RELEASE))
    assert len(looked) == 1


def test_a_table_that_fails_gets_no_report(made):
    plan = Policy.from_text(POLICY % RELEASE.replace("k: 20", "k: 1000"))
    settled = MECHANISMS["generalization"].settle(plan, codings(plan), 1)
    statement = kind.state(kind._said(made.certified), kind._beliefs(made.certified.promise))
    with pytest.raises(InternalError):
        generalization_report.public_report(plan, settled, Publication(made.histogram), statement, void=None)


def test_without_adversaries_there_is_nothing_about_beliefs(people):
    made = api.release(people, Policy.from_text(POLICY % "require: {k: 5}"))
    assert "Take any person" not in text_of(made.report)
    assert "groups of at least 5 records" in text_of(made.report)
    assert "worst" in text_of(made.internal["report.html"])
