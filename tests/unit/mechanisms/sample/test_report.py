"""The reports on a plain sample: what the public one must not hold, and what the publisher's own says."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from incrowd import api
from incrowd.mechanisms.sample import report as sample_report
from incrowd.mechanisms.sample.draw import SampleOutcome
from incrowd.mechanisms.sample.settle import Terms
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.theory import sampling
from incrowd.theory.intervals import absent_at_most

TEXT = """
incrowd: 1
title: A <b>town</b>
attributes:
  age: {type: integer, domain: {from: 0, to: 99}, hierarchy: {widths: [10, 50]}, level: 1}
  sex: {domain: [f, m]}
  job: {domain: [baker, smith, "<script>"], missing: keep}
release: {mechanism: sample, epsilon: 0.5, delta: 0.05}
"""


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(2)
    n = 30_000
    return pd.DataFrame(
        {
            "age": np.minimum(99, rng.gamma(6, 7, n).astype(int)),
            "sex": rng.choice(["f", "m"], n),
            "job": rng.choice(np.array(["baker", "smith", "<script>", None], dtype=object), n),
        }
    )


@pytest.fixture(scope="module")
def release(people):
    return api.release(people, Policy.from_text(TEXT))


def plain(page: bytes) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page.decode()))


@pytest.mark.parametrize("which", ["public", "internal"])
def test_pages_are_whole_and_ask_for_nothing(release, which):
    page = release.report if which == "public" else release.internal["report.html"]
    ET.fromstring(page.decode().removeprefix("<!DOCTYPE html>\n"))
    text = page.decode().replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|//[a-z]|url\(|@import|javascript:", text)
    assert "<script" not in text
    assert ("never publish" in text) == (which == "internal")
    assert len(page) < 100_000


def test_the_public_page_says_what_the_promise_is_not(release):
    text = plain(release.report)
    for said in ("weaker statement about this table alone", "chosen by looking at this table", "Chaudhuri and Mishra"):
        assert said in text
    assert "1.5 times as likely" in text
    assert "33.34% of those who have it" in text  # ε/(1+ε), rounded up
    assert "40% to 60%" in text  # a belief of one half, changed by a factor of 1.5


def test_the_public_page_knows_nothing_of_the_table(people, release):
    text = plain(release.report)
    counts = people.assign(age=people.age // 10).value_counts(dropna=False).to_numpy()
    largest = sampling.largest_rate(counts, 0.5, 0.05)
    for secret in ("30,000", "30000", f"{largest.rate:.5g}"):
        assert secret not in text


def test_the_internal_page_has_both_rates_the_classes_and_the_advice(people, release):
    text = plain(release.internal["report.html"])
    counts = people.assign(age=people.age // 10).value_counts(dropna=False).to_numpy()
    rare = sampling.classify(
        counts,
        sampling.largest_rate(counts, 0.5, 0.05).rate,
        sampling.theorem_rate(counts, 0.5, 0.05).inner_epsilon,
        0.05,
    ).rare
    assert "by Theorem 3 of the paper" in text
    assert "the largest that is safe" in text
    assert f"{rare} combinations are rare" in text
    assert "What would raise it" in text
    assert "level: 2" in text
    assert "Do not draw again" in text
    assert "30,000" in text


def test_no_number_of_the_promise_is_rounded_down(people):
    """ε and δ to the last digit, 1 + ε too, and every share rounded up."""
    text = TEXT.replace("epsilon: 0.5, delta: 0.05", "epsilon: 0.123456, delta: 0.0123456")
    made = plain(api.release(people, Policy.from_text(text)).report)
    assert "1.123456 times as likely" in made
    assert "ε = 0.123456" in made
    assert made.count("0.0123456") >= 5
    assert "10.99% of those who have it" in made  # 0.123456/1.123456 = 0.10989
    assert not re.search(r"\b(0\.1235|0\.01235|0\.01234|1\.123)\b", made)


def test_a_rounded_table_is_called_so(people):
    text = TEXT.replace("hierarchy: {widths: [10, 50]}, level: 1", "level: 0").replace(
        "0.05}", "0.05, round: {age: 25}}"
    )
    made = plain(api.release(people, Policy.from_text(text)).report)
    assert "any record of the table as it was rounded" in made
    assert made.count("all other records as they were rounded") >= 2
    plainly = plain(api.release(people, Policy.from_text(TEXT)).report)
    assert "as they were rounded" not in plainly


def test_what_may_be_missing_is_bounded_as_in_the_estimates(release):
    rate = release.certificate["mechanism"]["rate"]
    assert f"What more than {absent_at_most(rate):,} people have would be missing here" in plain(release.report)


def outcome(drawn):
    made = api.look_at(pd.DataFrame({"x": ["a"] * 2 + ["b"] * 30 + ["c"] * 400}))
    drawn = np.array(drawn)
    return SampleOutcome(made.table.with_counts(drawn), Terms(1.0, 0.05, 0.1, 1), made.table, made.table, drawn)


def said_of(drawn):
    return " ".join(plain(str(part).encode()) for part in sample_report._drawn(outcome(drawn)))


def test_a_private_sample_is_called_so():
    text = said_of([1, 3, 40])
    assert "Yes." in text
    assert "at most 2 -fold" in text or "at most 2-fold" in text


def test_a_telling_sample_is_called_so_and_not_replaced():
    text = said_of([2, 3, 40])
    assert "No." in text
    assert "without bound" in text
    assert "Do not draw again" in text
    text = said_of([0, 20, 40])
    assert "3 -fold" in text or "3-fold" in text


def test_good_in_the_papers_sense():
    assert "it is good" in said_of([0, 3, 40])
    assert "not good: it has 1 rare combination which it should not have at all" in said_of([1, 3, 40])


def test_a_seeded_sample_says_that_it_promises_nothing(people):
    made = api.release(people, Policy.from_text(TEXT), _source=RandomSource.seeded(3))
    assert "promises nothing" in plain(made.report)
