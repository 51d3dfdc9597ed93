"""Finding the cluster, and the table there, that a policy or a command line names."""

from __future__ import annotations

import os
import re
import secrets
import sys
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlparse

from incrowd.core.errors import DataError, ParameterError
from incrowd.sources.lakes import MARKS, lake, refuse_lakes, refuse_partitions
from incrowd.sources.options import Options

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from incrowd.sources.spark import SparkSource

_ENGINES = r"spark|local(\[[\w*,]+\])?|yarn|(spark|k8s|sc)://.+"
_PARQUET = {"", ".parquet", ".parq", ".pq"}
# A client of Spark Connect knows its server's master, not its server's address. So sessions started here are marked.
# What they were started for stays here: the address may hold a token, and others may read a session's settings.
_MARK = "spark.incrowd.session"
_LOG_LEVEL = "spark.log.level"
_started_for: dict[str | None, str] = {}
_settings: dict[str, str] = {}


def without_token(engine: str) -> str:
    """An engine as it may be shown and written down: without a Spark Connect address's parameters, such as a token."""
    address, mark, _ = engine.partition(";")
    return f"{address};..." if mark else address


def configure(settings: Mapping[str, str]) -> None:
    """Settings of the sessions that are started from now on in this process.

    Raises:
        ParameterError: one is no setting of Spark's, or is said by the engine.
    """
    for name in settings:
        if not re.fullmatch(r"spark(\.[\w-]+)+", name):
            raise ParameterError(
                f"Spark has no settings called {name!r}.",
                code="parameter-range",
                remedy="They begin with 'spark.', such as spark.executor.memory=4g.",
            )
        if name in {"spark.master", "spark.remote", _MARK}:
            raise ParameterError(
                f"Which cluster counts is not said by {name}.",
                code="parameter-combination",
                remedy="Give its address: --engine.",
            )
    _settings.clear()
    _settings.update(settings)


def is_spark_frame(thing: Any) -> bool:
    """Whether this is a Spark DataFrame, found out without importing Spark."""
    return any(c.__name__ == "DataFrame" and c.__module__.startswith("pyspark.sql.") for c in type(thing).__mro__)


def open_spark(thing: Any, options: Options) -> SparkSource:
    """A Spark DataFrame; or the Parquet files or the table of this name, on the cluster that `options.engine` names.

    A session that has to be started for this ends with the source.
    """
    if options.engine is not None:
        # Whoever names an engine and no more has no use for what PySpark thinks of other libraries here.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support", FutureWarning)
    try:
        from incrowd.sources.spark import SparkSource, reading
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"pyspark", "py4j"}:
            raise
        raise DataError(
            "Spark is not installed here.",
            code="engine-unavailable",
            remedy="Install it: pip install 'incrowd[spark]'.",
        ) from None
    if is_spark_frame(thing):
        with reading():
            return SparkSource(thing, options)
    names = None if thing is None else _names(thing)
    if names is not None and options.engine is not None and options.engine.startswith("sc://"):
        # The server is in a folder of its own.
        names = [name if urlparse(name).scheme else str(Path(name).absolute()) for name in names]
    session, started = _session(options.engine or "spark")
    try:
        with reading():
            frame = session.table(options.table or "") if names is None else _parquet(session, names)
            source = SparkSource(frame, options, rows=None if names is None else _common_rows(frame))
    except BaseException:
        if started:
            session.stop()
        raise
    if started:
        # When the process ends, Spark sees to its sessions itself.
        weakref.finalize(source, session.stop).atexit = False
    return source


