"""A plain sample from the outside: files, certificate, verification, tampering, estimates."""

import json
import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from incrowd import api
from incrowd.core import signing
from incrowd.core.errors import GuaranteeError, InputError, PolicyError
from incrowd.mechanisms.sample.estimate import interval
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.theory import sampling
from incrowd.theory.intervals import absent_at_most

POLICY = """
incrowd: 1
title: A little town
attributes:
  name: drop
  age: {{type: integer, domain: {{from: 0, to: 99}}, hierarchy: {{widths: [10, 50]}}, level: {level}}}
  sex: {{domain: [f, m]}}
  job: {{domain: [baker, smith, teacher], missing: keep}}
release: {{mechanism: sample, {release}}}
"""
ROWS = 43_210
ASKED = "epsilon: 0.5, delta: 0.05"


def policy(release=ASKED, level=1):
    return Policy.from_text(POLICY.format(release=release, level=level))


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(11)
    return pd.DataFrame(
        {
            "name": [f"person {i}" for i in range(ROWS)],
            "age": np.minimum(99, rng.gamma(6, 7, ROWS).astype(int)),
            "sex": rng.choice(["f", "m"], ROWS),
            "job": rng.choice(np.array(["baker", "smith", "teacher", None], dtype=object), ROWS),
        }
    )


@pytest.fixture
def folder(people, tmp_path):
    api.release(people, policy(), folder=tmp_path / "out")
    return tmp_path / "out"


@pytest.mark.parametrize(("rows", "theorem"), [(1, 3), (2, 7)])
def test_the_grounds_name_the_theorem_for_so_many_rows(people, rows, theorem):
    made = api.release(people, policy(f"epsilon: 0.9, delta: 0.05, rows_unknown: {rows}", level=2))
    assert made.certificate["promise"]["grounds"].endswith(f"sharpening Theorem {theorem}.")


