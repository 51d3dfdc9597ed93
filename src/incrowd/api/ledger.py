"""What scripts do with a ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from incrowd.theory.profile import Relation

if TYPE_CHECKING:
    from incrowd.releases.statements import AccountStatement


def ledger_statement(path: str | Path, dataset: str) -> AccountStatement:
    """What has been spent on a dataset, and what is left."""
    from incrowd.releases.ledger import Ledger

    return Ledger(path, create=False).statement(dataset)


def ledger_datasets(path: str | Path) -> tuple[str, ...]:
    """The datasets that a ledger knows."""
    from incrowd.releases.ledger import Ledger

    return Ledger(path, create=False).datasets()


def ledger_budget(
    path: str | Path,
    dataset: str,
    *,
    epsilon: float,
    delta: float,
    relation: str = "add/remove",
    rule: str = "sum",
    unit: str | None = None,
) -> AccountStatement:
    """Set what may be spent on a dataset, in a ledger that is made if there is none.

    Args:
        path: the ledger's file.
        dataset: its name in the ledger.
        epsilon: all that may ever be spent.
        delta: all that may ever be spent.
        relation: which tables count as neighbours.
        rule: how releases are counted, "sum", "order" or "unit"; fixed with the first release.
        unit: for the rule "unit": "k=17,beta=0.3", or "epsilon=0.1,delta=0".
    """
    from incrowd.mechanisms.promises import Budget, as_unit
    from incrowd.releases.ledger import Ledger

    measured_in = None if unit is None else as_unit(unit, relation)
    Budget(epsilon, delta, Relation(relation), rule, measured_in)  # type: ignore[arg-type] # before a file is made
    ledger = Ledger(path)
    ledger.set_budget(dataset, epsilon, delta, relation, rule, measured_in)
    return ledger.statement(dataset)


def ledger_add(
    path: str | Path, dataset: str, *, epsilon: float, delta: float, relation: str, description: str
) -> AccountStatement:
    """Record a release that was made elsewhere, in a ledger that is there."""
    from incrowd.mechanisms.promises import Entry, Point
    from incrowd.releases.ledger import Ledger

    entry = Entry("external", Point(epsilon, delta, Relation(relation)), description)
    ledger = Ledger(path, create=False)
    ledger.charge(dataset, entry)
    return ledger.statement(dataset)


def ledger_accept_loss(path: str | Path) -> tuple[str, ...]:
    """Give up what is remembered of a ledger that is lost, or of which only an older copy is left.

    What it spent stays spent. Returned is what was last seen, so that it can be recorded again with `ledger_add`.
    """
    from incrowd.releases.ledger import accept_loss

    return tuple(str(seen) for seen in accept_loss(path))
