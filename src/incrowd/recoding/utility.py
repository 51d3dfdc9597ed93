"""How much of a table is left in what was published of it: one function for each measure.

Every measure is a function of a `Comparison`: the table as it was, the recoding of each column, the records that could
have been published (all of them, or a random sample) and those that were. Sampling alone is no loss of information
here: what is measured record by record is measured on the sample, with suppressed records losing everything. The last
three measures compare distributions, or counts scaled up to the table, and there the sampling error shows.

To compare something coarse with something fine, a published record is spread evenly over the base values that its
labels cover: that is what someone knows who has the release, the hierarchies and nothing else.

None of this may be published: it is read off the raw table.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import InitVar, dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from incrowd.core.errors import DataError, ParameterError
from incrowd.domain import Recode
from incrowd.histogram import Histogram
from incrowd.recoding.pairs import Floats, Sums, paired_sums, totals
from incrowd.theory._numbers import require_count

SANITY = 0.001
"""Relative errors are taken against no less than this share of the table: a miscounted person or two is no disaster."""

_ROUNDING = 1e-12  # logarithms of shares, each rounded, differ by less than this where nothing is lost
_EXACT_SQUARES = 2**31  # a table of fewer records has a sum of squared counts below 2**63


@dataclass(frozen=True)
class Marginal:
    """What became of the counts of one or two columns.

    Attributes:
        names: the columns.
        pmse: how well a record of the table can be told from a published one by these columns; see `pmse`.
        query_error: the mean relative error of the table's counts, estimated from the release; see `query_error`.
    """

    names: tuple[str, ...]
    pmse: float
    query_error: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """A table beside what was published of it.

    Attributes:
        before: the whole table, base codes.
        recodes: for each column how its base codes were recoded.
        sample: the recoded records of which some were published: `before` recoded, or a random sample of that.
        published: the records of the sample that were published.
        rate: the sampling rate; published counts divided by it stand for records of the table.
        whole: `before` recoded, if it is at hand.
    """

    before: Histogram
    recodes: Mapping[str, Recode]
    sample: Histogram
    published: Histogram
    rate: float = 1.0
    whole: InitVar[Histogram | None] = None

    def __post_init__(self, whole: Histogram | None) -> None:
        if not self.before.total or not self.before.columns:
            raise DataError("A table without records or columns has no information to lose.", code="data-empty")
        shapes = {name: (len(recode.to), recode.labels) for name, recode in self.recodes.items()}
        fits = {c.name: len(c.labels) for c in self.before.columns} == {n: base for n, (base, _) in shapes.items()}
        fits &= all(
            h.names == self.before.names and all(c.labels == shapes[c.name][1] for c in h.columns)
            for h in (self.sample, self.published, *([] if whole is None else [whole]))
            if fits
        )
        fits &= whole is None or whole.total == self.before.total
        if not fits or self.published.total > self.sample.total:
            raise ParameterError(
                "The table, its recoding, the sample and what was published of it do not belong together.",
                code="parameter-combination",
            )
        if whole is not None:
            self.__dict__["recoded"] = whole

    @property
    def suppressed(self) -> int:
        """The records of the sample that were not published."""
        return self.sample.total - self.published.total

    @cached_property
    def covered(self) -> dict[str, NDArray[np.int64]]:
        """For each column, how many base values each of its labels stands for."""
        return {n: np.bincount(recode.to, minlength=len(recode.labels)) for n, recode in self.recodes.items()}

    @cached_property
    def recoded(self) -> Histogram:
        """The whole table, recoded."""
        return self.before.recode(self.recodes)

    @cached_property
    def beside(self) -> NDArray[np.int64]:
        """For each cell of `recoded`, how many of its records were published."""
        places = self.recoded.places(self.published)
        if np.any(places < 0):
            raise ParameterError("Something was published that the table does not hold.", code="parameter-combination")
        counts = np.zeros(len(self.recoded), dtype=np.int64)
        counts[places] = self.published.counts
        return counts

    @cached_property
    def grouped(self) -> dict[str, NDArray[np.int64]]:
        """For each column, how many records of the table are shown as each of its labels, once it is recoded."""
        values = self.before.tallies
        return {n: totals(r.to, values[n], len(r.labels)).astype(np.int64) for n, r in self.recodes.items()}

    @cached_property
    def marginals(self) -> tuple[Marginal, ...]:
        """Every column and every pair of columns."""
        before, after = self.before.tallies, self.published.tallies
        singles = [
            _marginal(self, (name,), *(Sums(side[name].astype(np.float64)) for side in (before, after)))
            for name in self.before.names
        ]
        pairs = {pair: _marginal(self, pair, *sums) for pair, *sums in paired_sums(self.before, self.published)}
        return (*singles, *(pairs[pair] for pair in combinations(self.before.names, 2)))


# --- record by record -----------------------------------------------------------------------------------------------


def information_kept(comparison: Comparison) -> float:
    """Granularity: the mean of `information_by_column`, from 0 (nothing left) to 1 (everything as it was).

    1 minus this is known as the generalized information loss (GIL), or simply as Loss.
    """
    by_column = information_by_column(comparison)
    return math.fsum(by_column.values()) / len(by_column)


def loss(comparison: Comparison) -> float:
    """The share of the information that is lost: 1 − `information_kept`."""
    return 1.0 - information_kept(comparison)


def information_by_column(comparison: Comparison) -> dict[str, float]:
    """For each column, the mean over the records of the sample of 1 − (values covered − 1)/(values of the domain − 1).

    A suppressed record counts 0. A column whose domain is a single value keeps all it has.
    """
    kept = {}
    for column in comparison.published.columns:
        covered = comparison.covered[column.name]
        domain = int(covered.sum())
        worth = np.ones(len(covered)) if domain == 1 else (domain - covered) / (domain - 1)
        whole = _exact_sum(worth * comparison.published.tallies[column.name])
        kept[column.name] = whole / comparison.sample.total if comparison.sample.total else 0.0
    return kept


def nonuniform_entropy(comparison: Comparison) -> float:
    """The share of the columns' information that is lost, from 0 (none) to 1 (all), rare values telling more.

    A record whose value v is shown as g loses −log₂(n_v/n_g) bits, n being numbers of records of the whole table; a
    suppressed one loses −log₂(n_v/n). The loss is divided by what suppressing everything would lose, column by column,
    and then averaged. A column with one and the same value everywhere has nothing to lose and loses nothing.

    For a sample the value v of a record is no longer known, so its loss is the mean over the records of the table that
    are shown as g. ARX compares a suppressed value with the other suppressed ones only, and does not normalise.
    """
    total = comparison.before.total
    shares = []
    for name in comparison.before.names:
        values, groups = comparison.before.tallies[name], comparison.grouped[name]
        to = comparison.recodes[name].to
        with np.errstate(divide="ignore", invalid="ignore"):
            bits = np.where(values > 0, values * np.log2(groups[to] / values), 0.0)
            inside = np.where(groups > 0, totals(to, bits, len(groups)) / groups, 0.0)
            outside = np.where(groups > 0, np.log2(total / groups), 0.0)
        sampled, published = comparison.sample.tallies[name], comparison.published.tallies[name]
        worst = _exact_sum(sampled * (inside + outside))
        lost = _exact_sum(published * inside) + _exact_sum((sampled - published) * (inside + outside))
        # Nothing to lose, or nothing sampled: then all is lost that there was.
        shares.append(lost / worst if worst > 0 else float(not sampled.any() and np.count_nonzero(values) > 1))
    return math.fsum(shares) / len(shares)


# --- by the sizes of crowds -----------------------------------------------------------------------------------------


def discernibility(comparison: Comparison) -> int:
    """Σ over published crowds of size², plus, for each suppressed record, the number of records of the sample.

    Bayardo and Agrawal's measure with ARX's treatment of suppression: a record costs as many records as it cannot be
    told from, and a suppressed one cannot be told from any. From the number of records (all different) to its square.
    """
    squares = sum_of_squares(comparison.published.counts, comparison.published.total)
    return squares + comparison.suppressed * comparison.sample.total


def sum_of_squares(counts: NDArray[np.int64], total: int) -> int:
    """Σ n² of counts that add up to at most `total`, exactly."""
    if total >= _EXACT_SQUARES:
        counts = counts.astype(object)
    return int(np.dot(counts, counts))


def average_class_size(comparison: Comparison) -> float:
    """Records of the sample divided by crowds, all suppressed records together being one more crowd (as in ARX)."""
    crowds = len(comparison.published) + (comparison.suppressed > 0)
    return comparison.sample.total / crowds if crowds else 0.0


def normalised_class_size(comparison: Comparison, k: int) -> float:
    """LeFevre, DeWitt and Ramakrishnan's C_avg: the average class size divided by the least allowed, so 1 is best."""
    return average_class_size(comparison) / require_count("k", k)


