import math
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest

from incrowd.core.errors import DataError, GuaranteeError, ParameterError, UnreachableError
from incrowd.theory import _groups
from incrowd.theory.beliefs import (
    Adversary,
    AdversaryClass,
    DirichletPrior,
    Outlook,
    Predicate,
    Statements,
    belief_ratio,
    exact_ratio,
    outlooks_of,
)
from incrowd.theory.embeddings import recursive_diversity_as_beliefs, t_closeness_as_beliefs
from older_notions import (
    bounded_change_as_beliefs,
    breaches_as_beliefs,
    differential_privacy_as_beliefs,
    perfect_privacy_as_beliefs,
)
from sufficient_conditions import theorem_check

UNIFORM = Adversary.with_shape((1, 1))


def sequence_probability(sequence, sigma):
    """The probability of a sequence of values under a Dirichlet prior: draws from an urn that adds what it shows."""
    seen, probability = list(sigma), Fraction(1)
    for value in sequence:
        probability *= Fraction(seen[value]) / sum(seen)
        seen[value] += 1
    return probability


class TestAgainstTheBayesianModel:
    """Beliefs from the model itself: every world that fits what she sees, weighted by her prior."""

    GROUP = (2, 3, 1)
    SIGMA = (Fraction(5, 2), Fraction(1), Fraction(4))

    @pytest.mark.parametrize("predicate", [(0,), (1,), (0, 2), (1, 2)])
    @pytest.mark.parametrize("b", [0, 1, 2])
    def test_p_in_and_p_out(self, predicate, b):
        records = [value for value, count in enumerate(self.GROUP) for _ in range(count)]
        # She knows b others who do not satisfy the predicate; the person comes last and does satisfy it.
        known = [value for value in records if value not in predicate][:b]
        worlds = {world for world in permutations(records) if list(world[:b]) == known}
        weight = {world: sequence_probability(world, self.SIGMA) for world in worlds}
        p_in = sum(w for world, w in weight.items() if world[-1] in predicate) / sum(weight.values())

        person = next(value for value in records if value in predicate)
        without = list(records)
        without.remove(person)
        worlds = {(*others, u) for others in permutations(without) for u in range(3) if list(others[:b]) == known}
        weight = {world: sequence_probability(world, self.SIGMA) for world in worlds}
        p_out = sum(w for world, w in weight.items() if world[-1] in predicate) / sum(weight.values())

        prior = DirichletPrior(tuple(float(parameter) for parameter in self.SIGMA))
        audit = belief_ratio([self.GROUP], Adversary.with_prior(prior, known_records=b), [Predicate(predicate)])
        assert audit.p_in == float(p_in)
        assert audit.p_out == float(p_out)
        expected = None if p_in == 1 else max(1, p_in / p_out, (1 - p_out) / (1 - p_in))
        assert audit.exact == expected


