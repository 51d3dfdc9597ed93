"""The data, its people and the ledger, as sections of a policy."""

from __future__ import annotations

from typing import Annotated, Literal, Self
from urllib.parse import unquote

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from incrowd.policy.fields import Character, Encoding, Finding, Section, Text, listed, refuse

_LAST = {"latest": True, "largest": True, "earliest": False, "smallest": False}


class Data(Section):
    """Where the table is and how it is written down."""

    path: Text | None = Field(
        default=None,
        description="The file, relative to the policy; may name several: parts/*.parquet. Or a database's address.",
    )
    delimiter: Character | None = Field(
        default=None, description="Between columns of a CSV file; found out if not given."
    )
    quote: Character = Field(default='"', description="Around texts in a CSV file.")
    header: bool = Field(default=True, description="Whether the first line of a CSV file names the columns.")
    columns: tuple[Text, ...] | None = Field(
        default=None, description="The columns' names, in order, in a CSV file whose first line does not name them."
    )
    decimal: Literal[".", ","] = Field(default=".", description="Before the decimals of numbers in a CSV file.")
    encoding: Encoding = Field(default="utf-8", description="Of a CSV file.")
    missing_values: tuple[str, ...] = Field(default=("",), description="Texts that mean: missing.")
    table: Text | None = Field(default=None, description="The table's name, in a database.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        findings: list[Finding] = []
        if self.columns is None and not self.header:
            findings.append((("header",), "needs 'columns', since columns are found by their names"))
        if self.columns is not None and self.header:
            findings.append((("columns",), "is for a file without a line of names; add 'header: false'"))
        if self.columns is not None and len(set(self.columns)) < len(self.columns):
            findings.append((("columns",), "has a name twice"))
        if self.path is not None and _password(self.path):
            text = "must hold no password; PGPASSWORD, .pgpass or --data can give it"
            findings.append((("path",), text))
        refuse(findings)
        return self


def _rule(text: str) -> str:
    word, by, column = text.partition(" by ")
    if text != "any" and not (word in _LAST and by and column.strip()):
        raise ValueError("must be 'any', or 'latest by', 'earliest by', 'largest by' or 'smallest by' and a column")
    return text


def _different(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names or len(set(names)) < len(names):
        raise ValueError("must name at least one column, and none twice")
    return names


class People(Section):
    """Whose the rows are, where one person may have several."""

    column: Annotated[tuple[Text, ...], AfterValidator(_different), BeforeValidator(listed)] = Field(
        description="The column that says whose row it is, or several that do so together. It is never published."
    )
    at_most: int = Field(
        ge=1, description="How many rows of one person count. Others are left out, by that person's own rows alone."
    )
    keep: Annotated[str, AfterValidator(_rule)] = Field(
        default="any",
        description="Which rows count: 'latest by', 'earliest by', 'largest by' or 'smallest by' and a column of "
        "numbers, dates or moments; or 'any', a fixed order of the person's own rows, which also breaks ties.",
    )
    missing: Literal["refuse", "own"] = Field(
        default="refuse",
        description="Rows that do not say whose they are: an error (refuse), or each a person of its own (own).",
    )

    @property
    def ranked_by(self) -> tuple[str, bool] | None:
        """The column that decides which rows count, and whether the largest come first; None where none does."""
        word, _, column = self.keep.partition(" by ")
        return (column.strip(), _LAST[word]) if column else None

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that the section names."""
        return tuple(dict.fromkeys((*self.column, *(() if self.ranked_by is None else self.ranked_by[:1]))))


class LedgerSection(Section):
    """Where it is written down what was spent on a data set."""

    path: Text = Field(description="The ledger's file, relative to the policy.")
    dataset: Text = Field(description="The data set's name in the ledger.")
    epsilon: float = Field(gt=0, le=100, allow_inf_nan=False, description="All that may ever be spent on it.")
    delta: float = Field(ge=0, lt=1, description="All that may ever be spent on it.")
    relation: Literal["add/remove", "replace-one"] = Field(
        default="add/remove",
        description="What the budget is about. A randomised table needs replace-one, which all other promises fit too.",
    )
    rule: Literal["sum", "order", "unit"] = Field(
        default="sum", description="How releases are counted; fixed with the first one."
    )
    unit: Text | None = Field(
        default=None, description="What releases are measured in by the rule 'unit': k=17,beta=0.3."
    )

    @model_validator(mode="after")
    def _check_unit(self) -> Self:
        if (self.unit is None) == (self.rule == "unit"):
            refuse([(("unit",), "goes with 'rule: unit', which needs it")])
        return self


def without_password(address: str) -> str:
    """An address as a policy may hold it."""
    if not _password(address):
        return address
    start, credentials, rest = _apart(address)
    user = f"{credentials.partition(':')[0]}@" if credentials else ""
    place, _, query = f"{user}{rest}".partition("?")
    kept = [option for option in query.split("&") if "=" in option and not _is_password(option)]
    return f"{start}{place}{'?' if kept else ''}{'&'.join(kept)}"


def _password(address: str) -> bool:
    """Whether an address holds a password."""
    if "://" not in address:
        return False
    _, credentials, rest = _apart(address)
    return bool(credentials) or any(map(_is_password, rest.partition("?")[2].split("&")))


def _apart(address: str) -> tuple[str, str, str]:
    """The scheme, a name with its password, and what comes behind: as PostgreSQL's own programs take an address apart.

    To them, more may stand in a password unescaped than standards allow, and no address is malformed.
    """
    scheme, mark, rest = address.partition("://")
    place, slash, path = rest.partition("/")
    credentials, _, host = place.rpartition("@")
    if ":" not in credentials:
        return f"{scheme}{mark}", "", rest
    return f"{scheme}{mark}", credentials, f"{host}{slash}{path}"


def _is_password(option: str) -> bool:
    return unquote(option.partition("=")[0]).strip().lower().endswith("password")
