"""Whether a table has what is required of it: `k=5, l=2` as a check that passes or fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from incrowd.core.errors import ParameterError

if TYPE_CHECKING:
    from incrowd.auditing.audit import Audit
    from incrowd.auditing.disclosure import Disclosure

_ROUNDING = 1e-12  # a risk of exactly 1/5 is 0.2, whatever the last bit says


@dataclass(frozen=True)
class RuleOutcome:
    """One thing that was required.

    Attributes:
        rule: its name.
        limit: what was required.
        found: what the table has.
        column: the sensitive column that it is about; None for all of the table.
        holds: whether that is enough.
    """

    rule: str
    limit: float
    found: float
    column: str | None
    holds: bool


def _k(audit: Audit) -> float:
    """The smallest group, in records and, where it is known whose they are, in people."""
    people = [] if audit.people is None else [audit.people.k]
    return min([audit.k, *(found.k for found in audit.sensitive), *people])


_OF_TABLE: dict[str, tuple[bool, Callable[[Audit], float]]] = {
    "k": (True, _k),
    "risk": (False, lambda audit: audit.risks.prosecutor.highest),
    "mean_risk": (False, lambda audit: audit.risks.prosecutor.mean),
    "alone": (False, lambda audit: audit.risks.sample_uniques / audit.records),
}
_OF_COLUMN: dict[str, tuple[bool, Callable[[Disclosure], float]]] = {
    "l": (True, lambda found: found.distinct_l.value),
    "entropy_l": (True, lambda found: found.entropy_l.value),
    "t": (False, lambda found: found.t.value),
    "alpha": (False, lambda found: found.largest_share.value),
    "beta": (False, lambda found: found.beta.value),
    "delta": (False, lambda found: found.delta.value),
}
RULES = (*_OF_TABLE, *_OF_COLUMN)
"""What can be required. k, l and entropy_l are least numbers, the others largest ones."""


def required(audit: Audit, texts: str | Iterable[str]) -> tuple[RuleOutcome, ...]:
    """What an audited table has of what is required.

    Args:
        audit: of the table.
        texts: as in "k=5,l=2"; rules about a sensitive column are asked of every one of them.
    """
    found = []
    for name, limit in _parsed([texts] if isinstance(texts, str) else texts):
        if name in _OF_TABLE:
            least, measure = _OF_TABLE[name]
            found.append(_outcome(name, limit, measure(audit), None, least=least))
            continue
        if not audit.sensitive:
            raise ParameterError(
                f"{name!r} is about a sensitive column, and none is named.",
                code="parameter-combination",
                remedy="Name it with --sensitive.",
            )
        at_least, of_column = _OF_COLUMN[name]
        found += [_outcome(name, limit, of_column(d), d.name, least=at_least) for d in audit.sensitive]
    return tuple(found)


def _outcome(rule: str, limit: float, found: float, column: str | None, *, least: bool) -> RuleOutcome:
    holds = found >= limit * (1 - _ROUNDING) if least else found <= limit * (1 + _ROUNDING)
    return RuleOutcome(rule, limit, float(found), column, bool(holds))


def _parsed(texts: Iterable[str]) -> list[tuple[str, float]]:
    rules = []
    for part in (part.strip() for text in texts for part in text.split(",") if part.strip()):
        name, _, value = (side.strip() for side in part.partition("="))
        try:
            limit = float(value)
        except ValueError:
            limit = -1.0
        if name not in RULES or not 0 <= limit < float("inf"):
            raise ParameterError(
                f"{part!r} is not something that can be required.",
                code="parameter-range",
                remedy=f"Write a name and a number, as in k=5,l=2. The names: {', '.join(RULES)}.",
            )
        rules.append((name, limit))
    if not rules:
        raise ParameterError("Nothing is required.", code="parameter-range", remedy="Write as in k=5,l=2.")
    return rules
