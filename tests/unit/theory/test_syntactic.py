import math
from fractions import Fraction

import numpy as np
import pytest

from incrowd.core.errors import DataError, HierarchyError, ParameterError
from incrowd.theory import _groups
from incrowd.theory.syntactic import (
    beta_likeness,
    delta_disclosure,
    distinct_l_diversity,
    entropy_l_diversity,
    k_anonymity,
    largest_share,
    recursive_l_diversity,
    t_closeness,
)
from older_notions import tree_levels

EVERY_MEASURE = [
    k_anonymity,
    distinct_l_diversity,
    entropy_l_diversity,
    lambda counts, **more: recursive_l_diversity(counts, 2, **more),
    lambda counts, **more: recursive_l_diversity(counts, 3, **more),
    largest_share,
    t_closeness,
    lambda counts, **more: t_closeness(counts, "ordered", **more),
    lambda counts, **more: t_closeness(counts, tree_levels([[0, 1], 2, 3]), **more),
    beta_likeness,
    lambda counts, **more: beta_likeness(counts, enhanced=True, **more),
    delta_disclosure,
]


class TestWrongAnswersSeenElsewhere:
    """Each of these is answered wrongly by some published tool."""

    def test_the_order_of_the_groups_changes_nothing(self):
        table = np.array([[3, 3, 1, 2], [4, 0, 0, 0], [2, 5, 1, 1]])
        for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
            found = distinct_l_diversity(table[order])
            assert (found.value, order[found.group]) == (1, 1)

    @pytest.mark.parametrize("measure", EVERY_MEASURE)
    def test_an_unused_category_changes_nothing(self, measure):
        table = np.array([[3, 3, 1, 2], [4, 1, 1, 1], [2, 5, 1, 1]])
        with_unused_group = np.insert(table, 1, 0, axis=0)
        assert measure(with_unused_group).value == measure(table).value
        if measure(table).group > 0:
            assert measure(with_unused_group).group == measure(table).group + 1

    def test_an_unused_combination_of_quasi_identifiers_is_not_a_group_of_size_zero(self):
        assert k_anonymity([[5, 0], [0, 0], [2, 2]]).value == 4

    def test_an_unused_sensitive_value_changes_no_count(self):
        table, wider = [[3, 2], [1, 4]], [[3, 2, 0], [1, 4, 0]]
        for measure in (k_anonymity, distinct_l_diversity, entropy_l_diversity, largest_share, t_closeness):
            assert measure(wider).exact == measure(table).exact
        assert beta_likeness(wider).exact == beta_likeness(table).exact
        assert delta_disclosure(wider).value == delta_disclosure(table).value

    def test_people_with_a_missing_value_form_a_group_of_their_own(self):
        # One person alone, with a missing quasi-identifier: k is 1, whatever the others do.
        assert k_anonymity([[3, 2], [4, 1], [1, 0]]).value == 1

    def test_recursive_diversity_of_7_2_1_needs_c_above_7(self):
        found = recursive_l_diversity([[7, 2, 1]], 3)
        assert found.exact == 7
        assert not found.satisfies(1)
        assert not found.satisfies(7)
        assert found.satisfies(7.001)

    @pytest.mark.parametrize("values", [2, 3, 5, 7, 10, 49])
    @pytest.mark.parametrize("each", [1, 3, 7, 10**9])
    def test_entropy_l_of_equally_frequent_values_is_their_number(self, values, each):
        found = entropy_l_diversity([[each] * values])
        assert found.value == values
        assert found.exact == values
        assert found.satisfies(values)
        assert not found.satisfies(values + 1e-9)

    def test_delta_disclosure_with_an_absent_value_is_infinite(self):
        found = delta_disclosure([[5, 5], [10, 0]])
        assert found.value == math.inf
        assert (found.group, found.column) == (1, 1)
        assert not found.satisfies(1e300)

    def test_different_limits_give_different_answers(self):
        found = t_closeness([[8, 2], [2, 8]])
        assert found.exact == Fraction(3, 10)
        assert not found.satisfies(0.01)
        assert found.satisfies(0.5)

    def test_fewer_records_than_k(self):
        assert not k_anonymity([[2, 1]]).satisfies(5)

    def test_a_second_call_knows_nothing_of_the_first(self):
        first = t_closeness([[8, 2], [2, 8]])
        assert t_closeness([[5, 5], [5, 5]]).value == 0
        assert t_closeness([[8, 2], [2, 8]]) == first

    def test_every_measure_of_a_small_table(self):
        table = [[3, 1], [2, 2]]
        assert (k_anonymity(table).value, distinct_l_diversity(table).value) == (4, 2)
        assert largest_share(table).exact == Fraction(3, 4)
        assert entropy_l_diversity(table).value == pytest.approx(4 / 3**0.75)
        assert t_closeness(table).exact == Fraction(1, 8)
        assert beta_likeness(table).exact == Fraction(1, 3)  # the second value: 1/2 against 3/8
        assert delta_disclosure(table).value == pytest.approx(math.log(3 / 2))  # and 1/4 against 3/8

    def test_an_empty_table_is_an_error(self):
        for measure in EVERY_MEASURE:
            with pytest.raises(DataError):
                measure(np.zeros((3, 4), int))