# --- by the distribution --------------------------------------------------------------------------------------------


def kl_divergence(comparison: Comparison) -> float:
    """D(p‖q) in bits: how far the distribution q that the release suggests is from the table's distribution p.

    q spreads every published record evenly over the base values that its labels cover, and every suppressed one evenly
    over the whole domain; ARX does the same, except that it adds the latter only where nothing was published. Infinite
    if the sample missed a crowd altogether and nothing was suppressed: then the release rules out what is there.
    """
    fine, table = comparison.before, comparison.recoded
    there = np.flatnonzero(comparison.beside)
    width = np.zeros(len(there))
    for column in table.columns:
        width += np.log2(comparison.covered[column.name])[column.codes[there]]
    domain = math.fsum(math.log2(len(column.labels)) for column in fine.columns)
    records = comparison.sample.total
    hidden = comparison.suppressed / records if records else 1.0
    everywhere = math.log2(hidden) - domain if hidden else -math.inf
    told = np.logaddexp2(np.log2(comparison.beside[there] / max(records, 1)) - width, everywhere)
    sizes, cells = fine.sizes
    elsewhere = fine.total - int(table.counts[there].sum())
    # Σ p log₂ p, and Σ p log₂ q over what is shown and what is not.
    own = _exact_sum(cells * sizes / fine.total * np.log2(sizes / fine.total))
    seen = _exact_sum(table.counts[there] / fine.total * told)
    unseen = elsewhere / fine.total * everywhere if elsewhere else 0.0
    found = own - seen - unseen
    return found if found > _ROUNDING else 0.0