class TestEdges:
    ADVERSARIES = (
        Adversary.with_prior(DirichletPrior((3, 4, 5))),
        Adversary.with_stubbornness(12),
        Adversary.with_shape((3, 4, 5)),
    )

    @pytest.mark.parametrize("adversary", ADVERSARIES)
    def test_a_group_of_one_mind_gives_everything_away(self, adversary):
        audit = belief_ratio([[9, 9, 9], [0, 5, 0]], adversary)
        assert audit.ratio == math.inf
        assert audit.exact is None
        assert (audit.group, audit.predicate, audit.p_in) == (1, Predicate((1,)), 1.0)
        assert not audit.satisfies(1e308)

    @pytest.mark.parametrize("adversary", ADVERSARIES)
    def test_a_value_that_does_not_occur_is_not_disclosed_but_its_absence_is(self, adversary):
        assert math.isfinite(belief_ratio([[5, 5, 0]], adversary, "values").ratio)
        assert belief_ratio([[5, 5, 0]], adversary, [Predicate((2,))]).exact == 1
        absent = belief_ratio([[5, 5, 0]], adversary, "negations")
        assert absent.ratio == math.inf
        assert absent.predicate == Predicate((0, 1))

    @pytest.mark.parametrize("kind", ["prior", "stubbornness", "shape"])
    @pytest.mark.parametrize(("b", "finite"), [(2, True), (3, False), (4, False), (99, False), (10**30, False)])
    def test_infinite_as_soon_as_she_may_know_all_the_others(self, kind, b, finite):
        adversary = {
            "prior": Adversary.with_prior(DirichletPrior((3, 4)), known_records=b),
            "stubbornness": Adversary.with_stubbornness(7, known_records=b),
            "shape": Adversary.with_shape((3, 4), known_records=b),
        }[kind]
        assert math.isfinite(belief_ratio([[4, 3]], adversary).ratio) == finite
        assert theorem_check([[4, 3]], adversary, 1e6).holds == finite

    def test_certain_beforehand_learns_nothing_from_agreement(self):
        convinced = Adversary.with_shape((1, 0))
        assert belief_ratio([[5, 0]], convinced).exact == 1
        assert theorem_check([[5, 0]], convinced, 1).holds
        assert belief_ratio([[5, 1]], convinced).ratio == math.inf
        assert not theorem_check([[5, 1]], convinced, 1000).holds

    def test_a_belief_of_zero_cannot_be_kept(self):
        audit = belief_ratio([[5, 5, 1]], Adversary.with_shape((1, 1, 0)))
        assert audit.ratio == math.inf
        assert (audit.predicate, audit.p_out) == (Predicate((2,)), 0.0)

    def test_never_below_one(self):
        assert belief_ratio([[1, 9]], Adversary.with_shape((1, 1)), [Predicate((0,))]).exact == 1

    def test_a_single_record_group(self):
        assert belief_ratio([[1, 0]], Adversary.with_prior(DirichletPrior((1, 1)))).ratio == math.inf

    def test_prior_parameters_far_below_one(self):
        # The belief without the person is (0 + 1e-12)/(1 + 1 + 1e-12): nothing may cancel.
        audit = belief_ratio([[1, 1]], Adversary.with_prior(DirichletPrior((1e-12, 1.0))), [Predicate((0,))])
        tiny = Fraction(1, 10**12)
        assert audit.exact == Fraction(1, 2) * (2 + tiny) / tiny


class TestWorstGroup:
    def test_the_first_of_equally_bad_groups_is_named_with_its_row_as_given(self):
        table = [[0, 0], [5, 5], [8, 2], [80, 20], [8, 2]]
        audit = belief_ratio(table, UNIFORM, per_group=True)
        assert (audit.group, audit.exact) == (2, Fraction(5, 2))
        assert audit.by_group == pytest.approx([np.nan, 1, 2.5, 2.5, 2.5], nan_ok=True)

    def test_arrays_per_group_only_on_request(self):
        assert belief_ratio([[5, 5]], UNIFORM).by_group is None

    def test_exact_at_the_boundary_and_rounded_up(self):
        audit = belief_ratio([[23, 7]], Adversary.with_shape((1, 2)))  # (23/30)/(1/3) = 2.3, and (2/3)/(7/30) = 20/7
        assert audit.exact == Fraction(20, 7)
        assert Fraction(audit.ratio) >= audit.exact
        assert math.nextafter(audit.ratio, 0) < audit.exact
        only_gain = belief_ratio([[23, 77]], Adversary.with_shape((1, 9)), [Predicate((0,))])
        assert only_gain.exact == Fraction(23, 10)
        assert only_gain.satisfies(2.3)
        assert not only_gain.satisfies(2.2999999999999)
        assert only_gain.ratio > 2.3  # the float 2.3 is below 23/10, so a promise of it would be too small

    def test_rounding_cannot_hide_the_worst_group(self):
        # The second group is worse by 2e-16 of its ratio; in floating point the first one looks worse.
        near = [
            [2670812549794426, 3589680375433306 - 2670812549794426],
            [2670812549794422, 3589680375433300 - 2670812549794422],
        ]
        adversary = Adversary.with_shape((1, 6))
        (outlook,) = outlooks_of(adversary, Statements.of([Predicate((0,))], 2))
        cells = np.array(near)
        looks = outlook.ratios(cells[:, :1], cells.sum(axis=1, keepdims=True), 0)[:, 0]
        assert looks[0] > looks[1]
        for table in (near, near[::-1]):
            audit = belief_ratio(table, adversary)
            assert table[audit.group] == near[1]
            assert audit.exact == max(belief_ratio([row], adversary).exact for row in near)
            assert audit.exact > belief_ratio([near[0]], adversary).exact

    def test_many_blocks_give_the_same_answer(self, monkeypatch):
        table = np.random.default_rng(5).integers(0, 40, (300, 4))
        adversary = Adversary.with_prior(DirichletPrior((1, 2, 3, 4)), known_records=1)
        whole = belief_ratio(table, adversary, "subsets", per_group=True)
        checked = theorem_check(table, adversary, 8)
        monkeypatch.setattr(_groups, "_BLOCK_CELLS", 40)
        pieces = belief_ratio(table, adversary, "subsets", per_group=True)
        assert pieces == whole
        assert np.array_equal(pieces.by_group, whole.by_group)
        again = theorem_check(table, adversary, 8)
        assert again == checked
        assert np.array_equal(again.doubt_remains, checked.doubt_remains)

    @pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64])
    def test_any_integer_type(self, dtype):
        table = np.array([[100, 27], [90, 37]], dtype=dtype)
        assert belief_ratio(table, UNIFORM).exact == belief_ratio(table.astype(np.int64), UNIFORM).exact

    def test_many_groups_in_the_same_proportions(self):
        table = np.tile([3, 5, 2], (2_000, 1)) * np.arange(1, 2_001)[:, None]
        audit = belief_ratio(table, Adversary.with_shape((0.3, 0.5, 0.2)), "subsets")
        assert audit.exact == 1


