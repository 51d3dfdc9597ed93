"""A randomised release from the outside: certificate, verification, tampering, ledger, estimates."""

import json
import math
import shutil
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from scipy.stats import binom

from incrowd import api
from incrowd.core import signing
from incrowd.core.errors import DataError, GuaranteeError, InputError, ParameterError, PolicyError, RelationError
from incrowd.hierarchy import codings
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.estimates import EstimateOptions
from incrowd.mechanisms.pram import settle as pram_settle
from incrowd.mechanisms.pram import state as pram_statement
from incrowd.mechanisms.pram.draw import collected
from incrowd.mechanisms.pram.report import public_report
from incrowd.mechanisms.pram.settle import PramPromise, likely_sample
from incrowd.mechanisms.registry import MECHANISMS
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.releases.release import BY_RESPONDENTS, Release, certify, files_of
from incrowd.releases.verdict import public_block, verdict
from incrowd.reports.page import completed

BASE = """
incrowd: 1
title: A survey
attributes:
  name: drop
  age: {{type: integer, domain: {{from: 0, to: 99}}, hierarchy: {{widths: [10, 50]}}, level: 1}}
  sex: {{domain: [f, m]}}
  job: {{domain: [baker, smith, teacher], missing: keep}}
release: {{mechanism: pram, {}}}
"""
ROWS = 6_000


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(11)
    sex = rng.integers(0, 2, ROWS)
    job = np.array(["baker", "smith", "teacher", None], dtype=object)
    return pd.DataFrame(
        {
            "name": [f"person {i}" for i in range(ROWS)],
            "age": np.clip(rng.normal(40 + 10 * sex, 15, ROWS), 0, 99).astype(int),
            "sex": np.array(["f", "m"])[sex],
            "job": np.where(rng.random(ROWS) < 0.4 + 0.3 * sex, "smith", job[rng.integers(0, 4, ROWS)]),
        }
    )


@pytest.fixture(scope="module")
def released(people, tmp_path_factory):
    folder = tmp_path_factory.mktemp("released") / "out"
    api.release(people, policy("k: 5"), folder=folder)
    return folder


def policy(keys, **edits):
    text = BASE.format(keys)
    for old, new in edits.items():
        text = text.replace(old, new)
    return Policy.from_text(text)


ALL = [
    "k: 5",
    "epsilon: 4, k: 2, importance: {age: 2}",
    "rho: 0.4, output: csv",
    "rho: {age: 0.3, sex: 0.6, job: 0.4}, records: 5000, delta: 1e-8",
    "rho: 0.3, matrix: {sex: [[0.9, 0.1], [1/3, 2/3]]}",
    "epsilon: 3, joint: [{of: [job, sex]}]",
    "k: 2, joint: [{of: [sex, job], matrix: "
    + json.dumps([["23/40" if i == j else "17/280" for j in range(8)] for i in range(8)]).replace('"', "")
    + "}]",
    "rho: 0.5, invariant: true",
]


@pytest.mark.parametrize("keys", ALL)
def test_a_release_verifies_and_can_be_estimated_from(people, tmp_path, keys):
    made = api.release(people, policy(keys), folder=tmp_path / "out")
    found = api.verify(tmp_path / "out")
    assert found.valid, [check for check in found.checks if not check.holds]
    assert made.histogram.total == ROWS
    assert made.histogram.names == ("age", "sex", "job")
    estimates = api.estimate(tmp_path / "out", ["sex", "job"], mean="age")
    assert sum(row.estimate for row in estimates.rows) == pytest.approx(ROWS)
    assert sum(row.em for row in estimates.rows) == pytest.approx(ROWS)
    assert all(row.em >= 0 for row in estimates.rows)
    truth = people.fillna({"job": "missing"}).groupby(["sex", "job"]).size()
    for row in estimates.rows:  # eight cells: none is off by six standard errors
        count = truth.get((row.values[0], row.values[1] or "missing"), 0)
        assert abs(row.estimate - count) <= 6 * row.standard_error + 1e-9
        assert 0 <= row.low <= row.high <= ROWS
    for public in (tmp_path / "out").iterdir():
        assert b"person 1" not in public.read_bytes()


