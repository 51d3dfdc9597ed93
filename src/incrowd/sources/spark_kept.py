"""Rows that stay on a Spark cluster, on its executors' disks, and the cells of a table among them.

What is lost with an executor is worked out again from the table, so the table must be the same each time.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as fn

from incrowd.core.errors import DataError, IncrowdError
from incrowd.histogram import arrow_integers
from incrowd.sources.spark import reading

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def at_hand(frame: DataFrame) -> DataFrame:
    """The same rows, computed once and kept on the executors' disks until they are let go."""
    from pyspark import StorageLevel

    return frame.persist(StorageLevel.DISK_ONLY)


def let_go(frame: DataFrame) -> None:
    """Rows that need not be kept any longer; where their session is over, they are not."""
    with contextlib.suppress(IncrowdError), reading():
        frame.unpersist()


def require_any_answer(session: SparkSession, cells: int, columns: int) -> None:
    """That no limit of Spark's stops an answer about a table of so many cells, which would come after the charge.

    An answer has at most a row for each cell and column, and in each a number for each column and two more.

    Raises:
        DataError: spark.driver.maxResultSize might.
    """
    with reading():
        limit = _bytes(session.conf.get("spark.driver.maxResultSize", None) or "1g")
    if limit is None or 0 < limit < cells * columns * (columns + 2) * 8 + _BESIDE:
        raise DataError(
            "Spark may refuse to hand over what is counted, and what is refused after the budget was charged is lost.",
            code="cells-too-many",
            remedy="Set spark.driver.maxResultSize=0 where Spark starts; the driver holds --most-cells cells at once.",
        )


_BESIDE = 1 << 24  # what Spark says of its tasks
_UNITS = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}


def _bytes(size: str) -> int | None:
    """A size as Spark writes it; None if it is no such thing."""
    found = re.fullmatch(r"(\d+)([kmgtp]?)b?", size.strip().lower())
    return None if found is None else int(found[1]) << _UNITS[found[2]]


class SparkKeeper:
    """What `incrowd.sources.kept.Keeper` says, with Spark.

    Names are the keeper's own: a session may have several, and views of its caller's.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session, self._mark = session, secrets.token_hex(8)
        self._kept: dict[str, DataFrame] = {}
        self._names: set[str] = set()

    def keep(self, name: str, query: str) -> None:
        """Keep what a query finds."""
        with reading():
            self.keep_frame(name, self._session.sql(self._own(query)))

    def keep_frame(self, name: str, frame: DataFrame) -> None:
        """Keep the rows of a frame."""
        with reading():
            kept = at_hand(frame)
            kept.count()  # while what they are made of is still there
            self._call(kept, name)
        before = self._kept.pop(name, None)
        self._kept[name] = kept
        if before is not None:
            let_go(before)

    def put(self, name: str, columns: Mapping[str, np.ndarray]) -> None:
        """A small table, which every executor gets."""
        arrays = [arrow_integers(np.ascontiguousarray(numbers, dtype=np.int64)) for numbers in columns.values()]
        with reading():
            table = self._session.createDataFrame(pa.Table.from_arrays(arrays, names=list(columns)))
            self._call(fn.broadcast(table), name)

    def ask(self, query: str) -> pa.Table:
        """What a query finds."""
        with reading():
            return self._session.sql(self._own(query)).toArrow()

    def close(self) -> None:
        """Names and disks are free again; where the session is over, they are."""
        for frame in self._kept.values():
            let_go(frame)
        with contextlib.suppress(IncrowdError), reading():
            for name in self._names:
                self._session.catalog.dropTempView(name)

    def _call(self, frame: DataFrame, name: str) -> None:
        frame.createOrReplaceTempView(self._own(name))
        self._names.add(self._own(name))

    def _own(self, text: str) -> str:
        """The text with names that are this keeper's."""
        return re.sub(r"\bincrowd_\w+", lambda found: f"{found[0]}_{self._mark}", text)