class TestPredicates:
    TABLE = ((4, 3, 2, 1), (1, 2, 3, 4))

    def test_groups_of_values(self):
        stomach = Predicate((3, 2, 3), name="stomach disease")
        assert stomach.values == (2, 3)
        audit = belief_ratio(self.TABLE, Adversary.with_shape((1, 1, 1, 1)), [stomach])
        assert (audit.group, audit.predicate.name) == (1, "stomach disease")
        assert audit.p_in == 0.7
        assert audit.exact == Fraction(1, 2) / Fraction(3, 10)

    def test_negation(self):
        assert Predicate((1,), "flu").negation(4) == Predicate((0, 2, 3))
        assert Predicate((1,), "flu").negation(4).name == "not flu"
        adversary = Adversary.with_stubbornness(9, known_records=0)
        listed = belief_ratio(self.TABLE, adversary, [Predicate((v,)).negation(4) for v in range(4)])
        assert listed.exact == belief_ratio(self.TABLE, adversary, "negations").exact

    def test_mixed_lists_count_the_same_records(self):
        mixed = Statements.of([Predicate((0,)), Predicate((0, 1, 3)), Predicate((1, 2))], 4)
        cells = np.array(self.TABLE)
        assert mixed.hits(cells, cells.sum(axis=1, keepdims=True)).tolist() == [[4, 8, 5], [1, 7, 5]]

    @pytest.mark.parametrize("bad", [[], [Predicate(())], [Predicate((0, 1, 2, 3))], [Predicate((4,))], "all"])
    def test_refused(self, bad):
        with pytest.raises(ParameterError) as error:
            belief_ratio(self.TABLE, Adversary.with_stubbornness(9), bad)
        assert error.value.code == "predicate-invalid"

    def test_a_domain_of_one_value_has_nothing_to_protect(self):
        with pytest.raises(ParameterError, match="two values"):
            belief_ratio([[3]], Adversary.with_stubbornness(9))

    def test_large_domains_need_no_enumeration(self):
        table = np.random.default_rng(1).integers(1, 9, (10, 64))
        audit = belief_ratio(table, Adversary.with_stubbornness(100), "subsets")
        assert math.isfinite(audit.ratio)
        assert len(audit.predicate.values) in (1, 63)


class TestPriors:
    def test_ways_to_form_one(self):
        assert DirichletPrior.from_counts((0, 7)).parameters == (1, 8)
        assert DirichletPrior.from_shape((1, 1, 2), 40).parameters == (10, 10, 20)
        assert DirichletPrior.from_shape((0.1, 0.2, 0.7), 10).parameters == (1, 2, 7)

    @pytest.mark.parametrize("bad", [(1,), (), (0, 1), (-1, 3), (math.nan, 1), (math.inf, 1), (0.4, 0.5), (1e31, 1)])
    def test_refused(self, bad):
        with pytest.raises(ParameterError):
            DirichletPrior(bad)

    def test_text_is_refused(self):
        with pytest.raises(ParameterError):
            DirichletPrior(("1", "2"))

    def test_below_one_in_total_merging_can_raise_the_ratio_which_is_why_it_is_refused(self):
        weak = Outlook(1, (Fraction(1, 6),) * 3, Fraction(1, 2))

        def ratio(*group):
            return max(exact_ratio(weak, value, count, sum(group), 0) for value, count in enumerate(group))

        assert max(ratio(1, 1, 1), ratio(0, 1, 1)) == 5
        assert ratio(1, 2, 2) == Fraction(27, 5)
        with pytest.raises(ParameterError, match="at least 1"):
            DirichletPrior((1 / 6, 1 / 6, 1 / 6))


