"""The noisy counts by which a private choice weighs columns: published, checked, and what estimates make of them."""

import json
import math
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

from incrowd import api
from incrowd.core.errors import ParameterError
from incrowd.core.signing import canonical
from incrowd.hierarchy import codings
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.base import Publication
from incrowd.mechanisms.registry import mechanism_named
from incrowd.mechanisms.sampled_crowd.calibrated import CrowdAxis, ends_along
from incrowd.mechanisms.sampled_crowd.levels import NoisyTables, weights_of
from incrowd.mechanisms.sampled_crowd.one_way import VALUES, OneWay, read_one_way
from incrowd.mechanisms.sampled_crowd.settle import LevelChoice
from incrowd.mechanisms.sampled_crowd.state import check_table
from incrowd.policy import Policy
from incrowd.randomness import RandomSource
from incrowd.releases.pipeline import count_table
from incrowd.releases.verify import VOID, read_release
from incrowd.theory.views import LaplaceStep

POLICY = """
incrowd: 1
attributes:
  age: {{type: integer, domain: {{from: 0, to: 79}}, hierarchy: {{widths: [20, 40]}}{level}}}
  sex: {{domain: [f, m]}}
  job: {{domain: [office, shop, farm, mine, sea, army, arts, none]}}
  born: {{domain: [here, there, elsewhere]}}
release: {{mechanism: sampled_crowd, epsilon: 2, delta: 1e-6, selection_epsilon: 0.4{more}}}
"""
ROWS = 4000


def policy(level="", more=""):
    return Policy.from_text(POLICY.format(level=level, more=more))


def people():
    rng = np.random.default_rng(5)
    jobs = ["office", "shop", "farm", "mine", "sea", "army", "arts", "none"]
    return pd.DataFrame(
        {
            "age": rng.integers(0, 80, ROWS),
            "sex": rng.choice(["f", "m"], ROWS),
            "job": rng.choice(jobs, ROWS, p=[0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]),
            "born": rng.choice(["here", "there", "elsewhere"], ROWS, p=[0.84, 0.1, 0.06]),
        }
    )


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """A release that hides where people were born, and shows ages coarsely."""
    folder = tmp_path_factory.mktemp("values") / "out"
    api.release(people(), policy(), folder=folder, _source=RandomSource.seeded(4))
    certificate, _ = read_release(folder)
    assert certificate.mechanism.levels["born"] == 1
    assert certificate.mechanism.levels["age"] in (1, 2)
    return folder


def test_what_the_choice_has_paid_for_is_published_and_checked(released):
    assert [check for check in api.verify(released).checks if not check.holds and check.name != VOID] == []
    certificate, published = read_release(released)
    values, choice = read_one_way(published.beside[VALUES]), certificate.mechanism.choice
    assert values.noise.decay == 1 / choice.tables_scale == 1 / (4 / 0.05)
    assert values.labels["born"] == ("here", "there", "elsewhere")
    assert len(values.labels["age"]) == 80
    assert values.shown["born"] == ("*", "*", "*")
    assert set(values.shown["age"]) == set(certificate.labels["age"])
    assert abs(values.counts["born"][0] - 0.84 * ROWS) < 800
    page = next(released.glob("*report.html")).read_text(encoding="utf-8")
    assert "How many have each value" in page
    assert "elsewhere" in page


@pytest.mark.parametrize(
    ("change", "fails"),
    [
        (lambda d: d.update(decay=d["decay"] * 2), "the noisy counts are of"),
        (lambda d: d["columns"][3].update(values=["here", "there", "nowhere"]), "the noisy counts are of"),
        (lambda d: d["columns"][0]["shown"].reverse(), "the noisy counts are of"),
        (lambda d: d["columns"][0].pop("shown"), "the noisy counts are of"),
        (lambda d: d["columns"].pop(), "the noisy counts are of"),
        (lambda d: d["columns"][1].update(counts=[1]), "the noisy counts are of"),
        (lambda d: d["columns"][3].update(counts=[1300, 1300, 1400]), "the weights of columns follow"),
    ],
)
def test_other_counts_are_found(released, change, fails):
    certificate, published = read_release(released)
    document = json.loads(published.beside[VALUES])
    change(document)
    found = list(check_table(certificate, Publication(published.table, {VALUES: canonical(document)})))
    assert [check.name.startswith(fails) for check in found if not check.holds] == [True]


