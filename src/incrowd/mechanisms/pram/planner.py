"""What can be planned of a randomised table."""

from __future__ import annotations

from typing import Any

from incrowd.mechanisms.planner import ROWS_PER_PERSON, Planned, Planner, PlanOption


def _pram(**given: Any) -> Planned:
    from incrowd.mechanisms.pram.plan import planned_pram

    return planned_pram(**given)


PLANNERS = (
    Planner(
        "pram",
        "Randomised records",
        """Randomise every record: how much may be kept, and what that promises (Ikarashi et al., Algorithms 1-3).

Give --k and/or --epsilon to find ρ, or --rho to see what it promises. Three promises come out: the local ε of one
record, Pk-anonymity, and the much smaller (ε,δ) of the shuffled table, all for replacing one record. With
--rows-per-person, both ε are for replacing all records of a person, and k is about each of them.""",
        (
            PlanOption("records", "How many records the table has, at least.", "count", required=True, start="100000"),
            PlanOption(
                "domain",
                "How many values each attribute may have: 2,5,10, or the option once for each.",
                "sizes",
                required=True,
                start="2, 5, 10",
            ),
            PlanOption("k", "Nobody may be linked to a record with probability above 1/k."),
            PlanOption("epsilon", "The largest ε of a single randomised record."),
            PlanOption("rho", "The probability of keeping a value, to see what it promises."),
            PlanOption("delta", "δ of the promise after shuffling.", default=1e-6),
            PlanOption("beta", "Redraw a random sample only: each record with this probability."),
            ROWS_PER_PERSON,
        ),
        _pram,
        examples=("incrowd plan pram --records 100000 --domain 2,5,10 --k 100",),
    ),
)
