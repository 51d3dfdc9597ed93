"""What a randomised table says of itself.

Everything follows from the blocks, the levels, the number of records and who has randomised; so a verifier can derive
all of it again.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal

from incrowd.guarantees._numbers import round_up
from incrowd.guarantees.randomisation import RetentionReplacement, TransitionMatrix
from incrowd.mechanisms.pram import Block
from incrowd.mechanisms.pram_settings import PramPromise
from incrowd.policy.mechanisms.pram import unfit_rows, write_probability
from incrowd.releases.kinds import Statement

By = Literal["curator", "respondents"]
"""Who has randomised."""


def state(
    blocks: Sequence[Block], promise: PramPromise | None, levels: Mapping[str, int], records: int, by: By
) -> Statement:
    """The whole statement. Without a promise it is one about invariant PRAM, which has none."""
    mechanism = {
        "name": "pram",
        "blocks": [_written(block) for block in blocks],
        "records": records,
        "invariant": promise is None,
        "randomised_by": by,
        "levels": dict(levels),
    }
    return Statement(_nothing() if promise is None else _promise(promise, blocks), mechanism, _assumptions(promise, by))


def _written(block: Block) -> dict[str, Any]:
    law = block.law
    how: dict[str, Any] = (
        {"rho": law.retention}
        if isinstance(law, RetentionReplacement)
        else {"matrix": [[write_probability(entry) for entry in row] for row in law.rows]}
    )
    return {"attributes": list(block.names), "sizes": list(block.sizes), **how}


def read_block(written: Mapping[str, Any]) -> Block:
    """The block that a certificate describes; whatever is wrong with it is an error."""
    names, sizes = tuple(map(str, written["attributes"])), tuple(int(size) for size in written["sizes"])
    if "rho" in written:
        return Block(names, sizes, RetentionReplacement(float(written["rho"]), math.prod(sizes)))
    rows = tuple(tuple(Fraction(str(entry)) for entry in row) for row in written["matrix"])
    if unfit_rows(rows):
        raise ValueError("this is not a transition matrix")
    return Block(names, sizes, TransitionMatrix(rows))


def _promise(promise: PramPromise, blocks: Sequence[Block]) -> dict[str, Any]:
    central, local = (factor(epsilon) for epsilon in (promise.epsilon, promise.local_epsilon))
    kept = all(isinstance(block.law, RetentionReplacement) for block in blocks)
    empty = says_nothing(promise)
    parts: dict[str, dict[str, Any]] = {
        "linking": {
            "notion": "Pk-anonymity",
            "k": promise.k,
            "relation": "none: it holds whatever is known about the table, even all of it",
            "theorem": f"Ikarashi, Kikuchi, Chida, Takahashi, Corollary {5 if kept else 4}",
            "in_words": (
                "Nobody can tell with a probability above "
                f"1/k = {_part(promise.k)} which record of this table is a given person's, even knowing everybody's "
                f"true values.{_SO_LITTLE if 'linking' in empty else ''}"
            ),
        },
        "local": {
            "notion": "local differential privacy",
            "epsilon": promise.local_epsilon,
            "relation": "replace-one",
            "theorem": f"Ikarashi, Kikuchi, Chida, Takahashi, Corollary {2 if kept else 1}",
            "in_words": (
                "Even to someone who knows which record is whose, a record is at most "
                f"e^ε₀ = {local} times as likely for one person as for any other."
                f"{_SO_LITTLE if 'local' in empty else ''}"
            ),
        },
        "central": {
            "notion": "(epsilon, delta)-differential privacy of the shuffled table",
            "epsilon": promise.epsilon,
            "delta": promise.delta,
            "relation": "replace-one",
            "theorem": _BOUNDS[promise.bound],
            "in_words": (
                "Whatever anyone might conclude from this table, its probability is at most "
                f"e^ε = {central} times what it would be had any one person's record been another, plus "
                f"δ = {promise.delta!r}.{_SO_LITTLE if 'central' in empty else ''}"
            ),
        },
    }
    return {
        "notion": "Pk-anonymity and differential privacy, of each record and of the shuffled table",
        "epsilon": promise.epsilon,
        "delta": promise.delta,
        "relation": "replace-one",
        "k": promise.k,
        "local_epsilon": promise.local_epsilon,
        "records": promise.records,
        "bound": promise.bound,
        "parts": parts,
        "in_words": " ".join(part["in_words"] for part in parts.values()),
        "grounds": "; ".join(f"{part['notion']}: {part['theorem']}" for part in parts.values()) + ".",
    }


_BOUNDS = {
    "privacy blanket": "privacy blanket (Balle, Bell, Gascón, Nissim 2019), computed numerically (docs/pram.md)",
    "clones": "clones (Feldman, McMillan, Talwar 2021), computed numerically (docs/pram.md)",
    "local": "the promise for one record; shuffling adds nothing here",
}


_LARGEST_TELLING = 10.0  # e to this is 22,027
_SMALLEST_TELLING = 1.1
_LARGEST_EXPONENT = 700.0  # of floating-point numbers, nearly
_SO_LITTLE = " With such a number, that is practically no promise at all."


def says_nothing(promise: PramPromise) -> tuple[str, ...]:
    """The parts of a promise that hold but say practically nothing: linking, local, central."""
    empty = {
        "linking": promise.k < _SMALLEST_TELLING,
        "local": promise.local_epsilon > _LARGEST_TELLING,
        "central": promise.epsilon > _LARGEST_TELLING,
    }
    return tuple(part for part, is_so in empty.items() if is_so)


def _part(k: float) -> str:
    """1/k, rounded up."""
    with decimal.localcontext(decimal.Context(prec=3, rounding=decimal.ROUND_CEILING)):
        return repr(float(1 / Decimal(k)))


def factor(epsilon: float) -> str:
    """e^ε, rounded up: a sentence may not promise more than the numbers do."""
    with decimal.localcontext(decimal.Context(prec=30)):
        grown = Decimal(epsilon).exp()
        grown += grown * Decimal("1e-25") if epsilon else 0
    with decimal.localcontext(decimal.Context(prec=4, rounding=decimal.ROUND_CEILING)):
        found = +grown
    return f"{float(found):g}" if epsilon < _LARGEST_EXPONENT else f"{found:e}"


def _nothing() -> dict[str, Any]:
    return {
        "notion": "none (invariant PRAM)",
        "epsilon": None,
        "delta": None,
        "relation": "none",
        "parts": {},
        "in_words": (
            "Every value was redrawn by chance, but the chances were computed from the true shares of the values, so "
            "that these stay as they are on average. What is lost by that is every proved promise: neither "
            "Pk-anonymity nor differential privacy, of a record or of the table, holds for chances that depend on "
            "the table."
        ),
        "grounds": (
            "None. The theorems on randomised tables need transition probabilities that were fixed without looking at "
            "the table."
        ),
    }


def _assumptions(promise: PramPromise | None, by: By) -> list[str]:
    """The premises of the theorems that nobody can check from outside."""
    redrawn = (
        "Every respondent randomised their own record once, as the questionnaire says, and sent nothing else."
        if by == "respondents"
        else "Each value of each record was redrawn once, independently, and the true table is not published."
    )
    unknown = (
        "k and the central promise count only records that the onlooker neither made nor learned as they were sent: "
        "whoever adds records of their own takes them out again. The local promise does not depend on it."
    )
    return [
        "Each person is one record of the table.",
        "The number of records is public; tables are compared that differ in one record but not in that number.",
        redrawn,
        *([unknown] if by == "respondents" else []),
        "Domains, hierarchies, levels and transition probabilities were declared, not read off this table."
        if promise is not None
        else "Domains, hierarchies and levels were declared, not read off this table.",
        "Every record fits the declarations; whether a run was refused for the sake of a record is not published.",
        "The order of the records carries nothing: they were published sorted by their values.",
        "The random bits were unpredictable, and have been forgotten.",
    ]


def together(promise: PramPromise | None, copies: int) -> dict[str, Any] | None:
    """Promises add up over independent releases, but for k, which speaks of one table alone."""
    if copies == 1:
        return None
    if promise is None:
        return {"copies": copies, "in_words": f"This is one of {copies} releases of the same table."}
    return {
        "copies": copies,
        "epsilon": _times(copies, promise.epsilon),
        "delta": min(1.0, _times(copies, promise.delta)),
        "local_epsilon": _times(copies, promise.local_epsilon),
        "in_words": (
            f"This is one of {copies} independent releases of the same table. Who has all of them has the central and "
            "the local promise with the numbers given here. k speaks of each release alone: nothing is promised about "
            "linking a person by several of them."
        ),
    }


def _times(copies: int, value: float) -> float:
    """The sum over the copies, rounded up."""
    return round_up(copies * value) if value else 0.0
