"""Undoing a randomisation: against the Kronecker product written out, optimisers and simulations that are known."""

import itertools
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from scipy import optimize, stats

from incrowd.core.errors import ParameterError
from incrowd.histogram import Column, Histogram
from incrowd.mechanisms.grid import middle
from incrowd.mechanisms.pram import draw as pram
from incrowd.mechanisms.pram.association import associate, pearson
from incrowd.mechanisms.pram.blocks import Block
from incrowd.mechanisms.pram.certificate import KeptBlock, PramCertificate, PramStatedMechanism, SampledPramMechanism
from incrowd.mechanisms.pram.estimate import reconstruct, tabulate
from incrowd.mechanisms.pram.inversion import General, KeptAxis, invert, likeliest
from incrowd.randomness import RandomSource
from incrowd.theory.randomisation import RetentionReplacement, TransitionMatrix

SKEWED = TransitionMatrix([[Fraction(7, 10), Fraction(3, 10)], [Fraction(1, 5), Fraction(4, 5)]])


def axes_of(*laws):
    return [
        KeptAxis(law) if isinstance(law, RetentionReplacement) else General(law.matrix(), np.arange(law.size))
        for law in laws
    ]


LAWS = [RetentionReplacement(0.4, 3), SKEWED, RetentionReplacement(0.6, 4)]


def test_inversion_axis_by_axis_is_that_of_the_kronecker_product():
    rng = np.random.default_rng(0)
    released = rng.integers(0, 50, (3, 2, 4)).astype(float)
    whole = reduce(np.kron, [law.matrix() for law in LAWS])
    inverse = np.linalg.inv(whole.T)
    estimate, variance = invert(axes_of(*LAWS), released)
    assert estimate.ravel() == pytest.approx(inverse @ released.ravel())
    assert variance.ravel() == pytest.approx(np.maximum(inverse**2 @ released.ravel() - estimate.ravel(), 0))
    forward = released
    for i, axis in enumerate(axes_of(*LAWS)):
        forward = axis.forward(forward, i)
    assert forward.ravel() == pytest.approx(whole.T @ released.ravel())
    assert invert(axes_of(*LAWS), forward)[0] == pytest.approx(released)


def test_the_variance_is_the_exact_one_on_average():
    """E over all outcomes of the estimated variance is the variance over all outcomes: enumerated for three records."""
    rows = SKEWED.matrix()
    table = [0, 0, 1]
    mean, second, estimated = np.zeros(2), np.zeros(2), np.zeros(2)
    for drawn in itertools.product(range(2), repeat=3):
        chance = np.prod([rows[u, w] for u, w in zip(table, drawn, strict=True)])
        released = np.bincount(drawn, minlength=2).astype(float)
        coefficients = np.linalg.inv(rows.T)
        estimate = coefficients @ released
        mean, second = mean + chance * estimate, second + chance * estimate**2
        estimated += chance * (coefficients**2 @ released - estimate)
    assert mean == pytest.approx([2, 1])
    assert estimated == pytest.approx(second - mean**2)


@pytest.mark.parametrize("records", [60, 3_000])
def test_the_likeliest_numbers_and_how_far_they_can_be_from_the_maximum(records):
    rng = np.random.default_rng(records)
    axes = axes_of(*LAWS)
    shares = rng.dirichlet(np.full(24, 0.2)).reshape(3, 2, 4)
    for i, axis in enumerate(axes):
        shares = axis.forward(shares, i)
    released = rng.multinomial(records, shares.ravel() / shares.sum()).reshape(3, 2, 4).astype(float)
    whole = reduce(np.kron, [law.matrix() for law in LAWS])

    def level(counts):
        expected = whole.T @ (counts.ravel() / records)
        hit = released.ravel() > 0
        return float(np.sum(released.ravel()[hit] * np.log(expected[hit])))

    found = likeliest(axes, released)
    assert found.gap <= 0.01
    assert (found.counts >= 0).all()
    assert found.counts.sum() == pytest.approx(records)

    # The same maximum by another way: a general optimiser over log-shares, from several starts.
    def downhill(logs):
        shares = np.exp(logs - logs.max())
        shares /= shares.sum()
        expected = whole.T @ shares
        gain = whole @ (released.ravel() / expected)
        return -float(np.sum(released.ravel() * np.log(expected))), -shares * (gain - shares @ gain)

    best = max(-optimize.minimize(downhill, rng.normal(0, 1, 24), jac=True, method="L-BFGS-B").fun for _ in range(3))
    assert best - level(found.counts) <= found.gap + 1e-6
    for most in (0, 10, 20):  # wherever it stops, the bound covers what is missing
        early = likeliest(axes, released, gap=0.0, most=most)
        assert best - level(early.counts) <= early.gap + 1e-6
    assert likeliest(axes, np.zeros((3, 2, 4))).counts.sum() == 0