def test_the_certificate_shows_three_promises_with_their_theorems(people, tmp_path):
    promise = api.release(people, policy("k: 5")).certificate["promise"]
    assert promise["k"] == 5
    assert promise["relation"] == "replace-one"
    assert promise["parts"]["linking"]["theorem"].endswith("Corollary 5")
    assert (
        promise["parts"]["local"]["epsilon"]
        == promise["local_epsilon"]
        == pytest.approx(math.log((ROWS - 1) / 4) / 2, rel=1e-9)
    )
    assert promise["epsilon"] < promise["local_epsilon"]
    assert "blanket" in promise["parts"]["central"]["theorem"]
    matrix = api.release(people, policy("rho: 0.3, matrix: {sex: [[0.9, 0.1], [1/3, 2/3]]}")).certificate["promise"]
    assert matrix["bound"] == "privacy blanket"
    assert matrix["parts"]["local"]["theorem"].endswith("Corollary 1")


def test_invariant_pram_says_which_promise_it_loses_and_is_never_added_up(people, tmp_path):
    ledger = f"ledger: {{path: {tmp_path}/l.sqlite, dataset: d, epsilon: 1, delta: 1e-5}}\n"
    plan = Policy.from_text(BASE.format("rho: 0.5, invariant: true") + ledger)
    promise = api.release(people, plan, new_ledger=True).certificate["promise"]
    assert promise["epsilon"] is None
    assert "neither Pk-anonymity nor differential privacy" in promise["in_words"]
    statement = api.ledger_statement(tmp_path / "l.sqlite", "d")
    assert statement.spent.epsilon == 0
    assert len(statement.releases) == 1


def test_the_ledger_counts_the_central_promise_under_replace_one(people, tmp_path):
    def plan(relation, epsilon=0.3):
        where = f"path: {tmp_path}/{relation[:3]}.sqlite, dataset: d, epsilon: {epsilon}, delta: 1e-5"
        return Policy.from_text(BASE.format("k: 5") + f"ledger: {{{where}, relation: {relation}}}\n")

    promise = api.release(people, plan("replace-one"), folder=tmp_path / "out", new_ledger=True).certificate["promise"]
    spent = api.ledger_statement(tmp_path / "rep.sqlite", "d")
    assert spent.spent.epsilon == pytest.approx(promise["epsilon"], rel=1e-3)
    with pytest.raises(RelationError, match="replace-one"):
        api.release(people, plan("add/remove"), new_ledger=True)
    with pytest.raises(PolicyError, match="not the one in the ledger"):
        api.release(
            people,
            Policy.from_text(plan("replace-one").to_yaml().replace("relation: replace-one", "relation: add/remove")),
        )
    with pytest.raises(GuaranteeError) as caught:
        api.release_copies(people, plan("replace-one"), copies=2)
    assert caught.value.code == "budget-overspent"


def test_several_copies_add_up_but_for_k(people, tmp_path):
    made = api.release_copies(people, policy("k: 5"), copies=3, folder=tmp_path / "out")
    together, promise = made[0].certificate["promise"]["together"], made[0].certificate["promise"]
    assert together["epsilon"] == pytest.approx(3 * promise["epsilon"])
    assert together["local_epsilon"] == pytest.approx(3 * promise["local_epsilon"])
    assert "k" not in together
    assert "k speaks of each release alone" in together["in_words"]
    assert all(api.verify(tmp_path / f"out-{i}").valid for i in (1, 2, 3))
    assert made[0].histogram != made[1].histogram


# --- tampering --------------------------------------------------------------------------------------------------------


def forge(folder, change):
    """Change the certificate and seal it again, as a forger would."""
    path = folder / "certificate.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content)
    content.pop("digest")
    path.write_bytes(signing.to_bytes(signing.seal(content)))


