"""Whose the rows are: what a promise has to cover where one person may have several."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from incrowd.mechanisms.certificate import AnyCertificate
    from incrowd.policy import Policy


@dataclass(frozen=True)
class Persons:
    """How many rows of one person count, and whether the policy names the column that says whose a row is."""

    at_most: int = 1
    declared: bool = False

    @classmethod
    def in_policy(cls, policy: Policy) -> Persons:
        return cls(policy.rows_per_person, policy.people is not None)

    @classmethod
    def in_certificate(cls, certificate: AnyCertificate) -> Persons:
        """As the policy of a certificate says, which is a document of its own."""
        said = certificate.policy.get("people")
        return cls() if said is None else cls(int(said["at_most"]), declared=True)

    @property
    def several(self) -> bool:
        """Whether a person may have more than one row."""
        return self.at_most > 1

    @property
    def one(self) -> str:
        """One of them, in words."""
        return f"a person with at most {self.at_most:,} rows" if self.several else "one record"

    @property
    def unit(self) -> str:
        """To whom something is promised: a person, if the policy says whose rows are; else a record."""
        if not self.declared:
            return "one record, taken for a person,"
        return f"one person with all rows, {self.at_most:,} at most," if self.several else "one person"

    @property
    def premise(self) -> str:
        """What nobody can check from outside."""
        if not self.declared:
            return "Each person is one record of the table."
        rows = f"{self.at_most:,} rows count" if self.several else "one row counts"
        return (
            "Rows of one person carry the same identifier, and no two people share one. Of each person at most "
            f"{rows}, chosen by a rule that looks at that person's rows alone."
        )

    @property
    def estimated(self) -> str:
        """What a count of rows estimates."""
        return "rows" if self.several else "people"

    @property
    def called(self) -> str:
        return f"records of people, who may have up to {self.at_most:,} each" if self.several else "people"

    def worded(self, text: str) -> str:
        """A sentence about numbers of people, for where the numbers are of rows."""
        return (
            re.sub(r"\bpeople\b(’s|'s)?", lambda found: "rows’" if found[1] else "rows", text) if self.several else text
        )

    @property
    def counted(self) -> tuple[str, ...]:
        """A note beside estimates, where it is needed."""
        if self.several:
            note = (
                f"All numbers here are of rows: one person may have up to {self.at_most:,}, and further rows of a "
                "person were left out before anything was counted."
            )
            return (note,)
        return ("Numbers are of people: of each, one row counts.",) if self.declared else ()
