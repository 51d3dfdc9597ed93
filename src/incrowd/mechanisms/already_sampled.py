"""A table that is itself a random sample, where the promise is made to all who could have been in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from incrowd.core.errors import PolicyError

if TYPE_CHECKING:
    from incrowd.policy import Policy


def require_one_use(policy: Policy, copies: int) -> None:
    """Refuse a second release of a sample, and to limit the rows of people in it: with many rows a person is in it
    with a probability above β."""
    if copies > 1 or policy.ledger is None:
        raise PolicyError(
            "A table that is itself a sample may serve one release only.",
            code="sample-reused",
            remedy="Make one release, and name a ledger in the policy, which sees to it that there is no second.",
        )
    if policy.people is not None:
        raise PolicyError(
            "In a table that is itself a sample, a person's rows can no longer be limited: that comes before sampling.",
            code="policy-invalid",
            remedy="Make the table with one row for each person and leave out the section 'people', or leave out "
            "'already_sampled'.",
        )


def came_by_chance(rate: float) -> str:
    """The premise of such a promise to a whole population, which nobody can check from outside."""
    return (
        "The table is itself a random sample: each person of the population came into it independently, with "
        f"probability {rate!r}, and who did is secret. No other release is made from it."
    )
