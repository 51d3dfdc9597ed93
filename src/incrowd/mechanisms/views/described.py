"""Views in the tables of the documentation."""

from __future__ import annotations

from incrowd.mechanisms.described import Described

DESCRIBED = (
    Described(
        page="views.md",
        whom="a survey with many columns: small tables of a few columns each, and a synthetic table",
        promises="(ε,δ)-differential privacy, for adding or removing a person, of all views together",
        not_promised="what no view carries: there the synthetic table is a model",
        notion="(ε,δ)-differential privacy",
        compares="the table with and without one record",
        records="secret",
        against="anyone",
        speaks_of="the method, on any table",
        chooses="views, privately, and pays for it",
        shown="nobody's: drawn from a model of the views",
        adds_up="yes",
        checked="ε and δ from the steps; every view",
        proved="[here](proofs.md#views-many-small-tables-of-the-same-people)",
        several_rows=(
            "(ε,δ) for adding or removing a person with all rows: Gaussian noise has m times the standard deviation, "
            "Laplace noise and choices cost m times as much, and each view by crowds has the profile of m rows."
        ),
    ),
)
