"""`incrowd release`: the main job."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from incrowd.cli._shell import emit, json_option, progress_bar, safe

if TYPE_CHECKING:
    from rich.console import Console


@click.command()
@click.argument("policy", type=click.Path(dir_okay=False))
@click.option("-o", "--output", "folder", type=click.Path(file_okay=False), required=True, help="A new folder.")
@click.option("--data", help="The table, if not the one that the policy names; patterns like parts/*.parquet work.")
@click.option("--copies", type=click.IntRange(1), default=1, show_default=True, help="Independent releases at once.")
@click.option("--sign-with", type=click.Path(dir_okay=False), help="A secret Ed25519 key (PEM) to sign with.")
@click.option("--show-values", is_flag=True, help="Let error messages show values from the data.")
@click.option("--engine", help="The Spark cluster that counts: spark://host:port, local[2], yarn, ...")
@click.option("--most-cells", type=click.IntRange(1), help="How many different rows a cluster may hand over at most.")
@json_option
def release(
    policy: str,
    folder: str,
    data: str | None,
    copies: int,
    sign_with: str | None,
    show_values: bool,
    engine: str | None,
    most_cells: int | None,
    as_json: bool,
) -> None:
    """Publish a table as its policy says: the release, its certificate and a report.

    The folder holds what may be passed on: the table, certificate.json and report.html. Beside it, in FOLDER.internal,
    is what only the publisher may see. Both appear complete or not at all.

    \b
    incrowd release census.yaml -o census-2026
    """
    from incrowd import api

    with progress_bar() as tell:
        made = api.release_copies(
            data,
            policy,
            copies=copies,
            folder=folder,
            sign_with=sign_with,
            show_values=show_values,
            engine=engine,
            most_cells=most_cells,
            progress=tell,
        )
    places = api.release_folders(folder, copies)
    results = [
        payload_of(one.certificate, place, api.internal_folder(place)) for one, place in zip(made, places, strict=True)
    ]
    payload = results[0] if copies == 1 else {**results[0], "releases": results}
    emit(payload, as_json=as_json, render=lambda console: show(console, results, empty=not made[0].histogram.total))


def payload_of(certificate: Any, folder: Path, internal: Path) -> dict[str, Any]:
    """What `--json` prints about a release."""
    table = next(name for name in certificate["files"] if name.startswith("release."))
    promise, mechanism = certificate["promise"], certificate["mechanism"]
    said = {key: value for key, value in promise.items() if key not in ("grounds", "together")}
    made = {key: value for key, value in mechanism.items() if key not in ("levels", "levels_chosen")}
    return {
        "release": str(folder / table),
        "certificate": str(folder / "certificate.json"),
        "report": str(folder / "report.html"),
        "internal": str(internal),
        "guarantee": {**made, **said, "mechanism": made.pop("name")},
        "levels": mechanism["levels"],
    }


def show(console: Console, results: list[dict[str, Any]], *, empty: bool) -> None:
    """What a person sees of releases."""
    for result in results:
        promise = result["guarantee"]
        console.print("[bold]Published[/]")
        console.print(f"  release      {safe(result['release'])}")
        console.print(f"  certificate  {safe(result['certificate'])}")
        console.print(f"  report       {safe(result['report'])}")
        console.print(f"  for you only {safe(result['internal'])}/")
        console.print(safe(promise["in_words"]), soft_wrap=True)
        levels = ", ".join(f"{safe(name)} {level}" for name, level in result["levels"].items())
        if levels:
            console.print(f"Columns are shown at level {levels}.", soft_wrap=True)
    if empty:
        console.print(
            "It is empty: nothing could be published. The report says what would help.",
            soft_wrap=True,
        )
    where = shlex.quote(str(Path(results[0]["release"]).parent))
    console.print(f"Anyone can check it: incrowd verify {safe(where)}", soft_wrap=True)