def counts_of(people, level=1):
    width = {0: 1, 1: 10, 2: 50}[level]
    return people.assign(age=people.age // width)[["age", "sex", "job"]].value_counts(dropna=False).to_numpy()


def failing(folder):
    return {check.name for check in api.verify(folder).checks if not check.holds}


def rewrite(folder, change):
    path = folder / "certificate.json"
    content = json.loads(path.read_bytes())
    change(content)
    path.write_bytes(signing.to_bytes(signing.seal(content)))


def repeat(certificate, name, value):
    """A forged rate, in the words too."""
    before = certificate["mechanism"][name]
    certificate["mechanism"][name] = value
    promise = certificate["promise"]
    promise["in_words"] = promise["in_words"].replace(repr(before), repr(value))


def test_release_verify_estimate(people, folder):
    found = api.verify(folder)
    assert found.valid
    assert any("epsilon and delta hold" in text for text in found.claimed)
    certificate = json.loads((folder / "certificate.json").read_bytes())
    promise, mechanism = certificate["promise"], certificate["mechanism"]
    assert (promise["epsilon"], promise["delta"], promise["rows_unknown"]) == (0.5, 0.05, 1)
    assert "Chaudhuri" in promise["notion"]
    assert promise["relation"] == "replace-one"
    assert promise["found_by_looking_at_this_table"] == "rate"
    for said in ("this table alone", "chosen by looking at this table", "weaker than differential privacy", "1.5-fold"):
        assert said in promise["in_words"]
    largest = sampling.largest_rate(counts_of(people), 0.5, 0.05).rate
    assert largest * 0.99 < mechanism["rate"] <= largest
    assert pq.read_table(folder / "release.parquet").column_names == ["age", "sex", "job"]
    table = api.estimate(folder, ["sex"])
    truth = people.sex.value_counts()
    rows = {row.values[0]: row for row in table.rows}
    assert sum(row.estimate for row in table.rows) == pytest.approx(
        pq.read_table(folder / "release.parquet").num_rows / mechanism["rate"]
    )
    for sex, row in rows.items():
        assert abs(row.estimate - truth[sex]) < 6 * row.standard_error
        assert row.low < row.estimate < row.high


def test_nothing_but_the_promise_and_the_sample_is_public(people, folder):
    counts = counts_of(people)
    largest = sampling.largest_rate(counts, 0.5, 0.05)
    theorem = sampling.theorem_rate(counts, 0.5, 0.05)
    secrets = [str(ROWS), f"{ROWS:,}", f"{largest.rate:.6g}", f"{theorem.rate:.3g}", "person 1", "rare values"]
    for name in ("certificate.json", "report.html"):
        content = re.sub(r"<[^>]*>", " ", (folder / name).read_text(encoding="utf-8"))
        for secret in secrets:
            assert secret not in content


def test_a_planned_rate_that_keeps_the_promise(people, tmp_path):
    made = api.release(people, policy(f"{ASKED}, rate: 0.0005"), folder=tmp_path / "out")
    assert made.certificate["mechanism"]["rate"] == 0.0005
    assert made.certificate["promise"]["found_by_looking_at_this_table"] is None
    assert api.verify(tmp_path / "out").valid


@pytest.mark.parametrize(("given", "found"), [("epsilon: 0.5", "delta"), ("delta: 0.05", "epsilon")])
def test_what_a_planned_rate_promises(people, tmp_path, given, found):
    made = api.release(people, policy(f"{given}, rate: 0.002"), folder=tmp_path / "out")
    promise = made.certificate["promise"]
    assert promise["found_by_looking_at_this_table"] == found
    reached = sampling.sample_delta(counts_of(people), 0.002, promise["epsilon"]).delta
    assert reached <= promise["delta"]
    assert api.verify(tmp_path / "out").valid


def test_several_rows_unknown(people, tmp_path):
    made = api.release(people, policy(f"{ASKED}, rows_unknown: 3"), folder=tmp_path / "out")
    assert made.certificate["promise"]["relation"] == "replace-3"
    assert "3 records" in made.certificate["promise"]["in_words"]
    assert api.verify(tmp_path / "out").valid
    assert made.certificate["mechanism"]["rate"] < sampling.largest_rate(counts_of(people), 0.5, 0.05).rate


def test_a_promise_that_is_not_kept_is_refused_before_the_ledger_knows(people, tmp_path):
    text = POLICY.format(release=f"{ASKED}, rate: 0.5", level=1)
    text += f"ledger: {{path: {tmp_path}/ledger.sqlite, dataset: town, epsilon: 1, delta: 1e-6}}\n"
    with pytest.raises(GuaranteeError) as refused:
        api.release(people, Policy.from_text(text), folder=tmp_path / "out", new_ledger=True)
    assert refused.value.code == "promise-not-kept"
    assert "incrowd plan sample" in refused.value.remedy
    assert not list(tmp_path.iterdir())


def test_the_ledger_lists_it_and_adds_nothing(people, tmp_path):
    text = POLICY.format(release=ASKED, level=1)
    text += f"ledger: {{path: {tmp_path}/ledger.sqlite, dataset: town, epsilon: 1, delta: 1e-6}}\n"
    api.release(people, Policy.from_text(text), folder=tmp_path / "out", new_ledger=True)
    statement = api.ledger_statement(tmp_path / "ledger.sqlite", "town")
    assert len(statement.releases) == 1
    assert statement.totals[0].epsilon == 0
    assert "do not compose" in " ".join(statement.notes)


def test_several_copies_are_refused(people):
    with pytest.raises(InputError, match="together tell more"):
        api.release_copies(people, policy(), copies=2)


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ("epsilon: 0.5", "give two of"),
        ("rate: 0.1", "give two of"),
        ("epsilon: 0, delta: 0.1", "must be above 0"),
        ("epsilon: 1, delta: 0.1, rate: 1", "must be below 1"),
        ("epsilon: 1, delta: 0.1, rows_unknown: 0", "must be at least 1"),
        ("epsilon: 1, delta: 0.1, round: {age: 5}", "'level' must be 0"),
        ("epsilon: 1, delta: 0.1, rate: 0.1, round: {age: 5}", "cannot be planned with 'round'"),
        ("epsilon: 1, rate: 0.1, round: {age: 5}", "cannot be planned with 'round'"),
        ("delta: 0.1, rate: 0.1, round: {age: 5}", "cannot be planned with 'round'"),
        ("epsilon: 1, delta: 0.1, round: {sex: 5}", "type 'integer'"),
        ("epsilon: 1, delta: 0.1, round: {town: 5}", "not among the attributes"),
        ("epsilon: 1, delta: 0.1, round: {age: 1}", "must be at least 2"),
        ("epsilon: 1, delta: 0.1, beta: 0.5", "beta"),
    ],
)
def test_policies_that_make_no_sense(release, said):
    with pytest.raises(PolicyError, match=re.escape(said)):
        policy(release)


