"""How a table is named on the command line: the same for every verb that reads one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from incrowd.cli._shell import standard_input

Verb = Callable[..., int | None]

_PLACE = {
    "table": click.option(
        "--table", help="The table that is meant, in a database that holds several, or in Spark's catalogue."
    ),
    "engine": click.option(
        "--engine",
        envvar="INCROWD_ENGINE",
        show_envvar=True,
        help="The Spark cluster that reads the table: spark://host:port, yarn, sc://host:port, local[2], ... It takes "
        "Parquet files, and tables by --table.",
    ),
}
_SPARK = {
    "conf": click.option(
        "--conf",
        multiple=True,
        metavar="KEY=VALUE",
        help="A setting of the Spark session that is started, such as spark.executor.memory=4g; can be repeated.",
    ),
}
_CELLS = {
    "most_cells": click.option(
        "--most-cells",
        type=click.IntRange(1),
        help="How many different rows may be fetched at most; 10 million if not given. A cluster hands over no more. "
        "Beyond, a crowd with fixed levels fetches only the cells that can be published, wherever the table is.",
    ),
}
_TEXT_FILE = {
    "delimiter": click.option(
        "--delimiter", help="Between the fields of a text file: ; or tab, say. Found out if not given."
    ),
    "quote": click.option("--quote", help='Around fields of a text file; " if not given.'),
    "encoding": click.option("--encoding", help="Of a text file: latin-1, say. UTF-8 if not given."),
}
_NUMBERS = {
    "decimal": click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        help="Before the decimals of numbers in a text file; . if not given.",
    ),
}


def looks_at_a_table(verb: Verb) -> Verb:
    """Gives a verb the options that say where a table is and how it is written, together as `reading`."""
    return _with_options(verb, _PLACE | _SPARK | _TEXT_FILE, piped=False)


def counts_a_table(verb: Verb) -> Verb:
    """The same for a verb that wants to know every different row."""
    return _with_options(verb, _PLACE | _SPARK | _CELLS | _TEXT_FILE | _NUMBERS)


def counts_by_policy(verb: Verb) -> Verb:
    """The same for a verb that has a policy, which says how the table is written."""
    return _with_options(verb, _PLACE | _SPARK | _CELLS)


def require_data(data: str | None, reading: dict[str, Any]) -> None:
    """A table has a name of its own, unless it is one of Spark's catalogue."""
    if data is None and not ("table" in reading and "engine" in reading):
        raise click.UsageError("Say which table: a file, a database's address, or --engine with --table.")


_STARTS = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"\xff\xff\xff\xff": ".arrow",  # a stream
    b"\x1f\x8b": ".csv.gz",
    b"\x28\xb5\x2f\xfd": ".csv.zst",
    b"BZh": ".csv.bz2",
    b"\xfd7zXZ": ".csv.xz",
    b"$FL": ".sav",
    b"<stata_dta>": ".dta",
    b"{": ".jsonl",
}


@contextmanager
def _spooled() -> Iterator[str]:
    """A file of what comes on standard input, which nobody else can read and which is removed; CSV if nothing else."""
    import shutil
    import tempfile

    stream = standard_input()
    start = stream.read(64)
    suffix = next((suffix for first, suffix in _STARTS.items() if start.startswith(first)), ".csv")
    with tempfile.TemporaryDirectory(prefix="incrowd-") as folder:  # its owner's alone
        path = Path(folder, f"standard-input{suffix}")
        with path.open("wb") as file:
            file.write(start)
            shutil.copyfileobj(stream, file, 1 << 20)
        yield str(path)


def _configure(conf: Sequence[str], engine: str | None) -> None:
    """Settings of the Spark session that will be started."""
    if not conf:
        return
    if engine is None:
        raise click.UsageError("--conf is for Spark: say which cluster reads the table (--engine).")
    pairs = [setting.partition("=") for setting in conf]
    if not all(mark for _, mark, _ in pairs):
        raise click.UsageError("A Spark setting is written KEY=VALUE (--conf).")
    from incrowd import api

    api.configure_spark({key.strip(): value.strip() for key, _, value in pairs})


def _with_options(verb: Verb, options: Mapping[str, Callable[[Verb], Verb]], *, piped: bool = True) -> Verb:
    @functools.wraps(verb)
    def collected(**given: Any) -> int | None:
        if given.get("data") == "-":
            if not piped:
                raise click.UsageError("A draft names the file of its table: save the table to a file first.")
            with _spooled() as path:
                return collected(**given | {"data": path})
        reading = {name: given.pop(name) for name in options}
        _configure(reading.pop("conf"), reading.get("engine"))
        reading["delimiter"] = {"tab": "\t", "\\t": "\t"}.get(reading.get("delimiter") or "", reading.get("delimiter"))
        return verb(**given, reading={name: value for name, value in reading.items() if value is not None})

    made: Verb = collected
    for option in reversed(list(options.values())):
        made = option(made)
    return made
