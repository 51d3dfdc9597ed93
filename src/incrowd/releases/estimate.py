"""Estimates about the population from a published folder alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from incrowd.core.errors import ParameterError
from incrowd.mechanisms.base import Estimates, all_columns
from incrowd.mechanisms.certificate import AnyCertificate
from incrowd.mechanisms.registry import mechanism_named
from incrowd.releases.verify import read_release


def estimate(folder: str | Path, by: Sequence[str], *, method: str | None = None, mean: str | None = None) -> Estimates:
    """A cross-tabulation by some columns of a published folder, which must pass its own checks.

    How to estimate and whether a mean is wanted can be said for randomised releases only.
    """
    options = {name: value for name, value in (("method", method), ("mean", mean)) if value is not None}

    def needed(certificate: AnyCertificate) -> Iterable[str]:
        return mechanism_named(certificate.mechanism.name).columns_needed(certificate, by, **options)

    certificate, table = read_release(folder, needed)
    known = all_columns(certificate)
    unknown = [name for name in by if name not in known]
    if unknown or not by:
        raise ParameterError(
            f"The release has no column {unknown[0]!r}." if unknown else "Name at least one column.",
            code="column-unknown",
            remedy=f"It has: {', '.join(known)}.",
        )
    kind = mechanism_named(certificate.mechanism.name)
    if options and certificate.mechanism.name != "pram":
        raise ParameterError(
            f"The option {next(iter(options))!r} has a meaning for randomised releases only (mechanism 'pram').",
            code="parameter-combination",
            remedy="Leave it out.",
        )
    found = kind.estimate(certificate, table, by, **options)
    void = certificate.promise.void
    return found if void is None else replace(found, notes=(void, *found.notes))
