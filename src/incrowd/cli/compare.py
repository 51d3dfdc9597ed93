"""`incrowd compare`: the errors of several ways to publish one table, at comparable promises."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from incrowd.cli._shell import emit, file_name, json_option, progress_bar, safe
from incrowd.cli._tables import counts_a_table, require_data
from incrowd.core.numbers import as_given, number, percent

if TYPE_CHECKING:
    from rich.console import Console

    from incrowd.api import Compared

INTERNAL = (
    "For the publisher's eyes only: every number was read off the raw table, many times. No budget pays for that, "
    "which is why none of it may be published."
)


def _numbers(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[float, ...]:
    try:
        return tuple(float(part) for value in given for part in value.split(","))
    except ValueError:
        raise click.BadParameter("give numbers, separated by commas, such as 0.5,1,2", ctx, param) from None


def _levels(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> dict[str, int]:
    try:
        return {name: int(level) for part in given for name, _, level in [part.rpartition("=")] if name or int("x")}
    except ValueError:
        raise click.BadParameter("give a column and a level, such as age=2", ctx, param) from None


@click.command()
@click.argument("thing", metavar="[POLICY|DATA]", required=False)
@click.option("--data", help="The table, if not the one that the policy names.")
@click.option("--columns", help="Which columns of DATA to look at, separated by commas; all if not given.")
@click.option("--level", "levels", multiple=True, callback=_levels, help="COLUMN=LEVEL, instead of the policy's.")
@click.option(
    "--epsilon",
    "epsilons",
    multiple=True,
    callback=_numbers,
    default=("0.5", "1", "2"),
    show_default="0.5,1,2",
    help="One or more, separated by commas: likelihoods may change by a factor of e^ε.",
)
@click.option(
    "--delta", type=float, help="The probability with which promises may fail; by default the policy's, or 0.001."
)
@click.option(
    "--runs", type=click.IntRange(1, 1000), default=5, show_default=True, help="Runs of each; errors are medians."
)
@click.option("--plot", type=file_name, help="Draw the errors to this SVG file.")
@counts_a_table
@json_option
def compare(
    thing: str | None,
    data: str | None,
    columns: str | None,
    levels: dict[str, int],
    epsilons: tuple[float, ...],
    delta: float | None,
    runs: int,
    plot: str | None,
    reading: dict[str, Any],
    as_json: bool,
) -> None:
    """What a plain sample, a sampled crowd, randomised records, views and noisy counts each make of the same table.

    The same factor e^ε and the same δ are asked of each in its own notion; how these differ is said below the table.
    Errors are those of all counts of one and two columns, at the levels that the policy fixes, or that its mechanism
    would choose (else 0).

    None of this is private. It looks at the raw table many times, charges no ledger, and must never be
    published. A choice that is made because of it is not private either.

    DATA is a CSV, Parquet, JSON-lines or SQLite file, a pattern like 'parts/*.parquet', or a database's address. With
    --engine it is Parquet that the cluster reaches; without DATA, a table of Spark's catalogue. With a policy,
    its section 'data' says how a text file is written.

    \b
    incrowd compare census.yaml --plot compared.svg
    incrowd compare survey.csv --columns age,sex,region --epsilon 1 --runs 20
    """
    from incrowd import api

    require_data(thing, reading)
    with progress_bar() as tell:
        names = columns.split(",") if columns else None
        looked = api.look_at(thing, data=data, columns=names, levels=levels, progress=tell, **reading)
        found = api.compare(looked, epsilons=epsilons, delta=delta, runs=runs, progress=tell)
    if plot:
        api.save_chart(found, plot)
    emit(asdict(found) | {"internal": INTERNAL}, as_json=as_json, render=lambda console: _show(console, found))


def _show(console: Console, found: Compared) -> None:
    from rich.table import Table

    console.print(f"[bold red]INTERNAL[/] {INTERNAL}", soft_wrap=True)
    console.print(
        f"{found.records:,} records, {found.marginals} counts of one or two of {len(found.columns)} columns, "
        f"{found.cells:,} cells; "
        f"δ = {as_given(found.delta)}; "
        + ("one run" if found.runs == 1 else f"medians of {found.runs} runs ± their standard deviation"),
        soft_wrap=True,
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("ε", justify="right")
    table.add_column("settings")
    for name in ("Σ|x−y|/records", "per cell", "relative error"):
        table.add_column(name, justify="right")
    for figure in found.contenders:
        if figure.absolute is None or figure.relative is None or figure.per_cell is None:
            table.add_row(figure.mechanism, as_given(figure.epsilon), safe(figure.refused), "—", "—", "—")
            continue
        table.add_row(
            figure.mechanism,
            as_given(figure.epsilon),
            safe(figure.settings),
            f"{number(figure.absolute, 3)}"
            + ("" if figure.absolute_spread is None else f" ± {number(figure.absolute_spread, 1)}"),
            number(figure.per_cell, 2),
            f"{percent(figure.relative)}"
            + ("" if figure.relative_spread is None else f" ± {percent(figure.relative_spread)}"),
        )
    console.print(table)
    console.print()
    console.print(f"· {found.units}", soft_wrap=True)
    for text in found.differences:
        console.print(f"· {text}", soft_wrap=True)
