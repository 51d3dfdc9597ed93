"""Statistics of the table before it was randomised, from the published folder alone.

Cross-tabulations and means speak of the people of the table: their errors are those of the randomisation (see
`inversion` for the proofs). Tests of independence and odds ratios (`association`) speak of a population of which the
table is a sample.

**Means.** m = Σ_v v·x̂_v/Σ_v x̂_v within a group is a ratio of two linear functions p·y and n·y of the released counts.
By the delta method its variance is that of (p − m·n)·y divided by (n·y)², and the variance of a linear function is
estimated without bias as in `inversion`: Σ_w (p_w − m·n_w)² y_w − Σ_v (v − m)² x̂_v. If the table is a sample of rate β,
sampling adds (1−β)·Σ_v (v − m)² x̂_v to it (see `of_sample`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from incrowd.core.errors import ParameterError
from incrowd.core.numbers import number
from incrowd.marginals import Counted
from incrowd.mechanisms.estimates import EstimatedCell, Estimates, GroupMean
from incrowd.mechanisms.grid import MIDDLES, numbers_of
from incrowd.mechanisms.pram.association import Association, associate
from incrowd.mechanisms.pram.blocks import Block, backward, fold
from incrowd.mechanisms.pram.certificate import PramCertificate, SampledPramMechanism
from incrowd.mechanisms.pram.inversion import Floats, General, Inversion, KeptAxis, invert, likeliest
from incrowd.mechanisms.pram.state import blocks_of
from incrowd.theory.intervals import NORMAL_95
from incrowd.theory.randomisation import RetentionReplacement

METHODS = ("inverse", "em")
MOST_CELLS = 1_000_000
_CELLS_FOR_BOTH = 5_000
_SMALL_TABLE = 300  # records, below which normal intervals are to be read with care
_RARELY = 10  # released fewer times, a value under invariant PRAM has an upper limit by the Poisson law
_FEWEST_ERRORS = 3.0  # a group not known to be so far from empty has no mean: the delta method would say anything


@dataclass(frozen=True)
class PramEstimate(EstimatedCell):
    """One cell of a cross-tabulation.

    Attributes:
        values: the labels of the columns asked for, None for missing.
        estimate: the number of people, without bias; it may be below zero.
        standard_error: of that number, from the randomisation.
        low: the lower end of a 95% confidence interval, not below zero.
        high: its upper end.
        em: the likeliest number, never below zero, if it was asked for or is quickly found.
    """

    estimate: float
    standard_error: float
    em: float | None


@dataclass(frozen=True, kw_only=True, repr=False)
class PramEstimates(Estimates):
    """Estimates from a randomised table.

    Attributes:
        records: the number of records of the table, which is public.
        em_gap: the likelihood of the likeliest numbers found is at most so much below the largest, in logarithm.
        association: how two columns go together; None unless there are two, or where there are too many cells.
    """

    records: int
    em_gap: float | None
    association: Association | None

    def remarks(self) -> list[str]:
        return [] if self.association is None else self.association.sentences()


@dataclass(frozen=True, eq=False)
class Tabulation:
    """Released counts by some columns, laid out along axes that were randomised independently.

    Attributes:
        by: the columns, in the order asked for.
        axes: how each axis was randomised.
        released: the released counts, one axis after the other.
        shown: for each axis the columns shown of it, by their positions in `by`.
        sizes: how many values each of the columns has.
    """

    by: tuple[str, ...]
    axes: tuple[Inversion, ...]
    released: Floats
    shown: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]

    def arranged(self, cells: Floats) -> Floats:
        """Cells along the shown axes as an array with one axis for each column asked for."""
        places = [place for axis in self.shown for place in axis]
        unfolded = cells.reshape([self.sizes[place] for place in places])
        return np.transpose(unfolded, np.argsort(places))


def tabulate(
    blocks: Sequence[Block], table: Counted, by: Sequence[str], *, invariant: bool = False, most: int = MOST_CELLS
) -> Tabulation:
    """The released counts by these columns, each once.

    What a few columns see of a retention-replacement of several is one with the same ρ. Of any other matrix over
    several columns the whole is needed, and what was not asked for is summed out afterwards.
    """
    axes: list[Inversion] = []
    lengths: list[int] = []
    shown = []
    for block in blocks:
        asked = [name for name in block.names if name in by]
        if not asked:
            continue
        if isinstance(block.law, RetentionReplacement) and not invariant:
            law = RetentionReplacement(block.law.retention, math.prod(len(table[name].labels) for name in asked))
            axes.append(KeptAxis(law))
        else:
            axes.append(_general(block, table, asked, invariant=invariant))
        lengths.append(axes[-1].size)
        shown.append(tuple(by.index(name) for name in asked))
    cells = math.prod(lengths)
    if cells > most:
        raise ParameterError(
            f"These columns have {cells:,} combinations of values; at most {most:,} can be estimated at once.",
            code="parameter-range",
            remedy="Ask for fewer columns.",
            details={"cells": cells, "most": most},
        )
    columns = columns_of(blocks, by, invariant=invariant)
    part = table.project(columns)
    released = np.zeros(cells)
    released[fold([part[n].codes for n in columns], [len(part[n].labels) for n in columns])] = part.counts
    return Tabulation(
        tuple(by), tuple(axes), released.reshape(lengths), tuple(shown), tuple(len(table[n].labels) for n in by)
    )


def columns_of(blocks: Sequence[Block], by: Sequence[str], *, invariant: bool) -> list[str]:
    """The columns whose counts `tabulate` needs: those asked for, and what a matrix has redrawn together with them."""
    columns: list[str] = []
    for block in blocks:
        asked = [name for name in block.names if name in by]
        apart = isinstance(block.law, RetentionReplacement) and not invariant
        columns += asked if apart or not asked else block.names
    return columns


def can_be_undone(blocks: Sequence[Block], table: Counted, name: str, *, invariant: bool = False) -> bool:
    """Whether a column can be estimated: not if it was redrawn without regard to its value, or nearly so."""
    try:
        whole = tabulate(blocks, table, [name], invariant=invariant)
        invert(whole.axes, whole.released)
    except ParameterError:
        return False
    return True


def _general(block: Block, table: Counted, asked: Sequence[str], *, invariant: bool) -> General:
    matrix = block.law.matrix()
    sizes = [len(table[name].labels) for name in block.names]
    if invariant:
        # The released shares estimate the true ones, from which the second step was computed.
        part = table.project(block.names)
        counts = np.zeros(block.size, dtype=np.int64)
        counts[fold([part[name].codes for name in block.names], sizes)] = part.counts
        matrix = matrix @ np.array([[float(entry) for entry in row] for row in backward(block, counts.tolist())])
        absent = np.flatnonzero(counts == 0)  # nothing leads to them: they are taken to be absent from the table, too
        matrix[absent] = 0.0
        matrix[absent, absent] = 1.0
    codes = dict(zip(block.names, np.unravel_index(np.arange(block.size), sizes), strict=True))
    shown = fold([codes[name] for name in asked], [len(table[name].labels) for name in asked])
    return General(np.asarray(matrix, dtype=np.float64), shown)


def reconstruct(
    certificate: PramCertificate,
    table: Counted,
    by: Sequence[str],
    method: str | None = None,
    mean: str | None = None,
) -> PramEstimates:
    """A cross-tabulation of the table before it was randomised.

    Args:
        certificate: of the release.
        table: the released one.
        by: the columns; they are there.
        method: "inverse" for the unbiased numbers alone, "em" for the likeliest ones too, however long it takes; by
            default they are given where that is quick.
        mean: a column whose mean is wanted in each group.
    """
    if method not in (None, *METHODS):
        raise ParameterError(
            "There is no such method.", code="parameter-range", remedy=f"Choose {' or '.join(METHODS)}."
        )
    by = list(dict.fromkeys(by))
    blocks, invariant = blocks_of(certificate), certificate.mechanism.invariant
    whole, rate = tabulate(blocks, table, by, invariant=invariant), rate_of(certificate)
    there, spread = map(whole.arranged, invert(whole.axes, whole.released))
    estimate, variance = of_sample((there, spread), rate)
    em, gap, notes, seldom = None, None, [_ERRORS], np.zeros_like(estimate)
    if method == "em" or (method is None and whole.released.size <= _CELLS_FOR_BOTH):
        best = likeliest(whole.axes, whole.released)
        em, gap = whole.arranged(best.counts) / rate, best.gap
        notes.append(_LIKELIEST)
        if gap > 1.0:
            notes.append(
                f"The likeliest numbers are rough: their likelihood may be e^{number(gap, 3)} times too small."
            )
    if invariant:
        notes.append("The randomisation was computed from the true shares; errors of columns together are approximate.")
        if len(whole.axes) == 1:
            variance = whole.arranged(own_variance(whole))
        seldom = whole.arranged(rare_limits(whole))
        if seldom.any():
            notes.append(_RARE)
    if rate < 1:
        notes[0] = _SAMPLED
    if table.total < _SMALL_TABLE:
        notes.append(_FEW)
    means: tuple[GroupMean, ...] = ()
    if mean is not None:
        known = [name for block in blocks for name in block.names]
        labels = table[mean].labels if mean in known else ()
        numbers = numbers_of(certificate, known, labels, by, mean, certificate.mechanism.levels.get(mean))
        means = _means(blocks, table, by, mean, numbers, rate, invariant=invariant)
        notes.append(MIDDLES)
        if any(group.mean is None for group in means):
            notes.append(_NO_MEAN)
    return PramEstimates(
        by=tuple(by),
        rows=tuple(
            _rows(
                [table[name].labels for name in by],
                estimate,
                variance,
                seldom,
                em,
                table.total if rate == 1 else math.inf,
            )
        ),
        notes=tuple(notes),
        records=table.total,
        em_gap=gap,
        means=means,
        association=associate(whole, there, [table[name].labels for name in by]) if len(by) == 2 else None,
    )


def own_variance(whole: Tabulation) -> Floats:
    """The variance of released counts that are their own estimate, as invariant PRAM makes them.

    Given the table they are sums of independent indicators: Var(y_j) = Σ_u x_u S_uj(1 − S_uj), with S_uj the chance
    that u is released as something shown as j, and the released counts in place of x.
    """
    (axis,) = whole.axes
    chances = axis.summed(axis.forward(np.eye(axis.size), 0), 0).T
    return np.asarray(whole.released @ (chances * (1 - chances)), dtype=np.float64)


def rare_limits(whole: Tabulation) -> Floats:
    """What the numbers of rare values under invariant PRAM are not above, with 97.5%; 0 for those that are not rare.

    A released count y of one column is a sum of independent indicators whose mean is the true number x. For c ≤ x − 1,
    P[y ≤ c] is then at most what it is for a binomial law of mean x (Hoeffding 1956), and that at most what it is for a
    Poisson law (Anderson, Samuels 1967). So the Poisson law's own upper limit holds for x, and the variance, which is
    estimated by 0 where y is 0, is not needed. Of several columns, a cell has no more people than each of its values.
    """
    from scipy.special import gammaincinv

    few = _RARELY if len(whole.axes) == 1 else 1
    cells = whole.released
    for i, axis in enumerate(whole.axes):
        cells = axis.summed(cells, i)
    limits = np.zeros_like(cells)
    for i in range(cells.ndim):
        seen = cells.sum(axis=tuple(j for j in range(cells.ndim) if j != i), keepdims=True)
        limits = np.maximum(limits, np.where(seen < few, gammaincinv(seen + 1, 0.975), 0.0))
    return np.asarray(limits, dtype=np.float64)


def rate_of(certificate: PramCertificate) -> float:
    """The probability with which a person of whom estimates speak is in the table."""
    mechanism = certificate.mechanism
    return mechanism.beta if isinstance(mechanism, SampledPramMechanism) else 1.0


def of_sample(found: Iterable[Floats], rate: float) -> tuple[Floats, Floats]:
    """Estimates and variances for all people of whom the table is a sample of this rate.

    If x people are in a cell, X ~ Bin(x, β) are in the sample, of whom x̂ is an unbiased estimate. So x̂/β is one of x,
    and its variance is E[Var(x̂|X)]/β² + x(1−β)/β, in which x̂/β stands for x.
    """
    estimate, variance = found
    if rate == 1:
        return estimate, variance
    return estimate / rate, (variance + (1 - rate) * np.maximum(estimate, 0.0)) / rate**2


_SAMPLED = (
    "The table is a random sample of the people that estimates speak of. Standard errors and 95% intervals count both "
    "the sampling and the randomisation. Estimates may be below zero; add them up as they are."
)
_LIKELIEST = "em: the likeliest numbers of which none is below zero; of these no error is stated."
_RARE = (
    "Values that are seldom in the release, or not at all, may still be a few people's: their intervals reach up to "
    "the Poisson law's limit, however small the standard error."
)
_FEW = "There are few records: the intervals, which rest on the normal distribution, are rough."
_NO_MEAN = "Groups whose number of people is not known to be far from zero have no mean."
_ERRORS = (
    "Standard errors and 95% intervals are those of the randomisation: they speak of the people of the table. "
    "Estimates may be below zero; add them up as they are."
)


def _rows(
    labels: Sequence[Sequence[str | None]],
    estimate: Floats,
    variance: Floats,
    seldom: Floats,
    em: Floats | None,
    records: float,
) -> list[PramEstimate]:
    errors = np.sqrt(variance)
    low, high = (np.clip(estimate + side * NORMAL_95 * errors, 0.0, records) for side in (-1, 1))
    high = np.minimum(np.maximum(high, seldom), records)
    return [
        PramEstimate(
            tuple(texts[i] for texts, i in zip(labels, at, strict=True)),
            float(estimate[at]),
            float(errors[at]),
            float(low[at]),
            float(high[at]),
            None if em is None else float(em[at]),
        )
        for at in np.ndindex(estimate.shape)
    ]


def _means(
    blocks: Sequence[Block],
    table: Counted,
    by: Sequence[str],
    column: str,
    numbers: Sequence[float | None],
    rate: float,
    *,
    invariant: bool,
) -> tuple[GroupMean, ...]:
    counted = np.array([number is not None for number in numbers], dtype=np.float64)
    values = np.array([0.0 if number is None else number for number in numbers])
    values = values - (centre := float(values.mean()))  # near zero, where squares lose least

    whole = tabulate(blocks, table, [*by, column], invariant=invariant)
    cells = whole.arranged(invert(whole.axes, whole.released)[0])
    people, total = cells @ counted, cells @ (values * counted)
    squares = _squares(whole, values * counted, counted)
    means = []
    shown = [table[name].labels for name in by]
    for at in np.ndindex(people.shape):
        group = tuple(texts[i] for texts, i in zip(shown, at, strict=True))
        spread = math.sqrt(max(float(squares[2][at] - rate * people[at]), 0.0))
        if people[at] <= _FEWEST_ERRORS * spread:
            means.append(GroupMean(group, None, None, None, None, float(people[at]) / rate))
            continue
        m = float(total[at] / people[at])
        variance = float(squares[0][at] - 2 * m * squares[1][at] + m * m * squares[2][at])
        variance -= rate * float(np.sum((values - m) ** 2 * counted * cells[at]))
        error = math.sqrt(max(variance, 0.0)) / float(people[at])
        m += centre
        means.append(GroupMean(group, m, error, m - NORMAL_95 * error, m + NORMAL_95 * error, float(people[at]) / rate))
    return tuple(means)


def _squares(whole: Tabulation, first: Floats, second: Floats) -> tuple[Floats, Floats, Floats]:
    """Σ_w (p·p), (p·n) and (n·n) y_w in each group, p and n being what sums the last column with these weights."""
    last = len(whole.by) - 1
    place = next(i for i, shown in enumerate(whole.shown) if last in shown)
    axis, inner = whole.axes[place], whole.shown[place]
    sizes = [whole.sizes[i] for i in inner]
    others = tuple(i for i in inner if i != last)
    shown = tuple(others if i == place else columns for i, columns in enumerate(whole.shown))
    cells = whole.released
    for i, other in enumerate(whole.axes):
        if i != place:
            cells = other.undone(cells, i, squared=True)
    found = []
    for pair in ((first, first), (first, second), (second, second)):
        groups = axis.paired(cells, place, sizes, inner.index(last), *pair)
        part = Tabulation(whole.by[:last], whole.axes, groups, shown, whole.sizes[:last])
        found.append(part.arranged(groups))
    return found[0], found[1], found[2]