class TestKnownExamples:
    # Li, Li, Venkatasubramanian: salaries of 3K to 11K in three groups of three.
    SALARIES = np.array([[1, 1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 1, 0, 0, 1], [0, 0, 0, 0, 1, 0, 1, 1, 0]])

    def test_ordered_distance(self):
        found = t_closeness(self.SALARIES, "ordered", per_group=True)
        assert found.exact == Fraction(3, 8)
        assert found.group == 0
        assert found.by_group[1] == pytest.approx(1 / 6)
        assert round(found.by_group[1], 3) == 0.167

    def test_the_equal_distance_cannot_tell_those_groups_apart(self):
        assert t_closeness(self.SALARIES, per_group=True).by_group == pytest.approx([2 / 3] * 3)

    def test_hierarchical_distances_of_diseases(self):
        # Three levels: two kinds of respiratory and two of digestive diseases.
        flu, bronchitis, embolism, cancer = 0, 2, 3, 6
        levels = tree_levels([[[0, 1, 2], [3, 4]], [[5, 6], [7, 8]]])

        def apart(one, other):
            group, all_of_them = np.zeros((1, 9), int), np.zeros(9, int)
            group[0, one], all_of_them[other] = 1, 1
            return t_closeness(group, levels, reference=all_of_them.tolist()).exact

        assert apart(flu, flu) == 0
        assert apart(flu, bronchitis) == Fraction(1, 3)
        assert apart(flu, embolism) == Fraction(2, 3)
        assert apart(flu, cancer) == 1

    def test_branches_of_different_depth_meet_at_the_height_of_their_ancestor(self):
        levels = tree_levels([0, [1, [2, 3]]])
        table = np.eye(4, dtype=int)

        def apart(one, other):
            return t_closeness(table[one : one + 1], levels, reference=table[other].tolist()).exact

        assert [apart(2, 3), apart(1, 3), apart(0, 1), apart(0, 3)] == [Fraction(1, 3), Fraction(2, 3), 1, 1]

    def test_beta_likeness_by_hand(self):
        table = [[6, 4], [2, 8]]  # the whole: 8 and 12 of 20
        found = beta_likeness(table, per_group=True)
        assert found.exact == Fraction(1, 2)  # 0.6 against 0.4
        assert (found.group, found.column) == (0, 0)
        assert found.by_group == pytest.approx([1 / 2, 1 / 3])
        assert beta_likeness(table, enhanced=True).exact == Fraction(1, 2)  # below -ln 0.4 = 0.916

    def test_enhanced_likeness_keeps_frequent_values_from_becoming_certain(self):
        table = [[90, 0], [6, 4]]
        assert beta_likeness(table).value == pytest.approx(9)  # the rare value: 0.4 against 0.04
        # The frequent value gains 1/0.96 - 1 = 0.0417 in the first group, more than -ln 0.96 = 0.0408.
        frequent = beta_likeness(table, enhanced=True)
        assert frequent.value == math.inf
        assert not frequent.satisfies(1e9)
        assert frequent.group == 0

    def test_enhanced_likeness_of_proportional_groups_is_zero(self):
        assert beta_likeness([[1, 2], [10, 20]], enhanced=True).exact == 0

    def test_largest_share_of_chosen_values(self):
        table = [[8, 1, 1], [4, 3, 3]]
        assert largest_share(table).exact == Fraction(4, 5)
        assert (largest_share(table).group, largest_share(table).column) == (0, 0)
        rare = largest_share(table, [2, 1])
        assert (rare.exact, rare.group, rare.column) == (Fraction(3, 10), 1, 1)

    def test_delta_of_proportional_groups_is_zero_and_strict(self):
        found = delta_disclosure([[1, 2], [10, 20]])
        assert found.exact == 0
        assert not found.satisfies(0)
        assert found.satisfies(1e-9)

    def test_recursive_diversity_with_too_few_values(self):
        assert recursive_l_diversity([[5, 5, 0]], 3).value == math.inf
        assert recursive_l_diversity([[5, 5]], 3).value == math.inf
        assert recursive_l_diversity([[5, 4, 3], [9, 1, 1]], 2).exact == Fraction(9, 2)

    def test_a_reference_other_than_the_table(self):
        assert t_closeness([[5, 5]], reference=[1, 1]).exact == 0
        assert t_closeness([[5, 5]], reference=[3, 1]).exact == Fraction(1, 4)
        assert beta_likeness([[5, 5]], reference=[1, 0]).value == math.inf
        assert delta_disclosure([[5, 0]], reference=[1, 0]).exact == 0

    def test_a_domain_of_one_value(self):
        table = [[4], [6]]
        assert k_anonymity(table).value == 4
        assert entropy_l_diversity(table).exact == 1
        assert t_closeness(table).exact == t_closeness(table, "ordered").exact == 0
        assert largest_share(table).exact == 1


