"""The rows of each person that count, as Spark finds them: two window functions over the coded rows.

The rules are those of `incrowd.sources.people`, whatever the session's settings. The persons are spread over the
executors; rows that lack an identifier are nobody's, and are spread by what they hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import types

from incrowd.domain import Bins, Coding, DateFormat
from incrowd.sources.options import Options
from incrowd.sources.people import COUNTS, LEFT_OUT, MOMENT, NOBODYS, UNRANKED, RowBound
from incrowd.sources.spark_codes import (
    column_kind,
    day_of,
    extracted,
    is_absent,
    literal_text,
    plain_texts,
    typed_value,
)
from incrowd.sources.tally import Place, dropping_code

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ANY_NUMBER = Coding("", Bins((float("-inf"), float("inf"))))
_LARGEST_WHOLE = "9e18D"
ASIDE = ("nobodys", "r", "unread")
"""What stands beside the words of a row, and its identifiers p0, p1, …"""


def identified(
    frame: DataFrame, bound: RowBound, at: Sequence[int], kinds: Sequence[types.DataType], options: Options
) -> tuple[DataFrame, list[str]]:
    """The frame with whose each row is and what it is ranked by, and the names of these columns.

    Args:
        frame: rows, with their raw columns.
        bound: how many rows of a person count, and which.
        at: where the columns of `RowBound.names` stand.
        kinds: their types.
        options: what is missing, and how numbers are written.
    """
    columns = [f"c{i}" for i in at]
    known = [_identity(c, t, options) for c, t in zip(columns, kinds[: len(bound.columns)], strict=False)]
    number, missing = ("CAST(NULL AS DOUBLE)", "true")
    if bound.ranked_by is not None:
        number, missing = _rank(columns[-1], kinds[-1], options, bound.format)
    persons = [f"p{i}" for i in range(len(known))]
    nobodys = " OR ".join(f"({none})" for _, none in known)
    frame = frame.selectExpr("*", f"{nobodys} AS nobodys", f"{number} AS r")
    frame = frame.selectExpr(
        "*",
        *(f"CASE WHEN NOT nobodys THEN {text} END AS {name}" for (text, _), name in zip(known, persons, strict=True)),
        f"r IS NULL AND NOT ({missing}) AS unread",
    )
    return frame, [*persons, *ASIDE]


def judged(frame: DataFrame, words: Sequence[Sequence[Place]], codings: Sequence[Coding], bound: RowBound) -> DataFrame:
    """Coded rows with what becomes of each (`what`), and whether it is the first of its person (`first`).

    Args:
        frame: words called w0, w1, …, and what `identified` has put beside them.
        words: which column's codes stand where in each word.
        codings: how the columns were coded.
        bound: how many rows of a person count, and which.
    """
    names = [f"w{i}" for i in range(len(words))]
    persons = [f"p{i}" for i in range(len(bound.columns))]
    dropped = " OR ".join(
        f"(shiftright({name}, {place.shift}) & {2**place.width - 1}) = {code}"
        for name, word in zip(names, words, strict=True)
        for place in word
        if (code := dropping_code(codings[place.column])) is not None
    )
    whose = ", ".join([*persons, f"CASE WHEN nobodys THEN {names[0]} END"])
    frame = frame.selectExpr(
        "*",
        f"{dropped or 'false'} AS dropped",
        f"row_number() OVER (PARTITION BY {whose} ORDER BY r NULLS LAST, {', '.join(names)}) AS number",
        f"count(1) OVER (PARTITION BY {whose}) AS own",
    )
    text = [
        literal_text(bound.key),
        *(f"CAST({number} AS STRING)" for number in ("number", *names)),
        *persons,
    ]
    hashed = f"md5(CAST(concat_ws('|', {', '.join(text)}) AS BINARY))"
    order = f"r {'DESC' if bound.ranked_by and bound.ranked_by[1] else 'ASC'} NULLS LAST"
    # Where all rows of a person count, their order is of no interest.
    frame = frame.selectExpr("*", f"CASE WHEN own > {bound.at_most} THEN {hashed} END AS hashed")
    frame = frame.selectExpr(
        "*", f"row_number() OVER (PARTITION BY {whose} ORDER BY dropped, {order}, hashed) AS place"
    )
    return frame.selectExpr(
        *names,
        f"CASE WHEN unread THEN {UNRANKED} WHEN nobodys THEN {COUNTS if bound.own else NOBODYS} "
        f"WHEN place <= {bound.at_most} THEN {COUNTS} ELSE {LEFT_OUT} END AS what",
        "nobodys OR place = 1 AS first",
    )


def _identity(column: str, type_: types.DataType, options: Options) -> tuple[str, str]:
    """The text by which identifiers in a column are equal, and whether there is none."""
    kind, raw = column_kind(type_), plain_texts(column, type_)
    missing = is_absent(raw, kind, "text", options)
    printed = raw if kind == "text" else f"try_cast({raw} AS STRING)"
    if kind == "decimal":
        printed = f"regexp_replace({printed}, '[.]0+$', '')"
    if kind == "float":
        whole = f"{raw} = floor({raw}) AND abs({raw}) < {_LARGEST_WHOLE}"
        printed = f"CASE WHEN {whole} THEN CAST(CAST({raw} AS BIGINT) AS STRING) ELSE {printed} END"
    return printed, missing


def _rank(column: str, type_: types.DataType, options: Options, written: DateFormat | None) -> tuple[str, str]:
    """The number by which rows are put in order, or null, and whether there is no value."""
    kind, raw = column_kind(type_), plain_texts(column, type_)
    if kind == "date":
        number = _microseconds(f"CAST({raw} AS TIMESTAMP_NTZ)")
    elif kind == "text" and written is not None:
        number = _microseconds(f"CAST({day_of(raw, type_, written)} AS TIMESTAMP_NTZ)")
    elif kind == "timestamp":
        plain = isinstance(type_, types.TimestampNTZType)
        number = _microseconds(raw) if plain else f"CAST(unix_micros({raw}) AS DOUBLE)"
    else:
        number = typed_value(raw, type_, _ANY_NUMBER, options)
        if kind == "text":
            moment = f"try_cast({extracted(raw, MOMENT)} AS TIMESTAMP_NTZ)"
            number = f"coalesce({number}, {_microseconds(moment)})"
    return f"({number}) + 0.0D", is_absent(raw, kind, "number", options)  # without a zero below zero


def _microseconds(moment: str) -> str:
    """Since 1970, of a moment without a time zone."""
    seconds = f"unix_date(CAST({moment} AS DATE)) * 86400L + hour({moment}) * 3600 + minute({moment}) * 60"
    return f"CAST(({seconds}) * 1000000L + CAST(extract(SECOND FROM {moment}) * 1000000 AS BIGINT) AS DOUBLE)"