class TestAdversaries:
    def test_weaker_is_not_always_safer(self):
        pair = [[1, 1]]
        assert belief_ratio(pair, UNIFORM).exact == 1
        assert belief_ratio(pair, Adversary.with_prior(DirichletPrior((1.0, 1.0)))).exact == Fraction(3, 2)
        stubborn = DirichletPrior.from_shape((1, 1), 1000)
        assert belief_ratio(pair, Adversary.with_prior(stubborn)).exact < Fraction(3, 2)
        assert belief_ratio(pair, Adversary.with_prior(stubborn, or_less_stubborn=True)).exact == Fraction(3, 2)
        assert belief_ratio(pair, Adversary.with_shape((1, 1), or_less_stubborn=True)).exact == Fraction(3, 2)

    @pytest.mark.parametrize("group", [(1, 1), (3, 1), (1, 5), (40, 2)])
    @pytest.mark.parametrize("stubbornness", [2, 20, 1000])
    def test_the_beliefs_reported_are_those_of_the_worst_of_the_weaker_ones(self, group, stubbornness):
        prior = DirichletPrior.from_shape((0.5, 0.5), stubbornness)
        audit = belief_ratio([group], Adversary.with_prior(prior, or_less_stubborn=True))
        ratio = max(audit.p_in / audit.p_out, (1 - audit.p_out) / (1 - audit.p_in))
        assert ratio == pytest.approx(audit.ratio, rel=1e-12)

    def test_class_two_needs_one_per_value(self):
        with pytest.raises(ParameterError, match="each of the 3 values"):
            belief_ratio([[1, 2, 3]], Adversary.with_stubbornness(2.5))
        assert belief_ratio([[1, 2, 3]], Adversary.with_stubbornness(3)).exact == Fraction(8, 6)

    def test_class_two_takes_one_per_value_of_a_set_for_both_inequalities(self):
        (outlook,) = outlooks_of(
            Adversary.with_stubbornness(30), Statements.of([Predicate((0, 1)), Predicate((2,))], 4)
        )
        assert outlook.inside == (2, 1)
        assert outlook.total == 30

    def test_domains_must_match(self):
        for adversary in (Adversary.with_prior(DirichletPrior((1, 2))), UNIFORM):
            with pytest.raises(ParameterError, match="same order") as error:
                belief_ratio([[1, 2, 3]], adversary)
            assert error.value.details == {"prior": 2, "table": 3}

    @pytest.mark.parametrize("shape", [(), (1,), (0, 0), (-0.1, 1.1), (math.inf, 1)])
    def test_shapes_refused(self, shape):
        with pytest.raises(ParameterError):
            Adversary.with_shape(shape)

    @pytest.mark.parametrize("strength", [0, 0.5, -3, math.inf, math.nan, "9"])
    def test_stubbornness_refused(self, strength):
        with pytest.raises(ParameterError):
            Adversary.with_stubbornness(strength)

    @pytest.mark.parametrize("known", [-1, 1.5])
    def test_known_records_refused(self, known):
        with pytest.raises(ParameterError):
            Adversary.with_shape((1, 1), known_records=known)

    def test_weaker_adversaries_need_a_prior_of_at_least_one_per_value(self):
        with pytest.raises(ParameterError, match="at least 1 per value"):
            Adversary.with_prior(DirichletPrior((0.5, 2)), or_less_stubborn=True)

    def test_class_four_is_refused_everywhere(self):
        anyone = Adversary.anyone()
        assert anyone.kind is AdversaryClass.ANYONE
        with pytest.raises(UnreachableError, match="Theorem 4"):
            belief_ratio([[5, 5]], anyone)
        with pytest.raises(UnreachableError, match="Theorem 4"):
            theorem_check([[5, 5]], anyone, 10)

    def test_theorem_four_itself(self):
        # For any ratio there is a shape that breaks it, even for a large balanced group.
        for ratio in (10, 1e6, 1e15):
            assert not belief_ratio([[10**6, 10**6]], Adversary.with_shape((0.01 / ratio, 1))).satisfies(ratio)


