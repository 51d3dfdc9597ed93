"""The closed form of the belief ratio against the definitions, and what must not change or must not grow."""

from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from incrowd.theory.beliefs import Adversary, AdversaryClass, DirichletPrior, Predicate, belief_ratio
from incrowd.theory.embeddings import t_closeness_as_beliefs
from incrowd.theory.syntactic import t_closeness
from sufficient_conditions import theorem_check

INFINITE = None
moderately = settings(deadline=None, max_examples=50)


def worse(one, other):
    """The larger of two ratios, None being infinite."""
    return INFINITE if one is INFINITE or other is INFINITE else max(one, other)


def no_worse(one, other):
    return other is INFINITE or (one is not INFINITE and one <= other)


def by_definition(group, b, members, p_out_of):
    """Definition 4, for every person of the group and every set of at most b other records she may know."""
    ratio, size = Fraction(1), sum(group)
    for person, count in enumerate(group):
        if count == 0:
            continue
        others = [n - (value == person) for value, n in enumerate(group)]
        for known in product(*(range(min(n, b) + 1) for n in others)):
            if sum(known) > b:
                continue
            left = sum(group[value] - known[value] for value in members)
            p_in = Fraction(left, size - sum(known))
            p_out = p_out_of(sum(others[value] for value in members), size - 1)
            if p_in > p_out:
                ratio = (
                    INFINITE if p_in == 1 or p_out == 0 else worse(ratio, max(p_in / p_out, (1 - p_out) / (1 - p_in)))
                )
    return ratio


def revising(sigma, members):
    """Her predictive probability after a group of others: an urn with her prior in it."""
    return lambda hits, size: (hits + sum(sigma[value] for value in members)) / (size + sum(sigma))


def compositions(total, parts):
    """All ways to write a total as that many whole numbers of at least 1."""
    for cuts in combinations(range(1, total), parts - 1):
        ends = (0, *cuts, total)
        yield [Fraction(high - low) for low, high in pairwise(ends)]


def subsets(size):
    return [Predicate(members) for k in range(1, size) for members in combinations(range(size), k)]


@st.composite
def tables(draw, groups=(1, 4), largest=5, values=(2, 4)):
    size = draw(st.integers(*values))
    row = st.lists(st.integers(0, largest), min_size=size, max_size=size).filter(any)
    return draw(st.lists(row, min_size=groups[0], max_size=groups[1]))


def quarters(least):
    return st.integers(least, 40).map(lambda n: n / 4)


@st.composite
def adversaries(draw, size, least=1):
    """One of classes I to III; `least` quarters per prior parameter."""
    known = draw(st.integers(0, 3))
    kind = draw(st.sampled_from(["prior", "stubbornness", "shape"]))
    if kind == "stubbornness":
        return Adversary.with_stubbornness(draw(st.integers(size, 30)), known_records=known)
    smallest = 0 if kind == "shape" else least
    weights = draw(st.lists(quarters(smallest), min_size=size, max_size=size).filter(any))
    weaker = draw(st.booleans()) and (kind == "shape" or min(weights) >= 1)
    if kind == "shape":
        return Adversary.with_shape(weights, known_records=known, or_less_stubborn=weaker)
    assume(sum(weights) >= 1)
    return Adversary.with_prior(DirichletPrior(tuple(weights)), known_records=known, or_less_stubborn=weaker)


@st.composite
def situations(draw, least=1, **shape):
    table = draw(tables(**shape))
    return table, draw(adversaries(len(table[0]), least))


