"""Both randomisers draw with exactly the stated probabilities, and twins that do not are caught.

Chi-square over all outcomes of all attributes. Each test rejects a correct randomiser with probability at most 1e-6.
"""

import itertools
import json
import math
import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from scipy.stats import chi2

import incrowd.survey
from incrowd.survey import Question, Questionnaire, Randomizer, randomizer
from incrowd.survey.questionnaire import numerator64

pytestmark = pytest.mark.statistical

RUNS = 60_000
SIZES, RHOS = (2, 3, 5), (0.25, 0.4, 0.1)
ANSWERS = {"a0": "v1", "a1": "v0", "a2": "v3"}
SOURCE = (Path(incrowd.survey.__file__).parent / "randomizer.js").read_text(encoding="utf-8")


def questionnaire():
    questions = []
    for i, (size, rho) in enumerate(zip(SIZES, RHOS, strict=True)):
        values = tuple(f"v{j}" for j in range(size))
        questions.append(Question(f"a{i}", f"a{i}?", values, values, numerator64(rho)))
    return Questionnaire.make("T", questions, records=1000)


def surprise(records):
    """The p-value of the joint distribution of the records."""
    counts = Counter(tuple(record[name] for name in ANSWERS) for record in records)
    total = sum(counts.values())
    statistic = 0.0
    domains = [[f"v{j}" for j in range(size)] for size in SIZES]
    for cell in itertools.product(*domains):
        kept = zip(cell, ANSWERS.values(), SIZES, RHOS, strict=True)
        expected = total * math.prod((1 - r) / s + r * (value == given) for value, given, s, r in kept)
        statistic += (counts[cell] - expected) ** 2 / expected
    return chi2.sf(statistic, math.prod(SIZES) - 1)


def python_records(draw=None):
    made = Randomizer(questionnaire(), _bytes=draw or os.urandom)
    return [made.randomize(ANSWERS) for _ in range(RUNS)]


def javascript_records(tmp_path, source=SOURCE):
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    (tmp_path / "randomizer.mjs").write_text(source, encoding="utf-8")
    program = """import { Randomizer } from "./randomizer.mjs"; import { readFileSync } from "node:fs";
    import { webcrypto } from "node:crypto"; globalThis.crypto ??= webcrypto;
    const [document, answers, runs] = JSON.parse(readFileSync(0)), randomizer = new Randomizer(document), all = [];
    for (let run = 0; run < runs; run += 1) all.push(randomizer.randomize(answers));
    console.log(JSON.stringify(all));"""
    (tmp_path / "program.mjs").write_text(program, encoding="utf-8")
    given = json.dumps([questionnaire().document, ANSWERS, RUNS])
    done = subprocess.run([node, "program.mjs"], input=given, cwd=tmp_path, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_python_draws_with_the_stated_probabilities():
    assert surprise(python_records()) > 1e-6


def test_javascript_draws_with_the_stated_probabilities(tmp_path):
    assert surprise(javascript_records(tmp_path)) > 1e-6


def test_a_biased_python_twin_is_caught(monkeypatch):
    # The textbook mistake: the remainder of a byte, which prefers small values.
    monkeypatch.setattr(randomizer, "_uniform", lambda size, read: (read(1)[0] >> 4) % size)
    assert surprise(python_records()) < 1e-6


def test_a_python_twin_that_keeps_a_little_more_is_caught(monkeypatch):
    exact = randomizer._randomized
    monkeypatch.setattr(
        randomizer, "_randomized", lambda code, numerator, *rest: exact(code, numerator + 2**64 // 50, *rest)
    )
    assert surprise(python_records()) < 1e-6


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("if (drawn < size) return drawn;", "return drawn % size;"),
        ("< numerator;", "< numerator + (1n << 64n) / 50n;"),
    ],
)
def test_biased_javascript_twins_are_caught(tmp_path, right, wrong):
    assert SOURCE.count(right) == 1
    assert surprise(javascript_records(tmp_path, SOURCE.replace(right, wrong))) < 1e-6
