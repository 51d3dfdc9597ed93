"""`incrowd ledger`: what has been spent on a dataset, and what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from incrowd.cli._shell import emit, file_name, json_option, safe

if TYPE_CHECKING:
    from rich.console import Console

ledger_option = click.option("--ledger", "path", type=file_name, required=True, help="The ledger's file.")
relation_option = click.option(
    "--relation",
    type=click.Choice(["add/remove", "replace-one"]),
    default="add/remove",
    show_default=True,
    help="Which tables count as neighbours.",
)


@click.group()
def ledger() -> None:
    """What has been spent on a dataset, and what is left."""


@ledger.command()
@click.argument("dataset", required=False)
@ledger_option
@json_option
def show(dataset: str | None, path: str, as_json: bool) -> None:
    """What has been spent on DATASET; without it, which datasets there are."""
    from incrowd import api

    if dataset is None:
        names = api.ledger_datasets(path)
        emit({"datasets": names}, as_json=as_json, render=lambda console: console.print(safe(", ".join(names))))
        return
    statement = api.ledger_statement(path, dataset).to_dict()
    emit(statement, as_json=as_json, render=lambda console: _show(console, statement))


@ledger.command()
@click.argument("dataset")
@click.option("--epsilon", type=float, required=True, help="All that may ever be spent.")
@click.option("--delta", type=float, required=True, help="At this δ.")
@relation_option
@ledger_option
@json_option
def budget(dataset: str, epsilon: float, delta: float, relation: str, path: str, as_json: bool) -> None:
    """Set what may be spent on DATASET. Earlier budgets stay on record."""
    from incrowd import api

    statement = api.ledger_budget(path, dataset, epsilon=epsilon, delta=delta, relation=relation).to_dict()
    emit(statement, as_json=as_json, render=lambda console: _show(console, statement))


@ledger.command()
@click.argument("dataset")
@click.option("--epsilon", type=float, required=True, help="What the release spent.")
@click.option("--delta", type=float, required=True, help="What the release spent.")
@click.option("--description", default="made elsewhere", show_default=True, help="What it was, for people.")
@relation_option
@ledger_option
@json_option
def add(dataset: str, epsilon: float, delta: float, description: str, relation: str, path: str, as_json: bool) -> None:
    """Record a release of DATASET that was made elsewhere."""
    from incrowd import api

    statement = api.ledger_add(
        path, dataset, epsilon=epsilon, delta=delta, relation=relation, description=description
    ).to_dict()
    emit(statement, as_json=as_json, render=lambda console: _show(console, statement))


def _show(console: Console, statement: dict[str, Any]) -> None:
    from rich.table import Table

    console.print(f"[bold]{safe(statement['dataset'])}[/]")
    for total in statement["totals"]:
        console.print(
            f"  spent      ε = {_number(total['epsilon'])} at δ = {_number(total['delta'])}  ({total['relation']})"
        )
    if statement["remaining"] is not None:
        left, whole = statement["remaining"], statement["budget"]
        console.print(f"  remaining  ε = {_number(left['epsilon'])} of {_number(whole['epsilon'])}")
    else:
        console.print("  no budget is set")
    if statement["releases"]:
        table = Table(box=None, pad_edge=False)
        for name in ("when", "what", "mechanism", "ε alone", "state"):
            table.add_column(name)
        for line in statement["releases"]:
            table.add_row(
                line["time"][:19],
                safe(line["description"]),
                safe(line["mechanism"]),
                "does not compose" if line["relation"] is None else _number(line["epsilon"]),
                line["state"],
            )
        console.print(table)
    for note in statement["notes"]:
        console.print(f"[dim]{safe(note)}[/]", soft_wrap=True)


def _number(value: float | None) -> str:
    return "∞" if value is None else f"{value:.6g}"
