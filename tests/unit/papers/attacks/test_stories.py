"""The attacks succeed where they should, fail where they should, and say the numbers that the papers say."""

import json
import math
import xml.etree.ElementTree as ET

import pytest
from click.testing import CliRunner

from incrowd.cli import incrowd
from incrowd.core.errors import ParameterError
from incrowd.papers.attacks import stories


def test_the_richest_person_stretches_the_last_group():
    found = stories.extreme_values()
    assert found.observed.value == 1.0
    assert "35,000,000" in found.story[2]
    assert found.safe.value == pytest.approx(2.76e-15, rel=1e-2)


def test_mondrian_keeps_to_k():
    import numpy as np

    worth = np.arange(1000) % 317
    for k in (2, 20, 60):
        parts = stories._split(np.sort(worth), k)
        assert min(map(len, parts)) >= k
        assert sum(map(len, parts)) == len(worth)
    assert stories.groups(worth, 600) == [(0, 316)]


def test_two_answers_from_one_sample_give_her_away():
    found = stories.one_sample()
    assert found.claim.value == 0.0
    assert found.observed.value == pytest.approx(0.38705, abs=5e-6)
    assert found.safe.value == 0.0
    assert "ε = 0.322" in found.story[0]
    assert "at ε = 5 it still is 0.207" in found.story[2]


def test_the_law_of_both_answers_is_whole():
    for present in (False, True):
        assert stories._two_answers(30_000, 10_000, 20, 1.0, present=present).sum() == pytest.approx(1, abs=1e-12)


def test_without_noise_the_second_answer_tells_the_stripe():
    """It counts her too, so it is in the next stripe if the others fill theirs: one number in twenty."""
    there, absent = (stories._two_answers(30_000, 10_000, 20, 30.0, present=present) for present in (True, False))
    assert stories._divergence(there, absent, 5.0) == pytest.approx(0.5 * 19 / 20, abs=1e-3)


def test_duplicated_rows_tell_everything_and_a_crowd_nothing():
    found = stories.duplicated_rows()
    assert found.observed.value == 1.0
    assert found.safe.value == 0.5
    assert "20-anonymous" in found.story[1]


@pytest.mark.parametrize(("beta", "promised", "true"), [(0.1, 4.07e-14, 1.9e-12), (0.2, 6.03e-9, 7.5e-8)])
def test_choosing_on_the_sample_exceeds_what_theorem_6_promises(beta, promised, true):
    found = stories.choosing_on_the_sample(beta=beta)
    assert found.claim.value == pytest.approx(promised, rel=5e-3)
    assert found.observed.value >= true * 0.99
    assert found.safe.value < found.claim.value


def test_each_attack_is_told_with_what_is_seen_and_is_drawn_anew():
    told = {name: [stories.run(name) for _ in range(2)] for name in stories.ATTACKS}
    for name, (first, _) in told.items():
        assert first.knows
        assert first.sees
        assert first.drawn.startswith("This time")
        unsafe, safe = map(ET.fromstring, first.pictures)
        assert "".join(unsafe.itertext()) != "".join(safe.itertext()), name
    # What is drawn differs from time to time, so a picture of it does.
    first, second = told["extreme-values"]
    assert first.pictures[0] != second.pictures[0]
    # Of the safe release she sees the same with and without the person: nothing in the highest range.
    (highest,) = [row for row in ET.fromstring(first.pictures[1]).iter("tr") if "or more" in "".join(row.itertext())]
    assert "".join(highest.itertext()) == "900,001 or more00"
    contradicting = [stories._asked_twice(30_000, 20, 1.0).count("which contradicts it") for _ in range(40)]
    assert sum(n >= 1 for n in contradicting) >= 30  # 19 in 20 of the same sample, and half of a fresh one


def test_an_unknown_attack_is_refused():
    with pytest.raises(ParameterError, match="no attack"):
        stories.run("no-such")


@pytest.mark.parametrize("name", stories.ATTACKS)
def test_the_command_tells_the_story_and_the_numbers(name):
    done = CliRunner().invoke(incrowd, ["attack", name, "--json"])
    told = json.loads(done.stdout)
    assert done.exit_code == 0
    assert math.isfinite(told["claim"]["value"])
    assert math.isfinite(told["observed"]["value"])
    assert told["lesson"]
    spoken = CliRunner().invoke(incrowd, ["attack", name])
    assert "observed" in spoken.output


def test_without_a_name_the_attacks_are_listed():
    done = CliRunner().invoke(incrowd, ["attack", "--json"])
    assert json.loads(done.stdout)["attacks"] == list(stories.ATTACKS)
