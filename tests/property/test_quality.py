"""What a private choice looks for: every quality against its definition, and one record more against what is stated."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from incrowd.core.errors import InternalError, UnreachableError
from incrowd.recoding import choice
from incrowd.recoding.lattice import Ladder, Lattice
from incrowd.recoding.quality import WEIGHT_ONE, Apart, Asked, Classified, CrowdCount, Detail

HALF = WEIGHT_ONE // 2
WIDE = Ladder(
    (np.arange(3), np.array([0, 0, 1]), np.zeros(3, dtype=np.int64)),
    (np.full(3, HALF), np.array([HALF // 2, HALF]), np.zeros(1, dtype=np.int64)),
)
FIXED = Ladder((np.arange(2),), (np.full(2, HALF),))
FREE = Ladder((np.arange(2), np.zeros(2, dtype=np.int64)), (np.full(2, HALF), np.zeros(1, dtype=np.int64)))
CELLS = list(itertools.product(range(3), range(2)))


def lattice_of(quality):
    if isinstance(quality, Classified):
        return Lattice([WIDE, FIXED])
    if isinstance(quality, Asked):
        whole = [Ladder(one.maps, tuple(w * 2 for w in one.weights)) for one in (WIDE, FREE)]
        return Lattice(whole)
    return Lattice([WIDE, FREE])


def qualities(k, beta):
    return [Detail(k, beta), CrowdCount(k, beta), Apart(k, beta), Asked(k, beta, [[0], [0, 1]]), Classified(k, beta, 1)]


def columns(cells=CELLS):
    return [np.array([cell[i] for cell in cells]) for i in range(2)]


@cache
def tables(most):
    """Every table of at most so many records on the six cells."""
    return [c for c in itertools.product(range(most + 1), repeat=len(CELLS)) if sum(c) <= most]


def test_every_table_is_there():
    assert len(tables(4)) == math.comb(4 + len(CELLS), len(CELLS))


@pytest.mark.parametrize("number", range(5))
@pytest.mark.parametrize(("k", "beta"), [(1, 0.5), (2, 0.3), (2, 0.9), (3, 0.6)])
def test_one_record_more_raises_every_score_by_at_most_the_sensitivity(number, k, beta):
    """Every table of up to four records, every record that can be added, every node."""
    quality = qualities(k, beta)[number]
    lattice = lattice_of(quality)
    bound = quality.sensitivity(lattice)
    found = {table: quality.scores(lattice, columns(), np.array(table)) for table in tables(5)}
    largest = 0
    for table in tables(4):
        for cell in range(len(CELLS)):
            more = (*table[:cell], table[cell] + 1, *table[cell + 1 :])
            raised = found[more] - found[table]
            assert (raised >= 0).all()
            assert (raised <= bound).all()
            largest = max(largest, int(raised.max()))
    assert largest >= bound / 6  # the bound is no wild guess


@pytest.mark.parametrize("number", range(5))
def test_the_choice_is_private_by_brute_force(number, monkeypatch):
    """Permute-and-flip written out, on the scores and the sensitivity that `choose` hands over; every neighbour."""
    quality, epsilon = qualities(2, 0.5)[number], 0.8
    lattice, seen = lattice_of(quality), []
    monkeypatch.setattr(choice, "noisy_max", lambda *given: seen.append(given) or 0)
    laws, weak = {}, {}
    for table in tables(4):
        choice.choose(lattice, columns(), np.array(table), quality=quality, epsilon=epsilon)
        scores, sensitivity, share = seen.pop()
        assert share == epsilon
        laws[table] = permute_and_flip(scores, sensitivity / epsilon)
        weak[table] = permute_and_flip(scores, sensitivity / epsilon / 10)
    assert worst_ratio(laws) <= epsilon + 1e-9
    assert worst_ratio(weak) > epsilon  # a twin with a tenth of the noise is caught


def worst_ratio(laws):
    worst = 0.0
    for table in tables(3):
        for cell in range(len(CELLS)):
            more = (*table[:cell], table[cell] + 1, *table[cell + 1 :])
            worst = max(worst, float(np.abs(np.log(laws[more] / laws[table])).max()))
    return worst


def permute_and_flip(scores, scale):
    """The chance of each candidate: they come in random order, and each is taken with e^{−(max − s)/scale}."""
    heads = np.exp((scores - scores.max()) / scale)
    n = len(heads)
    reach = np.zeros(1 << n)  # the chance that exactly these have come and were not taken
    reach[0] = 1.0
    found = np.zeros(n)
    for gone in range(1 << n):
        left = [i for i in range(n) if not gone >> i & 1]
        for i in left:
            share = reach[gone] / len(left)
            found[i] += share * heads[i]
            reach[gone | 1 << i] += share * (1 - heads[i])
    return found


def random_table(seed, records=4000):
    rng = np.random.default_rng(seed)
    return columns(), rng.multinomial(records, rng.dirichlet(np.ones(len(CELLS)) / 2))


def survivors(n, k, beta):
    """E[X; X ≥ k]/β, written out."""
    x = np.arange(k, n + 1)
    return float((x * binom.pmf(x, n, beta)).sum()) / beta


def groups(lattice, node, codes, counts, places):
    found = {}
    for at, n in enumerate(counts.tolist()):
        key = tuple(int(lattice.ladders[i].maps[node[i]][codes[i][at]]) for i in places)
        found[key] = found.get(key, 0) + n
    return found


@pytest.mark.parametrize("seed", range(4))
def test_scores_are_what_their_names_say(seed):
    """Against the definitions, for all nodes at once and one by one."""
    k, beta = 12, 0.3
    codes, counts = random_table(seed)
    total = int(counts.sum())

    def definition(quality, lattice, node):
        cells = groups(lattice, node, codes, counts, (0, 1))
        if isinstance(quality, Detail):
            weights = [ladder.weights[level] for ladder, level in zip(lattice.ladders, node, strict=True)]
            return (
                sum(
                    survivors(n, k, beta) * sum(w[c] for w, c in zip(weights, key, strict=True))
                    for key, n in cells.items()
                )
                * 256
            )
        if isinstance(quality, CrowdCount):
            return sum(float(binom.sf(k - 1, n, beta)) for n in cells.values()) * 2**24
        if isinstance(quality, Apart):
            return sum(survivors(n, k, beta) * (1 - n / total) for n in cells.values()) * 256 + total * quality.fall
        people = sum(survivors(n, k, beta) for n in cells.values())
        if isinstance(quality, Asked):
            wide, sex = ((1.0, 2 / 3, 0.0)[node[0]], (1.0, 0.0)[node[1]])
            return people * (wide + wide * sex) / 2 * 256 * WEIGHT_ONE
        by_group = {}
        for (first, second), n in cells.items():
            by_group.setdefault(first, {})[second] = survivors(n, k, beta)
        return sum(max(of.values()) for of in by_group.values()) * 256

    for quality in qualities(k, beta):
        lattice = lattice_of(quality)
        together = quality.scores(lattice, codes, counts)
        for place, node in enumerate(lattice.nodes()):
            assert together[place] == quality.score(lattice, node, codes, counts)
            assert together[place] == pytest.approx(definition(quality, lattice, node), rel=2e-3, abs=300)


def test_rounding_is_all_that_can_lower_what_is_told_apart():
    for k, beta in [(1, 0.5), (20, 0.1), (40, 0.7), (300, 0.9)]:
        quality = Apart(k, beta)
        table = [int(value) for value in quality.survival.table]
        short = [-(-((n + 1) * table[n] - n * table[n + 1]) // n) for n in range(1, len(table) - 1)]
        assert quality.fall == max(0, *short)
        assert quality.fall <= 2


def test_discernibility_is_for_tables_whose_squares_can_be_counted():
    quality, lattice = Apart(2, 0.5), Lattice([WIDE, FREE])
    counts = np.array([2**27 - 7, 1, 1, 1, 1, 2])
    exact = sum(
        int(quality.survival.values(np.array([n]))[0]) * (2**27 - 1 - n)
        for n in groups(lattice, (1, 0), columns(), counts, (0, 1)).values()
    ) // (2**27 - 1)
    assert quality.score(lattice, (1, 0), columns(), counts) == exact + (2**27 - 1) * quality.fall
    assert quality.scores(lattice, columns(), counts)[lattice.number((1, 0))] == exact + (2**27 - 1) * quality.fall
    with pytest.raises(UnreachableError, match="discernibility") as error:
        choice.choose(lattice, columns(), counts * 2, quality=quality, epsilon=1.0)
    assert "loss" in error.value.remedy


def test_a_target_that_could_be_hidden_is_refused():
    with pytest.raises(InternalError):
        Classified(2, 0.5, 1).sensitivity(Lattice([WIDE, FREE]))


def test_what_predicts_the_target_is_shown():
    """The first column's third value goes with the second column's first: a coarser first column would not tell."""
    counts = np.array([0, 4000, 0, 4000, 4000, 0])
    quality = Classified(20, 0.3, 1)
    lattice = lattice_of(quality)
    found = quality.scores(lattice, columns(), counts)
    assert found[lattice.number((1, 0))] == pytest.approx(12_000 * 256, rel=1e-6)
    assert found[lattice.number((2, 0))] == pytest.approx(8_000 * 256, rel=1e-6)
