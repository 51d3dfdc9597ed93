"""`incrowd gallery`: the papers' tables and figures, drawn again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from incrowd.cli._shell import emit, folder_name, json_option, progress_bar, safe
from incrowd.core.errors import ParameterError

if TYPE_CHECKING:
    from rich.console import Console


@click.command()
@click.option("-o", "--output", "folder", type=folder_name, required=True, help="Where to draw.")
@click.option("--only", multiple=True, metavar="NAME", help="Only this figure; may be repeated.")
@click.option("--data", multiple=True, metavar="KIND=FILE", help="A table of your own to draw from: adult=adult.csv.")
@click.option("--quick", is_flag=True, help="Fewer records and runs, for a first look.")
@json_option
def gallery(folder: str, only: tuple[str, ...], data: tuple[str, ...], quick: bool, as_json: bool) -> None:
    """Redraw the papers' tables and figures as one page that needs nothing else.

    \b
    incrowd gallery -o gallery
    incrowd gallery -o gallery --only adversaries --data adult=adult.csv
    """
    from incrowd import api

    tables = {}
    for one in data:
        kind, equals, file = one.partition("=")
        if not equals:
            raise ParameterError(f"--data {one}: write it as KIND=FILE.", code="parameter-combination")
        tables[kind] = file
    with progress_bar() as tell:
        figures = api.gallery(folder, only=only, data=tables, quick=quick, progress=tell)
    payload = {
        "page": f"{folder}/index.html",
        "figures": [
            {"name": f.name, "title": f.title, "paper": f.paper, "numbers": dict(f.numbers)}
            | {"claims": [vars(claim) for claim in f.claims]}
            for f in figures
        ],
    }
    emit(payload, as_json=as_json, render=lambda console: _show(console, payload))


def _show(console: Console, payload: dict[str, Any]) -> None:
    for one in payload["figures"]:
        console.print(f"  {safe(one['name']):<20} {safe(one['title'])}", soft_wrap=True)
    console.print(f"Open {safe(payload['page'])} in a browser.", soft_wrap=True)