def test_a_certificate_of_an_earlier_version_needs_no_such_file(released):
    """Whose choice was paid for in the same way, but which did not publish what it has paid for."""
    certificate, published = read_release(released)
    choice = certificate.mechanism.choice.model_copy(update={"tables_scale": None})
    earlier = certificate.model_copy(update={"mechanism": certificate.mechanism.model_copy(update={"choice": choice})})
    mechanism = mechanism_named("sampled_crowd")
    assert list(mechanism.beside_names(earlier)) == []
    assert all(check.holds for check in mechanism.check_promise(earlier))
    assert all(check.holds for check in check_table(earlier, Publication(published.table, {})))


def test_nothing_finer_is_counted_than_a_fixed_level(tmp_path):
    made = api.release(people(), policy(", level: 2"), folder=tmp_path / "out", _source=RandomSource.seeded(1))
    certificate, published = read_release(tmp_path / "out")
    values = read_one_way(published.beside[VALUES])
    assert values.labels["age"] == tuple(certificate.labels["age"])
    assert len(values.labels["age"]) == 2
    assert "age" not in values.shown
    assert [check.name for check in api.verify(tmp_path / "out").checks if not check.holds] == [VOID]
    assert made.certificate["mechanism"]["choice"]["weights"]["age"] > 0


@pytest.mark.parametrize("more", [", importance: {age: 2}", ", minimise: class_size"])
def test_where_nothing_is_paid_for_nothing_is_published(more, tmp_path):
    api.release(people(), policy(more=more), folder=tmp_path / "out", _source=RandomSource.seeded(1))
    assert not (tmp_path / "out" / VALUES).exists()


def test_noise_that_no_number_holds_is_refused_before_it_is_drawn():
    asked = Policy.from_text(
        POLICY.format(level="", more="").replace("selection_epsilon: 0.4", "selection_epsilon: 1e-300")
    )
    with pytest.raises(ParameterError, match="noise alone"):
        mechanism_named("sampled_crowd").settle(asked, codings(asked), 1)


def test_a_hidden_column_is_estimated_by_its_own_values(released):
    truth = people()
    rows = {row.values[0]: row for row in api.estimate(released, ["born"]).rows}
    for value, true in truth.born.value_counts().items():
        assert rows[value].low <= true <= rows[value].high
    assert abs(rows["here"].estimate - 0.84 * ROWS) < 400
    both = api.estimate(released, ["sex", "born"])
    assert {row.values for row in both.rows} == set(product(["f", "m"], ["here", "there", "elsewhere"]))
    for row in both.rows:
        true = int(((truth.sex == row.values[0]) & (truth.born == row.values[1])).sum())
        assert row.low <= true <= row.high
        assert row.high < ROWS * 0.9
    assert any("nothing of born" in note for note in both.notes)
    with_mean = api.estimate(released, ["born"], mean="age")
    assert [row.values for row in with_mean.rows] == [("*",)]


def test_noisy_counts_bound_what_may_be_missing():
    """Of a column that is shown, too: crowds alone leave room for many more people than there are."""
    many = tuple(map(str, range(500)))
    table = Histogram.of(
        [Column("town", ("north", "south"), np.array([0, 1])), Column("trade", many, np.array([7, 7]))],
        np.array([400, 300]),
    )
    towns, true = tuple("abcdef"), np.array([250, 250, 300, 200, 200, 250])  # of whom half were sampled
    shown = {"town": ("north", "north", "north", "south", "south", "south")}
    rng, decay, missed, narrower = np.random.default_rng(1), 1 / 50, 0, 0
    for _ in range(200):
        noise = rng.geometric(-math.expm1(-decay), 6) - rng.geometric(-math.expm1(-decay), 6)
        values = OneWay(LaplaceStep(decay), {"town": towns}, {"town": true + noise}, shown)
        axis = CrowdAxis.of_column(table["town"].labels, "town", None, values)
        low, high = ends_along([axis], table, 10, 0.5)
        assert high.max() < 2200
        missed += int((low > [800, 650]).any() or (high < [800, 650]).any())
        least, most = ends_along([axis], table, 10, 0.5, total=(1450, 1450))
        narrower += int((most - least).max() < (high - low).max())
    assert missed <= 10
    assert narrower > 150
    _, bare = ends_along([CrowdAxis.of_column(table["town"].labels, "town", None, None)], table, 10, 0.5)
    assert bare.min() > 9000