class TestLimits:
    @pytest.mark.parametrize("tenths", range(1, 10))
    def test_a_limit_that_is_reached_exactly_is_met(self, tenths):
        found = t_closeness([[tenths, 10 - tenths], [0, 10]], reference=[0, 1])
        assert found.exact == Fraction(tenths, 10)
        assert found.satisfies(tenths / 10)
        assert found.satisfies(float(f"0.{tenths}"))
        assert not found.satisfies(tenths / 10 - 1e-15)

    def test_three_tenths_is_not_fooled_by_its_float(self):
        assert Fraction(0.3) < Fraction(3, 10)
        assert largest_share([[3, 3, 4]], [0]).satisfies(0.3)

    def test_just_beyond_a_limit_is_refused_though_floats_cannot_tell(self):
        third = 10**15
        found = largest_share([[third + 1, 2 * third - 1]], [0])
        assert found.value == pytest.approx(1 / 3)
        assert not found.satisfies(Fraction(1, 3))
        assert largest_share([[third, 2 * third]], [0]).satisfies(Fraction(1, 3))

    def test_measures_with_a_logarithm_decide_only_beyond_their_error(self):
        found = delta_disclosure([[3, 1], [1, 3]])
        assert found.value == pytest.approx(math.log(2))
        assert found.exact is None
        assert not found.satisfies(math.log(2))
        assert found.satisfies(math.log(2) + 1e-12)
        entropy = entropy_l_diversity([[2, 1, 1]])
        assert entropy.value == pytest.approx(2**1.5)
        assert entropy.satisfies(2**1.5 - 1e-12)
        assert not entropy.satisfies(2**1.5 + 1e-12)

    @pytest.mark.parametrize("limit", [math.nan, math.inf, "0.2", None, True])
    def test_limits_refused(self, limit):
        with pytest.raises(ParameterError):
            t_closeness([[1, 1]]).satisfies(limit)


