"""`incrowd estimate`: statistics about the population, from the release alone."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import click

from incrowd.cli._shell import emit, folder_name, json_option, safe
from incrowd.core.numbers import number

if TYPE_CHECKING:
    from rich.console import Console

    from incrowd.api import Estimates

_MOST_ODDS = 12


@click.command()
@click.argument("folder", type=folder_name)
@click.option(
    "--by",
    required=True,
    multiple=True,
    help="The columns to tabulate, separated by commas; or the option once for each, as it is (commas included).",
)
@click.option(
    "--method",
    type=click.Choice(["inverse", "em"]),
    help="For randomised releases: the unbiased numbers alone, or the likeliest ones too.",
)
@click.option("--mean", help="For randomised releases: a column of numbers whose mean is wanted in each group.")
@json_option
def estimate(folder: str, by: tuple[str, ...], method: str | None, mean: str | None, as_json: bool) -> None:
    """A cross-tabulation of the population from a release, with standard errors.

    Of a sampled crowd, errors include the sampling and the threshold k. Crowds that were not published are not in the
    estimates; how many they could be, and how small they are, is said.

    Of a randomised table, the randomisation is undone: each number comes with a standard error and a 95% confidence
    interval, and beside it stands the likeliest number that is not below zero (em). For two columns there is a test of
    independence and odds ratios, too.

    \b
    incrowd estimate census-2026 --by sex,age
    incrowd estimate survey --by smoker,region --mean age
    incrowd estimate survey --by smoker --by "region, in winter"
    """
    from incrowd import api

    names = by if len(by) > 1 else [name.strip() for name in by[0].split(",") if name.strip()]
    table = api.estimate(folder, names, method=method, mean=mean)
    emit(asdict(table), as_json=as_json, render=lambda console: _show(console, table))


def _show(console: Console, table: Estimates) -> None:
    _show_rows(console, table, table.rows)
    if getattr(table, "means", ()):
        console.print()
        _show_rows(console, table, table.means, digits=4)  # type: ignore[attr-defined]
    if getattr(table, "association", None) is not None:
        console.print()
        _show_association(console, table.association)  # type: ignore[attr-defined]
    for note in table.notes:
        console.print(safe(note), soft_wrap=True)


def _show_rows(console: Console, table: Estimates, rows: Any, digits: int | None = None) -> None:
    from rich.table import Table

    shown = Table(box=None, pad_edge=False)
    for name in table.by:
        shown.add_column(safe(name))
    # A row's fields are its columns: the cell's values first, then numbers.
    names = [field.name for field in fields(rows[0])][1:] if rows else []
    numbers = [name for name in names if any(getattr(row, name) is not None for row in rows)]
    for name in numbers:
        shown.add_column(_HEADINGS.get(name, name.replace("_", " ")), justify="right")
    for row in rows:
        labels = ["(missing)" if value is None else safe(value) for value in row.values]
        shown.add_row(*labels, *(_number(getattr(row, name), None if name == "people" else digits) for name in numbers))
    console.print(shown)


def _show_association(console: Console, found: Any) -> None:
    console.print(
        f"independence: χ² = {found.chi_square:.4g} with {found.degrees} degrees of freedom, p = {found.p_value:.3g} "
        f"({found.test})"
    )
    for odds in found.odds_ratios[:_MOST_ODDS]:
        ratio = "not estimable"
        if odds.odds_ratio is not None:
            ratio = f"{odds.odds_ratio:.4g} (95% from {odds.low:.4g} to {odds.high:.4g})"
        pair = "; ".join(
            " against ".join("(missing)" if v is None else safe(v) for v in side) for side in (odds.first, odds.second)
        )
        console.print(f"odds ratio of {pair}: {ratio}", soft_wrap=True)
    if len(found.odds_ratios) > _MOST_ODDS:
        console.print(f"and {len(found.odds_ratios) - _MOST_ODDS} more odds ratios (--json)")


def _number(value: float | None, digits: int | None) -> str:
    return "—" if value is None else f"{value:,.0f}" if digits is None else number(value, digits)


_HEADINGS = {"estimate": "people", "standard_error": "± standard error", "crowds_possible": "of possible"}
