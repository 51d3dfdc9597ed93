"""From the codes that an engine counted to a histogram, or to the one error that says what is wrong.

An engine gives every record one code per column: the final code of its value if the value is declared; else
`outside_code`; else, for a missing value, `missing_code`. Where the coding has no place for such a value, these lie
behind the last label, so that faults are counted in the same scan as everything else. Several keys are packed into one
64-bit integer, which is faster to group by, to move and to hand over than many small columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from incrowd.core.errors import DataError, InternalError
from incrowd.domain import Coding, DateRange
from incrowd.histogram import Column, Histogram, smallest_type
from incrowd.marginals import Marginals

Examples = Callable[[str], list[str]]

_WORD_BITS = 62
_MIDNIGHT = (
    " A moment with a time zone is a day only at midnight in UTC: if another zone's is meant, convert to dates first."
)


def value_codes(coding: Coding) -> np.ndarray:
    """The final code of each declared value."""
    values = len(coding.domain.labels)
    return np.arange(values) if coding.recode is None else np.asarray(coding.recode.to)[:values]


def beside_codes(coding: Coding) -> list[int]:
    """The final code of each of the coding's `codes`."""
    values = len(coding.domain.labels)
    base = range(values, values + len(coding.codes))
    return list(base) if coding.recode is None else [int(coding.recode.to[code]) for code in base]


def outside_code(coding: Coding) -> int:
    """The code of values outside the domain: their bucket's, or one behind the last label."""
    if coding.other_code is None:
        return len(coding.labels)
    return coding.other_code if coding.recode is None else int(coding.recode.to[coding.other_code])


def missing_code(coding: Coding) -> int:
    """The code of missing values: their cell's, or two behind the last label."""
    if coding.missing_code is None:
        return len(coding.labels) + 1
    return coding.missing_code if coding.recode is None else int(coding.recode.to[coding.missing_code])


def dropping_code(coding: Coding) -> int | None:
    """The code whose rows are left out, if there is one."""
    return len(coding.labels) + 1 if coding.missing == "drop" else None


def require_all(counted: int, expected: int | None) -> None:
    """Refuses a count of records that is not the one that was found in another way, if one was.

    Raises:
        DataError: they differ.
    """
    if expected is not None and counted != expected:
        raise DataError(
            f"The table does not add up: {counted:,} records were read, but it holds {expected:,}.",
            code="records-differ",
            remedy="Let nobody write to it meanwhile. In a text file, look for mixed line ends and for quotes in "
            "the wrong places; or save the table as Parquet.",
            details={"read": counted, "held": expected},
        )


def require_as_asked(found: Histogram, codings: Sequence[Coding]) -> Histogram:
    """What an engine found, if it has the columns and labels that were declared: others may be read off the data.

    Raises:
        DataError: it has others.
    """
    if [(column.name, column.labels) for column in found.columns] != [(c.column, c.labels) for c in codings]:
        raise not_as_asked()
    return found


def not_as_asked() -> DataError:
    """The error for an engine that does not do what `Source.count_by` says."""
    return DataError(
        "The engine did not count by the columns and values that it was asked for.",
        code="data-unreadable",
        remedy="The engine must be corrected: its answer has the columns that it is given, in their order, with the "
        "labels of their codings.",
    )


def conclude(
    codings: Sequence[Coding],
    codes: Sequence[np.ndarray],
    counts: np.ndarray,
    examples: Examples | None = None,
) -> Histogram:
    """The histogram of counted codes.

    A record with a missing value in a column that drops such records is left out before anything else is judged.

    `examples`, given a column, finds a few of its values outside the domain; without it, no value is ever shown.

    Raises:
        DataError: some record has a value that its column's coding refuses, or no record is left.
    """
    if not counts.sum():
        raise _no_record()
    dropped = np.zeros(len(counts), dtype=bool)
    for coding, code in zip(codings, codes, strict=True):
        if (leaving := dropping_code(coding)) is not None:
            dropped |= code == leaving
    if dropped.any():
        kept = ~dropped
        codes, counts = [code[kept] for code in codes], counts[kept]
    _require_declared(
        codings,
        [
            (int(counts[code == len(coding.labels)].sum()), int(counts[code == len(coding.labels) + 1].sum()))
            for coding, code in zip(codings, codes, strict=True)
        ],
        examples,
    )
    if not counts.size:
        raise _all_dropped()
    return Histogram.of(
        [Column(c.column, c.labels, code) for c, code in zip(codings, codes, strict=True)],
        counts,
    )


def dropped_code(coding: Coding) -> int:
    """The code, in `conclude_columns`, of records that are left out because some column has no value."""
    return len(coding.labels) + 2


