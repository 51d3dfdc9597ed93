"""Sampled crowds in the tables of the documentation."""

from __future__ import annotations

from dataclasses import replace

from incrowd.mechanisms.described import Described

_LATTICE = Described(
    page="policy.md#mechanism-sampled_crowd",
    whom="an office that can do with a sample of a few columns",
    promises="(ε,δ)-differential privacy, for adding or removing a person; exact δ",
    not_promised="that rare combinations appear",
    notion="(ε,δ)-differential privacy",
    compares="the table with and without one record",
    records="secret, and so is the sample's size",
    against="anyone",
    speaks_of="the method, on any table",
    chooses="levels, privately, and pays for it",
    shown="true and coarse, of those sampled",
    adds_up="yes",
    checked="ε and δ from k and β; every crowd",
    proved="Li, Qardaji, Su; [sharpened](proofs.md#the-exact-δ-of-a-sampled-crowd)",
    several_rows=(
        "(ε,δ) for adding or removing a person with all rows, wherever they are. k grows: [how much](planning.md). "
        "A tree is chosen so that each row pays 1/m² of `choice_rho`."
    ),
)
DESCRIBED = (
    _LATTICE,
    replace(
        _LATTICE,
        keys="recoding: tree",
        whom="the same with four columns or more",
        not_promised="that a column is shown equally finely everywhere",
        chooses="a tree of boxes, privately, and pays for it",
        checked="ε and δ from k, β and the choice's ρ; every crowd",
    ),
)
