"""Four ways to publish, compared: the workload, each estimate without bias, and the promises asked of all."""

import json
import math
import re
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest

from incrowd import api
from incrowd import comparison as comparing
from incrowd.comparison.chart import draw
from incrowd.comparison.contenders import CONTENDERS, Contender, ReadyContender, noise
from incrowd.comparison.workload import Workload
from incrowd.core.errors import ParameterError, UnreachableError
from incrowd.mechanisms.views import draw as drawing
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.recoding.fidelity import dense
from incrowd.recoding.utility import Comparison, query_error
from incrowd.theory import crowd, sampling
from incrowd.theory.randomisation import RetentionReplacement
from incrowd.theory.shuffling import central_delta


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(7)
    n = 20_000
    return pd.DataFrame(
        {"a": rng.choice(list("xyz"), n, p=[0.6, 0.3, 0.1]), "b": rng.integers(0, 4, n), "c": rng.integers(0, 2, n)}
    )


@pytest.fixture(scope="module")
def table(frame):
    return api.look_at(frame).table


@pytest.fixture(scope="module")
def found(table):
    return comparing.compare(table, epsilons=[2, 0.5], delta=1e-3, runs=3, source=RandomSource.seeded(1))


def test_the_workload_is_all_counts_of_one_and_two_columns(frame, table):
    workload = Workload.of(table)
    assert set(workload.truth) == {("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c")}
    crossed = pd.crosstab(frame.a, frame.b).to_numpy()
    assert (workload.truth["a", "b"] == crossed).all()
    assert workload.cells == 3 + 4 + 2 + 12 + 6 + 8


def test_errors(table):
    workload = Workload.of(table)
    exact = workload.errors(workload.truth)
    assert (exact.absolute, exact.per_cell, exact.relative) == (0, 0, 0)
    nothing = workload.errors({names: np.full(t.shape, -5.0) for names, t in workload.truth.items()})
    assert (nothing.absolute, nothing.relative) == (1, 1)  # estimates below 0 are taken as 0
    assert nothing.per_cell == pytest.approx(np.mean([1 / t.size for t in workload.truth.values()]))


def test_the_relative_error_is_that_of_the_reports(table):
    counts = RandomSource.seeded(1).binomial(table.counts, 0.1)
    drawn = table.with_counts(counts)
    recodes = {c.name: type("R", (), {"to": np.arange(len(c.labels)), "labels": c.labels})() for c in table.columns}
    workload = Workload.of(table)
    mine = workload.errors({names: dense(drawn, names) / 0.1 for names in workload.truth}).relative
    assert mine == pytest.approx(query_error(Comparison(table, recodes, drawn, drawn, 0.1)))


def test_every_way_at_every_epsilon(found):
    assert [(f.mechanism, f.epsilon) for f in found.contenders] == [(c.name, e) for c in CONTENDERS for e in (0.5, 2)]
    assert all(f.refused is None and f.absolute > 0 and f.absolute_spread >= 0 for f in found.contenders)
    assert (found.records, found.marginals, found.runs, found.delta) == (20_000, 6, 3, 1e-3)
    by = {(f.mechanism, f.epsilon): f.absolute for f in found.contenders}
    for contender in ("randomised records", "noisy counts", "plain sample"):
        assert by[contender, 2] < by[contender, 0.5]
    # The paper's own remark: a noisy histogram has much less noise than a sample.
    assert by["noisy counts", 0.5] < by["plain sample", 0.5] / 5


def settled(table, name, epsilon=1.0, delta=1e-3):
    contender = next(c for c in CONTENDERS if c.name == name)
    return contender.settle(table, Workload.of(table), epsilon, delta)


def numbers(text):
    return [float(part.split("=")[1]) for part in text.split(",")]


