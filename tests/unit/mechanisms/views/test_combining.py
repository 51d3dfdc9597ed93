"""From measurements to a model and rows, against brute force over all combinations of values."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from incrowd.mechanisms.views import blocks, model_fit
from incrowd.mechanisms.views.blocks import Trust
from incrowd.mechanisms.views.consistency import reconciled
from incrowd.mechanisms.views.descent import least
from incrowd.mechanisms.views.junction import JunctionTree, onto, spread
from incrowd.mechanisms.views.margins import Margins
from incrowd.mechanisms.views.measurements import Measurement
from incrowd.mechanisms.views.model import Model
from incrowd.mechanisms.views.model_fit import carried, fit
from incrowd.mechanisms.views.rows import drawn
from incrowd.mechanisms.views.swaps import Target, swap

SIZES = (3, 2, 4, 3, 2)
CYCLE = [(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)]


def joint(seed=1, sizes=SIZES, total=10_000.0):
    weights = np.random.default_rng(seed).gamma(0.7, size=sizes) + 0.01
    return weights * (total / weights.sum())


def margin(table, columns):
    return onto(table, range(table.ndim), columns)


def measured(table, columns, variance=1e-6, noise=0.0, recodes=None):
    counts = margin(table, columns) + noise
    every = np.ones(counts.shape)
    recodes = recodes or tuple(np.arange(size) for size in counts.shape)
    bounds = {"low": every * -np.inf, "high": every * np.inf, "published": every > 0}
    return Measurement(tuple(columns), recodes, counts, every * variance, **bounds)


def noisy(table, columns, deviation, rng):
    shape = margin(table, columns).shape
    return measured(table, columns, deviation**2, rng.normal(0, deviation, shape))


def distance(model, table, columns):
    return float(np.abs(model.marginal(columns) - margin(table, columns)).sum() / 2 / table.sum())


def subsets(length):
    return list(itertools.combinations(range(len(SIZES)), length))


# --- the tree --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sets", [CYCLE, [(0, 1, 2), (2, 3)], [(0,), (1, 2)], [(0, 4)], [(0, 1, 2, 3, 4)]])
def test_messages_give_the_marginals_of_the_whole_table(sets):
    rng, tree = np.random.default_rng(2), JunctionTree(SIZES, sets)
    assert all(tree.home(columns) is not None for columns in sets)
    logs = [rng.normal(size=tree.shape(clique)) for clique in tree.cliques]
    every = tree.ordered(range(5))
    turned = np.exp(sum(spread(log, clique, every) for log, clique in zip(logs, tree.cliques, strict=True)))
    whole = np.transpose(turned, [every.index(column) for column in range(5)])
    tables, scale = tree.propagate(logs)
    assert scale == pytest.approx(math.log(whole.sum()))
    model = Model(tree, tables, 10.0)
    for columns in [*subsets(1), *subsets(2), *subsets(3), *subsets(4)]:
        np.testing.assert_allclose(model.marginal(columns), margin(whole, columns) * 10 / whole.sum(), atol=1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_a_marginal_is_that_of_the_whole_table_wherever_its_columns_lie(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, 7).tolist()
    sets = [tuple(rng.choice(7, rng.integers(1, 4), replace=False).tolist()) for _ in range(7)]
    tree = JunctionTree(sizes, sets)
    logs = [rng.normal(size=tree.shape(clique)) for clique in tree.cliques]
    every = tree.ordered(range(7))
    turned = np.exp(sum(spread(log, clique, every) for log, clique in zip(logs, tree.cliques, strict=True)))
    whole = np.transpose(turned, [every.index(column) for column in range(7)])
    model = Model(tree, tree.propagate(logs)[0], whole.sum())
    for length in (1, 2, 3):
        for columns in itertools.combinations(range(7), length):
            np.testing.assert_allclose(model.marginal(columns), margin(whole, columns), rtol=1e-9)


def test_columns_of_three_tables_meet_where_that_is_the_least_work(monkeypatch):
    """A middle, a table that shares nearly all of it, and two that share little and have a long column each."""
    sizes, sets = (3, 4, 5, 6, 7, 2, 40, 41), [(0, 1, 2, 3, 4), (0, 1, 2, 3, 5), (0, 4, 6), (1, 4, 7)]
    rng, tree, sent = np.random.default_rng(5), JunctionTree(sizes, sets), []
    message = Model._message
    monkeypatch.setattr(Model, "_message", lambda self, *asked: (sent.append(asked[:2]), message(self, *asked))[1])
    model = Model(tree, tree.propagate([rng.normal(size=tree.shape(clique)) for clique in tree.cliques])[0], 1.0)
    near = tree.cliques.index(tree.ordered(sets[1]))
    work = [model._work(place, -1, (), (5, 6, 7)) for place in range(4)]
    model.marginal((5, 6, 7))
    assert min(work) < work[near] / 10
    assert sent[0] == (work.index(min(work)), -1)
    assert all(before != near for _, before in sent)


@pytest.mark.parametrize("seed", range(40))
def test_margins_are_the_sums_by_each_set_and_spreading_is_the_reverse(seed):
    rng = np.random.default_rng(seed)
    columns = tuple(rng.permutation(6)[: rng.integers(1, 6)].tolist())
    shape = tuple(rng.integers(1, 5, len(columns)).tolist())
    every = [some for n in range(len(columns) + 1) for some in itertools.combinations(columns, n)]
    sets = [every[i] for i in rng.integers(0, len(every), rng.integers(0, 7))]  # some of them twice
    margins, table = Margins(columns, shape, sets), rng.normal(size=shape)
    sums = margins.of(table)
    for found, wanted in zip(sums, sets, strict=True):
        np.testing.assert_allclose(found, onto(table, columns, wanted), atol=1e-12)
    said = [rng.normal(size=found.shape) for found in sums]
    expected = sum((spread(part, wanted, columns) for part, wanted in zip(said, sets, strict=True)), np.zeros(shape))
    np.testing.assert_allclose(margins.spread(said), expected, atol=1e-12)
    np.testing.assert_allclose(margins.spread(said), expected, atol=1e-12)  # also when its room is used again


def test_there_may_be_more_columns_than_letters():
    """A chain of 60 columns, each the same as the one before with probability 0.98."""
    pair = np.array([[490.0, 10.0], [10.0, 490.0]])
    either, every = (np.arange(2), np.arange(2)), np.ones((2, 2))
    bounds = {"low": every * -np.inf, "high": every * np.inf, "published": every > 0}
    chain = [Measurement((n, n + 1), either, pair, every * 1e-6, **bounds) for n in range(59)]
    model = fit([2] * 60, chain, 1000.0)
    same = (1 + 0.96**59) / 2
    assert model.marginal((0, 59))[0, 0] == pytest.approx(500 * same, rel=1e-3)


def test_a_marginal_has_its_axes_in_the_order_asked_for():
    model = fit(SIZES, [measured(joint(), (0, 1)), measured(joint(), (1, 2))], 10_000)
    np.testing.assert_allclose(model.marginal((2, 0, 1)), np.transpose(model.marginal((0, 1, 2)), (2, 0, 1)))


def test_the_cost_of_adding_is_the_size_of_the_tree_that_has_it():
    model = fit(SIZES, [measured(joint(), columns) for columns in CYCLE[:3]], 10_000)
    assert model.cost_of_adding((0, 1)) == model.tree.cells == 3 * 2 + 2 * 4 + 4 * 3 + 2
    assert model.cost_of_adding((0, 2)) == 3 * 2 * 4 + 4 * 3 + 2


def test_what_a_small_tree_has_no_room_for_is_left_out_and_named():
    measurements = [measured(joint(), columns) for columns in [(0,), *CYCLE]]
    assert carried(SIZES, [m.columns for m in measurements], 38) == [0, 1, 2, 3, 5]
    model = fit(SIZES, measurements, 10_000, limit=38)
    assert [m.columns for m in model.left] == [(0, 3)]
    assert model.tree.cells <= 38


# --- the fit ---------------------------------------------------------------------------------------------------------


def test_exact_pairs_along_a_tree_give_the_product_formula():
    table, pairs = joint(), [(0, 1), (1, 2), (1, 3), (3, 4)]
    model = fit(SIZES, [measured(table, columns) for columns in [*subsets(1), *pairs]], table.sum())
    product = np.ones(SIZES)
    for columns in pairs:
        product = product * spread(margin(table, columns), columns, range(5))
    for column in (1, 1, 3):
        product = product / spread(margin(table, (column,)), (column,), range(5))
    np.testing.assert_allclose(model.marginal((0, 1, 2, 3, 4)), product, atol=2)


def test_exact_tables_in_a_cycle_are_reproduced_with_the_greatest_entropy():
    table = joint()
    model = fit(SIZES, [measured(table, columns) for columns in CYCLE], table.sum())
    raked = np.full(SIZES, table.sum() / math.prod(SIZES))
    for columns in CYCLE * 300:
        raked = raked * spread(margin(table, columns) / margin(raked, columns), columns, range(5))
    np.testing.assert_allclose(model.marginal((0, 1, 2, 3, 4)), raked, atol=2)
    assert max(distance(model, table, columns) for columns in CYCLE) < 1e-3


def test_a_coarse_measurement_keeps_the_finer_values_of_another():
    table, recode = joint(), np.array([0, 0, 1, 1])
    rough = np.add.reduceat(margin(table, (0, 2)), [0, 2], axis=1)
    every = np.ones(rough.shape)
    coarse = Measurement((0, 2), (np.arange(3), recode), rough, every * 1e-6, -every, every, every > 0)
    model = fit(SIZES, [measured(table, (2,)), coarse], table.sum())
    np.testing.assert_allclose(np.add.reduceat(model.marginal((0, 2)), [0, 2], axis=1), rough, atol=1)
    np.testing.assert_allclose(model.marginal((2,)), margin(table, (2,)), atol=1)


def test_a_measurement_may_have_its_codes_in_another_order():
    table, recode = joint(), np.array([2, 0, 3, 1])
    plain = measured(table, (0, 2))
    turned = replace(plain, recodes=(np.arange(3), recode), estimate=plain.estimate[:, np.argsort(recode)])
    np.testing.assert_allclose(fit(SIZES, [turned], table.sum()).marginal((0, 2)), plain.estimate, atol=1)


def test_estimates_far_below_zero_leave_a_model_that_can_be_read():
    """Their factors underflow, and with them what the tables share."""
    table, rng = np.zeros((30, 30, 30)), np.random.default_rng(9)
    table[np.arange(30), np.arange(30), np.arange(30)] = 10_000
    pairs = [noisy(table, columns, 3, rng) for columns in [(0, 1), (1, 2)]]
    model = fit((30, 30, 30), [*(noisy(table, (c,), 3, rng) for c in range(3)), *pairs], table.sum())
    assert distance(model, table, (0, 2)) < 0.01
    assert (model.sample(3000, rng) < 30).all()


def test_a_model_goes_on_from_an_earlier_one():
    table = joint()
    measurements = [measured(table, columns) for columns in [*subsets(1), *CYCLE]]
    first = fit(SIZES, measurements[:7], table.sum())
    on, anew = fit(SIZES, measurements, table.sum(), start=first), fit(SIZES, measurements, table.sum())
    np.testing.assert_allclose(on.marginal((0, 1, 2)), anew.marginal((0, 1, 2)), atol=2)
    before, after = (np.abs(margin(table, (2, 3)) - model.marginal((2, 3))).sum() for model in (first, on))
    assert after < before / 10


def test_a_model_near_another_is_that_which_is_found_anew_and_takes_less(monkeypatch):
    table, rng, asked = joint(sizes=(30, 20, 4), total=30_000.0), np.random.default_rng(21), []
    propagate = JunctionTree.propagate
    monkeypatch.setattr(JunctionTree, "propagate", lambda self, logs: (asked.append(1), propagate(self, logs))[1])
    views = [noisy(table, columns, 8, rng) for columns in [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2)]]
    first = fit(table.shape, views[:5], table.sum())
    asked.clear()
    anew = fit(table.shape, views, table.sum())
    taken = len(asked)
    near = fit(table.shape, views, table.sum(), near=fit(table.shape, views, table.sum(), start=first))
    moved = np.abs(near.marginal((0, 1, 2)) - anew.marginal((0, 1, 2))).sum() / 2 / table.sum()
    assert moved < distance(anew, table, (0, 1, 2)) / 50
    asked.clear()
    fit(table.shape, views, table.sum(), near=anew)
    assert len(asked) < taken / 5


WIDE = (40, 30, 2)


def independent():
    rng = np.random.default_rng(5)
    parts = [rng.dirichlet(np.ones(size)) for size in WIDE]
    return rng.multinomial(20_000, np.einsum("i,j,k->ijk", *parts).ravel()).reshape(WIDE).astype(float)


def test_noise_about_independent_columns_is_taken_for_noise():
    table, rng = independent(), np.random.default_rng(6)
    single = [noisy(table, (column,), 20, rng) for column in range(3)]
    pairs = [noisy(table, columns, 20, rng) for columns in [(0, 1), (1, 2)]]
    control, model = fit(WIDE, single, 20_000), fit(WIDE, [*single, *pairs], 20_000)
    for columns in [(0, 1), (0, 2), (1, 2), (0, 1, 2)]:
        assert distance(model, table, columns) < distance(control, table, columns) + 0.002


def test_without_shrinking_the_noise_would_be_believed(monkeypatch):
    monkeypatch.setattr(model_fit, "trusts", lambda m, _: [Trust((1,) * len(m.shape), np.full(m.shape, 1e-3))])
    table, rng = independent(), np.random.default_rng(6)
    single = [noisy(table, (column,), 20, rng) for column in range(3)]
    control, model = fit(WIDE, single, 20_000), fit(WIDE, [*single, noisy(table, (0, 1), 20, rng)], 20_000)
    assert distance(model, table, (0, 1)) > distance(control, table, (0, 1)) + 0.1


def waves():
    """Two long columns that depend on each other smoothly: neighbouring values alike."""
    x, y = np.arange(96)[:, None] / 96, np.arange(24)[None, :] / 24
    table = 1 + 0.6 * np.sin(2 * np.pi * x) * np.cos(np.pi * y)
    return np.round(30_000 * table / table.sum())


def of_noisy(table):
    """The mean error of the models of several noisy views."""

    def error(seed):
        rng = np.random.default_rng(seed)
        views = [noisy(table, columns, 20, rng) for columns in [(0,), (1,), (0, 1)]]
        return distance(fit(table.shape, views, 30_000), table, (0, 1))

    return np.mean([error(seed) for seed in range(4)])


def test_what_neighbours_have_in_common_is_seen_through_noise(monkeypatch):
    smooth = of_noisy(waves())
    monkeypatch.setattr(blocks, "_WIDTHS", ())
    assert smooth < 0.75 * of_noisy(waves())


def test_neighbours_that_have_nothing_in_common_do_no_harm(monkeypatch):
    mixed = waves()[np.random.default_rng(9).permutation(96)]
    with_blocks = of_noisy(mixed)
    monkeypatch.setattr(blocks, "_WIDTHS", ())
    assert with_blocks < 1.03 * of_noisy(mixed)


def test_sums_over_blocks_and_looking_up_the_block_of_a_cell_are_adjoint():
    rng = np.random.default_rng(11)
    table, widths = rng.normal(size=(50, 13, 3)), (16, 4, 1)
    sums = blocks.sums(table, widths)
    assert sums.shape == (4, 4, 3)
    assert sums[1, 3, 2] == pytest.approx(table[16:32, 12:, 2].sum())
    other = rng.normal(size=sums.shape)
    repeated = other.ravel()[blocks.inside(widths, table.shape)]
    assert (sums * other).sum() == pytest.approx((table * repeated).sum())


def test_the_parts_of_a_relative_difference_are_told_apart():
    rng, shape = np.random.default_rng(12), (480, 8)
    expected = np.full(shape, 1000.0)
    own, shared = rng.normal(0, 0.1, shape), np.repeat(rng.normal(0, 0.3, (30, 8)), 16, 0)
    counts = expected * (1 + own + shared) + rng.normal(0, 50, shape)
    view = replace(measured(counts, (0, 1)), variance=np.full(shape, 2500.0))
    found = blocks._relative(view, expected, [(1, 1), (4, 1), (16, 1)])
    assert found == pytest.approx([0.01, 0.0, 0.09], abs=0.015)


def test_a_dependence_beyond_the_noise_is_kept():
    table, rng = np.zeros((20, 20)), np.random.default_rng(7)
    table[np.arange(20), np.arange(20)] = 1000
    single = [noisy(table, (column,), 20, rng) for column in range(2)]
    model = fit((20, 20), [*single, noisy(table, (0, 1), 20, rng)], 20_000)
    assert distance(fit((20, 20), single, 20_000), table, (0, 1)) > 0.9
    assert distance(model, table, (0, 1)) < 0.05


def test_cells_that_were_withheld_stay_below_what_would_have_been_published():
    table = np.array([[900.0, 20, 80], [10, 900, 90], [90, 80, 830]])
    published = table > 300
    wide = {"low": np.where(published, table, 0), "high": np.where(published, table, 100)}
    crowd = replace(
        measured(table, (0, 1)),
        estimate=np.where(published, table, 0),
        variance=np.full((3, 3), 400.0),
        published=published,
        **wide,
    )
    single = [measured(table, (0,), 400), measured(table, (1,), 400)]
    without = fit((3, 3), single, table.sum()).marginal((0, 1))
    model = fit((3, 3), [*single, crowd], table.sum()).marginal((0, 1))
    assert without[~published].min() > 200
    assert model[~published].max() < 120
    np.testing.assert_allclose(model[published], table[published], atol=60)


# --- consistency -----------------------------------------------------------------------------------------------------


def test_shared_sums_are_averaged_by_their_variances():
    table, sizes = joint(sizes=(2, 3), total=600.0), (2, 3)
    single = measured(table, (0,), 1.0, np.array([30.0, -30.0]))
    pair = measured(table, (0, 1), 1.0)
    one, two = reconciled(sizes, [single, pair], 600.0)
    expected = (3 * single.estimate + margin(table, (0,))) / 4  # variances 1 and 3
    np.testing.assert_allclose(one.estimate, expected)
    np.testing.assert_allclose(two.estimate.sum(axis=1), expected)
    np.testing.assert_allclose(two.estimate.sum(axis=0), table.sum(axis=0))


def test_overlapping_triples_agree_on_their_pair_and_the_total():
    table, rng = joint(), np.random.default_rng(3)
    found = reconciled(SIZES, [noisy(table, (0, 1, 2), 9, rng), noisy(table, (1, 2, 3), 5, rng)], 10_000.0)
    np.testing.assert_allclose(found[0].estimate.sum(axis=0), found[1].estimate.sum(axis=2))
    assert [m.estimate.sum() for m in found] == pytest.approx([10_000, 10_000])


def test_a_table_with_withheld_cells_is_left_as_it_is():
    whole = measured(joint(), (0, 1))
    partly = replace(whole, published=np.arange(6).reshape(3, 2) > 0)
    assert reconciled(SIZES, [partly], 1.0) == [partly]


# --- rows ------------------------------------------------------------------------------------------------------------


def counted(rows, columns):
    shape = [SIZES[column] for column in columns]
    return np.bincount(np.ravel_multi_index(rows[:, columns].T, shape), minlength=math.prod(shape)).reshape(shape)


def test_rows_follow_the_model_closer_than_a_sample_would():
    table = joint()
    model = fit(SIZES, [measured(table, columns) for columns in CYCLE], table.sum())
    rows = model.sample(2_000, np.random.default_rng(1))
    assert rows.shape == (2_000, 5)
    scattered = np.random.default_rng(1).multinomial(2_000, model.marginal(range(5)).ravel() / table.sum())
    for columns in [*subsets(1), *CYCLE]:
        expected = model.marginal(columns) / 5
        ours = np.abs(counted(rows, list(columns)) - expected).max()
        assert ours < 4
        assert ours < np.abs(margin(scattered.reshape(SIZES), columns) - expected).max()


def test_rows_follow_the_model_also_by_columns_that_no_table_has_together():
    table = joint()
    model = fit(SIZES, [measured(table, (a, a + 1)) for a in range(4)], table.sum())
    rows = model.sample(2_000, np.random.default_rng(1))
    scattered = np.random.default_rng(1).multinomial(2_000, model.marginal(range(5)).ravel() / table.sum())
    for columns in [(0, 2), (0, 3), (1, 4), (0, 2, 4)]:
        assert model.tree.home(columns) is None
        expected = model.marginal(columns) / 5
        ours = np.abs(counted(rows, list(columns)) - expected).sum()
        assert ours < 0.4 * np.abs(margin(scattered.reshape(SIZES), columns) - expected).sum()


def test_swaps_bring_counts_nearer_and_move_nothing_between_groups():
    rng = np.random.default_rng(3)
    codes, group, other = (rng.integers(0, size, 5_000) for size in (6, 4, 7))
    before, place = np.bincount(group * 6 + codes), other * 6
    wanted = 5_000 * np.outer(np.bincount(other) / 5_000, np.bincount(codes) / 5_000).ravel()
    target = Target(place, np.bincount(place + codes, minlength=42) - wanted)
    off = np.abs(target.surplus).sum()
    swap(codes, group, [target], 50, rng)
    np.testing.assert_allclose(target.surplus, np.bincount(place + codes, minlength=42) - wanted, atol=1e-9)
    assert np.abs(target.surplus).sum() < 0.2 * off
    assert (np.bincount(group * 6 + codes) == before).all()


@pytest.mark.parametrize("groups", [3, 1000, 70_000])
def test_groups_of_rows_may_have_any_numbers(groups):
    """However many there are, and whatever they are called, the same random numbers swap the same rows."""
    rng = np.random.default_rng(6)
    group, codes, place = rng.integers(0, groups, 80_000), rng.integers(0, 5, 80_000), rng.integers(0, 30, 80_000) * 5
    surplus = np.bincount(place + codes, minlength=150) - rng.dirichlet(np.ones(150)) * 80_000
    found = []
    for numbers in (group, group * 11 - 4):
        swapped = codes.copy()
        swap(swapped, numbers, [Target(place, surplus.copy())], 3, np.random.default_rng(7))
        found.append(swapped)
    np.testing.assert_array_equal(*found)
    assert (found[0] != codes).any()
    key = group * 5
    np.testing.assert_array_equal(np.sort(key + codes), np.sort(key + found[0]))


def test_rows_are_right_on_average():
    table = joint(total=60.0)
    model = fit(SIZES, [measured(table, columns) for columns in CYCLE], 60)
    rng = np.random.default_rng(4)
    rows = np.concatenate([model.sample(60, rng) for _ in range(500)])
    for columns in [(0, 1), (2, 4), (0, 2), (0, 3)]:
        assert np.abs(counted(rows, list(columns)) / 500 - model.marginal(columns)).max() < 0.4


@pytest.mark.parametrize("per_date", [1, 1.3, 1.618, 2, 2.618])
def test_rows_of_many_dates_follow_the_model_by_the_other_columns(per_date):
    """With about a row for each date, the orders in which columns are drawn begin alike: their quantiles must not."""
    of_a, of_b = np.array([0.1, 0.2, 0.3, 0.4]), np.array([[0.2, 0.8], [0.7, 0.3], [0.4, 0.6], [0.9, 0.1]])
    of_c = np.array([[0.1, 0.9], [0.8, 0.2]])
    whole = np.einsum("d,a,ab,bc->dabc", np.full(1500, 1 / 1500), of_a, of_b, of_c)
    tree, rows = JunctionTree(whole.shape, [(0, 1, 2, 3)]), int(1500 * per_date)
    tables = [whole.transpose(tree.cliques[0])]
    for seed in range(5):
        codes = drawn(tree, tables, lambda columns: margin(whole, columns), rows, np.random.default_rng(seed))
        for column in range(1, 4):
            expected = rows * margin(whole, [column])
            found = np.bincount(codes[:, column], minlength=whole.shape[column])
            assert np.abs(found - expected).sum() / 2 < 50


def test_rows_come_in_no_order():
    model = fit(SIZES, [measured(joint(), (0, 1))], 10_000)
    rows = model.sample(3_000, np.random.default_rng(1))
    assert np.abs(np.diff(rows, axis=0)).any(axis=1).mean() > 0.5


# --- the minimiser ---------------------------------------------------------------------------------------------------


def test_the_minimum_of_a_badly_scaled_parabola_is_found():
    rng = np.random.default_rng(8)
    rotation = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    matrix = rotation @ np.diag(10.0 ** np.linspace(-2, 3, 12)) @ rotation.T
    aim = rng.normal(size=12)

    def function(x):
        return float(x @ matrix @ x / 2 - aim @ x), matrix @ x - aim

    found = least(function, np.zeros(12), tolerance=1e-16, steps=500)
    np.testing.assert_allclose(found, np.linalg.solve(matrix, aim), rtol=1e-4)
