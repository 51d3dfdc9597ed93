"""`incrowd estimate`: statistics about the population, from the release alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from incrowd.cli._shell import emit, json_option, release_name, safe

if TYPE_CHECKING:
    from rich.console import Console

    from incrowd.api import Estimates


@click.command()
@click.argument("folder", type=release_name)
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
@click.option("--mean", help="A column of numbers whose mean is wanted in each group.")
@click.option("--sum", "sum_of", help="A column of numbers whose sum is wanted in each group, of a plain sample.")
@click.option(
    "--total",
    type=click.IntRange(0),
    help="How many people there are in all, if you know it from elsewhere: upper ends become smaller.",
)
@json_option
def estimate(
    folder: str,
    by: tuple[str, ...],
    method: str | None,
    mean: str | None,
    sum_of: str | None,
    total: int | None,
    as_json: bool,
) -> None:
    """A cross-tabulation of the population from a release, with 95% intervals.

    Every declared cell is listed. Where something may be missing, because a crowd was not published or records were
    left out, the interval from low to high allows for it, and there is no standard error. A cell of which nothing is
    published is a range.

    Of a randomised table, the randomisation is undone: each number comes with a standard error and a 95% confidence
    interval, and beside it stands the likeliest number that is not below zero (em). For two columns there is a test of
    independence and odds ratios, too.

    \b
    incrowd estimate census-2026 --by sex,age
    incrowd estimate census-2026 --by sex --total 30162
    incrowd estimate survey --by smoker,region --mean age
    incrowd estimate survey --by smoker --by "region, in winter"
    """
    from incrowd import api

    names = by if len(by) > 1 else [name.strip() for name in by[0].split(",") if name.strip()]
    table = api.estimate(folder, names, method=method, mean=mean, sum_of=sum_of, total=total)
    emit(asdict(table), as_json=as_json, render=lambda console: _show(console, table))


def _show(console: Console, table: Estimates) -> None:
    from rich.table import Table

    for number, (headings, rows) in enumerate(table.tables()):
        if number:
            console.print()
        shown = Table(box=None, pad_edge=False)
        for place, name in enumerate(headings):
            shown.add_column(safe(name), justify="left" if place < len(table.by) else "right")
        for row in rows:
            shown.add_row(*map(safe, row))
        console.print(shown)
    if table.remarks():
        console.print()
    for note in (*table.remarks(), *table.notes):
        console.print(safe(note), soft_wrap=True)
