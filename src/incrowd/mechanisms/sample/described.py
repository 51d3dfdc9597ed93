"""Plain samples in the tables of the documentation."""

from __future__ import annotations

from incrowd.mechanisms.described import Described

DESCRIBED = (
    Described(
        page="sampling.md",
        whom="an agency that publishes a 1% sample",
        promises="(c,ε,δ)-privacy of this very table, at the largest rate that keeps it",
        not_promised="differential privacy; anything about another table",
        notion="(c,ε,δ)-privacy of one table",
        compares="tables that differ in c records' values",
        records="the sample's size is public",
        against="anyone who knows all other rows",
        speaks_of="this table",
        chooses="the rate; not covered",
        shown="true, of those sampled",
        adds_up="no",
        checked="little",
        proved="Chaudhuri, Mishra; [exact](proofs.md#the-exact-rate-of-a-plain-sample)",
        several_rows="c, the rows that change together, is at least m.",
    ),
)