def _session(engine: str) -> tuple[SparkSession, bool]:
    """The session on this cluster, and whether it was started here."""
    from pyspark.sql import SparkSession

    from incrowd.sources.spark import spark_errors

    if not re.fullmatch(_ENGINES, engine):
        raise ParameterError(
            "This engine is not known.",
            code="parameter-range",
            remedy="Write spark://host:port, local[2], yarn, k8s://…, sc://host:port (Spark Connect), or spark for the "
            "session that is running or Spark's own settings.",
        )
    active = SparkSession.getActiveSession()
    if active is not None:
        started_for = _started_for.get(active.conf.get(_MARK, None))
        if engine not in ("spark", active.conf.get("spark.master", None), started_for):
            raise DataError(
                "A Spark session on another cluster is running in this process.",
                code="engine-unavailable",
                remedy="Stop it, or say engine 'spark' to use it.",
            )
        return active, False
    builder = SparkSession.builder.appName("incrowd")
    if engine.startswith("sc://"):
        builder = builder.remote(engine)
    else:
        # What the plan holds, declared values above all, is nobody else's business.
        builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
        # How much is fetched is bounded here (`most_cells`), and before a budget is charged.
        builder = builder.config("spark.driver.maxResultSize", "0")
        if engine != "spark":
            builder = builder.master(engine)
        if engine.startswith("local"):
            builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    if _settings:
        builder = builder.config(map=dict(_settings))
    try:
        with _silence():
            session = builder.getOrCreate()
    except (ImportError, SystemExit):  # in `python -c`, PySpark takes itself for a test, and would end the process
        raise DataError(
            "The client for Spark Connect is not installed here.",
            code="engine-unavailable",
            remedy="Install it: pip install 'pyspark[connect]'.",
        ) from None
    except spark_errors(RuntimeError, OSError):
        raise DataError(
            "No Spark session could be started.",
            code="engine-unavailable",
            remedy="Check the cluster's address, and that a Java 17 or newer is installed here.",
        ) from None
    if not engine.startswith("sc://") and _LOG_LEVEL not in _settings:
        session.sparkContext.setLogLevel("ERROR")
    session.conf.set("spark.sql.caseSensitive", "true")
    mark = secrets.token_hex(8)
    _started_for[mark] = engine
    session.conf.set(_MARK, mark)
    return session, True


@contextmanager
def _silence() -> Iterator[None]:
    """What Spark and Java say of themselves while they start is for nobody, unless a level of logging is asked for.

    Java keeps the standard error that it is started with. What it would say later comes as errors of Python's, too.
    """
    if _LOG_LEVEL in _settings:
        yield
        return
    sys.stderr.flush()
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _names(thing: Any) -> list[str]:
    """The names of Parquet files, or what looks like it."""
    things = thing if isinstance(thing, list | tuple) else [thing]
    if not all(isinstance(one, str | os.PathLike) for one in things):
        raise DataError(
            f"An object of type {type(thing).__qualname__} is in this process, not on a cluster.",
            code="data-kind",
            remedy="Leave the engine out, or give the name of Parquet files or a Spark DataFrame.",
        )
    names = [os.fspath(one) for one in things]
    if any(Path(name).suffix.lower() not in _PARQUET for name in names):
        raise DataError(
            "With Spark, only Parquet files and tables are read: it takes CSV and JSON apart by other rules.",
            code="data-format",
            remedy="Write the table as Parquet, or leave the engine out; or load it yourself, every column as text, "
            "and give the DataFrame.",
        )
    return names


def _parquet(session: SparkSession, names: Sequence[str]) -> DataFrame:
    # Files are read whole or not at all, whatever the session is set to, and days are counted as everywhere else.
    options = {"ignoreCorruptFiles": "false", "ignoreMissingFiles": "false", "datetimeRebaseMode": "CORRECTED"}
    _refuse_lakes(session, names)
    frame = session.read.options(**options).parquet(*names)
    files = [Path(unquote(urlparse(name).path)) for name in frame.inputFiles()]
    refuse_lakes(file for file in files if file.exists())
    refuse_partitions(files, frame.columns)
    return frame


def _refuse_lakes(session: SparkSession, names: Sequence[str]) -> None:
    """Looks for the logs of lakes where only Spark can: in the folders that are named, wherever they are."""
    from pyspark.errors import AnalysisException

    for name in names:
        folder = re.split(r"/[^/]*[*?\[{]", name, maxsplit=1)[0]
        for mark, kind in MARKS.items():
            try:
                session.read.format("binaryFile").load(f"{folder}/{mark}").columns  # noqa: B018 - it looks for the path
            except AnalysisException:
                continue
            raise lake(folder, kind)


def _common_rows(frame: DataFrame) -> int | None:
    """The number of rows in all files, which must have the same columns: Spark makes up what one of them lacks.

    None where they cannot be opened here: they have other addresses, or are a Spark Connect server's.
    """
    from incrowd.sources.files import open_parquet

    addresses = [urlparse(name) for name in frame.inputFiles()]
    if not addresses or any(address.scheme != "file" for address in addresses):
        return None
    files = sorted(Path(unquote(address.path)) for address in addresses)
    return open_parquet(files).rows if all(file.exists() for file in files) else None