class TestCounts:
    @pytest.mark.parametrize(
        "bad", [[1, 2], [[1.0, 2.0]], [[1, -1]], [[True, False]], np.zeros((2, 0), int), [["1", "2"]]]
    )
    def test_refused(self, bad):
        with pytest.raises(DataError) as error:
            belief_ratio(bad, UNIFORM)
        assert error.value.code == "counts-invalid"

    @pytest.mark.parametrize("empty", [[[0, 0], [0, 0]], np.zeros((0, 2), int)])
    def test_a_table_without_records_is_an_error_not_a_perfect_table(self, empty):
        with pytest.raises(DataError, match="no records"):
            belief_ratio(empty, UNIFORM)

    def test_too_many_records_for_exact_arithmetic(self):
        with pytest.raises(DataError):
            belief_ratio([[2**53, 1]], UNIFORM)


class TestPublishedChecks:
    def test_theorem_one_needs_parameters_of_at_least_one(self):
        with pytest.raises(ParameterError, match="Theorem 1"):
            theorem_check([[5, 5]], Adversary.with_prior(DirichletPrior((0.5, 2))), 3)

    def test_without_that_condition_it_would_promise_too_much(self):
        epsilon, prior = 3, DirichletPrior((0.01, 1))
        sigma, group = prior.stubbornness, (1, 1)
        delta, prime = (epsilon - 1) * 2 / sigma, epsilon * (1 - 1 / sigma)
        r1a = sum(group) >= sigma / (epsilon - 1)
        r2 = [
            count / 2 <= 1 - 1 / (prime + delta) + (parameter - 1) / sigma / (prime + delta)
            for count, parameter in zip(group, prior.parameters, strict=True)
        ]
        assert r1a
        assert all(r2)
        assert belief_ratio([group], Adversary.with_prior(prior)).exact > 100

    @pytest.mark.parametrize("ratio", [0.9, -1, math.inf, math.nan, "3", True])
    def test_ratio_refused(self, ratio):
        with pytest.raises(ParameterError):
            theorem_check([[5, 5]], UNIFORM, ratio)

    def test_every_condition_matters(self):
        prior = Adversary.with_prior(DirichletPrior((10, 30)))
        large_only = theorem_check([[300, 100]], prior, 1.2)
        close_only = theorem_check([[2, 5]], prior, 1.5)
        assert (large_only.large_enough[0], large_only.close_enough[0]) == (True, True)  # (b) says nothing beyond (a)
        assert (close_only.large_enough[0], close_only.close_enough[0]) == (False, True)
        assert not theorem_check([[5, 2]], prior, 1.5).close_enough[0]
        assert not theorem_check([[0, 5]], prior, 50).doubt_remains[0]

    def test_the_size_that_is_large_enough(self):
        adversary = Adversary.with_stubbornness(10, known_records=1)
        groups = [[n, n] for n in range(1, 12)]
        check = theorem_check(groups, adversary, 2)
        assert check.large_enough.tolist() == [2 * n - 1 >= 10 + 1 for n in range(1, 12)]
        assert check.close_enough.tolist() == check.large_enough.tolist()

    def test_a_boundary_that_floats_miss(self):
        assert 0.29 * 100 < 29  # in floating point; a group of 100 is exactly large enough for 29/(1.29 - 1)
        assert theorem_check([[50, 50]], Adversary.with_stubbornness(29), Fraction(129, 100)).large_enough[0]
        assert not theorem_check([[50, 49]], Adversary.with_stubbornness(29), Fraction(129, 100)).large_enough[0]

    def test_rows_without_records_pass(self):
        check = theorem_check([[0, 0], [9, 1]], UNIFORM, 1.5)
        assert check.doubt_remains.tolist() == [True, False]
        assert (check.holds, check.group) == (False, 1)