def test_a_hierarchy_needs_its_level():
    text = POLICY.format(release=ASKED, level=1).replace(", level: 1", "")
    with pytest.raises(PolicyError, match="give its 'level'"):
        Policy.from_text(text)


def test_a_rate_at_which_nobody_is_ever_drawn(people, tmp_path):
    api.release(people, policy("epsilon: 0.5, rate: 1e-310"), folder=tmp_path / "out")
    table = api.estimate(tmp_path / "out", ["sex"])
    assert {(row.estimate, row.low, row.high) for row in table.rows} == {(None, 0, 2**62)}
    assert "any number" in repr(table)
    assert table.absent_at_most == 2**62  # more than any table has
    for rate in (5e-324, 1e-310, 1e-200, 1e-18):
        low, high = interval(np.array([1, 2, 50]), rate)
        assert (low <= high).all()
        assert low[0] == 1


def test_row_order_and_format_of_the_input_leave_no_trace(people):
    shuffled = people.sample(frac=1.0, random_state=3)
    inputs = [people, shuffled, pl.from_pandas(people), pa.Table.from_pandas(people)]
    for release in (ASKED, f"{ASKED}, round: {{age: 25}}"):
        made = [api.release(i, policy(release, level=0), _source=RandomSource.seeded(1)) for i in inputs]
        assert len({r.certificate["files"]["release.parquet"]["sha256"] for r in made}) == 1


# --- tampering ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda c: c["promise"].update(epsilon=0.1), "epsilon and delta are the policy's, where it gives them"),
        (lambda c: c["promise"].update(delta=1e-9), "epsilon and delta are the policy's, where it gives them"),
        (lambda c: c["mechanism"].update(rate=0.5), "the promise says what the parameters mean"),
        (lambda c: c["policy"]["release"].update(rate=0.5), "the rate is the policy's, if it gives one"),
        (lambda c: c["mechanism"].update(rate=1.5), "the policy's parameters go together"),
        (lambda c: c["mechanism"]["levels"].update(age=0), "the levels are the policy's"),
        (lambda c: c["promise"].update(in_words="trust me"), "the promise says what the parameters mean"),
        (
            lambda c: c["promise"].update(found_by_looking_at_this_table=None),
            "the promise says what the parameters mean",
        ),
        (lambda c: c["promise"].update(rows_unknown=5), "the promise says what the parameters mean"),
        (lambda c: c["promise"].update(together={"copies": 2}), "the promise says what the parameters mean"),
        (lambda c: c.update(assumptions=c["assumptions"][:2]), "the promise says what the parameters mean"),
        (lambda c: c["mechanism"].update(rounded={"age": 5}), "the promise says what the parameters mean"),
        (lambda c: c["mechanism"].update(epoch=3), "the promise says what the parameters mean"),
        (lambda c: c["promise"].update(rows_unknown=True), "the promise says what the parameters mean"),
        (lambda c: c["mechanism"]["levels"].update(sex=False), "the promise says what the parameters mean"),
        (lambda c: repeat(c, "rate", 0.0123456789), "what was found has 3 digits at most"),
        (lambda c: c["promise"].update(extra=1), "the promise says what the parameters mean"),
        (lambda c: c["mechanism"].update(rare=12), "the promise says what the parameters mean"),
        (lambda c: c.update(rare_values=12), "the certificate has the fields of a certificate"),
        (lambda c: c.pop("created"), "the certificate has the fields of a certificate"),
        (lambda c: c["columns"][0].update(counts=[1, 2]), "the certificate has the fields of a certificate"),
        (lambda c: c["files"]["report.html"].update(rows=5), "the certificate has the fields of a certificate"),
    ],
)
def test_a_forged_certificate_must_still_add_up(folder, change, check):
    rewrite(folder, change)
    assert check in failing(folder)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["mechanism"].update(rate="x"),
        lambda c: c["mechanism"].update(rate=None),
        lambda c: c["promise"].update(epsilon=10**400),
        lambda c: c["promise"].pop("epsilon"),
        lambda c: c["policy"]["release"].update(round={"age": 10**9}),
        lambda c: c["policy"]["release"].update(round={"nobody": 5}),
    ],
)
def test_whatever_stands_there_the_answer_is_a_verdict(folder, change):
    rewrite(folder, change)
    assert not api.verify(folder).valid


