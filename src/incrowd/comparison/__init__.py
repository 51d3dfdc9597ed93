"""Ways to publish one table, compared by the error of the counts that each leaves, at comparable promises.

Both Li, Qardaji and Su and Chaudhuri and Mishra ask for such a comparison. "Comparable" means: the same factor e^ε and
the same δ in each one's own notion. The notions differ, and `DIFFERENCES` says how; a smaller error under a weaker
promise is no victory.

Every run looks at the raw table, and so do the true counts that errors are taken against. None of this is private,
and nothing of it may be published.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from incrowd.comparison.contenders import CONTENDERS, Contender
from incrowd.comparison.workload import Errors, Workload
from incrowd.core.display import INTERNAL, Picture, Showable, Shown, ShownTable, picture
from incrowd.core.errors import GuaranteeError, ParameterError
from incrowd.core.numbers import as_given, number
from incrowd.histogram import Histogram
from incrowd.randomness import RandomSource

DIFFERENCES = (
    (
        "Adding or removing and replacing are different neighbours: a replacement is a removal and an addition, so"
        " that a promise of ε for adding or removing is one of 2ε, or a little less, for replacing."
    ),
    "Estimates below 0 were taken as 0.",
)
DELTA = 1e-3
"""The probability with which promises may fail, where nobody says another."""
UNITS = (
    "Σ|x−y|/records: over the cells of a table of counts, how many people are counted wrongly for each one there is, "
    "the mean over tables; 1 if nothing is published, 2 if everybody is counted in a wrong cell. Per cell: the same, "
    "divided by the number of cells. Relative error: of the true counts above 0, each taken as at least 0.1% of the "
    "table."
)
OBSERVED = (
    "There is no policy: the values that each column may have were read off the table. The promises of differential"
    " privacy are true only if these very values had been declared without looking at it."
)


@dataclass(frozen=True)
class ComparedFigure:
    """How one way of publishing does at one ε.

    Attributes:
        mechanism: its name.
        epsilon: the factor by which likelihoods may change is e^epsilon.
        promise: what is promised, in the notion of the mechanism.
        settings: the parameters that keep the promise; none if it cannot be kept.
        absolute: Σ|x − y|/R over the cells of a marginal, R being the number of records; the mean over marginals, and
            the median over runs: at a tiny rate a single record, drawn by luck, would decide a mean.
        absolute_spread: the standard deviation of that over runs; none of a single run.
        per_cell: the mean of |x − y|/R over cells, then over marginals; the median over runs.
        relative: the mean relative error of the cells that occur, as in `recoding.utility.query_error`; the median over
            runs.
        relative_spread: the standard deviation of that over runs; none of a single run.
        refused: why it cannot be done, if it cannot.
    """

    mechanism: str
    epsilon: float
    promise: str
    settings: str
    absolute: float | None
    absolute_spread: float | None
    per_cell: float | None
    relative: float | None
    relative_spread: float | None
    refused: str | None = None


@dataclass(frozen=True, repr=False)
class Compared(Showable):
    """A comparison. For the publisher's eyes only.

    Attributes:
        columns: the columns, as they are shown.
        records: in the table.
        marginals: how many counts of one or two columns were asked for.
        cells: how many cells they have together.
        delta: the δ of every promise that has one.
        runs: how many runs errors are the medians of.
        contenders: one for each way and ε.
        differences: between the promises, in words.
        units: what the errors are.
    """

    columns: tuple[str, ...]
    records: int
    marginals: int
    cells: int
    delta: float
    runs: int
    contenders: tuple[ComparedFigure, ...]
    differences: tuple[str, ...]
    units: str = UNITS

    def shown(self) -> Shown:
        """The error of each way to publish, by ε."""
        rows = [
            (one.mechanism, one.settings or one.refused or "", as_given(one.epsilon), _error(one.absolute))
            for one in self.contenders
        ]
        return Shown(
            f"{self.records:,} records, {self.marginals} counts of one or two of {len(self.columns)} columns",
            tables=(ShownTable(("", "settings", "ε", "Σ|x−y|/records"), rows, words=2),),
            notes=(self.units, *self.differences),
            internal=INTERNAL,
        )

    def plot(self, path: str | Path | None = None) -> Picture:
        """The errors as a picture, which a notebook shows; with a path, saved as SVG."""
        from incrowd.comparison.chart import draw

        return picture(draw(self), path)


def _error(error: float | None) -> str:
    return "—" if error is None else number(error, 3)


def compare(
    table: Histogram,
    *,
    epsilons: Sequence[float],
    delta: float,
    runs: int = 5,
    observed: bool = False,
    source: RandomSource | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Compared:
    """Publish a table in each way, several times, and measure the errors of all counts of one and two columns.

    Args:
        table: the table as it is shown: columns at their levels.
        epsilons: one or more.
        delta: the probability with which promises may fail.
        runs: how often each way is tried.
        observed: whether the values of the columns were read off the table rather than declared.
        source: the random bits; secret ones if not given.
        progress: called with what is being done and the part of it that is done.
    """
    if not epsilons or not all(math.isfinite(e) and 0 < e <= 20 for e in epsilons):
        raise ParameterError("Each epsilon must be above 0, and 20 at most.", code="parameter-range")
    if not 0 < delta < 1 or runs < 1:
        raise ParameterError("delta must lie between 0 and 1, and there must be a run.", code="parameter-range")
    varying = table.project([c.name for c in table.columns if len(c.labels) > 1])
    if not varying.columns or not varying.total:
        raise ParameterError(
            "There is nothing to count: every column is shown as one value.",
            code="parameter-combination",
            remedy="Show a column at a finer level.",
        )
    workload = Workload.of(varying)
    bits = RandomSource() if source is None else source
    figures = []
    tasks = [(contender, epsilon) for contender in CONTENDERS for epsilon in sorted(set(epsilons))]
    for place, (contender, epsilon) in enumerate(tasks):
        if progress is not None:
            progress(contender.name, place / len(tasks))
        figures.append(_figure(contender, varying, workload, epsilon, delta, runs, bits))
    return Compared(
        columns=varying.names,
        records=varying.total,
        marginals=len(workload.truth),
        cells=workload.cells,
        delta=delta,
        runs=runs,
        contenders=tuple(figures),
        differences=(
            *(contender.differs for contender in CONTENDERS if contender.differs),
            *DIFFERENCES,
            *([OBSERVED] if observed else []),
        ),
    )


def _figure(
    contender: Contender,
    table: Histogram,
    workload: Workload,
    epsilon: float,
    delta: float,
    runs: int,
    source: RandomSource,
) -> ComparedFigure:
    promise = contender.promise(epsilon, delta)
    try:
        settled = contender.settle(table, workload, epsilon, delta)
    except GuaranteeError as error:
        # Not its details: what it says of the table is for those who ask for it.
        return ComparedFigure(contender.name, epsilon, promise, "", None, None, None, None, None, refused=error.message)
    errors: list[Errors] = [workload.errors(settled.draw(source)) for _ in range(runs)]
    absolute, per_cell, relative = ([getattr(e, name) for e in errors] for name in ("absolute", "per_cell", "relative"))
    return ComparedFigure(
        contender.name,
        epsilon,
        promise,
        settled.settings,
        statistics.median(absolute),
        statistics.stdev(absolute) if runs > 1 else None,
        statistics.median(per_cell),
        statistics.median(relative),
        statistics.stdev(relative) if runs > 1 else None,
    )