def pmse(comparison: Comparison) -> float:
    """The propensity-score mean squared error, from 0 (cannot be told apart) to 1/4 (can always be told apart).

    Records of the table and published ones, spread evenly over the values that they cover, are mixed half and half, and
    a model guesses the probability that a record is a published one; this is the mean squared difference of that
    guess from 1/2. The model here is the saturated one of two columns, whose guess in each cell is the share of
    published ones: with shares p and q of a cell in the two tables, Σ (p−q)²/(8(p+q)). The result is the mean over all
    pairs of columns. An empty release has 1/4.
    """
    size = min(2, len(comparison.before.columns))
    chosen = [marginal.pmse for marginal in comparison.marginals if len(marginal.names) == size]
    return math.fsum(chosen) / len(chosen)


def query_error(comparison: Comparison) -> float:
    """How wrong counts from the release are: the mean relative error of all one- and two-way counts of the table.

    The workload asks, for each column and each pair of columns, how many records have each base value or combination of
    base values that occurs in the table. The answer is the number of published records, spread evenly over the values
    that they cover and divided by the sampling rate; its error |answer − truth| is divided by the truth, or by `SANITY`
    of the table if that is more. The mean is taken over the counts of each marginal, then over the marginals.
    """
    return math.fsum(marginal.query_error for marginal in comparison.marginals) / len(comparison.marginals)


def _marginal(comparison: Comparison, names: tuple[str, ...], before: Sums, after: Sums) -> Marginal:
    """Only cells that occur in the table are looked at: whatever else was published lies in cells with p = 0."""
    cells, truth = before.occurring()
    sought, width = np.zeros_like(cells), np.ones(len(cells))
    place = 1
    for name in reversed(names):
        recode = comparison.recodes[name]
        cells, base = np.divmod(cells, len(recode.to))
        codes = recode.to[base]
        sought += codes.astype(np.int64) * place
        width *= comparison.covered[name][codes]
        place *= len(recode.labels)
    total, published = comparison.before.total, comparison.published.total
    spread = after.at(sought) / width
    error = np.abs(spread / comparison.rate - truth) / np.maximum(truth, SANITY * total)
    apart = 0.25
    if published:
        p, q = truth / total, spread / published
        # Where p = 0, (p−q)²/(p+q) is q; all of these add up to the part of q that is not where p is.
        apart = (_exact_sum((p - q) ** 2 / (p + q)) + max(0.0, 1.0 - _exact_sum(q))) / 8
    return Marginal(names, min(apart, 0.25), float(error.mean()))


def _exact_sum(values: Floats) -> float:
    """Rounded only once, so that the order does not matter."""
    return math.fsum(values.tolist())
