"""`incrowd verify`: what a stranger can check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from incrowd.cli._shell import FAILED, emit, file_name, json_option, release_name, safe

if TYPE_CHECKING:
    from rich.console import Console

    from incrowd.api import Verification


@click.command()
@click.argument("folder", type=release_name)
@click.option("--key", type=file_name, help="The publisher's public key (PEM) to check against.")
@click.option("--rigorous", is_flag=True, help="Enclose every number of the promise by ball arithmetic, too.")
@json_option
def verify(folder: str, key: str | None, rigorous: bool, as_json: bool) -> int:
    """Check a release against its certificate, without the original data.

    Counts every crowd again, derives ε and δ again, makes the report again, checks every digest, and says which key has
    signed and what it must take on trust. The exit code is 0 if every check holds and 3 if one does not.
    """
    from incrowd import api

    found = api.verify(folder, key, rigorous=rigorous)
    payload = {
        "valid": found.valid,
        "rehearsal": found.rehearsal,
        "signature": {"key": found.signed_by, "compared": found.compared},
        "checks": found.checks,
        "claimed": found.claimed,
    }
    failed = [f"{folder} is not valid: {check.name}: {check.detail}" for check in found.checks if not check.holds]
    emit(payload, as_json=as_json, render=lambda console: _show(console, found), failed=failed)
    return 0 if found.valid else FAILED


def _show(console: Console, found: Verification) -> None:
    for check in found.checks:
        mark = "[green]✓[/]" if check.holds else "[bold red]✗[/]"
        detail = "" if check.holds else f": {safe(check.detail)}"
        console.print(f"{mark} {safe(check.name)}{detail}", soft_wrap=True)
    console.print("[dim]Taken on trust:[/]")
    for claim in found.claimed:
        console.print(f"[dim]·[/] {safe(claim)}", soft_wrap=True)
    console.print(safe(found.signature), soft_wrap=True)
    if found.rehearsal:
        console.print("[bold red]Void[/]: a rehearsal, which promises nothing.")
    console.print("[bold green]Valid[/]" if found.valid else "[bold red]NOT valid[/]")
