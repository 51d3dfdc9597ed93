"""`incrowd estimate`: statistics about the population, from the release alone."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from incrowd.cli._shell import emit, json_option, safe

if TYPE_CHECKING:
    from rich.console import Console

    from incrowd.api import Estimates


@click.command()
@click.argument("folder", type=click.Path(file_okay=False))
@click.option("--by", required=True, help="The columns to tabulate, separated by commas.")
@json_option
def estimate(folder: str, by: str, as_json: bool) -> None:
    """A cross-tabulation of the population from a release, with standard errors.

    Errors include the sampling and the threshold k. Crowds that were not published are not in the estimates; how many
    they could be, and how small they are, is said.

    \b
    incrowd estimate census-2026 --by sex,age
    """
    from incrowd import api

    table = api.estimate(folder, [name for name in by.split(",") if name])
    emit(asdict(table), as_json=as_json, render=lambda console: _show(console, table))


def _show(console: Console, table: Estimates) -> None:
    from rich.table import Table

    shown = Table(box=None, pad_edge=False)
    for name in table.by:
        shown.add_column(safe(name))
    for name in ("people", "± standard error", "crowds published", "of at most"):
        shown.add_column(name, justify="right")
    for row in table.rows:
        labels = ["(missing)" if value is None else safe(value) for value in row.values]
        shown.add_row(
            *labels,
            f"{row.estimate:,.0f}",
            f"{row.standard_error:,.0f}",
            f"{row.crowds:,}",
            f"{row.crowds_possible:,}",
        )
    console.print(shown)
    console.print(
        f"A crowd that was not published has, with probability 95%, fewer than {table.hidden_at_most:,} people.",
        soft_wrap=True,
    )
