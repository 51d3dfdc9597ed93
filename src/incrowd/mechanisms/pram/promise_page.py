"""What a randomised table promises, in words, in numbers for one person, and what it does not."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from incrowd.core.errors import InternalError
from incrowd.core.numbers import few_digits, number, percent_down, percent_up
from incrowd.mechanisms.pram.certificate import PramStatedPromise, PramStatement
from incrowd.mechanisms.pram.settle import PramPromise
from incrowd.mechanisms.pram.state import factor, says_nothing
from incrowd.mechanisms.sampled_crowd.promise_page import LEARNT, at_least, at_most, guess, share
from incrowd.reports.page import Content, Fact, Html, formula, heading, paragraph, points, table, tag

_FEARED = (0.001, 0.01, 0.1, 0.5, 0.9)


def facts(promise: PramPromise) -> list[Fact]:
    """The numbers to see first."""
    return [
        Fact("k", _down(promise.k), "linking a person to a record succeeds at most once in k"),
        Fact("ε₀", _up(promise.local_epsilon), "for one record, if one knew whose it is"),
        Fact("ε", _up(promise.epsilon), "for the whole table, shuffled"),
        Fact("δ", number(promise.delta), "a probability on top of that"),
    ]


def told(promise: PramPromise, statement: PramStatement) -> list[Content]:
    """The section on what is promised."""
    if not isinstance(statement.promise, PramStatedPromise):
        raise InternalError("a promise is told that the statement does not make")
    rows = [
        [
            "nobody is linked",
            f"k = {_down(promise.k)}",
            "whoever knows anything about the data, even all of it",
        ],
        [
            "a record says little",
            f"ε₀ = {_up(promise.local_epsilon)}",
            "whoever knows which record is whose: the publisher, a thief",
        ],
        [
            "the table says little",
            f"ε = {_up(promise.epsilon)}, δ = {number(promise.delta)}",
            "everybody who has this table, in which records have no order",
        ],
    ]
    stated = [(promise.epsilon, promise.delta), (promise.local_epsilon, 0.0)]
    chances = [[share(p), f"{percent_down(at_least(p, stated))} to {percent_up(at_most(p, stated))}"] for p in _FEARED]
    guessed = percent_up(guess(stated))
    empty = says_nothing(promise)
    return [
        *([_warning(empty)] if empty else []),
        paragraph("Three promises hold at once, whatever anyone knows, and however clever they are."),
        *_of_all(promise),
        table("The promises, side by side", ["promise", "number", "against"], rows),
        heading("What that means for one person"),
        points(
            [
                (
                    tag("b", "Which record is mine?"),
                    (
                        " Somebody who knew everybody’s true values, and searched this table for you, would be right "
                        f"with a probability of at most 1 in {_down(promise.k)}."
                    ),
                ),
                (
                    tag("b", "What if they knew which one is mine?"),
                    (
                        " Even then every value in it may have come from chance: whatever your true values are, that "
                        "record is at most e"
                    ),
                    tag("sup", "ε₀"),
                    f" = {factor(promise.local_epsilon)} times as likely as with any others.",
                ),
                (
                    tag("b", "What can be learnt about me from the whole table?"),
                    (
                        (
                            " Possibly much: ε is too large to promise anything. The table below "
                            if "central" in empty
                            else " Very little that would not be learnt if you had answered something else: the table "
                            "below "
                        )
                        + "says how much your record can change what happens."
                    ),
                ),
            ]
        ),
        paragraph(
            "Think of something that you would not like to happen because of this table. If it would come about with "
            "the probability on the left had your record been another, then with your true record its probability "
            "stays within these bounds:"
        ),
        table(
            "How much your record can change what happens",
            [
                "had your record been another",
                f"with your record: (ε, δ) = ({_up(promise.epsilon)}, {number(promise.delta)})",
            ],
            chances,
            numbers=(0, 1),
        ),
        paragraph(
            "Someone who knows all other records, and for whom a fair coin has decided which of two possible records "
            f"is yours, guesses right with probability {guessed} at most; without the table it is 50%."
        ),
        heading("What is not promised"),
        points(
            [
                LEARNT,
                (
                    f"Of a family of g {'people' if promise.rows > 1 else 'records'} it is weaker: g · ε₀, g · ε and "
                    "a larger δ."
                ),
                (
                    "Other releases about the same people add up: the publisher’s ledger counts ε and δ. k speaks of "
                    "this table alone."
                ),
                "No single row is true for sure: any value in it may have come from chance.",
            ]
        ),
    ]


def why(promise: PramPromise) -> list[Content]:
    """The section on why it holds."""
    return [
        formula("P[M(D) ∈ S] ≤ e", tag("sup", "ε"), " · P[M(D′) ∈ S] + δ"),
        paragraph(
            "M is the making of this table, S any set of tables, and D and D′ are any two tables of the same number of "
            f"records that differ in {'those of one person' if promise.rows > 1 else 'one of them'} (“replace-one”). "
            "The number of records is not protected: whether "
            "somebody is in the data at all must not be a secret."
        ),
    ]


def _of_all(promise: PramPromise) -> list[Content]:
    if promise.rows == 1:
        return []
    return [
        paragraph(
            f"A person has {promise.rows:,} records at most. ε₀, ε and δ are about all records of a person together, "
            "also where this page speaks of your record. k is about each record by itself."
        )
    ]


_PARTS = {"linking": "k, on linking", "local": "ε₀, on one record", "central": "ε, on the whole table"}


def _warning(empty: Sequence[str]) -> Html:
    """Said before everything else where a number is so bad that its promise is empty."""
    return tag(
        "div",
        paragraph(
            tag("b", "Not every promise here says something. "),
            (
                "With the numbers of this release, practically nothing is promised by "
                f"{' and '.join(_PARTS[part] for part in empty)}. Who needs that promise must keep less of the values."
            ),
        ),
        class_="aside",
    )


def nothing(statement: PramStatement) -> list[Content]:
    """The same for invariant PRAM."""
    return [
        tag(
            "div",
            paragraph(tag("b", "Nothing is proved about this table. "), statement.promise.in_words),
            class_="aside",
        ),
        paragraph(
            "How hard it is to learn something about a person from it depends on the data and on how much was kept. "
            "Rare values are protected least: what looks like one comes from a frequent value, or is true. The same "
            "transition probabilities without the second step would have been covered by three theorems."
        ),
    ]


def _up(value: float, digits: int = 4) -> str:
    """Rounded up: a page may not promise more than the numbers do."""
    return number(few_digits(Decimal(repr(value)), digits, up=True), digits)


def _down(value: float) -> str:
    """Rounded down."""
    return number(few_digits(Decimal(repr(value)), 4, up=False))
