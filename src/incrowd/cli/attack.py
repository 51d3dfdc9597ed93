"""`incrowd attack`: unsafe methods being broken."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from incrowd.cli._shell import emit, json_option

if TYPE_CHECKING:
    from rich.console import Console

    from incrowd.api import Attack


@click.command()
@click.argument("name", required=False)
@json_option
def attack(name: str | None, as_json: bool) -> None:
    """Show an unsafe method being broken, with numbers that are computed on the spot.

    Without a name, lists the attacks.

    \b
    incrowd attack one-sample
    """
    from incrowd import api

    if name is None:
        names = api.attacks()
        emit({"attacks": list(names)}, as_json=as_json, render=lambda console: console.print("\n".join(names)))
        return
    shown = api.attack(name)
    told = {key: value for key, value in asdict(shown).items() if key != "pictures"}
    emit(told, as_json=as_json, render=lambda console: _show(console, shown))


def _show(console: Console, attack: Attack) -> None:
    console.print(f"[bold]{attack.title}[/]")
    for step in attack.story:
        console.print(f"  {step}")
    console.print(f"[bold]{'knows':>9}[/]  {attack.knows}")
    console.print(f"[bold]{'sees':>9}[/]  {attack.sees} {attack.drawn}")
    for heading, finding in (("claimed", attack.claim), ("observed", attack.observed), ("safe", attack.safe)):
        console.print(f"[bold]{heading:>9}[/]  {finding.value:.4g}  {finding.text}")
    console.print(attack.lesson)
