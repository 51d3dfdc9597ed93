"""Generalization in the tables of the documentation."""

from __future__ import annotations

from incrowd.mechanisms.described import Described

DESCRIBED = (
    Described(
        page="adversaries.md",
        whom="a hospital that can say whom it fears",
        promises=("bounds on what stated adversaries come to believe; k-anonymity, ℓ-diversity, t-closeness and more"),
        not_promised=("differential privacy; anything against other adversaries, or about how the table was chosen"),
        notion="belief ratio, and requirements on groups",
        compares="beliefs with a person in the table and left out",
        records="public, but for those left out",
        against="the adversaries named",
        speaks_of="the published table",
        chooses="levels; not covered",
        shown="true and coarse",
        adds_up="no",
        checked="everything about the table",
        proved="Machanavajjhala, Gehrke, Götz; [closed form](adversaries.md#what-is-promised)",
        several_rows=(
            "`k` counts people, and `people.json` beside the table says how many each group has; where whose rows they "
            "are cannot be told (Spark, `recoding: local`, k `for` sets of columns), m·(k−1)+1 rows are required "
            "instead. Other requirements and adversaries count values, of which a person could supply several: refused "
            "for m > 1. Let one row of each person count."
        ),
    ),
)
