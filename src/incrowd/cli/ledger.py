"""`incrowd ledger`: what has been spent on a dataset, and what is left."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from incrowd.cli._shell import emit, file_name, json_option, safe
from incrowd.core.numbers import number

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
@click.option(
    "--rule",
    type=click.Choice(["sum", "order", "unit"]),
    default="sum",
    show_default=True,
    help="How releases are counted; fixed with the first one.",
)
@click.option("--unit", help="What releases are measured in by the rule unit: k=17,beta=0.3.")
@ledger_option
@json_option
def budget(
    dataset: str,
    epsilon: float,
    delta: float,
    relation: str,
    rule: str,
    unit: str | None,
    path: str,
    as_json: bool,
) -> None:
    """Set what may be spent on DATASET, in a ledger that is made if there is none. Earlier budgets stay on record."""
    from incrowd import api

    statement = api.ledger_budget(
        path, dataset, epsilon=epsilon, delta=delta, relation=relation, rule=rule, unit=unit
    ).to_dict()
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


@ledger.command("accept-loss")
@ledger_option
@json_option
def accept_loss(path: str, as_json: bool) -> None:
    """Give up what is remembered of a ledger that is lost, or of which only an older copy is left.

    What it spent stays spent: record it again with `incrowd ledger add`.
    """
    from incrowd import api

    seen = api.ledger_accept_loss(path)

    def render(console: Console) -> None:
        for one in seen:
            console.print(f"Given up: the ledger last seen {safe(one)}.", soft_wrap=True)
        said = "What it spent stays spent: record it with `incrowd ledger add`." if seen else "Nothing is remembered."
        console.print(said, soft_wrap=True)

    emit({"given_up": list(seen)}, as_json=as_json, render=render)


def _show(console: Console, statement: dict[str, Any]) -> None:
    from rich.table import Table

    console.print(f"[bold]{safe(statement['dataset'])}[/]")
    for total in statement["totals"]:
        console.print(
            f"  spent      ε = {shown(total['epsilon'])} at δ = {shown(total['delta'])}  ({total['relation']})"
        )
    for line in left_in_words(statement):
        console.print(f"  {line}")
    if statement["releases"]:
        table = Table(box=None, pad_edge=False)
        for name in ("when", "what", "mechanism", "ε alone", "state"):
            table.add_column(name)
        for line in statement["releases"]:
            table.add_row(
                line["time"][:19],
                safe(line["description"]),
                safe(line["mechanism"]),
                "does not compose" if line["relation"] is None else shown(line["epsilon"]),
                line["state"],
            )
        console.print(table)
    for note in statement["notes"]:
        console.print(f"[dim]{safe(note)}[/]", soft_wrap=True)


def left_in_words(statement: dict[str, Any]) -> list[str]:
    """What is left of a budget, and how releases are counted against it."""
    left, whole = statement["remaining"], statement["budget"]
    if left is None:
        return ["no budget is set"]
    units = f"  ({left['units']} of {whole['terms']['units']} units)" if "units" in left else ""
    delta = f" of {shown(whole['delta'])}" if whole["rule"] == "sum" else ""
    epsilon = f"ε = {shown(left['epsilon'])} of {shown(whole['epsilon'])}"
    return [f"remaining  {epsilon}, δ = {shown(left['delta'])}{delta}{units}", f"rule       {whole['rule']}"]


def shown(value: float | None) -> str:
    """A number, or the infinity that JSON cannot hold."""
    return number(math.inf if value is None else value, 6)
