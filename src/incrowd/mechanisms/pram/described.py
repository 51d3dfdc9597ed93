"""Randomised records in the tables of the documentation."""

from __future__ import annotations

from incrowd.mechanisms.described import Described

DESCRIBED = (
    Described(
        page="pram.md",
        whom="an office that must keep every record, or a survey whose [respondents randomise](local.md)",
        promises="local ε₀ and a much smaller central (ε,δ) by shuffling, for replacing a record; Pk-anonymity",
        not_promised="exact counts: they are estimated, with errors stated",
        notion="Pk; local ε₀; central (ε,δ)",
        compares="tables that differ in one record's values",
        records="public",
        against="anyone",
        speaks_of="the method, on any table of R or more",
        chooses="ρ from R alone",
        shown="redrawn",
        adds_up="yes (k does not)",
        checked="every number",
        proved="Ikarashi and others; [shuffling](proofs.md#shuffling-what-a-table-of-randomised-records-promises)",
        several_rows=(
            "`epsilon` bounds m·ε₀; the central (ε,δ) is for replacing all rows of a person, by group privacy; k is "
            "about each record."
        ),
    ),
)
