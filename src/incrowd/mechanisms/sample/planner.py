"""What can be planned of a plain sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from incrowd.mechanisms.planner import Planned, Planner, PlanOption

if TYPE_CHECKING:
    from incrowd.histogram import Histogram


def _sample(**given: Any) -> Planned:
    from incrowd.mechanisms.sample.plan import planned_sample

    return planned_sample(**given)


def _filled(given: dict[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Two numbers that are given decide; else the policy's take the places of those that are not."""
    if sum(name in given for name in ("epsilon", "delta", "rate")) >= 2:
        asked = {"rows_unknown": asked["rows_unknown"]}
    wanted = {name: asked.get(name) for name in ("epsilon", "delta", "rate", "rows_unknown")}
    found = {name: value for name, value in (wanted | given).items() if value is not None}
    if len(given.keys() & {"epsilon", "delta", "rate"}) < 2 and "epsilon" in found and "delta" in found:
        found["planned_rate"] = found.pop("rate", None)
    return found


def _advise(table: Histogram, scales: Mapping[str, Any], answer: Planned) -> Planned:
    from incrowd.mechanisms.sample.advice import advised

    return advised(table, scales, answer)


PLANNERS = (
    Planner(
        "sample",
        "Plain sample",
        """A plain random sample: the largest rate at which it is still private (Chaudhuri, Mishra).

DATA is a table (a file, a pattern, a database's address; with --engine, Parquet that the cluster reaches, or --table
alone), or a policy (.yaml), which is then carried out up to the sampling. Give two of --epsilon, --delta and --rate;
the third follows. Of a policy they need not be repeated: a single option takes the place of the policy's value, and the
others are the policy's. If that makes three, the answer says whether the rate keeps the promise, or the release will be
refused.

This is a statement about this very table; the rate is found by looking at it. It is weaker than differential privacy.
The rate is exact; what Theorem 3 (or 7) of the paper would allow stands beside it. All that is printed is read off the
table: it is for the publisher's eyes only.""",
        (
            PlanOption("epsilon", "How much changing rows may change the sample's likelihood.", start="0.5"),
            PlanOption("delta", "The probability of a sample that does not keep to it.", start="0.05"),
            PlanOption("rate", "A planned rate: with one of the two above, what it promises."),
            PlanOption("rows_unknown", "How many rows may be changed (c); 1 if not given.", "count"),
        ),
        _sample,
        of_table=True,
        filled=_filled,
        advise=_advise,
        examples=(
            "incrowd plan sample survey.csv --columns age,sex,region --epsilon 0.5 --delta 0.05",
            "incrowd plan sample survey.yaml --advice",
            "incrowd plan sample --counts counts.csv --rate 0.01 --delta 0.05",
        ),
    ),
)