def _promise(key, value):
    return lambda c: c["promise"].update({key: value})


def _rho(c):
    c["mechanism"]["blocks"][0]["rho"] = 0.01


def _records(c):
    c["mechanism"]["records"] = ROWS + 1


def _merge_blocks(c):
    first, second = c["mechanism"]["blocks"][:2]
    first["attributes"] += second["attributes"]
    first["sizes"] += second["sizes"]
    del c["mechanism"]["blocks"][1]


def _invariant(c):
    c["mechanism"]["invariant"] = True


def _bound(name):
    """The central promise on other grounds, wherever the certificate speaks of them."""

    def change(c):
        part = c["promise"]["parts"]["central"]
        old, part["theorem"] = part["theorem"], pram_statement._BOUNDS[name]
        c["promise"].update(bound=name, grounds=c["promise"]["grounds"].replace(old, part["theorem"]))

    return change


FORGERIES = {
    "a smaller epsilon": _promise("epsilon", 0.001),
    "a smaller local epsilon": _promise("local_epsilon", 0.1),
    "a larger k": _promise("k", 1000.0),
    "other words": _promise("in_words", "Perfect privacy."),
    "a smaller delta": _promise("delta", 1e-12),
    "another rho": _rho,
    "more records": _records,
    "blocks merged": _merge_blocks,
    "invariant": _invariant,
    "another theorem": _bound("local"),
    "a theorem that gives less": _bound("clones"),
    "an unknown theorem": _promise("bound", "magic"),
    "nonsense": _promise("k", "many"),
    "a size that is no whole number": lambda c: c["mechanism"]["blocks"][0].update(sizes=[10.0]),
    "a number for a truth value": lambda c: c["mechanism"].update(invariant=0),
    "no blocks": lambda c: c["mechanism"].update(blocks=[]),
    "a huge block": lambda c: c["mechanism"]["blocks"][0].update(sizes=[10**30]),
    "a matrix that is none": lambda c: c["mechanism"]["blocks"].__setitem__(
        0, {"attributes": ["age"], "sizes": [10], "matrix": [["1"] * 10] * 10}
    ),
    "who did it": lambda c: c["mechanism"].update(randomised_by="nobody"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_certificate_is_caught(released, tmp_path, name):
    shutil.copytree(released, tmp_path / "out")
    assert api.verify(tmp_path / "out").valid
    forge(tmp_path / "out", FORGERIES[name])
    assert not api.verify(tmp_path / "out").valid
    with pytest.raises(InputError, match="not a valid release"):
        api.estimate(tmp_path / "out", ["sex"])


def test_a_table_with_a_record_less_is_caught(released, tmp_path):
    shutil.copytree(released, tmp_path / "out")
    path = tmp_path / "out" / "release.parquet"
    pq.write_table(pq.read_table(path).slice(1), path, store_schema=False, write_statistics=False)

    def adapt(c):
        c["files"]["release.parquet"] = {"sha256": signing.file_sha256(path), "bytes": path.stat().st_size}

    forge(tmp_path / "out", adapt)
    failed = {check.name for check in api.verify(tmp_path / "out").checks if not check.holds}
    assert f"the table has {ROWS} records" in failed


# --- refusals -------------------------------------------------------------------------------------------------------


def test_what_cannot_be_promised_is_refused_before_anything_is_charged(people, tmp_path):
    for keys, code in [
        ("rho: 1", "unreachable"),
        ("rho: 0.9999999999999999", "unreachable"),  # epsilon is above 100
        ("rho: 1, invariant: true", "unreachable"),
        ("rho: 0.3, matrix: {sex: [[1, 0], [0, 1]]}, invariant: true", "unreachable"),
        ("k: 7000", "unreachable"),
        ("rho: 0.3, records: 7000", "data-empty"),
        ("rho: 0.3, matrix: {job: [[0.9, 0.1], [0.1, 0.9]]}", "matrix-invalid"),
        ("rho: 0.3, matrix: {sex: [[1, 0], [0.1, 0.9]]}", "unreachable"),
        ("epsilon: 0.1, matrix: {sex: [[0.9, 0.1], [0.1, 0.9]]}", "promise-not-kept"),
    ]:
        ledger = f"ledger: {{path: {tmp_path}/l.sqlite, dataset: d, epsilon: 9, delta: 1e-2, relation: replace-one}}\n"
        with pytest.raises((GuaranteeError, InputError)) as caught:
            api.release(people, Policy.from_text(BASE.format(keys) + ledger), folder=tmp_path / "out", new_ledger=True)
        assert caught.value.code == code, keys
        assert not (tmp_path / "out").exists()
        assert not (tmp_path / "l.sqlite").exists()


def test_a_raw_table_is_not_verified_as_invariant_pram(people, tmp_path, monkeypatch):
    monkeypatch.setattr(pram_settle, "uncertain", lambda blocks: math.inf)
    made = api.release(people, policy("rho: 1, invariant: true"), folder=tmp_path / "out")
    assert made.histogram.total == ROWS
    failed = {check.name for check in api.verify(tmp_path / "out").checks if not check.holds}
    assert "the values are redrawn as the policy says" in failed


def test_one_record_is_refused_with_what_helps(people):
    with pytest.raises(DataError, match="one record") as caught:
        api.release(people[:1], policy("rho: 0.3"))
    assert "Declare" not in str(caught.value)
    with pytest.raises(DataError, match="Declare fewer"):
        api.release(people[:10], policy("rho: 0.3, records: 20"))


def test_the_central_promise_is_never_above_the_local_one(people):
    for rho in (0, 0.97, 0.99):
        promise = api.release(people[:500], policy(f"rho: {rho}")).certificate["promise"]
        assert promise["epsilon"] <= promise["local_epsilon"]


def test_words_round_to_the_safe_side_and_no_further():
    assert [pram_statement._part(k) for k in (20.0, 3.0, 7.5, 1.0)] == ["0.05", "0.334", "0.134", "1.0"]
    assert [pram_statement.factor(epsilon) for epsilon in (0.0, 1.0, 700.0)] == ["1", "2.719", "1.015e+304"]
    assert pram_statement.factor(2000.0) == "3.882e+868"  # beyond floating-point numbers


def test_a_promise_that_says_nothing_says_so(people):
    made = api.release(people[:500], policy("rho: 0.999"))
    parts = made.certificate["promise"]["parts"]
    assert all("practically no promise" in part["in_words"] for part in parts.values())
    assert "Not every promise here says something" in made.report.decode()
    good = api.release(people, policy("k: 5"))
    assert "practically no promise" not in good.certificate["promise"]["in_words"]
    assert "Not every promise here says something" not in good.report.decode()


@pytest.mark.parametrize("copies", [3, 7, 49])
def test_what_copies_promise_together_is_not_rounded_in_their_favour(copies):
    for epsilon in (0.1, 0.051, 1 / 3):
        promise = PramPromise(100, 2.0, epsilon, epsilon, 1e-7, "local")
        together = pram_statement._together(promise, copies)
        for key, one in (("epsilon", epsilon), ("local_epsilon", epsilon), ("delta", 1e-7)):
            assert (
                copies * Fraction(one)
                <= Fraction(getattr(together, key))
                < copies * Fraction(one) * (1 + Fraction(1, 10**15))
            )


def test_means_of_whole_numbers_in_intervals(tmp_path):
    """0 to 29, as often as each other: of [0, 10) the middle is 4.5, of the last interval, [20, 30], it is 25."""
    table = pd.DataFrame({"g": ["u", "v"] * 15_000, "n": np.arange(30_000) % 30, "x": np.arange(30_000) % 30})
    text = """
incrowd: 1
attributes:
  g: {domain: [u, v]}
  n: {type: integer, domain: {cuts: [0, 10, 20, 30]}}
  x: {type: number, domain: {cuts: [0, 10, 20, 30]}}
release: {mechanism: pram, rho: 0.9999}
"""
    api.release(table, Policy.from_text(text), folder=tmp_path / "out")
    whole, real = (api.estimate(tmp_path / "out", ["g"], mean=name).means[0].mean for name in ("n", "x"))
    assert whole == pytest.approx((4.5 + 14.5 + 25) / 3, abs=0.05)
    assert real == pytest.approx(15, abs=0.05)


def test_a_column_with_one_value_is_refused(people):
    with pytest.raises(PolicyError, match="nothing to be redrawn"):
        api.release(people, policy("rho: 0.3", **{"level: 1": "level: 3"}))


def test_a_matrix_from_a_file_by_the_names_of_its_values(people, tmp_path):
    rows = {
        "smith": [0.7, 0.1, 0.1, 0.1],
        "baker": [0.1, 0.6, 0.2, 0.1],
        "": [0.1, 0.1, 0.7, 0.1],
        "teacher": [0.2, 0.2, 0.2, 0.4],
    }
    text = "," + ",".join(rows) + "\n" + "".join(f"{n},{','.join(map(str, r))}\n" for n, r in rows.items())
    (tmp_path / "job.csv").write_text(text)
    plan = Policy.from_text(BASE.format("rho: 0.3, matrix: {job: {file: job.csv}}"), tmp_path)
    made = api.release(people, plan, folder=tmp_path / "out")
    matrix = next(b["matrix"] for b in made.certificate["mechanism"]["blocks"] if b["attributes"] == ["job"])
    assert matrix[0] == ["0.6", "0.1", "0.1", "0.2"]  # baker: baker, smith, teacher, missing
    assert api.verify(tmp_path / "out").valid
    for wrong in (text.replace("teacher", "t", 1), text.replace("0.7", "0.8", 1), text.replace("0.7", "x", 1), ""):
        (tmp_path / "job.csv").write_text(wrong)
        with pytest.raises(PolicyError) as caught:
            api.release(people, plan)
        assert caught.value.code == "matrix-invalid"


def test_estimates_refuse_what_they_cannot_do(people, tmp_path):
    api.release(people, policy("rho: {age: 0, sex: 0.5, job: 0.5}"), folder=tmp_path / "out")
    for by, options in [
        (["age"], {}),
        (["sex"], {"mean": "job"}),
        (["sex"], {"mean": "sex"}),
        (["sex"], {"mean": "name"}),
        (["sex"], {"method": "magic"}),
        (["name"], {}),
        ([], {}),
    ]:
        with pytest.raises(ParameterError):
            api.estimate(tmp_path / "out", by, **options)
    crowd = BASE.format("").partition("release:")[0]
    crowd += "release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-3, beta: 0.5}\n"
    api.release(people, Policy.from_text(crowd), folder=tmp_path / "crowd")
    with pytest.raises(ParameterError, match="no meaning for a release by sampled crowds"):
        api.estimate(tmp_path / "crowd", ["sex"], method="em")
    assert api.estimate(tmp_path / "crowd", ["sex"]).rows


# --- randomness and order -------------------------------------------------------------------------------------------


def test_permuting_the_rows_changes_nothing(people):
    plan = policy("k: 5")
    first = api.release(people, plan, _source=RandomSource.seeded(3))
    second = api.release(people.sample(frac=1, random_state=1), plan, _source=RandomSource.seeded(3))
    assert first.histogram == second.histogram
    assert first.certificate["promise"]["void"] is not None
    assert first.histogram != api.release(people, plan).histogram


def test_records_that_their_owners_have_randomised(people, tmp_path):
    plan = policy("rho: {age: 0.3, sex: 0.6, job: 0.4}, records: 5000")
    attributes = codings(plan)
    settings = MECHANISMS["pram"].settle(plan, attributes, 1)
    came = api.release(people, plan).histogram  # as if they had come from many
    decided, made = collected(settings, came)
    assert made.statement.mechanism.randomised_by == "respondents"
    assert decided.promise.records == 5000
    assert any("respondent" in text for text in made.statement.assumptions)
    page = public_report(plan, decided, made.published, made.statement, void=None)
    judged = public_block(verdict(plan, made.published, made.statement))
    bits, files = SimpleNamespace(kind=BY_RESPONDENTS, secure=True), files_of(plan, made.publication)
    certificate, report, _ = certify(
        *(plan, made.statement, made.published.columns, None, bits, files),
        report=lambda digest: completed(page, judged, digest),
        void=None,
    )
    Release(lambda: came, certificate, plan, report, {}).save(tmp_path / "out")
    assert api.verify(tmp_path / "out").valid
    few = Histogram.of(came.columns, np.minimum(came.counts, 1))
    with pytest.raises(DataError, match="fewer"):
        collected(settings, few)


# --- a sample, randomised -------------------------------------------------------------------------------------------


def sampled(extra=""):
    return policy("rho: 0.5, beta: 0.25, delta: 1e-6" + extra)


def test_a_sample_promises_more_and_is_verified(people, tmp_path):
    whole = api.release(people, policy("rho: 0.5, delta: 1e-6")).certificate
    made = api.release(people, sampled(), folder=tmp_path / "out").certificate
    promise, mechanism = made["promise"], made["mechanism"]
    assert promise["epsilon"] < 0.7 * whole["promise"]["epsilon"]
    assert promise["local_epsilon"] == whole["promise"]["local_epsilon"]
    assert promise["records"] == ROWS
    assert (mechanism["beta"], mechanism["already_sampled"]) == (0.25, False)
    assert abs(mechanism["records"] - ROWS / 4) < 6 * math.sqrt(ROWS * 3 / 16)
    assert 1 < promise["k"] <= 1 + (mechanism["records"] - 1) * math.exp(-2 * promise["local_epsilon"]) * (1 + 1e-9)
    found = api.verify(tmp_path / "out", rigorous=True)
    assert found.valid, [c for c in found.checks if not c.holds]
    report = (tmp_path / "out" / "report.html").read_text()
    assert "a random sample of the data" in report
    assert "beta" not in whole["mechanism"]
    assert "beta" not in whole["policy"]["release"]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("mechanism", "beta"), 0.2),
        (("mechanism", "records"), ROWS),
        (("promise", "records"), 10 * ROWS),
        (("promise", "epsilon"), 0.01),
        (("promise", "k"), 1e6),
        (("mechanism", "already_sampled"), True),
    ],
)
def test_a_sample_that_says_otherwise_is_found_out(people, tmp_path, place, value):
    api.release(people, sampled(", records: 6000"), folder=tmp_path / "out")
    forge(tmp_path / "out", lambda c: c[place[0]].update({place[1]: value}))
    assert not api.verify(tmp_path / "out").valid


