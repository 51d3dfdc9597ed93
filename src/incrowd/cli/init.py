"""`incrowd init`: a first draft of a policy."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from incrowd.cli._shell import emit, json_option, progress_bar
from incrowd.cli._tables import looks_at_a_table, require_data

if TYPE_CHECKING:
    from rich.console import Console

    from incrowd.api import Draft


@click.command()
@click.argument("data", required=False)
@click.option(
    "-o",
    "--output",
    help="Where to write the policy; - prints it. By default NAME.yaml, beside DATA if that is a file.",
)
@click.option("--overwrite", is_flag=True, help="Replace a file of that name.")
@click.option(
    "--codebook", help="What codes mean: CSV (variable, value, label) or JSON. Found beside DATA if not given."
)
@looks_at_a_table
@json_option
def init(
    data: str | None, output: str | None, overwrite: bool, codebook: str | None, reading: dict[str, Any], as_json: bool
) -> None:
    """Draft a policy from a table, saying what a person must decide.

    Types and roles are guessed; identifiers are dropped. Domains are proposed and marked CONFIRM: what is read off the
    data is covered by no guarantee until a person has said that it is right.

    Files beside DATA are used: hierarchies (adult_hierarchy_age.csv for the column age of adult.csv) and a code book
    (adult_codebook.csv). Of a wide table, as many columns are proposed as it carries; the others are there as drop.

    A Data Package beside DATA (datapackage.json) says what columns are called and may hold; it can be named as DATA.

    DATA is a CSV, Parquet, JSON-lines or SQLite file, a pattern like 'parts/*.parquet', or a database's address. With
    --engine it is Parquet that the cluster reaches; without DATA, a table of Spark's catalogue.

    \b
    incrowd init census.csv
    incrowd init census.csv -o - | less
    incrowd init postgresql://office@db.example.org/census --table people
    incrowd init --engine spark://head:7077 --table census.people
    """
    from incrowd import api

    require_data(data, reading)
    with progress_bar() as tell:
        draft = api.draft_policy(
            data,
            output,
            overwrite=overwrite,
            codebook=codebook,
            progress=tell,
            **reading,
        )
    if draft.path is None and not as_json:
        click.echo(draft.text, nl=False)
        return
    emit(_payload(draft), as_json=as_json, render=lambda console: _show(console, draft))


def _payload(draft: Draft) -> dict[str, Any]:
    written = {"policy": "-", "text": draft.text} if draft.path is None else {"policy": str(draft.path)}
    return {
        **written,
        "columns": [{"name": c.name, "type": c.type, "role": c.role, "why": c.why} for c in draft.columns],
        "decisions": [{"column": d.column, "question": d.question} for d in draft.decisions],
    }


def _show(console: Console, draft: Draft) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("column", "type", "role", "why"):
        table.add_column(heading)
    for column in draft.columns:
        style = "dim" if column.role == "drop" else "bold" if column.role == "sensitive" else ""
        table.add_row(Text(_name(column.name)), column.type, Text(column.role, style), Text(column.why))
    console.print(table)
    console.print("\n[bold]A person must decide[/]")
    for number, decision in enumerate(draft.decisions, 1):
        about = "" if decision.column is None else f"{_name(decision.column)}: "
        console.print(Text(f"{number}. {about}{decision.question}"), soft_wrap=True)
    more = "" if draft.engine is None else f" --engine {shlex.quote(draft.engine)}"
    then = f"incrowd release {shlex.quote(str(draft.path))} -o DIR{more}"
    console.print(Text(f"\nThe draft is in {draft.path}. When you have decided: {then}"), soft_wrap=True)


def _name(name: str) -> str:
    """A column's name in one line, whatever is in it."""
    return name if name.isprintable() and name == name.strip() and name else ascii(name)