def test_numbers_of_labels():
    assert middle("37") == 37
    assert middle("[0, 10)") == 5
    assert middle("[−5, 2.5]") == -1.25
    assert middle("20 to 29") == 24.5
    assert middle("-3 to 3") == 0
    # of whole numbers an open end is not one of them
    assert [middle(t, whole=True) for t in ("[0, 10)", "[0, 10]", "(−2, 2)", "[0, 2.5)", "20 to 29", "7")] == [
        4.5,
        5.0,
        0.0,
        1.0,
        24.5,
        7.0,
    ]
    assert middle("[0.2, 0.5)", whole=True) == 0.35  # no whole number is in it
    # as ARX writes them; what runs backwards is a month, or nothing
    assert [middle(t) for t in ("20-39", "-5--3", "20 – 39", "[20, 40[")] == [29.5, -4, 29.5, 30]
    assert middle("[20, 40[", whole=True) == 29.5
    assert [middle(t) for t in ("≥ 90", "(−∞, 3)", "x", "", "2026-05", "1-2-3")] == [None] * 6


def people(records, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, records)
    age = np.clip(rng.normal(2 + sex, 1.2, records), 0, 5).astype(int)
    region = rng.choice(3, records, p=[0.6, 0.3, 0.1])
    return Histogram.of(
        [
            Column("sex", ("f", "m"), sex),
            Column("age", ("0", "1", "2", "3", "4", None), age),
            Column("region", ("a", "b", "c"), region),
        ]
    )


MIXED = TransitionMatrix([[Fraction(19, 36) if i == j else Fraction(1, 36) for j in range(18)] for i in range(18)])
LAYOUTS = {
    "apart": [
        ("sex", RetentionReplacement(0.5, 2)),
        ("age", RetentionReplacement(0.5, 6)),
        ("region", RetentionReplacement(0.5, 3)),
    ],
    "joint, kept": [(("sex", "age"), RetentionReplacement(0.5, 12)), ("region", RetentionReplacement(0.5, 3))],
    "joint, by a matrix": [(("age", "region"), MIXED), ("sex", SKEWED)],
}


def blocks(layout, table):
    found = []
    for names, law in LAYOUTS[layout]:
        columns = (names,) if isinstance(names, str) else names
        found.append(Block(columns, tuple(len(table[n].labels) for n in columns), law))
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("by", [["sex"], ["age"], ["region", "sex"], ["age", "sex"], ["region", "age", "sex"]])
def test_any_columns_in_any_order_however_they_were_joined(layout, by):
    """Put the expected counts in, and the true ones come out."""
    table = people(500)
    made = blocks(layout, table)
    everything = tabulate(made, table, ["sex", "age", "region"])
    exact = everything.released
    for i, axis in enumerate(everything.axes):
        exact = axis.forward(exact, i)
    columns = [n for block in made for n in block.names]
    sizes = [len(table[n].labels) for n in columns]
    scaled = np.rint(exact * 1_000_000).astype(np.int64).ravel()
    codes = np.unravel_index(np.arange(len(scaled)), sizes)
    expected = Histogram.of(
        [Column(n, table[n].labels, codes[columns.index(n)].astype(np.int64)) for n in table.names], scaled
    )
    whole = tabulate(made, expected, by)
    estimate, _ = invert(whole.axes, whole.released)
    truth = np.zeros([len(table[n].labels) for n in by])
    part = table.project(by)
    truth[tuple(part[n].codes for n in by)] = part.counts
    assert whole.arranged(estimate) / 1_000_000 == pytest.approx(truth, abs=1e-3)
    found = likeliest(whole.axes, whole.released)
    assert whole.arranged(found.counts).sum() == pytest.approx(expected.total)


def certificate(layout, table):
    from incrowd.mechanisms.pram import state as pram_statement

    written = [pram_statement._written(b) for b in blocks(layout, table)]
    return described_by(written, age="text")