@pytest.mark.parametrize(("given", "found"), [("epsilon: 0.5", "delta"), ("delta: 0.05", "epsilon")])
def test_a_promise_that_was_found_has_few_digits(people, tmp_path, given, found):
    api.release(people, policy(f"{given}, rate: 0.002"), folder=tmp_path / "out")
    rewrite(tmp_path / "out", lambda c: c["promise"].update({found: c["promise"][found] + 1e-7}))
    assert "what was found has 3 digits at most" in failing(tmp_path / "out")


def test_a_changed_table_is_found(folder):
    table = pq.read_table(folder / "release.parquet")
    pq.write_table(table.slice(1), folder / "release.parquet", store_schema=False, write_statistics=False)
    assert "release.parquet is the file certified" in failing(folder)
    with pytest.raises(InputError):
        api.estimate(folder, ["sex"])


# --- rounding and top-coding ----------------------------------------------------------------------------------------


def test_rounded_numbers(people, tmp_path):
    made = api.release(people, policy(f"{ASKED}, round: {{age: 25}}", level=0), folder=tmp_path / "out")
    assert made.certificate["mechanism"]["rounded"] == {"age": 25}
    assert {row["age"] for row in made.table.to_pylist()} <= {"0", "25", "50", "75", "100"}
    assert any("rounded table" in text for text in made.certificate["assumptions"])
    words = made.certificate["promise"]["in_words"]
    assert "any one record of the table as rounded had other values" in words
    assert "know all other records as they were rounded" in words
    assert "as rounded" not in api.release(people, policy()).certificate["promise"]["in_words"]
    assert api.verify(tmp_path / "out").valid
    notes = api.estimate(tmp_path / "out", ["age"]).notes
    assert any("rounded" in note for note in notes)
    assert "multiples of 25" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_nothing_is_refused_once_numbers_are_rounded(people, tmp_path):
    """What cannot be promised on any rounding is refused before the ledger knows, and before a bit is drawn."""

    class NoBits(RandomSource):
        def binomial(self, counts, probability):
            raise AssertionError("drawn")

    for release in ("epsilon: 0.5, delta: 1e-290", f"{ASKED}, rows_unknown: 201"):
        text = POLICY.format(release=f"{release}, round: {{age: 25}}", level=0)
        text += f"ledger: {{path: {tmp_path}/ledger.sqlite, dataset: town, epsilon: 1, delta: 1e-6}}\n"
        with pytest.raises((GuaranteeError, InputError)):
            api.release(people, Policy.from_text(text), folder=tmp_path / "out", new_ledger=True, _source=NoBits())
    assert not list(tmp_path.iterdir())


def test_a_rounded_column_with_other_labels_is_found(people, tmp_path):
    api.release(people, policy(f"{ASKED}, round: {{age: 25}}", level=0), folder=tmp_path / "out")

    def rename(content):
        content["columns"][0]["labels"][4] = "99"

    rewrite(tmp_path / "out", rename)
    assert failing(tmp_path / "out")


def test_top_coding_is_a_level(people, tmp_path):
    text = POLICY.format(release=ASKED, level=1).replace("{widths: [10, 50]}", "{top: 60, bottom: 20}")
    made = api.release(people, Policy.from_text(text), folder=tmp_path / "out")
    ages = next(c for c in made.certificate["columns"] if c["name"] == "age")["labels"]
    assert ages[0] == "≤ 20"
    assert ages[-1] == "≥ 60"
    assert ages[1:-1] == [str(age) for age in range(21, 60)]
    coded = people.assign(age=people.age.clip(20, 60))[["age", "sex", "job"]].value_counts(dropna=False).to_numpy()
    assert made.certificate["mechanism"]["rate"] == pytest.approx(
        sampling.largest_rate(coded, 0.5, 0.05).rate, rel=0.01
    )