def test_a_sample_far_too_small_for_so_many_people_is_noticed_and_no_other():
    """By Chernoff's bound, which is above the tail: what may well happen is never refused."""
    assert not likely_sample(248, 10**8, 0.5)
    assert not likely_sample(10, 1000, 0.5)
    assert likely_sample(1450, 6000, 0.25)
    for people in (40, 400):
        for found in range(2, people):
            if binom.cdf(found, people, 0.25) > 1e-9:
                assert likely_sample(found, people, 0.25)


def test_a_table_that_is_no_such_sample_is_refused_before_the_charge(people, tmp_path):
    ledger = f"ledger: {{path: {tmp_path}/l.sqlite, dataset: d, epsilon: 9, delta: 1e-3, relation: replace-one}}\n"
    asked = "rho: 0.5, beta: 0.1, already_sampled: true, records: 600000"
    with pytest.raises(DataError, match="many more records"):
        api.release(people, Policy.from_text(BASE.format(asked) + ledger), folder=tmp_path / "out", new_ledger=True)
    assert not (tmp_path / "l.sqlite").exists()


def test_a_table_that_is_a_sample_is_released_once_and_with_a_ledger(people, tmp_path):
    asked = "rho: 0.5, beta: 0.1, already_sampled: true, records: 60000"
    with pytest.raises(PolicyError, match="one release only"):
        api.release(people, policy(asked))
    ledger = f"ledger: {{path: {tmp_path}/l.sqlite, dataset: d, epsilon: 9, delta: 1e-3, relation: replace-one}}\n"
    plan = Policy.from_text(BASE.format(asked) + ledger)
    made = api.release(people, plan, folder=tmp_path / "out", new_ledger=True).certificate
    assert made["mechanism"]["records"] == ROWS
    assert made["promise"]["records"] == 60_000
    assert any("itself a random sample" in text for text in made["assumptions"])
    assert api.verify(tmp_path / "out").valid
    with pytest.raises(GuaranteeError):
        api.release(people, plan)
    found = api.estimate(tmp_path / "out", ["sex"])
    assert sum(row.estimate for row in found.rows) == pytest.approx(60_000, rel=1e-6)