def described_by(blocks, *, invariant=False, **types):
    """As much of a certificate as estimates look at."""
    return PramCertificate.model_construct(
        mechanism=PramStatedMechanism.model_construct(
            invariant=invariant, blocks=tuple(blocks), levels=dict.fromkeys(types, 0)
        ),
        policy={"attributes": {name: {"type": kind} for name, kind in types.items()}},
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_means_of_groups(layout):
    table = people(200_000)
    released = pram.run(table, blocks(layout, table), RandomSource.seeded(8))
    found = reconstruct(certificate(layout, table), released, ["sex"], mean="age")
    codes, counts, sexes = table["age"].codes, table.counts, table["sex"].codes
    for i, row in enumerate(found.means):
        known = (codes < 5) & (sexes == i)  # the last one is missing
        truth = np.average(codes[known], weights=counts[known])
        assert abs(row.mean - truth) < 6 * row.standard_error
        assert 0 < row.standard_error < 0.05
        assert row.low < row.mean < row.high


def test_independence_and_odds_of_what_is_independent_or_not():
    table = people(40_000)
    for layout in LAYOUTS:
        released = pram.run(table, blocks(layout, table), RandomSource.seeded(9))
        apart = reconstruct(certificate(layout, table), released, ["sex", "region"]).association
        assert apart.p_value > 1e-6
        assert apart.degrees == 2
        linked = reconstruct(certificate(layout, table), released, ["sex", "age"]).association
        assert linked.p_value < 1e-9
        assert linked.degrees == 5
        joined = layout == "joint, kept"
        assert linked.test.startswith("Wald" if joined or layout == "joint, by a matrix" else "Pearson")
        odds = linked.odds_ratios[1]  # m against f; age 2 against 0
        cells = table.project(["sex", "age"])
        count = {(s, a): n for s, a, n in zip(cells["sex"].codes, cells["age"].codes, cells.counts, strict=True)}
        truth = count[1, 2] * count[0, 0] / (count[1, 0] * count[0, 2])
        assert odds.first == ("m", "f")
        assert odds.second == ("2", "0")
        assert abs(np.log(odds.odds_ratio / truth)) < 5 * odds.log_standard_error
        assert odds.low < odds.odds_ratio < odds.high


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_sample_says_no_more_of_an_association_for_standing_for_many(layout):
    """Counts are divided by β, but it is the records of the sample that tell how columns go together."""
    table = people(40_000)
    released = pram.run(table, blocks(layout, table), RandomSource.seeded(9))
    whole = certificate(layout, table)
    said = whole.mechanism.model_dump() | {"blocks": whole.mechanism.blocks, "beta": 0.01, "already_sampled": True}
    sampled = whole.model_copy(update={"mechanism": SampledPramMechanism.model_construct(**said)})
    for by in (["sex", "age"], ["sex", "region"]):
        alone, of_many = (reconstruct(one, released, by) for one in (whole, sampled))
        assert of_many.rows[0].estimate == pytest.approx(100 * alone.rows[0].estimate)
        assert of_many.association == alone.association


def test_pearson_and_odds_without_randomisation_are_the_textbooks():
    counts = np.array([[30.0, 12.0], [9.0, 25.0]])
    statistic, degrees = pearson(counts)
    book = stats.chi2_contingency(counts, correction=False)
    assert (statistic, degrees) == (pytest.approx(book.statistic), book.dof)
    table = Histogram.of(
        [Column("a", ("x", "y"), np.array([0, 0, 1, 1])), Column("b", ("u", "v"), np.array([0, 1, 0, 1]))],
        counts.astype(np.int64).ravel(),
    )
    untouched = [Block((n,), (2,), RetentionReplacement(1.0, 2)) for n in ("a", "b")]
    whole = tabulate(untouched, table, ["a", "b"])
    estimate, variance = invert(whole.axes, whole.released)
    assert estimate == pytest.approx(counts)
    assert variance == pytest.approx(np.zeros((2, 2)), abs=1e-9)
    found = associate(whole, estimate, [("x", "y"), ("u", "v")])
    assert found.p_value == pytest.approx(book.pvalue)
    assert found.odds_ratios[0].odds_ratio == pytest.approx(30 * 25 / (12 * 9))
    assert found.odds_ratios[0].log_standard_error == pytest.approx(np.sqrt((1 / counts).sum()))  # Woolf


@pytest.mark.parametrize(("sizes", "place"), [((5,), 0), ((3, 4), 0), ((3, 4), 1), ((2, 3, 2), 1)])
def test_sums_over_a_kept_axis_are_those_of_its_written_out_inverse(sizes, place):
    rng = np.random.default_rng(5)
    size = int(np.prod(sizes))
    law = RetentionReplacement(0.3, size)
    written = General(law.matrix(), np.arange(size))
    first, second = rng.normal(size=(2, sizes[place]))
    for axis, shape in ((0, (size, 2)), (1, (3, size, 2))):
        cells = rng.random(shape)
        found = KeptAxis(law).paired(cells, axis, sizes, place, first, second)
        assert found == pytest.approx(written.paired(cells, axis, sizes, place, first, second))


def test_the_mean_of_a_column_of_very_many_values_is_found():
    """Its inverse, written out, would not fit into any memory."""
    size, records = 200_000, 1_000
    rng = np.random.default_rng(6)
    table = Histogram.of(
        [
            Column("n", tuple(map(str, range(size))), rng.integers(0, size, records)),
            Column("sex", ("f", "m"), rng.integers(0, 2, records)),
        ]
    )
    made = [
        KeptBlock(attributes=("n",), sizes=(size,), rho=0.9375),
        KeptBlock(attributes=("sex",), sizes=(2,), rho=0.9375),
    ]
    described = described_by(made, n="integer", sex="text")
    laws = [Block(one.attributes, one.sizes, RetentionReplacement(0.9375, one.sizes[0])) for one in made]
    released = pram.run(table, laws, RandomSource.seeded(3))
    for i, row in enumerate(reconstruct(described, released, ["sex"], mean="n").means):
        truth = np.average(table["n"].codes[here := table["sex"].codes == i], weights=table.counts[here])
        assert 0 < row.standard_error < size / 10
        assert abs(row.mean - truth) < 6 * row.standard_error


def test_what_was_hardly_kept_cannot_be_undone():
    KeptAxis(RetentionReplacement(2.0**-26, 2))
    with pytest.raises(ParameterError, match="without regard"):
        KeptAxis(RetentionReplacement(2.0**-27, 2))


def test_rare_values_have_an_upper_limit_under_invariant_pram():
    """Of a value with x people, none is released with a probability of up to e^−x: its interval may not be empty."""
    block = KeptBlock(attributes=("a",), sizes=(4,), rho=0.5)
    released = Histogram.of([Column("a", ("w", "x", "y", "z"), np.array([0, 1, 2]))], np.array([1800, 160, 4]))
    described = described_by([block], invariant=True)
    found = reconstruct(described, released, ["a"])
    rows = {row.values[0]: row for row in found.rows}
    assert (rows["z"].estimate, rows["z"].low) == (pytest.approx(0), 0)
    assert rows["z"].high == pytest.approx(-np.log(0.025))
    assert rows["y"].high == pytest.approx(stats.chi2.ppf(0.975, 10) / 2)  # the usual limit of a Poisson count of 4
    assert rows["w"].high < 1800 + 1.96 * np.sqrt(1800)
    assert any("seldom" in note for note in found.notes)
    plain = reconstruct(described_by([block]), released, ["a"])
    assert not any("seldom" in note for note in plain.notes)


def test_the_upper_limit_of_rare_values_holds_for_any_independent_draws():
    """Over all laws of a sum of two kinds of indicators with mean x: P[limit < x] is 2.5% at most."""
    for x in range(1, 12):
        for many, p in ((x, 0.9), (2 * x, 0.4), (5, 0.1)):
            rest = x - many * p
            if rest < 0:
                continue
            law = np.convolve(stats.binom.pmf(range(many + 1), many, p), stats.binom.pmf(range(401), 400, rest / 400))
            limits = stats.chi2.ppf(0.975, 2 * (np.arange(len(law)) + 1)) / 2
            assert law[limits < x].sum() <= 0.025


def test_small_tables_and_groups_without_a_mean_are_told_of():
    table = people(150)
    released = pram.run(table, blocks("apart", table), RandomSource.seeded(1))
    found = reconstruct(certificate("apart", table), released, ["region"], mean="age")
    assert any(group.mean is None for group in found.means)
    assert any("have no mean" in note for note in found.notes)
    assert any("few records" in note for note in found.notes)
    large = people(200_000)
    released = pram.run(large, blocks("apart", large), RandomSource.seeded(1))
    notes = reconstruct(certificate("apart", large), released, ["sex"], mean="age").notes
    assert not any("have no mean" in note or "few records" in note for note in notes)


def test_an_interval_without_an_end_has_no_middle():
    table = Histogram.of(
        [Column("a", ("x", "y"), np.array([0, 1])), Column("n", ("[0, 10)", "[10, ∞)"), np.array([0, 1]))],
        np.array([500, 500]),
    )
    described = described_by(KeptBlock(attributes=(name,), sizes=(2,), rho=0.5) for name in ("a", "n"))
    described.mechanism.levels.update(a=0, n=0)
    with pytest.raises(ParameterError, match="without an end"):
        reconstruct(described, table, ["a"], mean="n")
