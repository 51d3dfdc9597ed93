"""How a table is to be read."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incrowd.core.errors import ParameterError

OTHER_ENCODING = (
    "Say which encoding it is in: --encoding=latin-1, or 'encoding: latin-1' under 'data' in the policy. "
    "Files from Windows are often in windows-1252 or latin-1."
)


@dataclass(frozen=True)
class Options:
    """How a table is to be read. The first five concern text files only.

    Attributes:
        columns: the columns' names, where the first line does not name them; None takes them from there.
        delimiter: what separates the fields; None finds out which of comma, semicolon, tab and bar it is.
        quote: what surrounds fields that contain delimiters, line ends or, doubled, itself.
        encoding: the encoding; None takes UTF-8, or UTF-16 if the file is marked as such.
        decimal: what separates the decimals of numbers written as text, ``.`` or ``,``.
        missing_values: the texts that stand for a missing value, in any text column of any format.
        show_values: lets error messages show a few of the values that are outside their domain.
        memory_limit: how much memory the engine may use before it turns to temporary files; None takes half of what
            this process may use.
        threads: how many threads it may use; None takes every processor.
        table: the table that is meant, in a database that holds several.
        temp_directory: where temporary files may be written (and are removed); None takes the system's place.
        engine: the Spark cluster that reads the table; None reads it here.
        most_cells: how many cells a cluster may hand over at most; beyond, small ones stay where they are if they
            can (`incrowd.sources.at_least`).
    """

    columns: tuple[str, ...] | None = None
    delimiter: str | None = None
    quote: str = '"'
    encoding: str | None = None
    decimal: str = "."
    missing_values: tuple[str, ...] = ("",)
    show_values: bool = False
    memory_limit: str | None = None
    threads: int | None = None
    table: str | None = None
    temp_directory: Path | str | None = None
    engine: str | None = None
    most_cells: int = 10_000_000

    def __post_init__(self) -> None:
        if self.columns is not None:
            _check_texts(self.columns, "The names of columns are")
            object.__setattr__(self, "columns", tuple(self.columns))
        _check_texts(self.missing_values, "What stands for missing values is")
        object.__setattr__(self, "missing_values", tuple(self.missing_values))
        for name, sign in (("delimiter", self.delimiter), ("quote", self.quote)):
            if sign is not None:
                _check_sign(name, sign)
        if self.delimiter == self.quote:
            raise ParameterError("Delimiter and quote must differ.", code="parameter-combination")
        if self.decimal not in {".", ","}:
            raise ParameterError("Decimals are separated by '.' or ','.", code="parameter-range")
        if self.encoding is not None:
            _check_encoding(self.encoding)
        if self.memory_limit is not None and not re.fullmatch(r"\d+(\.\d+)? ?[KMGT]i?B", self.memory_limit):
            raise ParameterError("A limit of memory is written like 512MB or 4GB.", code="parameter-range")
        if self.threads is not None and self.threads < 1:
            raise ParameterError("At least one thread is needed.", code="parameter-range")
        if self.most_cells < 1:
            raise ParameterError("At least one cell must be allowed.", code="parameter-range")
        if self.temp_directory is not None and not Path(self.temp_directory).is_dir():
            raise ParameterError(f"There is no directory {self.temp_directory}.", code="parameter-range")


def _check_texts(texts: Any, what: str) -> None:
    # One text would otherwise be taken for the list of its letters.
    if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
        raise ParameterError(f"{what} a list of texts.", code="parameter-type")


def _check_sign(name: str, sign: Any) -> None:
    if not isinstance(sign, str) or len(sign) != 1 or sign in "\r\n\0":
        raise ParameterError(f"The {name} of a text file is one character.", code="parameter-range")


def _check_encoding(name: str) -> None:
    try:
        "".encode(codecs.lookup(name).name)
    except LookupError:
        raise ParameterError(
            f"There is no text encoding called {name!r}.",
            code="parameter-range",
            remedy="Common ones are utf-8, latin-1, windows-1252 and utf-16.",
        ) from None