class TestClosedForm:
    @moderately
    @given(tables(groups=(1, 2), largest=3), st.integers(0, 3), st.data())
    def test_class_one_is_the_definition(self, table, b, data):
        size = len(table[0])
        sigma = data.draw(st.lists(quarters(1), min_size=size, max_size=size).filter(lambda s: sum(s) >= 1))
        audit = belief_ratio(table, Adversary.with_prior(DirichletPrior(tuple(sigma)), known_records=b), subsets(size))
        exact = [Fraction(parameter) for parameter in sigma]
        expected = Fraction(1)
        for group in table:
            for predicate in subsets(size):
                members = predicate.values
                expected = worse(expected, by_definition(group, b, members, revising(exact, members)))
        assert audit.exact == expected

    @settings(deadline=None, max_examples=40)
    @given(tables(groups=(1, 1), largest=3, values=(2, 3)), st.integers(0, 2), st.data())
    def test_class_two_is_the_worst_prior_of_that_stubbornness_or_less(self, table, b, data):
        size = len(table[0])
        strongest = data.draw(st.integers(size, 7))
        predicate = data.draw(st.sampled_from(subsets(size)))
        audit = belief_ratio(table, Adversary.with_stubbornness(strongest, known_records=b), [predicate])
        expected = Fraction(1)
        for strength in range(size, strongest + 1):
            for sigma in compositions(strength, size):
                found = by_definition(table[0], b, predicate.values, revising(sigma, predicate.values))
                expected = worse(expected, found)
        assert audit.exact == expected

    @moderately
    @given(tables(groups=(1, 2), largest=3), st.integers(0, 3), st.data())
    def test_class_three_is_the_definition_with_a_fixed_belief(self, table, b, data):
        size = len(table[0])
        weights = data.draw(st.lists(st.integers(0, 5), min_size=size, max_size=size).filter(any))
        predicate = data.draw(st.sampled_from(subsets(size)))
        share = Fraction(sum(weights[value] for value in predicate.values), sum(weights))
        expected = Fraction(1)
        for group in table:
            expected = worse(expected, by_definition(group, b, predicate.values, lambda hits, size: share))
        audit = belief_ratio(table, Adversary.with_shape(weights, known_records=b), [predicate])
        assert audit.exact == expected

    @settings(deadline=None, max_examples=40)
    @given(tables(groups=(1, 1), largest=3, values=(2, 3)), st.integers(0, 2), st.data())
    def test_or_less_stubborn_covers_every_weaker_adversary_of_that_shape(self, table, b, data):
        size = len(table[0])
        shape = data.draw(st.lists(st.integers(1, 6), min_size=size, max_size=size))
        prior = DirichletPrior.from_shape(shape, 8 * sum(shape))
        audit = belief_ratio(table, Adversary.with_prior(prior, known_records=b, or_less_stubborn=True), "subsets")
        for eighths in range(8, 65, 7):
            weights = [Fraction(weight * eighths, 8 * min(shape)) for weight in shape]
            if max(weights) > max(prior.parameters):
                continue
            for predicate in subsets(size):
                members = predicate.values
                weaker = by_definition(table[0], b, members, revising(weights, members))
                assert no_worse(weaker, audit.exact)

    @settings(deadline=None, max_examples=150)
    @given(situations(values=(2, 5), groups=(1, 2)))
    def test_values_and_negations_decide_for_all_subsets(self, situation):
        table, adversary = situation
        everything = belief_ratio(table, adversary, subsets(len(table[0])))
        assert belief_ratio(table, adversary, "subsets").exact == everything.exact

    @moderately
    @given(situations())
    def test_the_reported_place_explains_the_ratio(self, situation):
        table, adversary = situation
        audit = belief_ratio(table, adversary, "subsets", per_group=True)
        alone = belief_ratio([table[audit.group]], adversary, [audit.predicate])
        assert alone.exact == audit.exact
        assert (alone.p_in, alone.p_out) == (audit.p_in, audit.p_out)
        for group, bound in zip(table, audit.by_group, strict=True):
            exact = belief_ratio([group], adversary, "subsets").exact
            if exact is INFINITE:
                assert bound == np.inf
            else:
                assert exact <= bound <= float(exact) * (1 + 1e-13)


class TestInvariants:
    @settings(deadline=None, max_examples=250)
    @given(situations(groups=(2, 4)), st.sampled_from(["values", "negations", "subsets"]))
    def test_merging_two_groups_never_raises_the_ratio(self, situation, family):
        table, adversary = situation
        merged = [[a + b for a, b in zip(table[0], table[1], strict=True)], *table[2:]]
        before, after = (belief_ratio(t, adversary, family).exact for t in (table, merged))
        assert no_worse(after, before)

    @moderately
    @given(situations(groups=(2, 3), least=4), st.integers(4, 80))
    def test_merging_keeps_the_published_checks_too(self, situation, quarter_ratio):
        table, adversary = situation
        assume(theorem_check(table, adversary, quarter_ratio / 4).holds)
        merged = [[a + b for a, b in zip(table[0], table[1], strict=True)], *table[2:]]
        assert theorem_check(merged, adversary, quarter_ratio / 4).holds

    @moderately
    @given(situations(), st.randoms(use_true_random=False))
    def test_order_and_empty_groups_do_not_matter(self, situation, random):
        table, adversary = situation
        shuffled = [*table, [0] * len(table[0])]
        random.shuffle(shuffled)
        assert belief_ratio(shuffled, adversary).exact == belief_ratio(table, adversary).exact
        columns = list(range(len(table[0])))
        random.shuffle(columns)
        if adversary.weights is not None:
            weights = [adversary.weights[column] for column in columns]
            more = {"known_records": adversary.known_records, "or_less_stubborn": adversary.or_less_stubborn}
            moved = (
                Adversary.with_shape(weights, **more)
                if adversary.kind is AdversaryClass.KNOWN_SHAPE
                else Adversary.with_prior(DirichletPrior(tuple(weights)), **more)
            )
        else:
            moved = adversary
        renamed = [[group[column] for column in columns] for group in table]
        assert belief_ratio(renamed, moved).exact == belief_ratio(table, adversary).exact

    @moderately
    @given(situations())
    def test_knowing_more_records_never_helps(self, situation):
        table, adversary = situation
        kind, weights, strength = adversary.kind, adversary.weights, adversary.stubbornness
        more = Adversary(kind, weights, strength, adversary.known_records + 1, adversary.or_less_stubborn)
        assert no_worse(belief_ratio(table, adversary).exact, belief_ratio(table, more).exact)

    @moderately
    @given(tables(), st.integers(0, 2), st.data())
    def test_class_two_is_at_least_as_bad_as_any_prior_of_its_stubbornness(self, table, b, data):
        size = len(table[0])
        sigma = data.draw(st.lists(st.integers(1, 9), min_size=size, max_size=size))
        known = belief_ratio(table, Adversary.with_prior(DirichletPrior(tuple(sigma)), known_records=b), "subsets")
        unknown = belief_ratio(table, Adversary.with_stubbornness(sum(sigma), known_records=b), "subsets")
        assert no_worse(known.exact, unknown.exact)