def test_the_promises_asked_are_kept(table):
    (rate,) = numbers(settled(table, "plain sample").settings)
    largest = sampling.largest_rate(table.counts, math.e - 1, 1e-3).rate
    assert rate == pytest.approx(largest, rel=0.01)
    k, beta = numbers(settled(table, "sampled crowd").settings)
    assert crowd.exact_delta(int(k), beta, 1.0) <= 1e-3
    rho, local = numbers(settled(table, "randomised records").settings)
    laws = [RetentionReplacement(rho * 0.99, size) for size in (3, 4, 2)]
    assert central_delta(laws, 20_000, 1.0).delta <= 1e-3
    laws = [RetentionReplacement(rho * 1.02, size) for size in (3, 4, 2)]
    assert central_delta(laws, 20_000, 1.0).delta > 1e-3
    assert local > 1


@pytest.mark.parametrize("name", [c.name for c in CONTENDERS if c.name != "views"])  # which are a model
def test_estimates_are_right_on_average(table, name):
    way = settled(table, name)
    source = RandomSource.seeded(3)
    draws = [way.draw(source) for _ in range(40)]
    for names, truth in Workload.of(table).truth.items():
        each = np.array([d[names] for d in draws])
        error = each.std(axis=0) / math.sqrt(len(draws)) + 1.0
        assert (np.abs(each.mean(axis=0) - truth) < 7 * error).all()


def test_no_synthetic_rows_are_drawn_for_an_error(table, monkeypatch):
    """They cost more than the views, and tell the same counts."""
    monkeypatch.setattr(drawing, "combined", None)
    [views] = [c for c in CONTENDERS if c.name == "views"]
    workload = Workload.of(table)
    told = views.settle(table, workload, 1.0, 1e-4).draw(RandomSource.seeded(8))
    assert told.keys() == workload.truth.keys()
    assert workload.errors(told).absolute < 0.1


def test_noise_is_that_of_the_geometric_law():
    noisy = noise(RandomSource.seeded(4), np.zeros(20_000, dtype=np.int64), 0.5)
    assert np.array_equal(noisy, np.rint(noisy))
    alpha = math.exp(-0.5)
    expected = 2 * alpha / (1 - alpha**2)  # E|X|
    spread = math.sqrt((2 * alpha / (1 - alpha) ** 2 - expected**2) / 20_000)
    assert abs(np.abs(noisy).mean() - expected) < 6 * spread


def test_very_wide_noise_is_never_narrower_than_its_law():
    noisy = noise(RandomSource.seeded(5), np.zeros(4000, dtype=np.int64), 1e-6)
    assert abs(np.abs(noisy).mean() / 1e6 - 1) < 6 / math.sqrt(4000)


def test_a_large_domain_is_asked_count_by_count():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({f"c{i}": rng.integers(0, 6, 3000) for i in range(6)})
    table = api.look_at(frame).table
    way = settled(table, "noisy counts")
    assert way.settings == "ε/21 for each of the counts asked for"
    assert set(way.draw(RandomSource.seeded(1))) == set(Workload.of(table).truth)


def test_what_cannot_be_promised_is_said_and_the_others_go_on(table, monkeypatch):
    def refuse(*_):
        raise UnreachableError("No.", code="unreachable")

    first, *others = CONTENDERS
    monkeypatch.setattr(comparing, "CONTENDERS", (replace(first, settle=refuse), others[-1]))
    refused, done = comparing.compare(table, epsilons=[1.0], delta=1e-3, runs=1).contenders
    assert (refused.refused, refused.absolute, refused.settings) == ("No.", None, "")
    assert done.absolute > 0
    assert "noisy counts" in draw(comparing.compare(table, epsilons=[1.0], delta=1e-3, runs=1))


def test_differences_are_said(found):
    text = " ".join(found.differences)
    for said in ("this table alone", "add", "replac", "local ε", "weakest", "strongest"):
        assert said in text


def test_values_that_were_read_off_the_table_are_said_to_be(frame, tmp_path):
    observed = api.compare(api.look_at(frame), epsilons=[1.0], delta=1e-3, runs=1)
    assert "declared without looking" in observed.differences[-1]
    text = "incrowd: 1\nattributes: {a: {domain: [x, y, z]}, b: drop, c: drop}\n"
    looked = api.look_at(Policy.from_text(text), data=frame)
    declared = api.compare(looked, epsilons=[1.0], delta=1e-3, runs=1)
    assert declared.differences[-2:] == comparing.DIFFERENCES