def conclude_columns(
    codings: Sequence[Coding],
    columns: Sequence[tuple[np.ndarray, np.ndarray]],
    examples: Examples | None = None,
) -> tuple[Marginals, int]:
    """The counts of each column by itself, and how many records there are with those that are left out.

    Args:
        codings: how the columns were coded.
        columns: for each, the codes that occur and how many records have them.
        examples: as in `conclude`.

    Raises:
        DataError: as `conclude`.
    """
    parts, faults, totals = [], [], set()
    for coding, (codes, counts) in zip(codings, columns, strict=True):
        tally = np.zeros(dropped_code(coding) + 1, dtype=np.int64)
        np.add.at(tally, codes, counts)
        *_, outside, missing, _ = map(int, tally)
        faults.append((outside, missing))
        totals.add((int(tally.sum()), int(tally[:-1].sum())))
        labels = np.arange(len(coding.labels))
        parts.append(Histogram.of([Column(coding.column, coding.labels, labels)], tally[: len(labels)]))
    if len(totals) > 1:
        raise InternalError("the columns of a table have different numbers of records")
    [(records, kept)] = totals or {(0, 0)}
    if not records:
        raise _no_record()
    _require_declared(codings, faults, examples)
    if not kept:
        raise _all_dropped()
    nowhere = np.zeros(0, dtype=np.int64)
    return Marginals(tuple(Column(c.column, c.labels, nowhere) for c in codings), tuple(parts)), records


def _require_declared(codings: Sequence[Coding], found: Sequence[tuple[int, int]], examples: Examples | None) -> None:
    """Refuses records with values outside the domain of a column, or missing there, by how many there are of each."""
    faults = {
        coding.column: {"outside": outside, "missing": missing}
        for coding, (outside, missing) in zip(codings, found, strict=True)
        if outside or missing
    }
    if faults:
        dates = {coding.column for coding in codings if isinstance(coding.domain, DateRange)}
        raise _refusal(faults, examples, dates)


def _no_record() -> DataError:
    return DataError("The table holds no record.", code="data-empty", remedy="Check that it is the right one.")


def _all_dropped() -> DataError:
    return DataError(
        "Every record has a missing value in a column that drops such records.",
        code="data-empty",
        remedy="Keep missing values in that column, or leave the column out.",
    )


def _refusal(faults: Mapping[str, Mapping[str, int]], examples: Examples | None, dates: Set[str]) -> DataError:
    outside = [column for column, found in faults.items() if found["outside"]]
    shown = {column: _shown(column, examples) for column in outside}
    phrases = []
    for column, found in faults.items():
        if found["outside"]:
            phrases.append(
                f"{column!r} has {_records(found['outside'])} with a value outside its domain{shown[column]}"
            )
        if found["missing"]:
            phrases.append(f"{column!r} has {_records(found['missing'])} without a value")
    return DataError(
        f"The table does not fit its declaration: {'; '.join(phrases)}.",
        code="values-outside-domain" if outside else "values-missing",
        remedy="Correct the data or the domain, or say in the policy how to treat them: 'other: NAME' collects values "
        "outside the domain, 'missing: keep' or 'missing: drop' is for missing ones, 'missing_values' under 'data' "
        "lists how they are written. --show-values shows some." + (_MIDNIGHT if dates & set(outside) else ""),
        details={"columns": {column: dict(found) for column, found in faults.items()}},
    )


def _shown(column: str, examples: Examples | None) -> str:
    if examples is None:
        return ""
    try:
        return f" ({', '.join(map(repr, examples(column)))})"
    except DataError:  # a stream that is gone by now
        return ""


def _records(number: int) -> str:
    return "1 record" if number == 1 else f"{number} records"


@dataclass(frozen=True)
class Place:
    """Where a column's keys stand in a word: which column's, from which bit on, and how many bits wide."""

    column: int
    shift: int
    width: int

    def keys(self, words: np.ndarray) -> np.ndarray:
        """The column's keys."""
        keys: np.ndarray = (words >> self.shift) & (2**self.width - 1)
        return keys.astype(smallest_type(2**self.width))


def share_words(sizes: Sequence[int]) -> list[list[Place]]:
    """The words in which columns with so many keys each find their places, in order."""
    words: list[list[Place]] = []
    filled = _WORD_BITS
    for column, size in enumerate(sizes):
        width = (size - 1).bit_length()
        if filled + width > _WORD_BITS:
            words.append([])
            filled = 0
        words[-1].append(Place(column, filled, width))
        filled += width
    return words
