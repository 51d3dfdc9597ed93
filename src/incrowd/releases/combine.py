"""More synthetic tables from a published set of views."""

from __future__ import annotations

import io
from pathlib import Path

from incrowd.core.errors import ParameterError
from incrowd.core.files import write_whole
from incrowd.histogram import Histogram
from incrowd.mechanisms.declared import policy_of
from incrowd.mechanisms.packages import require_labels, require_rows
from incrowd.mechanisms.registry import mechanism_named
from incrowd.mechanisms.tables import write_table
from incrowd.policy.fields import OUTPUTS
from incrowd.releases.verify import read_release
from incrowd.theory._numbers import require_count


def combine(
    folder: str | Path, *, rows: int | None = None, seed: int | None = None, output: str | Path | None = None
) -> Histogram:
    """Another synthetic table from a published set of views. It looks at nothing else, so it costs nothing.

    Args:
        folder: the release, which must pass its own checks.
        rows: how many rows; about as many as people if not given.
        seed: the same seed gives the same table; by chance if not given.
        output: a file to write it to: .parquet, .csv, .arrow, .sav, .dta or .xlsx.

    Raises:
        InputError: the folder is not a valid release, or not one of views.
    """
    if rows is not None:
        require_count("rows", rows)
    if seed is not None:
        require_count("seed", seed, least=0)
    place = None if output is None else Path(output)
    if place is not None and place.suffix[1:] not in OUTPUTS:
        raise ParameterError(
            f"{place.name} does not say in which format to write.",
            code="output-format",
            remedy=f"Let the name end in {', '.join(f'.{name}' for name in OUTPUTS)}.",
        )
    certificate, published = read_release(folder)
    mechanism = mechanism_named(certificate.mechanism.name)
    table = mechanism.drawn_again(certificate, published, rows, seed)
    if place is not None:
        sink = io.BytesIO()
        require_rows(place.suffix[1:], table.total)
        require_labels(table, place.suffix[1:], attributes := policy_of(certificate).attributes)
        write_table(table, place.suffix[1:], sink, mechanism.table_notes, attributes)
        write_whole(place, sink.getvalue())
    return table
