"""`incrowd release`: the main job."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from incrowd.cli._shell import (
    emit,
    folder_name,
    json_option,
    policy_file,
    printable,
    progress_bar,
    safe,
    sign_option,
)
from incrowd.cli._tables import counts_by_policy
from incrowd.cli.ledger import left_in_words, shown

if TYPE_CHECKING:
    from rich.console import Console

    from incrowd.api import Concern, Release

_MOST_WARNINGS = 8
_MOST_GONE = 100  # values of a column in --json; `values` and `occurring` say how many there are
_UNCONFIRMED = "unconfirmed"


@click.command()
@click.argument("policy", type=policy_file)
@click.option("-o", "--output", "folder", type=folder_name, required=True, help="A new folder.")
@click.option(
    "--data",
    help="The table, if not the one that the policy names: a file, a pattern (parts/*.parquet), a database's address.",
)
@click.option("--copies", type=click.IntRange(1), default=1, show_default=True, help="Independent releases at once.")
@sign_option
@click.option("--show-values", is_flag=True, help="Let error messages show values from the data.")
@counts_by_policy
@click.option(
    "--write-with",
    type=click.Choice(["driver", "executors"]),
    default="driver",
    show_default=True,
    help="Who writes a randomised table of a Spark cluster; executors can, if this machine could not hold it.",
)
@click.option(
    "--rehearse", is_flag=True, help="Look at what would come out, of a draft too: uncharged, and void in every file."
)
@click.option(
    "--new-ledger",
    is_flag=True,
    help="The first release of the dataset: set its budget, in a ledger that is made if there is none.",
)
@click.option(
    "--format",
    "output",
    type=click.Choice(["parquet", "csv", "arrow", "sav", "dta", "xlsx"]),
    help="The format of the table, if not the one that the policy names: sav is SPSS, dta Stata, xlsx Excel.",
)
@json_option
def release(
    policy: str,
    folder: str,
    data: str | None,
    copies: int,
    sign_with: str | None,
    show_values: bool,
    reading: dict[str, Any],
    write_with: str,
    rehearse: bool,
    new_ledger: bool,
    output: str | None,
    as_json: bool,
) -> None:
    """Publish a table as its policy says: the release, its certificate and a report.

    The folder holds what may be passed on: the table, certificate.json, report.html, and datapackage.json for data
    catalogues. Beside it, in FOLDER.internal, is what only the publisher may see. Both appear complete or not at all.

    A draft of `incrowd init` is refused until a person has confirmed what is marked in it. --rehearse shows what would
    come out even so: nothing is charged, and the certificate, the report and each file's name say that it is void.

    \b
    incrowd release census.yaml -o census-2026
    incrowd release draft.yaml -o a-look --rehearse
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
            write_with=write_with,
            rehearse=rehearse,
            new_ledger=new_ledger,
            output=output,
            progress=tell,
            warn=_warn,
            **reading,
        )
    places = api.release_folders(folder, copies)
    results = [payload_of(one, place, api.internal_folder(place)) for one, place in zip(made, places, strict=True)]
    account, people = made[0].account, people_in(made[0])
    payload = {**results[0], "ledger": account, **({"releases": results} if copies > 1 else {})}
    payload |= {"people": people}
    told = frozenset(concern.text for concern in made[0].concerns if concern.code != _UNCONFIRMED)

    def render(console: Console) -> None:
        show(console, results, empty=made[0].empty, told=told)
        if people is not None:
            console.print(
                f"{people['rows']:,} rows of {people['people']:,} people; {people['left_out']:,} rows do not count, "
                f"as at most {people['at_most']} of each person do. These numbers are for you only.",
                soft_wrap=True,
            )
        if not rehearse:
            show_account(console, account)
        elif isinstance(policy, str):
            named = safe(shlex.quote(policy))
            console.print(f"What else could be done, for your eyes only: incrowd advise {named}", soft_wrap=True)

    emit(payload, as_json=as_json, render=render)


def people_in(made: Release) -> dict[str, int] | None:
    """How many rows and people there were, and how many rows do not count; None where rows are people."""
    if made.people is None:
        return None
    found = made.people
    return {
        "rows": found.rows,
        "people": found.people,
        "at_most": made.policy.rows_per_person,
        "left_out": found.left_out,
    }


def _warn(concern: Concern) -> None:
    """Says at once what had better be changed; that a draft is to be confirmed, its rehearsal says."""
    if concern.code != _UNCONFIRMED:
        click.echo(f"incrowd: {printable(concern.text)} ({concern.code})", err=True)


def show_account(console: Console, account: Mapping[str, Any] | None) -> None:
    """What is spent and left after a release."""
    if account is None:
        console.print("No ledger counts this release: nothing adds up what is published about these people.")
        return
    spent = account["spent"]
    console.print(
        f"Spent on {safe(account['dataset'])}: ε = {shown(spent['epsilon'])} at δ = {shown(spent['delta'])}; "
        f"{' '.join(left_in_words(dict(account))[0].split())}.",
        soft_wrap=True,
    )
    for note in account["notes"]:
        console.print(f"[dim]{safe(note)}[/]", soft_wrap=True)


