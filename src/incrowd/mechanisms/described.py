"""What the tables of the documentation say of a mechanism: each writes its own column, in its `described.py`."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Described:
    """A mechanism, or a variant of one, in Markdown; links are those of a page in docs/.

    Attributes:
        keys: the keys of the policy that choose it, besides `mechanism`, such as "recoding: tree".
        page: the page about it.
        whom: whom it is for.
        promises: what it promises.
        not_promised: what it does not.
        notion: what kind of promise that is.
        compares: which tables, or beliefs, are compared.
        records: what is known of the number of records.
        against: whom it holds against.
        speaks_of: what the promise is about.
        chooses: what is chosen by looking at the data.
        shown: what the published records are.
        adds_up: whether releases add up in a ledger.
        checked: what anyone can check.
        proved: by whom, and where.
        several_rows: what is promised to people with m rows each.
    """

    page: str
    whom: str
    promises: str
    not_promised: str
    notion: str = field(metadata={"row": "notion"})
    compares: str = field(metadata={"row": "compares"})
    records: str = field(metadata={"row": "number of records"})
    against: str = field(metadata={"row": "against whom"})
    speaks_of: str = field(metadata={"row": "speaks of"})
    chooses: str = field(metadata={"row": "looks at the data to choose"})
    shown: str = field(metadata={"row": "records shown are"})
    adds_up: str = field(metadata={"row": "adds up over releases"})
    checked: str = field(metadata={"row": "anyone can check"})
    proved: str = field(metadata={"row": "proved by"})
    several_rows: str
    keys: str = ""