def theorem_as_printed(group, sigma, total, b, epsilon):
    """Theorem 1 (Theorem 2 with sigma(s) = 1) for one group, straight from its text."""
    m = sum(group) - b
    if m <= 0:
        return False
    delta = (epsilon - 1) * m / (total + b)
    prime = epsilon * (1 - 1 / (total + b))
    for count, parameter in zip(group, sigma, strict=True):
        if count == 0:
            continue
        share, closeness = Fraction(count, m), (parameter - 1) / (total + b)
        large = delta >= 1
        close = delta < 1 and share <= epsilon / (1 - delta) * closeness
        doubt = share <= 1 - 1 / (prime + delta) + closeness / (prime + delta)
        if not ((large or close) and doubt):
            return False
    return True


class TestPublishedChecks:
    @moderately
    @given(tables(), st.integers(0, 2), st.integers(4, 60), st.data())
    def test_theorem_one_and_two_as_printed(self, table, b, quarter_ratio, data):
        size, epsilon = len(table[0]), Fraction(quarter_ratio, 4)
        sigma = [Fraction(n) for n in data.draw(st.lists(quarters(4), min_size=size, max_size=size))]
        prior = DirichletPrior(tuple(float(s) for s in sigma))
        check = theorem_check(table, Adversary.with_prior(prior, known_records=b), epsilon)
        assert check.holds == all(theorem_as_printed(group, sigma, sum(sigma), b, epsilon) for group in table)

        strength = data.draw(st.integers(size, 40))
        check = theorem_check(table, Adversary.with_stubbornness(strength, known_records=b), epsilon)
        ones = [Fraction(1)] * size
        expected = [theorem_as_printed(group, ones, Fraction(strength), b, epsilon) for group in table]
        assert check.holds == all(expected)
        assert check.group == (None if all(expected) else expected.index(False))

    @moderately
    @given(tables(), st.integers(0, 2), st.integers(4, 60), st.data())
    def test_theorem_three_is_the_closed_form(self, table, b, quarter_ratio, data):
        weights = data.draw(st.lists(st.integers(0, 6), min_size=len(table[0]), max_size=len(table[0])).filter(any))
        adversary = Adversary.with_shape(weights, known_records=b)
        epsilon = Fraction(quarter_ratio, 4)
        check = theorem_check(table, adversary, epsilon, "subsets")
        assert check.holds == belief_ratio(table, adversary, "subsets").satisfies(epsilon)

    @settings(deadline=None, max_examples=120)
    @given(situations(least=4, largest=30), st.integers(4, 60), st.sampled_from(["values", "subsets"]))
    def test_they_promise_nothing_that_is_not_so(self, situation, quarter_ratio, family):
        table, adversary = situation
        if theorem_check(table, adversary, quarter_ratio / 4, family).holds:
            assert belief_ratio(table, adversary, family).satisfies(quarter_ratio / 4)

    @moderately
    @given(situations(least=4, groups=(1, 1), largest=10))
    @example(([[1, 0]], Adversary.with_shape((0.25, 0.0), or_less_stubborn=True)))  # certain beforehand, and right
    def test_they_agree_with_the_closed_form_up_to_the_dropped_ones(self, situation):
        table, adversary = situation
        large = [[1000 * count for count in group] for group in table]
        audit = belief_ratio(large, adversary)
        assume(audit.exact is not INFINITE)
        assert theorem_check(large, adversary, audit.exact * Fraction(101, 100)).holds


class TestTCloseness:
    @moderately
    @given(tables(groups=(2, 4)))
    def test_a_table_as_close_as_it_is_keeps_the_ratio_that_follows(self, table):
        totals = np.sum(table, axis=0).tolist()
        t = t_closeness(table).exact
        assume(sum(total > 0 for total in totals) > 1 and t < 1 - Fraction(max(totals), sum(totals)))
        embedding = t_closeness_as_beliefs(t, totals)
        assert embedding.holds_for(table)
        if embedding.paper_ratio is not None:
            assert embedding.ratio <= embedding.paper_ratio