class TestShapes:
    @pytest.mark.parametrize("measure", EVERY_MEASURE)
    def test_arrays_per_group_agree_with_the_group_alone(self, measure):
        table = np.random.default_rng(3).integers(0, 9, (25, 4))
        table[:, 0] += 1
        table[4] = 0
        totals = table.sum(axis=0).tolist()
        compares = measure in EVERY_MEASURE[6:]
        found = measure(table, per_group=True)
        assert measure(table).by_group is None
        assert np.isnan(found.by_group[4])
        for row, value in zip(table, found.by_group, strict=True):
            if row.any():
                alone = measure([row], reference=totals) if compares else measure([row])
                assert value == pytest.approx(alone.value, rel=1e-12, abs=1e-15)
        extreme = np.nanmin if found.rule == "at least" else np.nanmax
        assert found.value == pytest.approx(extreme(found.by_group))
        assert found.value == pytest.approx(found.by_group[found.group])

    @pytest.mark.parametrize("measure", EVERY_MEASURE)
    def test_many_blocks_give_the_same_answer(self, measure, monkeypatch):
        table = np.random.default_rng(4).integers(1, 30, (200, 4))
        whole = measure(table)
        monkeypatch.setattr(_groups, "_BLOCK_CELLS", 16)
        assert measure(table) == whole

    def test_counts_whose_products_exceed_64_bits(self):
        huge = [[2**50, 2**51], [2**51 + 1, 2**50]]
        total = [2**50 + 2**51 + 1, 2**51 + 2**50]
        first = Fraction(1, 3) - Fraction(total[0], sum(total))
        second = Fraction(2**51 + 1, 2**51 + 2**50 + 1) - Fraction(total[0], sum(total))
        assert t_closeness(huge).exact == t_closeness(huge, "ordered").exact == max(-first, second)

    def test_the_worst_of_two_groups_that_floats_cannot_tell_apart(self):
        near = [[2 * 10**14 + 1, 10**14], [2 * 10**14, 10**14]]
        for table in (near, near[::-1]):
            assert table[largest_share(table).group] == near[0]

    @pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint64])
    def test_narrow_integers_do_not_overflow(self, dtype):
        table = np.full((4, 100), 100, dtype=dtype)
        assert k_anonymity(table).value == 10_000
        assert entropy_l_diversity(table).exact == 100
        assert t_closeness(table, "ordered").exact == 0
        assert recursive_l_diversity(table, 2).exact == Fraction(1, 99)

    @pytest.mark.parametrize("l", [0, 1, 2.5])
    def test_l_refused(self, l):  # noqa: E741
        with pytest.raises(ParameterError):
            recursive_l_diversity([[1, 2]], l)

    @pytest.mark.parametrize("reference", [[1], [0, 0], [-1, 2], [0.5, 0.5]])
    def test_reference_refused(self, reference):
        with pytest.raises(ParameterError):
            t_closeness([[1, 2]], reference=reference)

    @pytest.mark.parametrize("columns", [[], [2], [-1]])
    def test_columns_refused(self, columns):
        with pytest.raises(ParameterError):
            largest_share([[1, 2]], columns)

    def test_distance_refused(self):
        with pytest.raises(ParameterError):
            t_closeness([[1, 2]], "euclidean")


class TestTrees:
    def test_levels_of_a_nested_list(self):
        levels = tree_levels([[0, 2], [1, 3]])
        assert len(levels) == 2
        assert levels[0][0] == levels[0][2] != levels[0][1] == levels[0][3]
        assert len(set(levels[1])) == 1

    @pytest.mark.parametrize(
        "levels",
        [
            [],
            [[0, 0]],
            [[0, 0, 1]],
            [[0, 0, 1], [0, 1, 1], [0, 0, 0]],
            [[0, 0, 1], [0, 1, 2]],
            [[0, 0, 1], [5, 5, 6]],
        ],
    )
    def test_levels_refused(self, levels):
        with pytest.raises(HierarchyError) as error:
            t_closeness([[1, 2, 3]], levels)
        assert error.value.code == "tree-invalid"

    def test_a_flat_tree_is_the_equal_distance(self):
        table = np.random.default_rng(6).integers(0, 9, (10, 5)) + 1
        assert t_closeness(table, [[7, 7, 7, 7, 7]]).exact == t_closeness(table).exact

    def test_codes_may_be_any_numbers_and_levels_an_array(self):
        table = [[4, 1, 0, 2], [1, 1, 3, 3]]
        levels = np.array([[9, 9, -4, -4], [1, 1, 1, 1]])
        assert t_closeness(table, levels).exact == t_closeness(table, tree_levels([[0, 1], [2, 3]])).exact