def test_labels_are_spread_by_the_noisy_counts():
    """What the verdict, `compare` and `advise` hold against the true counts: 84% were born here, not a third."""
    asked, mechanism = policy(), mechanism_named("sampled_crowd")
    attributes = codings(asked)
    settled = mechanism.settle(asked, attributes, 1)
    table = count_table(people(), asked, attributes, show_values=False, progress=lambda _: None)
    made = mechanism.draw(settled, table, RandomSource.seeded(4))
    told = mechanism.told(settled, made)(("born",))
    assert told[0] / told.sum() > 0.7
    assert told.sum() == pytest.approx(made.published.total / settled.crowd.beta)
    even = mechanism.told(settled, replace(made, outcome=replace(made.outcome, values=None)))(("born",))
    assert even[0] / even.sum() == pytest.approx(1 / 3)


@pytest.mark.parametrize("scale", [1, 40, 4000])
def test_likely_counts_are_counts_and_trust_noise_no_more_than_it_deserves(scale):
    rng = np.random.default_rng(scale)
    exact = np.array([9000, 500, 300, 100, 50, 50, 0, 0])
    decay = 1 / scale
    noise = (rng.geometric(-math.expm1(-decay), 8) - rng.geometric(-math.expm1(-decay), 8)).astype(np.int64)
    tables = OneWay(LaplaceStep(decay), {"c": tuple("abcdefgh")}, {"c": exact + noise})
    likely = tables.likely("c")
    assert likely.min() >= 0
    assert likely.sum() == pytest.approx(tables.total)
    if scale == 1:
        assert np.abs(likely - exact).max() < 30
    if scale == 4000:
        even = np.full(8, tables.total / 8)
        assert np.abs(likely - even).sum() < np.abs(np.maximum(exact + noise, 0) - even).sum() / 2


def test_the_noise_of_several_counts_together_stays_within_its_margin():
    """Chernoff's bound beside the exact law of a sum, by convolution."""
    decay, far = 0.2, 400
    law = np.exp(-decay * np.abs(np.arange(-far, far + 1)))
    law /= law.sum()
    one_way, together = OneWay(LaplaceStep(decay), {}, {}), law
    for size in (2, 3, 4, 5):
        together = np.convolve(together, law)
        middle = len(together) // 2
        for surprise in (0.025, 0.0125, 0.001):
            above = together[middle + 1 + one_way.margin(surprise, size) :].sum()
            assert surprise / 30 < above <= surprise


def test_one_value_is_as_seldom_missed_whichever_of_its_nested_labels_the_noise_had_a_part_in_picking():
    """All labels that could go around it, of 1, 2, 3, … values: the exact laws of their sums, beside their margins."""
    decay, far, surprise, most = 0.2, 400, 0.025, 60
    law = np.exp(-decay * np.abs(np.arange(-far, far + 1)))
    together, law = np.ones(1), law / law.sum()
    missed = {True: 0.0, False: 0.0}
    for size in range(1, most + 1):
        together = np.convolve(together, law)
        values = OneWay(LaplaceStep(decay), {}, {"c": np.full(size, 9_999)})
        for picked in missed:
            axis = CrowdAxis("c", ("all",), values, np.zeros(size, dtype=np.int64), hidden=False, picked=picked)
            reach = size * 9_999 - int(axis.between(surprise)[0][0])
            missed[picked] += together[len(together) // 2 + 1 + reach :].sum()
    assert missed[True] <= surprise < missed[False]


def test_tables_and_choice_cost_no_more_than_their_share():
    """Two columns of two values: all outcomes of tables and choice, for every table of two records and its neighbours.

    The choice is the exponential law, one weaker than permute-and-flip's; looked at is that its weights are published.
    """
    scale, share = 4, 0.5
    tables_epsilon, choice = 2 / scale, LevelChoice()
    exact = np.array(list(product(range(-2, 5), repeat=4)))
    weights = []
    for seen in exact:
        labels, counts = {"a": ("0", "1"), "b": ("0", "1")}, {"a": seen[:2], "b": seen[2:]}
        found = weights_of(choice, ("a", "b"), NoisyTables(scale, labels, counts))
        weights.append([found["a"], found["b"], 0.0])

    def law(records):
        """The logarithms of all outcomes' weights: noisy tables, and one of three mappings."""
        tally = [sum(record[column] == value for record in records) for column in (0, 1) for value in (0, 1)]
        noise = -np.abs(exact - tally).sum(axis=1) / scale
        scores = share / 2 * len(records) * np.array(weights)
        return noise[:, None] + scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))

    cells = list(product((0, 1), repeat=2))
    worst = [
        np.abs(law(records) - law((*records, more))).max()
        for records in ((), *((c,) for c in cells), *product(cells, cells))
        for more in cells
    ]
    assert tables_epsilon < max(worst) <= tables_epsilon + share
