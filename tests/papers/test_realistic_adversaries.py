"""Values printed in Machanavajjhala, Gehrke, Götz, "Data Publishing against Realistic Adversaries" (VLDB 2009)."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from incrowd.core.errors import GuaranteeError
from incrowd.theory.beliefs import Adversary, DirichletPrior, Predicate, belief_ratio
from incrowd.theory.embeddings import recursive_diversity_as_beliefs, t_closeness_as_beliefs
from incrowd.theory.syntactic import recursive_l_diversity, t_closeness
from older_notions import differential_privacy_as_beliefs, perfect_privacy_as_beliefs
from sufficient_conditions import theorem_check

# Table 3: (<40, M), (>=40, M), (>=40, F) by flu and cancer.
TABLE_3 = np.array([[200, 300], [1800, 2700], [18000, 2000]])
WOMEN = TABLE_3[2:]
YOUNG_MEN = TABLE_3[:1]
METROPOLIS = DirichletPrior.from_counts([11_999, 17_999])


class TestExample3:
    def test_the_prior_formed_from_the_earlier_table(self):
        assert DirichletPrior((12_000, 18_000)) == METROPOLIS
        assert METROPOLIS.stubbornness == 30_000
        assert DirichletPrior.from_shape((0.4, 0.6), 30_000) == METROPOLIS

    def test_class_one_believes_in_flu_with_probability_point_six_and_gets_ratio_four(self):
        audit = belief_ratio(WOMEN, Adversary.with_prior(METROPOLIS))
        assert audit.p_in == 0.9
        assert audit.p_out == pytest.approx(0.6, abs=1e-4)
        assert audit.exact == Fraction(200_000, 49_999)
        assert audit.ratio == pytest.approx(4.00008, abs=5e-6)

    def test_class_two_gets_6_point_4(self):
        audit = belief_ratio(WOMEN, Adversary.with_stubbornness(30_000))
        assert audit.p_out == pytest.approx(0.36002, abs=3e-5)
        assert audit.ratio == pytest.approx(6.4, abs=1e-4)

    def test_class_three_gets_six(self):
        audit = belief_ratio(WOMEN, Adversary.with_shape((0.4, 0.6)))
        assert audit.p_out == 0.4
        assert audit.exact == 6

    def test_class_four_is_refused(self):
        with pytest.raises(GuaranteeError, match="Theorem 4") as refusal:
            belief_ratio(WOMEN, Adversary.anyone())
        assert refusal.value.code == "any-adversary"
        assert refusal.value.exit_code == 3


class TestSectionThree:
    def test_class_two_with_stubbornness_1000_is_three_private(self):
        adversary = Adversary.with_stubbornness(1_000)
        assert theorem_check(TABLE_3, adversary, 3).holds
        assert belief_ratio(TABLE_3, adversary).satisfies(3)
        assert not belief_ratio(TABLE_3, adversary).satisfies(2.9)

    @pytest.mark.parametrize(("group", "most"), [(0, Fraction(3, 4)), (1, Fraction(11, 12)), (2, Fraction(42, 43))])
    def test_how_frequent_a_value_may_be(self, group, most):
        # The paper's thresholds drop 1/(sigma+b) as well; a group of the same size on either side of them shows it.
        size = int(TABLE_3[group].sum())
        adversary = Adversary.with_stubbornness(1_000)
        allowed = int(size * (most - Fraction(1, 1000)))
        refused = int(size * (most + Fraction(1, 1000)))
        assert theorem_check([[allowed, size - allowed]], adversary, 3).doubt_remains.all()
        assert not theorem_check([[refused, size - refused]], adversary, 3).doubt_remains.any()

    def test_class_two_with_stubbornness_30000_needs_61_for_the_young_men(self):
        adversary = Adversary.with_stubbornness(30_000)
        audit = belief_ratio(TABLE_3, adversary)
        assert audit.group == 0
        assert audit.exact == Fraction(500 + 30_000 - 1, 500)
        assert theorem_check(YOUNG_MEN, adversary, 61).holds
        assert not theorem_check(YOUNG_MEN, adversary, 60.99).holds


def believed(group, known, phi):
    """The most that knowing `known` records of a group can make of φ about somebody in it whose record is not known.

    All of the group's records look alike, so among those that she does not know every one may be that person's.
    """
    members = [value for value, count in enumerate(group) for _ in range(count)]
    beliefs = []
    for seen in combinations(range(len(members)), known):
        rest = [members[i] for i in range(len(members)) if i not in seen]
        beliefs.append(Fraction(sum(value == phi for value in rest), len(rest)))
    return max(beliefs)


class TestKnownRecords:
    """The b records that an adversary knows: p_in = n(q,φ)/(n(q) − b), the belief of one who knows b that are not φ."""

    @pytest.mark.parametrize("known", [0, 1, 2])
    @pytest.mark.parametrize("group", [(5, 4), (3, 6), (4, 4, 3)])
    def test_her_belief_is_that_of_the_definition(self, group, known):
        shape = (1,) * len(group)
        audit = belief_ratio([group], Adversary.with_shape(shape, known_records=known))
        prior = Fraction(1, len(group))
        worst = Fraction(1)
        for phi in range(len(group)):
            inside = believed(group, known, phi)
            worst = max(worst, inside / prior, (1 - prior) / (1 - inside))
        assert audit.exact == worst

    def test_all_three_classes_count_them(self):
        group, known = (6, 4), 2  # of the 8 whom she does not know 6 may have the first value
        inside = Fraction(6, 8)
        for adversary, outside in (
            (Adversary.with_prior(DirichletPrior((4, 6)), known_records=known), Fraction(6 - 1 + 4, 10 - 1 + 10)),
            (Adversary.with_stubbornness(10, known_records=known), Fraction(6, 10 - 1 + 10)),
            (Adversary.with_shape((0.4, 0.6), known_records=known), Fraction(4, 10)),
        ):
            audit = belief_ratio([group], adversary, [Predicate((0,))])
            assert audit.exact == max(inside / outside, (1 - outside) / (1 - inside))
            assert audit.p_in == inside

    def test_table_3_needs_more_against_those_who_know_some_of_it(self):
        prior = DirichletPrior((12_000, 18_000))
        audit = belief_ratio(WOMEN, Adversary.with_prior(prior, known_records=1_000))
        inside, outside = Fraction(18_000, 19_000), Fraction(17_999 + 12_000, 19_999 + 30_000)
        assert audit.exact == (1 - outside) / (1 - inside)
        assert theorem_check(WOMEN, Adversary.with_prior(prior, known_records=1_000), 8).holds
        assert not theorem_check(WOMEN, Adversary.with_prior(prior, known_records=1_000), 4.01).holds


class TestErrata:
    def test_table_3_is_not_2_point_5_private_against_metropolis(self):
        """Section 3 says it is; its own condition R2 fails for the women, who need 4.00008."""
        adversary = Adversary.with_prior(METROPOLIS)
        check = theorem_check(TABLE_3, adversary, 2.5)
        assert check.large_enough.tolist() == [False, False, True]  # 20,000 >= 30,000/1.5, just so
        assert check.doubt_remains.tolist() == [True, True, False]
        assert not check.holds
        assert check.group == 2
        audit = belief_ratio(TABLE_3, adversary, per_group=True)
        assert not audit.satisfies(2.5)
        assert not audit.satisfies(4)
        assert audit.satisfies(4.0001)
        assert audit.group == 2
        assert audit.by_group is not None
        assert (audit.by_group[:2] < 1.01).all()

    def test_a_prior_with_more_flu_would_have_made_it_true(self):
        # The condition can hold, so the test above is not vacuous.
        assert theorem_check(TABLE_3[2:], Adversary.with_prior(DirichletPrior((27_000, 3_000))), 2.5).holds

    @pytest.mark.parametrize("values", [2, 3, 4])
    @pytest.mark.parametrize("c", [Fraction(1), Fraction(3, 2), Fraction(4)])
    def test_c2_diversity_is_the_maximum_of_the_two_terms(self, values, c):
        """Equation (6) has the minimum, which is not equivalent once there are more than two values."""
        embedding = recursive_diversity_as_beliefs(c, values)
        terms = values * c / (c + 1), (c + 1) * Fraction(values - 1, values)
        assert embedding.exact == max(terms)
        disagreements = 0
        for group in product(range({2: 12, 3: 7, 4: 5}[values]), repeat=values):
            if list(group) != sorted(group) or sum(group) == 0:
                continue
            diverse = max(group) <= c * (sum(group) - max(group))
            ratio = belief_ratio([group], embedding.adversary)
            assert ratio.satisfies(embedding.exact) == diverse
            disagreements += ratio.satisfies(min(terms)) != diverse
        assert (disagreements > 0) == (min(terms) != max(terms))

    def test_with_two_values_the_ratio_is_half_of_c_plus_one(self):
        assert recursive_diversity_as_beliefs(4, 2).ratio == 2.5

    def test_c2_diversity_agrees_with_recursive_diversity_off_the_boundary(self):
        table = [[8, 2], [5, 4], [1, 3]]
        assert recursive_l_diversity(table, 2).exact == 4
        assert recursive_diversity_as_beliefs(4, 2).holds_for(table)
        assert not recursive_l_diversity(table, 2).satisfies(4)  # strict there, "at most" in this paper
        assert not recursive_diversity_as_beliefs(3.99, 2).holds_for(table)

    def test_t_closeness_implies_the_ratio_and_not_the_other_way_round(self):
        """Section 4.2 states Lemma 1 backwards."""
        embedding = t_closeness_as_beliefs(0.2, (334, 666))
        assert embedding.paper_ratio == pytest.approx(0.334 / 0.134)
        assert round(embedding.ratio, 1) == 2.5
        backwards = 0
        for first in product(range(1, 6), repeat=2):
            for second in product(range(1, 6), repeat=2):
                table = [first, second]
                shares = t_closeness(table).exact
                totals = np.sum(table, axis=0).tolist()
                if Fraction(1, 5) >= Fraction(min(totals), sum(totals)):
                    continue
                private = t_closeness_as_beliefs(0.2, totals).holds_for(table)
                assert private or shares > Fraction(1, 5)
                backwards += private and shares > Fraction(1, 5)
        assert backwards > 0


class TestEmbeddings:
    def test_no_generalization_is_differentially_private(self):
        with pytest.raises(GuaranteeError, match="Theorem 4"):
            differential_privacy_as_beliefs(1.0, records=25_000).holds_for(TABLE_3)

    @pytest.mark.parametrize(
        "adversary",
        [
            Adversary.with_prior(METROPOLIS, known_records=24_999),
            Adversary.with_stubbornness(2, known_records=24_999),
            Adversary.with_shape((0.4, 0.6), known_records=24_999),
        ],
    )
    def test_knowing_all_but_one_record_is_fatal_for_any_prior(self, adversary):
        audit = belief_ratio(TABLE_3, adversary)
        assert audit.ratio == np.inf
        assert audit.p_in == 1
        assert not audit.satisfies(1e300)

    def test_perfect_privacy_means_the_same_proportions_everywhere(self):
        perfect = perfect_privacy_as_beliefs((0.4, 0.6))
        assert perfect.holds_for(TABLE_3[:2])
        assert not perfect.holds_for(TABLE_3)
        assert not perfect.holds_for([[200, 301]])
        with pytest.raises(GuaranteeError):
            perfect_privacy_as_beliefs().holds_for(TABLE_3[:2])

    @pytest.mark.parametrize("stubbornness", [2, 10, 1e6])
    def test_perfect_privacy_is_out_of_reach_for_an_unknown_shape_however_weak(self, stubbornness):
        assert belief_ratio([[10**9, 10**9]], Adversary.with_stubbornness(stubbornness)).exact > 1

    def test_negative_disclosure_is_positive_disclosure_of_the_rest(self):
        # Section 2.1: "not cancer" is the statement {flu} when there are two values.
        women = belief_ratio(WOMEN, Adversary.with_prior(METROPOLIS), "negations")
        assert women.predicate == Predicate((0,))
        assert women.exact == Fraction(200_000, 49_999)


@pytest.mark.parametrize("known", [0, 1, 3, 20])
def test_every_group_of_the_fast_form_counts_the_records_that_she_knows(known):
    """Definition 4 written out for classes I, II and III; in these groups it is belief, not doubt, that moves most."""
    counts = [[30, 70], [5, 95], [200, 300], [40, 41]]
    cases = (
        (Adversary.with_prior(DirichletPrior((10.0, 990.0)), known_records=known), (10, 990), 1),
        (Adversary.with_stubbornness(1000, known_records=known), (1, 999), 1),
        (Adversary.with_shape((1, 99), known_records=known), (1, 99), 0),
    )
    for adversary, (own, others), revises in cases:
        found = belief_ratio(counts, adversary, [Predicate((0,))], per_group=True).by_group
        for hits, rest, ratio in zip(*zip(*counts, strict=True), found, strict=True):
            p_in = Fraction(hits, hits + rest - known)
            p_out = Fraction(revises * (hits - 1) + own, revises * (hits + rest - 1) + own + others)
            belief, doubt = p_in / p_out, (1 - p_out) / (1 - p_in)
            assert belief > doubt
            assert ratio == pytest.approx(float(belief), rel=1e-9)


@pytest.mark.parametrize("known", [0, 1, 3])
def test_the_records_that_she_knows_count_where_doubt_moves_most_too(known):
    """The same for a statement that holds for nearly all of a group: what is left of the doubt is what matters."""
    counts = [[95, 300], [5, 20]]
    cases = (
        (Adversary.with_prior(DirichletPrior((500.0, 500.0)), known_records=known), 500, 500, 1),
        (Adversary.with_shape((1, 1), known_records=known), 1, 1, 0),
    )
    for adversary, own, others, revises in cases:
        found = belief_ratio(np.transpose(counts), adversary, [Predicate((0,))], per_group=True).by_group
        for hits, rest, ratio in zip(*counts, found, strict=True):
            p_in = Fraction(hits, hits + rest - known)
            p_out = Fraction(revises * (hits - 1) + own, revises * (hits + rest - 1) + own + others)
            belief, doubt = p_in / p_out, (1 - p_out) / (1 - p_in)
            assert doubt > belief
            assert ratio == pytest.approx(float(doubt), rel=1e-9)
