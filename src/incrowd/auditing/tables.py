"""From a table anywhere to its audit: which columns are meant, what they hold, who is behind them."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from incrowd.core.errors import ParameterError
from incrowd.core.progress import Progress, drawing, teller

if TYPE_CHECKING:
    from incrowd.auditing.audit import Audit
    from incrowd.auditing.reidentification import Population
    from incrowd.auditing.suspects import Suspect
    from incrowd.histogram import Histogram
    from incrowd.sources import Source
    from incrowd.sources.observed import Observed


@drawing
def audit(
    data: Any,
    quasi: str | Sequence[str],
    sensitive: str | Sequence[str] = (),
    adversaries: str | Sequence[str] = (),
    *,
    domains: Mapping[str, Sequence[str]] | Sequence[str] = (),
    ordered: str | Sequence[str] = (),
    others_as_quasi: bool = False,
    weights: str | None = None,
    sampling_rate: float | None = None,
    population: Any = None,
    population_table: str | None = None,
    people: str | Sequence[str] = (),
    threshold: float = 0.2,
    worst: int = 10,
    show_values: bool = False,
    progress: Progress | bool | None = None,
    **reading: Any,
) -> Audit:
    """What a table gives away, whoever published it.

    Args:
        data: a table as in `incrowd.release`; None for one of Spark's catalogue.
        quasi: the columns that others may know of a person: names, or texts with commas between names.
        sensitive: the columns that nobody should learn about a person.
        adversaries: who is feared, as in ``"II sigma=1000 b=2"``; see `incrowd.auditing.suspects`.
        domains: the values that sensitive columns can have, in their order; otherwise those that occur.
        ordered: sensitive columns whose domain is in order, though it is neither numbers nor dates.
        others_as_quasi: whether, for one sensitive column, the others count as known to others.
        weights: a column that says how many people of the population each record stands for.
        sampling_rate: the part of the population that is in the table.
        population: a table of the whole population, with the same quasi-identifiers. It is read by the same engine.
        population_table: which table is meant there; without `population`, in the place where the data are.
        people: the column that says whose a row is, or several that do so together, where a person may have several
            rows: then people are counted in each group as well.
        threshold: the risk above which records are counted.
        worst: how many of the worst groups to list.
        show_values: whether the result may hold values of the table.
        progress: called with what is being done and the part of it that is done.
        reading: how to read the table: `table`, `engine`, `delimiter`, `encoding` and so on; see
            `incrowd.sources.options.Options`.
    """
    from incrowd.auditing import audit as auditing
    from incrowd.auditing.suspects import DEFAULT, read_adversary
    from incrowd.sources import open_source
    from incrowd.sources.crowds import people_in_groups
    from incrowd.sources.observed import count_observed

    tell = teller(progress)

    everybody = population is not None or population_table is not None
    if (weights is not None) + (sampling_rate is not None) + everybody > 1:
        raise ParameterError(
            "Weights, a sampling rate and a population table are three ways to say the same.",
            code="parameter-combination",
            remedy="Give one of them.",
        )

    def open_everybody() -> Source:
        on = {name: reading[name] for name in ("engine", "most_cells") if name in reading}
        return open_source(data if population is None else population, table=population_table, **on)

    suspects = tuple(map(read_adversary, _listed(adversaries))) or DEFAULT
    source = open_source(data, **reading)
    there = [column.name for column in source.columns()]
    known, secret = columns_meant(quasi, there), columns_meant(sensitive, there)
    if not known or len({*known, *secret}) < len(known) + len(secret):
        raise ParameterError(
            "At least one quasi-identifier is needed, and no column may be named twice.",
            code="parameter-combination",
            remedy="A column is a quasi-identifier or sensitive, not both; leave out what is neither.",
        )
    suspects = tuple(_with_what_she_saw(suspect, secret) for suspect in suspects)
    declared = domains if isinstance(domains, Mapping) else domains_meant(domains, secret)
    tell("reading", 0.0)
    whose = columns_meant(people, there)
    repeating = () if whose else tuple(_rows_not_people(source, [*known, *secret]))
    observed = count_observed(source, [*known, *secret], weights=weights)
    crowds = people_in_groups(source, known, whose, worst=worst, show_values=show_values) if whose else None
    tell("auditing", 0.5)
    found = auditing.audit(
        observed.histogram,
        known,
        secret,
        suspects,
        domains=declared,
        ordered=[
            *columns_meant(ordered, there),
            *_numbers_with(reading.get("decimal", "."), observed.histogram, secret),
        ],
        others_as_quasi=others_as_quasi,
        population=_population(observed, known, sampling_rate, open_everybody() if everybody else None),
        threshold=threshold,
        worst=worst,
        show_values=show_values,
    )
    return replace(found, notes=(*found.notes, *repeating), people=crowds)


def _rows_not_people(source: Source, looked_at: Sequence[str]) -> Iterator[str]:
    """That rows are taken for people though an identifier repeats, if one does."""
    from incrowd.sources.repeats import seem_not_people

    for repeated in seem_not_people(source, looked_at)[:1]:
        yield (
            f"Every figure counts rows, and {repeated.column!r} repeats: a group of many rows may be one person. If it "
            "says whose a row is, name it (--people, or `people` in Python): people are counted in each group then."
        )


def _with_what_she_saw(suspect: Suspect, sensitive: Sequence[str]) -> Suspect:
    """An adversary whose earlier table, if she has seen one, has been counted."""
    from incrowd.sources import open_source
    from incrowd.sources.observed import count_observed

    if suspect.earlier is None:
        return suspect
    about = [suspect.about] if suspect.about is not None else list(sensitive)
    if len(about) != 1:
        raise ParameterError(
            "An earlier table is about one sensitive column, and it is not said which.",
            code="parameter-combination",
            remedy="Add about=COLUMN to the adversary. The column must have the same name in both tables.",
        )
    earlier = count_observed(open_source(suspect.earlier), about).histogram
    column = earlier[about[0]]
    seen = {column.labels[int(code)]: int(count) for code, count in zip(column.codes, earlier.counts, strict=True)}
    return replace(suspect, seen=seen)


def _numbers_with(decimal: str, table: Histogram, names: Sequence[str]) -> Iterator[str]:
    """Columns whose labels are numbers in their order, as written with this sign before decimals."""
    from incrowd.sources.observed import natural_order

    if decimal != ".":
        yield from (name for name in names if natural_order(table[name].labels, decimal) == list(table[name].labels))


def columns_meant(given: str | Sequence[str], there: Sequence[str]) -> list[str]:
    """The columns that are named: each text is one of them, or several with commas between.

    A text that is a column's name is that column, commas and all.
    """
    names = []
    for text in _listed(given):
        names += [text] if text in there else [part for part in text.split(",") if part]
    return names


def domains_meant(given: Sequence[str], sensitive: Sequence[str]) -> dict[str, list[str]]:
    """Domains written as ``column=a,b,c``, a value with a comma in double quotes; several for one column add up."""
    domains: dict[str, list[str]] = {}
    for text in _listed(given):
        # A name may hold an equals sign, and one name may begin another.
        name = max((name for name in sensitive if text.startswith(f"{name}=")), key=len, default=None)
        if name is None:
            raise ParameterError(
                "A domain is written column=value,value,… for a sensitive column.",
                code="parameter-combination",
                remedy=f"The sensitive columns are: {', '.join(sensitive) or 'none'}.",
            )
        values = next(csv.reader([text[len(name) + 1 :]], strict=False), [])
        domains.setdefault(name, []).extend(value for value in values if value)
    return domains


def _listed(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _population(
    observed: Observed, quasi: Sequence[str], rate: float | None, everybody: Source | None
) -> Population | None:
    import numpy as np

    from incrowd.auditing.reidentification import by_rate, by_table, by_weights
    from incrowd.sources.observed import count_observed, run_starts

    groups = observed.histogram.project(quasi)
    if rate is not None:
        return by_rate(groups.counts, rate)
    if everybody is not None:
        return by_table(groups, count_observed(everybody, quasi).histogram)
    if observed.weights is None:
        return None
    # The quasi-identifiers are the first columns, so the cells of a group stand together.
    starts = np.flatnonzero(run_starts([observed.histogram[name].codes for name in quasi]))
    return by_weights(groups.counts, np.add.reduceat(observed.weights, starts))