def test_estimates_from_a_sample_count_both_errors():
    """Over many samples, standardised errors have variance 1; without the sampling error it would be far above."""
    text = """
incrowd: 1
attributes:
  sex: {domain: [f, m]}
  n: {type: integer, domain: {from: 0, to: 3}}
release: {mechanism: pram, rho: 0.8, beta: 0.25}
"""
    plan, mechanism = Policy.from_text(text), MECHANISMS["pram"]
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"sex": rng.choice(["f", "m"], ROWS), "n": rng.integers(0, 4, ROWS)})
    certificate = mechanism.certificate.model_validate(api.release(frame, plan).certificate)
    codes = [(frame["sex"] == "m").to_numpy().astype(int), frame["n"].to_numpy()]
    table = Histogram.of([Column("sex", ("f", "m"), codes[0]), Column("n", ("0", "1", "2", "3"), codes[1])])
    settings, prepared = mechanism.prepare(mechanism.settle(plan, codings(plan), 1), table, lambda *_: None)
    women, mean = int((frame["sex"] == "f").sum()), frame["n"][frame["sex"] == "f"].mean()
    errors, naive, means = [], [], []
    for seed in range(150):
        made = mechanism.draw(settings, prepared, RandomSource.seeded(seed))
        found = mechanism.estimate(certificate, made.publication, ["sex"], EstimateOptions(mean="n", method="inverse"))
        (row,) = [row for row in found.rows if row.values == ("f",)]
        (group,) = [group for group in found.means if group.values == ("f",)]
        errors.append((row.estimate - women) / row.standard_error)
        only = row.standard_error**2 - 0.75 / 0.25 * row.estimate
        naive.append((row.estimate - women) / math.sqrt(only))
        means.append((group.mean - mean) / group.standard_error)
    assert 0.7 < np.var(errors) < 1.4
    assert abs(np.mean(errors)) < 0.35
    assert np.var(naive) > 2
    assert 0.7 < np.var(means) < 1.4


@pytest.mark.parametrize(
    "release",
    [
        "k: 5, beta: 0.5",
        "rho: 0.5, invariant: true, beta: 0.5",
        "rho: 0.5, already_sampled: true",
        "rho: 0.5, already_sampled: true, beta: 0.1",
        "rho: 0.5, beta: 1",
        "rho: 0.5, beta: 0",
    ],
)
def test_samples_that_do_not_fit_are_refused(release):
    with pytest.raises(PolicyError):
        policy(release)


def test_a_rate_that_is_rounded_down_to_nothing_is_refused():
    plan = policy("rho: 0.5, beta: 1e-30")
    with pytest.raises(PolicyError, match=r"below 2\*\*-64"):
        MECHANISMS["pram"].settle(plan, codings(plan), 1)
