"""Estimates about the population from what is published alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from incrowd.core.errors import ParameterError
from incrowd.mechanisms.base import Publication, all_columns
from incrowd.mechanisms.certificate import AnyCertificate
from incrowd.mechanisms.estimates import EstimateOptions, Estimates
from incrowd.mechanisms.persons import Persons
from incrowd.mechanisms.registry import mechanism_named
from incrowd.releases.release import Release
from incrowd.releases.verify import read_release
from incrowd.theory._numbers import require_count


def estimate(
    published: str | Path | Release,
    by: str | Sequence[str],
    *,
    method: str | None = None,
    mean: str | None = None,
    sum_of: str | None = None,
    total: int | None = None,
) -> Estimates:
    """A cross-tabulation of the population from a release, with intervals that hold.

    Args:
        published: a release, or the folder that it was published in, which must pass its own checks.
        by: the columns, or the only one.
        method: for randomised releases: "inverse" for the unbiased numbers alone, "em" for the likeliest ones too.
        mean: a column of numbers whose mean is wanted in each group.
        sum_of: a column of numbers whose sum is wanted in each group, of a plain sample.
        total: how many people there are in all, if that is known from elsewhere: upper ends become smaller.
    """
    names = [by] if isinstance(by, str) else by
    ends = None if total is None else (require_count("total", total, 0),) * 2
    options = EstimateOptions(mean, ends, method, sum_of)

    def needed(certificate: AnyCertificate) -> Iterable[str]:
        return mechanism_named(certificate.mechanism.name).columns_needed(certificate, names, options)

    if isinstance(published, Release) and published.folder is not None:
        published = published.folder  # executors wrote it: no machine need hold more of it than is asked for
    if isinstance(published, Release):
        certificate = published.certified
        publication = Publication(published.histogram, published.beside)
    else:
        certificate, publication = read_release(published, needed)
    return estimate_from(certificate, publication, names, options)


def estimate_from(
    certificate: AnyCertificate, publication: Publication, by: Sequence[str], options: EstimateOptions
) -> Estimates:
    """A cross-tabulation of what was published and has passed its checks."""
    known = all_columns(certificate)
    unknown = [name for name in by if name not in known]
    if unknown or not by:
        raise ParameterError(
            f"The release has no column {unknown[0]!r}." if unknown else "Name at least one column.",
            code="column-unknown",
            remedy=f"It has: {', '.join(known)}."
            + (
                " With a comma in a name, give --by once for each column." if any("," in name for name in known) else ""
            ),
        )
    kind = mechanism_named(certificate.mechanism.name)
    unfit = [name for name in options.given if name not in kind.estimate_options]
    if unfit:
        raise ParameterError(
            f"The option {unfit[0]!r} has no meaning for a release by {kind.title.lower()}.",
            code="parameter-combination",
            remedy="Leave it out.",
        )
    found = kind.estimate(certificate, publication, list(dict.fromkeys(by)), options)
    said = [note for note in (certificate.promise.void,) if note is not None]
    persons = Persons.in_certificate(certificate)
    notes = (*said, *persons.counted, *map(persons.worded, found.notes))
    return replace(found, notes=notes, unit=persons.estimated)