def test_a_single_run_has_no_spread(table):
    for figure in comparing.compare(table, epsilons=[1.0], delta=1e-3, runs=1).contenders:
        assert figure.absolute > 0
        assert figure.absolute_spread is figure.relative_spread is None


def test_a_stroke_of_luck_does_not_decide(table, monkeypatch):
    """One record drawn at a tiny rate stands for a multitude."""
    workload = Workload.of(table)
    nothing = {names: np.zeros(t.shape) for names, t in workload.truth.items()}
    lucky = {names: np.full(t.shape, 1e6) for names, t in workload.truth.items()}
    draws = iter([nothing, lucky, nothing])
    way = Contender("lucky", lambda *_: "", lambda *_: ReadyContender("", lambda _: next(draws)))
    monkeypatch.setattr(comparing, "CONTENDERS", (way,))
    (figure,) = comparing.compare(table, epsilons=[1.0], delta=1e-3, runs=3).contenders
    assert (figure.absolute, figure.relative) == (1, 1)
    assert figure.absolute_spread > 100


@pytest.mark.parametrize(
    "wrong", [{"epsilons": []}, {"epsilons": [0]}, {"epsilons": [-1.0]}, {"delta": 0.0}, {"delta": 1.0}, {"runs": 0}]
)
def test_bad_parameters(table, wrong):
    with pytest.raises(ParameterError):
        comparing.compare(table, **({"epsilons": [1.0], "delta": 1e-3, "runs": 1} | wrong))


def test_too_many_cells_and_none_at_all():
    wide = api.look_at(pd.DataFrame({"a": np.arange(3000), "b": np.arange(3000)})).table
    with pytest.raises(ParameterError) as refused:
        comparing.compare(wide, epsilons=[1.0], delta=1e-3)
    assert refused.value.code == "domain-large"
    with pytest.raises(ParameterError):
        comparing.compare(api.look_at(pd.DataFrame({"a": [1, 1]})).table, epsilons=[1.0], delta=1e-3)


def test_the_picture(found, tmp_path):
    path = api.save_chart(found, tmp_path / "c.svg")
    text = path.read_text(encoding="utf-8")
    assert text == draw(found)
    assert all(c.name in text for c in CONTENDERS)
    assert "INTERNAL" in text


def test_it_is_plain_json(found):
    assert json.loads(json.dumps(asdict(found)))["contenders"][0]["mechanism"] == "sampled crowd"


def test_delta_and_levels_are_the_policys(frame):
    text = (
        "incrowd: 1\nattributes: {a: {domain: [x, y, z], hierarchy: {taxonomy: {xy: [x, y], zz: [z]}}}, "
        "b: drop, c: drop}\n"
        "release: {mechanism: sampled_crowd, epsilon: 2, delta: 1e-5, DETAILS}\n"
    )
    fixed = text.replace("zz: [z]}}}", "zz: [z]}}, level: 1}").replace(", DETAILS", "")
    looked = api.look_at(Policy.from_text(fixed), data=frame)
    assert looked.table["a"].labels == ("xy", "zz")
    assert api.compare(looked, epsilons=[1.0], runs=1).delta == 1e-5
    assert api.compare(looked, epsilons=[1.0], runs=1, delta=0.01).delta == 0.01
    sure = text.replace("epsilon: 2", "epsilon: 60").replace("DETAILS", "selection_epsilon: 58")
    chosen = api.look_at(Policy.from_text(sure), data=frame.head(40))
    assert len(chosen.table["a"].labels) < 3  # so few people are shown more coarsely, or not at all
    assert api.look_at(frame).delta is None
    assert api.compare(api.look_at(frame), epsilons=[1.0], runs=1).delta == comparing.DELTA


def test_lines_that_lie_on_each_other_can_all_be_seen(found):
    same = replace(found, contenders=tuple(replace(figure, absolute=1.0) for figure in found.contenders))
    widths = re.findall(r'<path class="curve"[^>]*stroke-width:([\d.]+)', draw(same))
    assert len(widths) == 5
    assert [float(w) for w in widths] == sorted({float(w) for w in widths}, reverse=True)


def test_units_are_said(found):
    assert "1 if nothing is published" in found.units