def test_an_empty_sample_is_a_release_too(people, tmp_path):
    unique = people.head(40).assign(age=np.arange(40))
    made = api.release(
        unique, policy("epsilon: 0.5, delta: 1e-9", level=0), folder=tmp_path / "out", _source=RandomSource.seeded(1)
    )
    assert made.histogram.total == 0
    assert failing(tmp_path / "out") == {"the promise is not void"}
    assert {row.estimate for row in api.estimate(tmp_path / "out", ["sex"]).rows} == {None}
    assert "The sample is empty" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


# --- intervals ------------------------------------------------------------------------------------------------------


def miss_probability(n, rate, ends):
    """P[the interval misses n | something is sampled], exactly."""
    from scipy.stats import binom

    x = np.arange(1, n + 1)
    low, high = ends(x, rate)
    return float(binom.pmf(x, n, rate)[(n < low) | (n > high)].sum() / binom.sf(0, n, rate))


def miss_in_advance(n, rate, ends, absent):
    """P[what is said of a cell that was chosen in advance is wrong], whether it occurs or not."""
    from scipy.stats import binom

    wrong = miss_probability(n, rate, ends) * binom.sf(0, n, rate)
    return float(wrong + (binom.pmf(0, n, rate) if n > absent else 0.0))


def by_the_normal_law(x, rate):
    error = 1.96 * np.sqrt(x * (1 - rate)) / rate
    return x / rate - error, x / rate + error


def by_the_plain_law(x, rate):
    """As if every cell were shown, whether it occurs or not: the least n with P[X ≥ x] > 2.5%."""
    from scipy.stats import binom

    low = [next(n for n in range(k, 10**6) if binom.sf(k - 1, n, rate) > 0.025) for k in x.tolist()]
    return np.array(low), interval(x, rate)[1]


SIZES = [*range(1, 40), 60, 100, 300, 1000, 2000]


@pytest.mark.parametrize("rate", [1e-4, 0.001, 0.01, 0.05, 0.139, 0.3, 0.5, 0.9, 0.999])
def test_intervals_cover_whatever_the_truth_is(rate):
    assert max(miss_probability(n, rate, interval) for n in SIZES) <= 0.05
    assert max(miss_in_advance(n, rate, interval, absent_at_most(rate)) for n in SIZES) <= 0.05
    # The textbook interval does not. (At a tiny rate, it is so wide that it holds everything.)
    assert rate < 0.05 or max(miss_probability(n, rate, by_the_normal_law) for n in range(1, 200)) > 0.1


def test_an_interval_for_all_cells_is_wrong_of_those_that_occur():
    assert miss_probability(1, 0.01, by_the_plain_law) == pytest.approx(1)
    assert miss_probability(1, 0.01, interval) == 0


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2])
def test_a_bound_of_5_percent_on_absent_cells_would_be_too_much(rate):
    loose = int(np.floor(np.log(0.05) / np.log1p(-rate)))
    assert max(miss_in_advance(n, rate, interval, loose) for n in range(loose - 9, loose + 9)) > 0.05


def test_the_bound_on_absent_cells():
    for rate in (1e-9, 0.01, 0.5, 0.9):
        most = absent_at_most(rate)
        assert (1 - rate) ** (most + 1) <= 0.025 * (1 + 1e-6)
        assert most == 0 or (1 - rate) ** most > 0.025 * (1 - 1e-6)


def test_the_ends_of_an_interval_are_the_last_that_are_no_surprise():
    from scipy.stats import binom

    x, rate = np.array([1, 4, 17, 300]), 0.07
    low, high = interval(x, rate)
    for k, a, b in zip(x.tolist(), low.tolist(), high.tolist(), strict=True):
        assert binom.sf(k - 1, a, rate) > 0.025 * binom.sf(0, a, rate)
        assert a == k or binom.sf(k - 1, a - 1, rate) <= 0.025 * binom.sf(0, a - 1, rate)
        assert binom.cdf(k, b, rate) > 0.025 >= binom.cdf(k, b + 1, rate)