def payload_of(release: Release, folder: Path, internal: Path) -> dict[str, Any]:
    """What `--json` prints about a release, to its publisher."""
    certificate = release.certified
    report = next(name for name in certificate.files if name.startswith("report."))
    levels = certificate.mechanism.levels
    said = {key: value for key, value in certificate.promise.document().items() if key not in ("grounds", "together")}
    made = {
        key: value for key, value in certificate.mechanism.document().items() if key not in ("levels", "levels_chosen")
    }
    return {
        "release": str(folder / release.main_file),
        "certificate": str(folder / f"certificate{report.removeprefix('report').removesuffix('.html')}.json"),
        "report": str(folder / report),
        "internal": str(internal),
        "guarantee": {**made, **said, "mechanism": made.pop("name")},
        "levels": levels,
        "verdict": release.verdict.text,
        "warnings": [asdict(warning) for warning in release.warnings],
        "for_you_only": [line for line in (release.insight.headline, *release.insight.lines) if line],
        "columns": [
            {
                "name": column.name,
                "shown": column.shown,
                "values": column.values,
                "occurring": column.occurring,
                "gone": list(column.gone[:_MOST_GONE]),
            }
            for column in release.verdict.columns
        ],
        "hidden": [name for name, labels in certificate.labels.items() if levels.get(name) and len(labels) == 1],
    }


def _columns(result: dict[str, Any]) -> list[str]:
    """How coarse the columns are, in words."""
    plain: dict[str, list[str]] = {}
    coarser: dict[str, list[str]] = {}
    for column in result["columns"]:
        name, shown, level = column["name"], column["shown"], result["levels"].get(column["name"])
        if not level:
            how = "Shown as they are" if shown == "as it is" else f"{shown[:1].upper()}{shown[1:]}"
            plain.setdefault(how, []).append(name)
        elif name not in result["hidden"]:
            how = shown.removeprefix(f"coarser, level {level}").replace(", ", ", then ")
            coarser.setdefault(f"Made coarser{how}", []).append(f"{name} (level {level})")
    said = {**plain, **coarser, "Hidden, all values alike": result["hidden"]}
    return [f"{how}: {', '.join(names)}." for how, names in said.items() if names]


def _verdict(console: Console, result: dict[str, Any], told: frozenset[str]) -> None:
    """What a release is good for, and what to change."""
    if not result["verdict"]:
        return
    console.print("[bold]What it is good for[/]")
    for line in result["verdict"].splitlines():
        console.print(f"  {safe(line)}", soft_wrap=True)
    for line in result["for_you_only"]:
        console.print(f"  For you only: {safe(line)}", soft_wrap=True)
    untold = [w for w in result["warnings"] if w["text"] not in told and w["code"] != _UNCONFIRMED]
    marks = sum(warning["code"] == _UNCONFIRMED for warning in result["warnings"])
    if marks:
        parts = "1 part of the policy was" if marks == 1 else f"{marks} parts of the policy were"
        text = f"{parts} read off the data, and nobody has confirmed {'it' if marks == 1 else 'them'}."
        untold.insert(0, {"code": _UNCONFIRMED, "text": text, "internal": True})
    for warning in untold[:_MOST_WARNINGS]:
        whom = "For you only: warning" if warning["internal"] else "Warning"
        console.print(f"  [yellow]{whom}[/] ({warning['code']}): {safe(warning['text'])}", soft_wrap=True)
    if len(untold) > _MOST_WARNINGS:
        console.print(f"  and {len(untold) - _MOST_WARNINGS} more warnings (--json, or the report)")


def show(console: Console, results: list[dict[str, Any]], *, empty: bool, told: frozenset[str] = frozenset()) -> None:
    """What a person sees of releases; of the warnings, those that have not been told before."""
    for result in results:
        promise = result["guarantee"]
        console.print("[bold]Published[/]" if promise["void"] is None else "[bold red]Void[/]")
        console.print(f"  release      {safe(result['release'])}")
        console.print(f"  certificate  {safe(result['certificate'])}")
        console.print(f"  report       {safe(result['report'])}")
        console.print(f"  for you only {safe(result['internal'])}/")
        console.print(safe(promise["void"] or promise["in_words"]), soft_wrap=True)
        for said in _columns(result):
            console.print(safe(said), soft_wrap=True)
        _verdict(console, result, told)
    if empty:
        console.print("It is empty: nothing could be published. The report says what would help.", soft_wrap=True)
    if results[0]["guarantee"]["void"] is not None:
        return
    where = shlex.quote(str(Path(results[0]["release"]).parent))
    console.print(f"Anyone can check it: incrowd verify {safe(where)}", soft_wrap=True)