class TestEmbeddings:
    def test_c2_diversity_refuses_what_no_group_can_reach(self):
        with pytest.raises(ParameterError):
            recursive_diversity_as_beliefs(0.3, 3)
        assert recursive_diversity_as_beliefs(0.5, 3).exact == 1

    @pytest.mark.parametrize(("t", "distribution"), [(-0.1, (1, 1)), (0.1, (5, 0)), (0.1, (0, 0)), (math.nan, (1, 1))])
    def test_t_closeness_refuses(self, t, distribution):
        with pytest.raises(ParameterError):
            t_closeness_as_beliefs(t, distribution)

    def test_a_t_that_allows_a_homogeneous_group_keeps_no_ratio(self):
        with pytest.raises(GuaranteeError):
            t_closeness_as_beliefs(0.4, (6, 4))
        assert t_closeness_as_beliefs(0.39, (6, 4)).ratio > 30

    def test_beyond_the_paper_where_a_rare_value_makes_the_lemma_silent(self):
        embedding = t_closeness_as_beliefs(0.2, (1, 49, 50))
        assert embedding.paper_ratio is None
        assert embedding.exact == 21  # (0.01 + 0.2)/0.01

    def test_the_sharper_bound_is_attained(self):
        # Shares (4, 3, 3)/10; a group at distance exactly 1/5 that moves it all to the first value.
        embedding = t_closeness_as_beliefs(Fraction(1, 5), (4, 3, 3))
        audit = belief_ratio([[6, 2, 2]], embedding.adversary)
        assert embedding.exact == Fraction(5, 3)
        assert audit.exact == Fraction(3, 2)
        assert belief_ratio([[2, 5, 3]], embedding.adversary).exact == embedding.exact
        assert embedding.paper_ratio == 3

    def test_perfect_privacy_is_about_every_statement(self):
        assert perfect_privacy_as_beliefs((1, 2, 3)).holds_for([[2, 4, 6], [10, 20, 30]])

    def test_differential_privacy_states_its_adversary(self):
        embedding = differential_privacy_as_beliefs(1, 100)
        assert embedding.adversary == Adversary.anyone(known_records=99)
        assert math.e < embedding.ratio < math.e + 1e-12


def test_exhaustive_two_values():
    """All small groups against the formulas as written, in fractions, for the three classes."""
    for yes, no, b in product(range(1, 6), range(6), range(4)):
        n = yes + no
        beliefs = {
            Adversary.with_prior(DirichletPrior((2, 5)), known_records=b): Fraction(yes + 2 - 1, n + 7 - 1),
            Adversary.with_stubbornness(7, known_records=b): Fraction(yes, n + 7 - 1),
            Adversary.with_shape((2, 5), known_records=b): Fraction(2, 7),
        }
        for adversary, p_out in beliefs.items():
            audit = belief_ratio([[yes, no]], adversary, [Predicate((0,))])
            if b >= no:
                assert audit.ratio == math.inf
            else:
                p_in = Fraction(yes, n - b)
                assert audit.exact == max(1, p_in / p_out, (1 - p_out) / (1 - p_in))


class TestManyValues:
    def test_a_family_is_spelled_out_once(self):
        assert Statements.of("subsets", 7) is Statements.of("subsets", 7)
        adversary = Adversary.with_shape(range(1, 8))
        assert outlooks_of(adversary, Statements.of("subsets", 7)) is outlooks_of(
            adversary, Statements.of("subsets", 7)
        )

    def test_names_of_ones_own_are_not_mixed_up(self):
        """Statements that differ in their names only are equal, but each audit speaks of its own."""
        table, adversary = [[3, 1], [1, 3]], Adversary.with_shape((1, 1))
        for name in ("one", "other"):
            assert belief_ratio(table, adversary, (Predicate((0,), name),)).predicate.name == name

    def test_weights_of_negations_are_those_of_all_other_values(self):
        weights = [Fraction(n) for n in (1, 2, 3, 4)]
        assert Statements.of("negations", 4).weigh(weights) == (9, 8, 7, 6)
        assert Statements.of("subsets", 4).weigh(weights) == (1, 2, 3, 4, 9, 8, 7, 6)
        assert Statements.of([Predicate((0, 3))], 4).weigh(weights) == (5,)

    def test_a_thousand_negations_take_no_thousand_squared_sums(self):
        """Each predicate is kept by its shorter side."""
        assert all(len(side) == 1 for _, side in Statements.of("subsets", 1000).sides)


# --- (α,β)-breaches and (d,γ)-privacy -------------------------------------------------------------------------------


def all_groups(values: int, records: int) -> list[tuple[int, ...]]:
    return [g for g in product(range(records + 1), repeat=values) if sum(g) == records]


def all_statements(values: int) -> list[tuple[int, ...]]:
    return [s for size in range(1, values) for s in combinations(range(values), size)]


SHAPE = (1, 4, 5)


