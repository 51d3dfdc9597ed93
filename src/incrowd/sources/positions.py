"""Which columns of a table are meant, and whether they can hold what is declared of them; the same in every engine."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from incrowd.core.errors import DataError, ParameterError
from incrowd.domain import Coding
from incrowd.sources.duckdb_codes import can_hold, domain_kind


def positions(wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    """Where the wanted columns stand among the names of a table's columns."""
    if len(set(wanted)) != len(wanted):
        raise ParameterError("A column is to be coded twice.", code="data-columns")
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise _unknown(unknown, names)
    if any(names.count(name) > 1 for name in wanted):
        raise DataError("Several columns have no name.", code="data-columns", remedy="Name the one that is meant.")
    return [names.index(name) for name in wanted]


def require_fitting(codings: Sequence[Coding], kinds: Sequence[str]) -> None:
    """Refuses columns whose kind (see `SourceColumn`) can never hold what is declared."""
    misfits = [
        f"{coding.column!r} is of kind {kind}, its domain of kind {domain_kind(coding.domain)}"
        for coding, kind in zip(codings, kinds, strict=True)
        if not can_hold(kind, coding.domain)
    ]
    if misfits:
        raise DataError(
            f"Columns cannot hold what is declared: {'; '.join(misfits)}.",
            code="column-type",
            remedy="Declare a domain of the column's own kind, or convert the column.",
        )


def _unknown(unknown: list[str], names: Sequence[str]) -> DataError:
    hints = []
    for name in unknown:
        # Only names that look alike are told: where a header is lacking, the first record stands in its place.
        near = difflib.get_close_matches(name.strip().lower(), {n.strip().lower(): n for n in names}, n=1, cutoff=0.75)
        original = next((n for n in names if near and n.strip().lower() == near[0]), None)
        hints.append(f"{name!r}" + (f" (did you mean {original!r}?)" if original is not None else ""))
    return DataError(
        f"The table has no column {', '.join(hints)}.",
        code="column-unknown",
        remedy="Names must match exactly. The first line of a text file must hold them.",
        details={"columns": unknown},
    )
