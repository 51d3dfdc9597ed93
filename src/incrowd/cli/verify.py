"""`incrowd verify`: what a stranger can check."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from incrowd.cli._shell import FAILED, emit, file_name, json_option, release_name, safe

if TYPE_CHECKING:
    from rich.console import Console

    from incrowd.api import Check, Verification

_CERTIFIED = re.compile("(.+/)[^/]+ is the file certified")
_FEW_FILES = 3


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


def _folded(checks: Sequence[Check]) -> Iterator[Check]:
    """The checks, those of the many files of a folder that are as certified being one."""
    files = Counter(map(_folder_certified, checks))
    many = {folder for folder, number in files.items() if folder is not None and number > _FEW_FILES}
    for check in checks:
        folder = _folder_certified(check)
        if folder in many:
            many.remove(folder)
            yield replace(check, name=f"the {files[folder]} files in {folder} are the files certified")
        elif folder is None or files[folder] <= _FEW_FILES:
            yield check


def _folder_certified(check: Check) -> str | None:
    """The folder of the file that such a check was about, and has found as certified."""
    about = _CERTIFIED.fullmatch(check.name) if check.holds else None
    return about and about[1]


def _show(console: Console, found: Verification) -> None:
    for check in _folded(found.checks):
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