@pytest.mark.parametrize(("low", "high"), [("1/10", "3/10"), ("1/5", "1/2"), ("1/2", "4/5"), ("2/5", "9/10")])
class TestBreaches:
    def test_the_ratio_rules_out_every_breach(self, low: str, high: str) -> None:
        """Every group of 12 records, every statement, by counting."""
        alpha, beta = Fraction(low), Fraction(high)
        embedding = breaches_as_beliefs(alpha, beta, SHAPE)
        assert embedding.sufficient
        assert not embedding.equivalent
        held = 0
        for group in all_groups(3, 12):
            if embedding.holds_for([group]):
                held += 1
                for statement in all_statements(3):
                    prior = Fraction(sum(SHAPE[v] for v in statement), 10)
                    posterior = Fraction(sum(group[v] for v in statement), 12)
                    assert prior > alpha or posterior <= beta
        assert held

    def test_a_larger_ratio_does_not(self, low: str, high: str) -> None:
        """Two values of shares α and 1 − α, and a group with a share just above β of the first."""
        alpha, beta = Fraction(low), Fraction(high)
        shape = (float(alpha * 10), float(10 - alpha * 10))
        size = 10_000
        group = [[int(beta * size) + 1, size - int(beta * size) - 1]]
        assert not breaches_as_beliefs(alpha, beta, shape).holds_for(group)
        limit = breaches_as_beliefs(alpha, beta, shape).exact * Fraction(1002, 1000)
        first = Fraction(group[0][0], size)
        assert first <= limit * alpha
        assert 1 - alpha <= limit * (1 - first)

    def test_and_gives_bounded_changes(self, low: str, high: str) -> None:
        d, gamma = Fraction(low), Fraction(high)
        embedding = bounded_change_as_beliefs(d, gamma, SHAPE)
        assert embedding.exact == gamma / d
        held = 0
        for group in all_groups(3, 12):
            if embedding.holds_for([group]):
                held += 1
                for value in range(3):
                    prior, posterior = Fraction(SHAPE[value], 10), Fraction(group[value], 12)
                    if prior <= d:
                        assert posterior <= gamma
                        assert posterior >= d / gamma * prior
        assert held or d > Fraction(1, 3)


# --- who knows what a person does not have --------------------------------------------------------------------------


def believed(parameters: list[Fraction], seen: list[int], wanted: set[int], excluded: set[int]) -> Fraction:
    """P[value in wanted | it is none excluded] after some records: from the Dirichlet's predictive probabilities."""
    total = sum(parameters) + sum(seen)
    chance = [(p + n) / total for p, n in zip(parameters, seen, strict=True)]
    return sum(c for v, c in enumerate(chance) if v in wanted - excluded) / sum(
        c for v, c in enumerate(chance) if v not in excluded
    )


@pytest.mark.parametrize("group", [(5, 3, 2, 7), (1, 0, 9, 2), (4, 4, 0, 1)])
@pytest.mark.parametrize("excluded", [{2}, {0, 3}])
def test_who_knows_a_negation_believes_what_the_rest_says(group: tuple[int, ...], excluded: set[int]) -> None:
    parameters = [Fraction(2), Fraction(5), Fraction(3), Fraction(4)]
    possible = [v for v in range(4) if v not in excluded]
    whole = Adversary.with_prior(DirichletPrior(tuple(map(float, parameters))))
    told = whole.excluding(possible, 4)
    worst = Fraction(1)
    left = sum(group[v] for v in possible)
    for value in possible:
        if group[value]:
            without = [n - (v == value) for v, n in enumerate(group)]
            out = believed(parameters, without, {value}, excluded)
            inside = Fraction(group[value], left)
            if inside == 1:
                worst = None
                break
            worst = max(worst, inside / out, (1 - out) / (1 - inside))
    found = belief_ratio([[group[v] for v in possible]], told)
    assert found.exact == worst


def test_of_class_two_the_most_stubborn_is_left() -> None:
    """No prior of stubbornness 9 with 1 for each of four values is worse, given that it is not the last value."""
    told = Adversary.with_stubbornness(9).excluding([0, 1, 2], 4)
    assert told.stubbornness == 8
    limit = belief_ratio([[3, 4, 2]], told).exact
    for prior in product(range(1, 7), repeat=4):
        if sum(prior) <= 9:
            one = Adversary.with_prior(DirichletPrior(tuple(map(float, prior)))).excluding([0, 1, 2], 4)
            assert belief_ratio([[3, 4, 2]], one).exact <= limit
