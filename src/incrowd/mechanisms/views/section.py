"""`mechanism: views`: many small tables of a few columns each, and one synthetic table made of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field

from incrowd.policy.attributes import Attribute
from incrowd.policy.fields import Finding, Section
from incrowd.policy.release import ReleaseSection

MOST_COLUMNS = 3
"""Of a view that is chosen."""


class Choose(Section):
    """Which views are chosen, and how."""

    columns: int = Field(
        default=2, ge=2, le=MOST_COLUMNS, description="How many columns a view has; an adaptive choice: at most."
    )
    how: Literal["tree", "adaptive"] = Field(
        default="tree",
        description="A tree that connects all columns, or wherever the views so far say least.",
    )


class Views(ReleaseSection):
    """One-way tables of all columns, further views of two or three, and a synthetic table made of them."""

    PARTS: ClassVar[Mapping[str, type[BaseModel]]] = {"choose": Choose}
    SILENT: ClassVar[Mapping[str, Any]] = {"beta": None, "already_sampled": False}

    mechanism: Literal["views"] = Field(description="The method.")
    epsilon: float = Field(gt=0, le=100, allow_inf_nan=False, description="The promise about all views together.")
    delta: float = Field(gt=0, lt=1, description="The probability with which the promise may fail.")
    by: Literal["crowd", "noise"] = Field(
        default="crowd",
        description="Each view of several columns counts sampled people, crowds only; or everybody, with discrete "
        "Gaussian noise.",
    )
    choose: Choose | None = Field(
        default=None,
        description="Which views are chosen privately: pairs, adaptively by crowd and along a tree by noise.",
    )
    views: tuple[tuple[str, ...], ...] | None = Field(
        default=None, description="The views, each a list of columns, instead of a choice: [[age, sex], [region]]."
    )
    share: float = Field(
        default=0.1, gt=0, lt=0.9, allow_inf_nan=False, description="The part of the promise that pays for the choice."
    )
    combine: Literal["table", "none"] = Field(
        default="table", description="Whether a synthetic table is made of the views, as `combined.parquet`."
    )
    rows: int | None = Field(
        default=None, ge=1, le=100_000_000, description="The rows of the synthetic table; about as many as people."
    )

    beta: float | None = Field(
        default=None, gt=0, lt=1, description="The rate at which the table was sampled, if it is itself a sample."
    )
    already_sampled: bool = Field(
        default=False,
        description="The table itself is a random sample, of rate beta, of the people it speaks of.",
    )

    @property
    def rate(self) -> float:
        """The probability with which those to whom it is promised are in the table."""
        return self.beta if self.already_sampled and self.beta is not None else 1.0

    @property
    def chosen(self) -> Choose | None:
        """What is chosen; None if the views are listed.

        Another view by crowds costs the others little, and each shows its largest cells only: so more are taken.
        """
        usual = Choose(how="adaptive" if self.by == "crowd" else "tree")
        return None if self.views is not None else self.choose or usual

    def listed(self, names: list[str]) -> list[tuple[str, ...]]:
        """The listed views of several columns, their columns in the table's order."""
        return [tuple(sorted(view, key=names.index)) for view in self.views or () if len(view) > 1]

    def unfit(self, attributes: Mapping[str, Attribute]) -> list[Finding]:
        findings = self._unfit_sample()
        if self.views is not None and self.choose is not None:
            findings.append((("release", "choose"), "the views are listed already: give 'views' or 'choose'"))
        if self.combine == "none" and self.rows is not None:
            findings.append((("release", "rows"), "no synthetic table is made; leave it out, or set 'combine: table'"))
        choice = self.chosen
        if choice is not None and choice.columns > len(attributes) > 1:
            findings.append((("release", "choose", "columns"), "there are fewer columns than that"))
        if self.views is not None and not self.views:
            findings.append((("release", "views"), "lists no view: name one, or leave it out and views are chosen"))
        seen: set[frozenset[str]] = set()
        for number, view in enumerate(self.views or ()):
            place = ("release", "views", number)
            if not view or len(set(view)) < len(view):
                findings.append((place, "must name one column or several, each once"))
            unknown = [name for name in view if name not in attributes]
            if unknown:
                findings.append((place, f"'{unknown[0]}' is not a column that the policy publishes"))
            if frozenset(view) in seen:
                findings.append((place, "is listed twice"))
            seen.add(frozenset(view))
        return findings

    def _unfit_sample(self) -> list[Finding]:
        if not self.already_sampled:
            text = (
                "noisy counts of a sample err more than those of everybody at the same promise, and crowds find their "
                "rate; leave it out, or say that the table is a sample (already_sampled: true)"
            )
            return [] if self.beta is None else [(("release", "beta"), text)]
        findings: list[Finding] = []
        if self.beta is None:
            findings.append((("release", "already_sampled"), "say at which rate it was sampled: give 'beta'"))
        elif self.delta >= self.beta:
            findings.append((("release", "delta"), "must be below 'beta': who is not in the table needs no promise"))
        if self.by != "noise":
            text = "crowds would sample the sample once more; use 'by: noise', or 'mechanism: sampled_crowd'"
            findings.append((("release", "already_sampled"), text))
        return findings
